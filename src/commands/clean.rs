//! `tki-attest clean`.

use crate::cli::{CleanArgs, Common, EngineName, Format};
use crate::clock;
use crate::commands::{output, shared};
use crate::engine::Leftover;
use crate::engine::api::volumes::VOLUME;
use crate::engine::local::Remains;
use crate::engine::names::is_id;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::host::claim;
use crate::state::{Left, State};
use serde::Serialize;
use tki_text::printable;

/// A container, a volume, a directory or a file, and what happened to it.
#[derive(Serialize)]
struct Row {
    what: String,
    action: &'static str,
}

/// What carries our label and is not ours stays, with or without `--force`.
const NOT_OURS: &str = "kept (not ours)";

/// Removes containers and volumes of ours, scratch directories that no process holds any
/// more, and what runs remember.
pub fn execute(args: &CleanArgs, common: Common) -> Result<Exit, Failure> {
    let mut engine = shared::connect(&args.engine)?;
    let now = clock::now();
    let mut rows = Vec::new();
    let mut found = engine.leftovers()?;
    // Whichever engine was chosen: a keeper has none that could be asked.
    let remains = match args.engine.engine {
        EngineName::Auto => Some(Remains::here()),
        _ => None,
    };
    let known = |leftover: &Leftover| found.iter().any(|other| other.id == leftover.id);
    let mut keepers = remains.as_ref().map_or(Vec::new(), Remains::leftovers);
    keepers.retain(|leftover| !known(leftover));
    let listed = found.len();
    found.extend(keepers);
    for (number, leftover) in found.into_iter().enumerate() {
        let action = action(&leftover, now, args);
        match &remains {
            _ if action != "removed" => {}
            Some(remains) if number >= listed => remains.remove(&leftover.id),
            _ => engine.remove(&leftover.id)?,
        }
        // A name tells nothing if it is cut.
        let id = match leftover.id.get(..64).is_some_and(is_id) {
            true => &leftover.id[..12],
            false => &leftover.id,
        };
        let why = leftover.foreign.map(|why| format!(": {why}"));
        let why = why.unwrap_or_default();
        let what = match id.starts_with(VOLUME) {
            true => format!("{id} of run {}{why}", leftover.run_id),
            false => format!(
                "container {id} of run {} ({}){why}",
                leftover.run_id, leftover.state
            ),
        };
        rows.push(Row { what, action });
    }
    for folder in claim::leftovers() {
        let mut what = format!("directory {}", folder.display());
        let action = match args.dry_run {
            true => "would remove",
            false => match claim::remove(&folder) {
                Ok(()) => "removed",
                Err(error) => {
                    what += &format!(": {error}");
                    "not removed"
                }
            },
        };
        rows.push(Row { what, action });
    }
    if let Some(state) = State::here() {
        rows.extend(forget(&state, args.dry_run));
    }
    match args.format {
        Format::Json => output::print_json(&rows)?,
        Format::Text if common.quiet => {}
        Format::Text if rows.is_empty() => output::print("nothing to clean\n")?,
        Format::Text => {
            for row in &rows {
                let what = printable(&row.what, 200);
                output::print(&format!("{:<13} {what}\n", row.action))?;
            }
        }
    }
    match rows.iter().any(|row| row.action == "not removed") {
        true => Ok(Exit::Blocked),
        false => Ok(Exit::Done),
    }
}

/// Removes what runs remember.
fn forget(state: &State, dry_run: bool) -> Vec<Row> {
    let row = |what: String, action| Row {
        what: format!("state {what}"),
        action,
    };
    let left = match state.left() {
        Ok(left) => left,
        // A link or somebody else's directory is not looked into.
        Err(why) => return vec![row(why.to_string(), NOT_OURS)],
    };
    let one = |Left { path, foreign }: Left| {
        let shown = path.display();
        if let Some(why) = foreign {
            return row(format!("{shown}: {why}"), NOT_OURS);
        }
        match dry_run {
            true => row(shown.to_string(), "would remove"),
            false => match state.remove(path.file_name().unwrap_or_default()) {
                Ok(()) => row(shown.to_string(), "removed"),
                Err(error) => row(format!("{shown}: {error}"), "not removed"),
            },
        }
    };
    left.into_iter().map(one).collect()
}

fn action(leftover: &Leftover, now: u64, args: &CleanArgs) -> &'static str {
    if leftover.foreign.is_some() {
        return NOT_OURS;
    }
    let in_use = leftover.deadline.is_some_and(|deadline| now <= deadline);
    match (in_use && !args.force, args.dry_run) {
        (true, _) => "kept (in use)",
        (false, true) => "would remove",
        (false, false) => "removed",
    }
}
