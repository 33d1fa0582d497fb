//! Control groups of a container that was removed by force. Engines forget them if a
//! part of theirs was killed while the runtime made the container.
//!
//! The container's id is the engine's word, and a group with that id may be anybody's.
//! So each engine's groups are looked for only where that engine makes them, and nothing
//! is ended that is neither the prober nor a runtime about to become it.

use crate::engine::names::is_id;
use crate::engine::recover::bundle::is_ours;
use crate::host::groups::members;
use crate::host::held::Held;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often it is tried to take a group away whose last process is about to be gone,
/// and how long to wait in between.
const TRIES: u32 = 2000;
const PAUSE: Duration = Duration::from_millis(2);

/// The engine that has made the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

impl Maker {
    /// Where it makes the groups of a container when systemd does not do it for it.
    fn place(self, id: &str) -> String {
        match self {
            Self::Docker => format!("docker/{id}"),
            Self::Podman => format!("libpod_parent/libpod-{id}"),
        }
    }
}

/// Takes away groups of this host that the engine made for the container with this id, and
/// ends what is left of a container of ours in them. A group in which anything else runs
/// stays, with all that is in it.
pub fn take_away(maker: Maker, id: &str) {
    let groups = of(Path::new("/sys/fs/cgroup"), maker, id);
    for group in &groups {
        for _ in 0..TRIES {
            match fs::remove_dir(group) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    if !end_ours(group) {
                        return;
                    }
                    std::thread::sleep(PAUSE);
                }
                _ => break,
            }
        }
    }
}

/// The groups of that container in every hierarchy.
fn of(root: &Path, maker: Maker, id: &str) -> Vec<PathBuf> {
    if !is_id(id) {
        return Vec::new();
    }
    let hierarchies = fs::read_dir(root).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = hierarchies.map(|entry| entry.path()).collect();
    folders.push(root.to_owned());
    let groups = folders.iter().map(|folder| folder.join(maker.place(id)));
    let mut found: Vec<PathBuf> = groups.filter(|group| group.is_dir()).collect();
    found.sort();
    found
}

/// Ends what is in a group, if all of it is left of a container of ours; tells whether it
/// is.
fn end_ours(group: &Path) -> bool {
    let before = members(group);
    let held: Vec<Held> = before.iter().copied().filter_map(Held::of).collect();
    // What has been held and is still in the list is what the list means.
    let after = members(group);
    let held: Vec<Held> = held
        .into_iter()
        .filter(|process| {
            after
                .iter()
                .any(|pid| pid.as_raw_nonzero().get() == process.pid())
        })
        .collect();
    if !held.iter().all(is_left_of_ours) {
        return false;
    }
    for process in held {
        process.kill();
    }
    true
}

/// It is a program of ours, by the file that it executes, or a runtime that has not come so
/// far, or it has ended.
fn is_left_of_ours(process: &Held) -> bool {
    let Ok(program) = fs::read_link(process.folder().join("exe")) else {
        return process.has_ended_by(std::time::Instant::now());
    };
    let name = fs::read_to_string(process.folder().join("comm")).unwrap_or_default();
    // runc executes a copy of itself that has no name.
    let is_runc = name.starts_with("runc:[") && program == Path::new("/")
        || program.to_string_lossy().contains("runc_cloned");
    let is_runtime = |name: &str| ["runc", "crun"].contains(&name);
    let file = program.file_name().and_then(|name| name.to_str());
    is_runc || file.is_some_and(|file| is_ours(file) || is_runtime(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_that_container_and_that_engine_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let (id, other) = ("ab".repeat(32), "cd".repeat(32));
        for group in [
            format!("pids/libpod_parent/libpod-{id}"),
            format!("memory/docker/{id}"),
            format!("memory/docker/{other}"),
            format!("memory/system.slice/docker-{id}.scope"),
            format!("docker/{id}"),
        ] {
            fs::create_dir_all(folder.path().join(group)).unwrap();
        }
        let found = |maker, id: &str| of(folder.path(), maker, id);
        let docker = [format!("docker/{id}"), format!("memory/docker/{id}")];
        let docker = docker.map(|group| folder.path().join(group));
        assert_eq!(found(Maker::Docker, &id), docker);
        let podman = format!("pids/libpod_parent/libpod-{id}");
        assert_eq!(found(Maker::Podman, &id), [folder.path().join(podman)]);
        for not_an_id in ["", "..", "tki-attest-x", &id[..12]] {
            for maker in [Maker::Docker, Maker::Podman] {
                assert_eq!(found(maker, not_an_id), [""; 0].map(PathBuf::from));
            }
        }
    }

    /// A real group with another process in it.
    #[test]
    fn a_group_in_which_something_else_runs_stays() {
        let hierarchy = Path::new("/sys/fs/cgroup/pids");
        let hierarchy = match hierarchy.is_dir() {
            true => hierarchy,
            false => Path::new("/sys/fs/cgroup"),
        };
        let id = format!("{:064x}", std::process::id());
        let group = hierarchy.join(Maker::Docker.place(&id));
        let parent = group.parent().unwrap();
        let made = !parent.exists() && fs::create_dir(parent).is_ok();
        if fs::create_dir(&group).is_err() {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "skipped: {}: not root", module_path!());
            return;
        }
        let mut sleep = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        fs::write(group.join("cgroup.procs"), sleep.id().to_string()).unwrap();
        take_away(Maker::Podman, &id);
        take_away(Maker::Docker, &id);
        assert!(sleep.try_wait().unwrap().is_none(), "it was ended");
        assert!(group.is_dir());
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        take_away(Maker::Docker, &id);
        assert!(!group.exists());
        if made {
            let _ = fs::remove_dir(parent);
        }
    }
}
