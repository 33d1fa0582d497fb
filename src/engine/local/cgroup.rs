//! Control groups of our own: setting limits, and taking the groups away again.

use super::binds::read_only_bind;
use super::orphans;
use crate::engine::support::Support;
use crate::host::groups::{ROOT, members};
use crate::host::held::Held;
use rustix::mount::mount_bind;
use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tki_evidence::settings::Settings;

/// Groups for one container, made by its keeper. Dropping them ends it: every
/// process that the keeper has started.
#[derive(Debug)]
pub struct Groups {
    version: u8,
    folders: Vec<PathBuf>,
}

impl Groups {
    /// Makes groups with this name and the limits of the settings.
    pub fn make(name: &str, settings: &Settings, support: &Support) -> Result<Self> {
        let mut groups = Self {
            version: support.version,
            folders: Vec::new(),
        };
        let two = support.version == 2;
        if let (Some(parent), 1..) = (&support.pids, settings.pids_limit) {
            let folder = groups.below(parent, name)?;
            write(&folder, "pids.max", settings.pids_limit)?;
        }
        if let (Some(parent), 1..) = (&support.memory, settings.memory_bytes) {
            let folder = groups.below(parent, name)?;
            let (memory, both) = (settings.memory_bytes, settings.memory_swap_bytes);
            let file = if two {
                "memory.max"
            } else {
                "memory.limit_in_bytes"
            };
            write(&folder, file, memory)?;
            match (support.swap && both > 0, two) {
                (true, true) => write(&folder, "memory.swap.max", both - memory)?,
                (true, false) => write(&folder, "memory.memsw.limit_in_bytes", both)?,
                (false, _) => {}
            }
        }
        if let (Some(parent), 1..) = (&support.cpu, settings.cpu_quota_us) {
            let folder = groups.below(parent, name)?;
            let (quota, period) = (settings.cpu_quota_us, settings.cpu_period_us);
            if two {
                fs::write(folder.join("cpu.max"), format!("{quota} {period}"))?;
            } else {
                write(&folder, "cpu.cfs_period_us", period)?;
                write(&folder, "cpu.cfs_quota_us", quota)?;
            }
        }
        Ok(groups)
    }

    /// The group below another, made if that has not been done: controllers
    /// may share a hierarchy.
    fn below(&mut self, parent: &Path, name: &str) -> Result<PathBuf> {
        let folder = parent.join(name);
        if !self.folders.contains(&folder) {
            fs::create_dir(&folder)?;
            self.folders.push(folder.clone());
        }
        Ok(folder)
    }

    /// The group that counts CPU time.
    pub fn counters(&self) -> Option<&Path> {
        let counts = |folder: &&PathBuf| folder.join("cpu.stat").exists();
        self.folders.iter().find(counts).map(PathBuf::as_path)
    }

    /// A view of the group that counts CPU time, read-only unless a control asks for
    /// another, and where engines show it.
    pub fn show(&self, place: &Path, writable: bool) -> Result<Option<(String, String)>> {
        let Some(folder) = self.counters() else {
            return Ok(None);
        };
        let source = place.join("group");
        fs::create_dir(&source)?;
        match writable {
            true => mount_bind(folder, &source)?,
            false => read_only_bind(folder, &source)?,
        }
        let target = match self.version {
            1 => "/sys/fs/cgroup/cpu",
            _ => ROOT,
        };
        Ok(Some((source.to_string_lossy().into_owned(), target.into())))
    }

    /// Puts a process, and so its children to come, into the groups.
    pub fn enter(&self, pid: i32) -> Result<()> {
        for folder in &self.folders {
            write(folder, "cgroup.procs", i64::from(pid))?;
        }
        Ok(())
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        orphans::end(|_| true);
        remove_all(&self.folders);
    }
}

fn write(folder: &Path, file: &str, value: i64) -> Result<()> {
    fs::write(folder.join(file), value.to_string())
}

/// The group with this name that counts CPU time.
pub fn counters(name: &str) -> String {
    let root = Path::new(ROOT);
    let parent = if root.join("cgroup.controllers").exists() {
        root.to_owned()
    } else {
        root.join("cpu")
    };
    parent.join(name).to_string_lossy().into_owned()
}

/// Every group that may have groups of ours below it, in whichever hierarchy:
/// libcontainer makes one in each.
fn parents(support: &Support) -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut found = vec![root.to_owned()];
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        // Some hierarchies have two names, one of them a link.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    let delegated = [&support.pids, &support.memory, &support.cpu];
    found.extend(delegated.into_iter().flatten().cloned());
    found.sort();
    found.dedup();
    found
}

/// Every group with this name.
pub fn named(name: &str, support: &Support) -> Vec<PathBuf> {
    let mut found = parents(support);
    for folder in &mut found {
        folder.push(name);
    }
    found.retain(|folder| folder.join("cgroup.procs").exists());
    found
}

/// Names of groups with this prefix that have been empty for long.
pub fn abandoned(prefix: &str, support: &Support) -> Vec<String> {
    const LONG: Duration = Duration::from_secs(60);
    let mut names = Vec::new();
    for parent in parents(support) {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let empty = fs::read_to_string(entry.path().join("cgroup.procs"))
                .is_ok_and(|processes| processes.is_empty());
            let old = entry
                .metadata()
                .and_then(|found| found.modified())
                .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > LONG));
            if name.starts_with(prefix) && empty && old {
                names.push(name);
            }
        }
    }
    names.sort();
    names.dedup();
    names
}

/// Kills every process in groups of ours. Each is held before the list is read again, so
/// that none is killed that only has the number of one.
fn kill_all(folder: &Path) {
    let held: Vec<Held> = members(folder).into_iter().filter_map(Held::of).collect();
    let still = members(folder);
    let is_in = |held: &&Held| {
        still
            .iter()
            .any(|pid| pid.as_raw_nonzero().get() == held.pid())
    };
    held.iter().filter(is_in).for_each(Held::kill);
}

/// Takes groups away in which nothing is.
pub fn remove_empty(folders: &[PathBuf]) {
    for folder in folders {
        let _ = fs::remove_dir(folder);
    }
}

/// Takes groups away, and ends whatever is in them. The last process may need a
/// moment to be gone, and on a busy machine a long one.
pub fn remove_all(folders: &[PathBuf]) {
    const TRIES: u32 = 2000;
    for folder in folders {
        for _ in 0..TRIES {
            match fs::remove_dir(folder) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    kill_all(folder);
                    std::thread::sleep(Duration::from_millis(2));
                }
                _ => break,
            }
        }
    }
}
