//! `tki-attest clean`.

use crate::clean::{Cleaned, Extent, clean};
use crate::cli::{CleanArgs, Common, Format};
use crate::commands::output;
use crate::exit::Exit;
use crate::failure::Failure;
use tki_text::printable;

/// Removes containers and volumes of ours, scratch directories that no process holds any
/// more, and what runs remember.
pub fn execute(args: &CleanArgs, common: Common) -> Result<Exit, Failure> {
    let extent = Extent {
        dry_run: args.dry_run,
        force: args.force,
    };
    let cleaned = clean(&args.engine.sought(), extent)?;
    match args.format {
        Format::Json => output::print_json(&cleaned)?,
        Format::Text if common.quiet => {}
        Format::Text if cleaned.is_empty() => output::print("nothing to clean\n")?,
        Format::Text => {
            for one in &cleaned {
                let what = printable(&one.what, 200);
                output::print(&format!("{:<13} {what}\n", one.action))?;
            }
        }
    }
    match cleaned.iter().any(Cleaned::has_failed) {
        true => Ok(Exit::Blocked),
        false => Ok(Exit::Done),
    }
}
