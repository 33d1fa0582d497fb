//! Keepers that have outlived their tool. A keeper ends with its tool, and the container
//! with its keeper; one that could not, because it was stopped, is found here.

use super::cgroup;
use super::keeper::ARGUMENT;
use crate::engine::contract::Leftover;
use crate::engine::names::run_of;
use crate::engine::support::Support;
use crate::host::held::{Held, is_same};
use crate::host::system::is_root;
use std::fs;
use std::path::Path;

/// What [`Leftover::id`] begins with if nothing tells the container's name.
const UNNAMED: &str = "keeper-";

/// How deep below a keeper its container is looked for: bubblewrap is in between.
const DEPTH: usize = 3;

/// A keeper without a tool, and all that it has started.
struct Abandoned {
    keeper: Held,
    below: Vec<Held>,
    /// The container's name.
    name: Option<String>,
}

impl Abandoned {
    /// The keeper, if this process is one, of this user's, whose tool is gone.
    fn of(process: Held) -> Option<Self> {
        if !is_keeper(&process) || !is_parent_gone(&process) {
            return None;
        }
        let below = below(&process, DEPTH);
        let name = below.iter().find_map(container_of);
        Some(Self {
            keeper: process,
            below,
            name,
        })
    }

    fn id(&self) -> String {
        let unnamed = || format!("{UNNAMED}{}", self.keeper.pid());
        self.name.clone().unwrap_or_else(unnamed)
    }
}

fn abandoned() -> impl Iterator<Item = Abandoned> {
    Held::all().filter_map(Abandoned::of)
}

/// Keepers without a tool, as leftovers.
pub fn leftovers() -> Vec<Leftover> {
    let rows = abandoned().map(|found| Leftover {
        id: found.id(),
        run_id: match found.name.as_deref().and_then(run_of) {
            Some(run) => run.id,
            None => "unknown".into(),
        },
        state: "keeper without its tool".into(),
        deadline: None,
        foreign: None,
    });
    rows.collect()
}

/// Ends the keeper with this id, if it still is one without a tool, and its container.
/// Takes its control groups away.
pub fn end(id: &str, support: &Support) {
    for found in abandoned().filter(|found| found.id() == id) {
        // What was started since then goes with the keeper's death.
        found.keeper.end_with(found.below);
        if let Some(name) = found.name {
            cgroup::remove_all(&cgroup::named(&name, support));
        }
    }
}

/// It is a keeper of this user's: this tool, executed with the one argument that makes it
/// one, as this user alone and where this process is.
fn is_keeper(process: &Held) -> bool {
    let line = process.command_line().unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0).skip(1);
    let is_told = words.next() == Some(ARGUMENT.as_bytes()) && words.all(<[u8]>::is_empty);
    is_told
        && process.is_wholly_ours()
        && process.shares(&["pid"])
        && is_tool(process) != Some(false)
}

/// It executes this tool. `None` if that cannot be told: in a user namespace of its own,
/// which only a user who is not root gives a keeper.
fn is_tool(process: &Held) -> Option<bool> {
    let theirs = process.folder().join("exe");
    let ours = Path::new("/proc/self/exe");
    match (fs::metadata(&theirs), fs::metadata(ours)) {
        (Ok(theirs), Ok(ours)) if is_same(&theirs, &ours) => Some(true),
        // One that was replaced since then has the name of what is there now.
        (Ok(_), Ok(_)) => Some(name_of(&theirs).is_some_and(|name| name_of(ours) == Some(name))),
        _ if is_root() => Some(false),
        _ => None,
    }
}

/// The name of an executable.
fn name_of(link: &Path) -> Option<String> {
    let path = fs::read_link(link).ok()?;
    let name = path.file_name()?.to_str()?.to_owned();
    Some(name.trim_end_matches(" (deleted)").to_owned())
}

/// The tool that has started it has ended. The process it was handed on to is not one.
fn is_parent_gone(process: &Held) -> bool {
    let Some(parent) = process.parent() else {
        return true;
    };
    match Held::of(parent) {
        Some(parent) => is_tool(&parent) == Some(false) || parent.pid() == 1,
        // It ended while it was looked at: the next time tells.
        None => false,
    }
}

/// All that a process has started, and what that has.
fn below(process: &Held, depth: usize) -> Vec<Held> {
    let mut found = Vec::new();
    for child in process.children(|_| true) {
        if depth > 1 {
            found.extend(below(&child, depth - 1));
        }
        found.push(child);
    }
    found
}

/// The name of the container of ours that a process is in, by its control groups.
fn container_of(process: &Held) -> Option<String> {
    let membership = fs::read_to_string(process.folder().join("cgroup")).ok()?;
    let mut groups = membership.split(['/', '\n']);
    groups
        .find(|group| run_of(group).is_some())
        .map(str::to_owned)
}
