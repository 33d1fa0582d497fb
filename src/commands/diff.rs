//! `tki-attest diff`.

use crate::cli::{Common, DiffArgs, Format};
use crate::commands::error::CommandError;
use crate::commands::output;
use crate::diff::{Change, Group, compare};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::diff as report;
use crate::report::table::Paint;
use crate::verify::{Bundle, pipeline};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use tki_text::printable;

#[derive(Serialize)]
struct Differences<'a> {
    first: String,
    second: String,
    same: bool,
    changes: &'a [Change],
}

/// Compares two evidence files. They are read strictly and not verified.
pub fn execute(args: &DiffArgs, common: Common) -> Result<Exit, Failure> {
    let changes = compare(&read(&args.first)?, &read(&args.second)?);
    let same = changes.iter().all(|change| change.group == Group::Identity);
    match args.format {
        Format::Json => output::print_json(&Differences {
            first: args.first.to_string_lossy().into_owned(),
            second: args.second.to_string_lossy().into_owned(),
            same,
            changes: &changes,
        })?,
        Format::Text if common.quiet => {}
        Format::Text => {
            let head = format!(
                "{} → {}\n",
                printable(&args.first.to_string_lossy(), 200),
                printable(&args.second.to_string_lossy(), 200)
            );
            let paint = Paint::stdout(common.color);
            let text = report::render(&changes, common.verbose, paint);
            output::print(&(head + &text))?;
        }
    }
    Ok(if args.exit_code && !same {
        Exit::Disproved
    } else {
        Exit::Done
    })
}

fn read(path: &Path) -> Result<Value, Failure> {
    let bundle = Bundle::read(path)?;
    pipeline::read(&bundle.name, &bundle.evidence)?;
    Ok(serde_json::from_slice(&bundle.evidence).map_err(CommandError::Evidence)?)
}
