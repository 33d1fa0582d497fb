//! `tki-attest clean`.

use crate::attest::scratch;
use crate::cli::{CleanArgs, Common, Format};
use crate::clock;
use crate::commands::{output, shared};
use crate::engine::Leftover;
use crate::exit::Exit;
use crate::failure::Failure;
use serde::Serialize;

#[derive(Serialize)]
struct Row {
    id: String,
    run_id: String,
    state: String,
    action: &'static str,
}

/// Removes containers that carry our label, and scratch directories that no
/// process holds any more.
pub fn execute(args: &CleanArgs, common: Common) -> Result<Exit, Failure> {
    let mut engine = shared::connect(&args.engine)?;
    let now = clock::now();
    let mut rows = Vec::new();
    for leftover in engine.leftovers()? {
        let action = action(&leftover, now, args);
        if action == "removed" {
            engine.remove(&leftover.id)?;
        }
        rows.push(Row {
            id: leftover.id,
            run_id: leftover.run_id,
            state: leftover.state,
            action,
        });
    }
    let folders = if args.dry_run {
        Vec::new()
    } else {
        scratch::clean()
    };
    match args.format {
        Format::Json => output::print_json(&rows)?,
        Format::Text if common.quiet => {}
        Format::Text if rows.is_empty() && folders.is_empty() => {
            output::print("nothing to clean\n")?
        }
        Format::Text => {
            for row in &rows {
                let id = row.id.get(..12).unwrap_or(&row.id);
                output::print(&format!(
                    "{:<13} container {id} of run {} ({})\n",
                    row.action, row.run_id, row.state
                ))?;
            }
            for folder in &folders {
                output::print(&format!("{:<13} {}\n", "removed", folder.display()))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn action(leftover: &Leftover, now: u64, args: &CleanArgs) -> &'static str {
    let in_use = leftover.deadline.is_some_and(|deadline| now <= deadline);
    match (in_use && !args.force, args.dry_run) {
        (true, _) => "kept (in use)",
        (false, true) => "would remove",
        (false, false) => "removed",
    }
}
