//! What a run could leave behind, and the proof that it did not.

use super::proxy::Proxy;
use super::{docker, eventually, names_in};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Containers that carry our label.
pub fn our_containers() -> Vec<String> {
    let label = "label=dev.tki.attest.run";
    docker(&["ps", "-aq", "--no-trunc", "--filter", label])
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Volumes that carry our label.
pub fn our_volumes() -> Vec<String> {
    let label = "label=dev.tki.attest.run";
    docker(&["volume", "ls", "-q", "--filter", label])
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Scratch directories and mounts of runs, by run id.
fn scratch() -> BTreeSet<String> {
    let id = |name: &str| name.strip_prefix("tki-attest-").map(str::to_owned);
    let folders = names_in(Path::new("/run"));
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounts = table.lines().filter_map(|line| {
        let point = line.split(' ').nth(4)?;
        id(point.strip_prefix("/run/")?)
    });
    mounts
        .chain(folders.iter().filter_map(|name| id(name)))
        .collect()
}

/// What was there before a run.
pub struct Before {
    containers: BTreeSet<String>,
    volumes: BTreeSet<String>,
    scratch: BTreeSet<String>,
}

impl Before {
    /// Looks now.
    pub fn look() -> Self {
        Self {
            containers: our_containers().into_iter().collect(),
            volumes: our_volumes().into_iter().collect(),
            scratch: scratch(),
        }
    }

    /// No container, volume, directory or mount has come to stay. Another run on the
    /// same machine may be under way at this moment, so this may take a while;
    /// [`nothing_left`] is exact.
    #[track_caller]
    pub fn nothing_new(&self) {
        eventually("nothing new is left", || {
            our_containers()
                .iter()
                .all(|id| self.containers.contains(id))
                && our_volumes().iter().all(|id| self.volumes.contains(id))
                && scratch().is_subset(&self.scratch)
        });
    }
}

/// The runs that created a container through this proxy left, at this moment,
/// no container, no volume, no directory and no mount.
#[track_caller]
pub fn nothing_left(proxy: &Proxy) {
    let scratch = scratch();
    for id in proxy.run_ids() {
        let name = format!("name=^tki-attest-{id}$");
        assert_eq!(docker(&["ps", "-aq", "--filter", &name]), "", "{id}");
        let label = format!("label=dev.tki.attest.run={id}");
        let volumes = docker(&["volume", "ls", "-q", "--filter", &label]);
        assert_eq!(volumes, "", "{id}");
        assert!(!scratch.contains(&id), "{id}");
    }
}

/// Nothing was written into an output directory, finished or not.
#[track_caller]
pub fn nothing_written(out: &Path) {
    if out.is_dir() {
        assert_eq!(names_in(out), [""; 0]);
    }
}
