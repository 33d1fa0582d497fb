//! What an interrupted run left behind: containers and volumes on an engine, scratch
//! directories that no process holds any more, and what runs remember.

use crate::clock;
use crate::engine::api::volumes::VOLUME;
use crate::engine::choice::{Choice, Sought};
use crate::engine::local::Remains;
use crate::engine::names::is_id;
use crate::engine::{Engine, Leftover};
use crate::failure::Failure;
use crate::host::claim;
use crate::state::{Left, State};
use serde::Serialize;

/// What carries our label and is not ours stays, with or without `--force`.
const NOT_OURS: &str = "kept (not ours)";
const NOT_REMOVED: &str = "not removed";
const REMOVED: &str = "removed";
const WOULD_REMOVE: &str = "would remove";

/// A container, a volume, a directory or a file, and what happened to it.
#[derive(Debug, Serialize)]
pub struct Cleaned {
    /// What it is.
    pub what: String,
    /// What was done about it.
    pub action: &'static str,
}

impl Cleaned {
    /// It should have been removed, and could not be.
    pub fn has_failed(&self) -> bool {
        self.action == NOT_REMOVED
    }
}

/// How far cleaning goes.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Only say what would be removed.
    pub dry_run: bool,
    /// Also remove containers of runs whose time limit has not passed yet.
    pub force: bool,
}

/// Removes what runs left behind, and nothing else.
pub fn clean(sought: &Sought, extent: Extent) -> Result<Vec<Cleaned>, Failure> {
    let mut engine = sought.connect()?;
    let mut cleaned = containers(engine.as_mut(), sought.choice, extent)?;
    cleaned.extend(claim::leftovers().iter().map(|folder| {
        let what = format!("directory {}", folder.display());
        removal(what, extent, || claim::remove(folder))
    }));
    if let Some(state) = State::here() {
        cleaned.extend(forget(&state, extent));
    }
    Ok(cleaned)
}

fn containers(
    engine: &mut dyn Engine,
    choice: Choice,
    extent: Extent,
) -> Result<Vec<Cleaned>, Failure> {
    let now = clock::now();
    let mut found = engine.leftovers()?;
    // Whichever engine was chosen: a keeper has none that could be asked.
    let remains = (choice == Choice::First).then(Remains::here);
    let known = |leftover: &Leftover| found.iter().any(|other| other.id == leftover.id);
    let mut keepers = remains.as_ref().map_or(Vec::new(), Remains::leftovers);
    keepers.retain(|leftover| !known(leftover));
    let listed = found.len();
    found.extend(keepers);
    let mut cleaned = Vec::new();
    for (number, leftover) in found.into_iter().enumerate() {
        let action = action(&leftover, now, extent);
        match &remains {
            _ if action != REMOVED => {}
            Some(remains) if number >= listed => remains.remove(&leftover.id),
            _ => engine.remove(&leftover.id)?,
        }
        cleaned.push(Cleaned {
            what: shown(&leftover),
            action,
        });
    }
    Ok(cleaned)
}

fn shown(leftover: &Leftover) -> String {
    // A name tells nothing if it is cut.
    let id = match leftover.id.get(..64).is_some_and(is_id) {
        true => &leftover.id[..12],
        false => &leftover.id,
    };
    let why = leftover.foreign.map(|why| format!(": {why}"));
    let why = why.unwrap_or_default();
    match id.starts_with(VOLUME) {
        true => format!("{id} of run {}{why}", leftover.run_id),
        false => format!(
            "container {id} of run {} ({}){why}",
            leftover.run_id, leftover.state
        ),
    }
}

fn action(leftover: &Leftover, now: u64, extent: Extent) -> &'static str {
    if leftover.foreign.is_some() {
        return NOT_OURS;
    }
    let in_use = leftover.deadline.is_some_and(|deadline| now <= deadline);
    match (in_use && !extent.force, extent.dry_run) {
        (true, _) => "kept (in use)",
        (false, true) => WOULD_REMOVE,
        (false, false) => REMOVED,
    }
}

fn removal(what: String, extent: Extent, remove: impl FnOnce() -> std::io::Result<()>) -> Cleaned {
    let (what, action) = match extent.dry_run {
        true => (what, WOULD_REMOVE),
        false => match remove() {
            Ok(()) => (what, REMOVED),
            Err(error) => (format!("{what}: {error}"), NOT_REMOVED),
        },
    };
    Cleaned { what, action }
}

/// Removes what runs remember.
fn forget(state: &State, extent: Extent) -> Vec<Cleaned> {
    let foreign = |what: String| Cleaned {
        what: format!("state {what}"),
        action: NOT_OURS,
    };
    let left = match state.left() {
        Ok(left) => left,
        // A link or another user's directory is not looked into.
        Err(why) => return vec![foreign(why.to_string())],
    };
    let one = |Left { path, foreign: why }: Left| {
        let shown = path.display();
        match why {
            Some(why) => foreign(format!("{shown}: {why}")),
            None => removal(format!("state {shown}"), extent, || {
                state.remove(path.file_name().unwrap_or_default())
            }),
        }
    };
    left.into_iter().map(one).collect()
}
