//! `tki-attest probes`.

use crate::cli::{Common, Format, ProbesArgs};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::probes as report;
use crate::report::table::Paint;

/// Prints the catalogue.
pub fn execute(args: &ProbesArgs, common: Common) -> Result<Exit, Failure> {
    let rows = report::rows();
    match args.format {
        Format::Json => output::print_json(&rows)?,
        Format::Text => {
            let paint = Paint::stdout(common.color);
            output::print(&report::render(&rows, common.verbose, paint))?;
        }
    }
    Ok(Exit::Done)
}
