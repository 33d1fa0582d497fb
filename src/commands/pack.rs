//! `tki-attest pack`.

use crate::cli::{Common, Format, PackArgs};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::pack::check::check;
use crate::pack::init::init;
use crate::pack::make::{Order, pack};
use crate::report::pack as report;
use crate::report::table::Paint;
use serde::Serialize;

/// Makes an evidence packet, begins one, or checks one.
pub fn execute(args: &PackArgs, common: Common) -> Result<Exit, Failure> {
    let paint = Paint::stdout(common.color);
    if args.init {
        let begun = init(&args.dir, args.claims.as_deref())?;
        return print(args, common, &begun, report::begun(&begun), Exit::Done);
    }
    if args.check {
        let checked = check(&args.dir)?;
        let exit = match checked.problems.is_empty() {
            true => Exit::Done,
            false => Exit::Usage,
        };
        return print(
            args,
            common,
            &checked,
            report::checked(&checked, paint),
            exit,
        );
    }
    let packed = pack(&Order {
        folder: args.dir.clone(),
        claims: args.claims.clone(),
        out: args.out.clone(),
        as_of: args.as_of.clone(),
    })?;
    let text = report::packed(&packed, common.verbose, paint);
    print(args, common, &packed, text, Exit::Done)
}

fn print(
    args: &PackArgs,
    common: Common,
    result: &impl Serialize,
    text: String,
    exit: Exit,
) -> Result<Exit, Failure> {
    match args.format {
        Format::Json => output::print_json(result)?,
        Format::Text if common.quiet && exit == Exit::Done => {}
        Format::Text => output::print(&text)?,
    }
    Ok(exit)
}
