//! Control groups of our own: which limits this host can carry, setting them,
//! and taking the groups away again.

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Result;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tki_evidence::settings::Settings;

/// Where control groups are mounted, by convention.
const ROOT: &str = "/sys/fs/cgroup";

/// Which limits control groups can carry here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Support {
    /// 1, 2, or 0 if there are none that we may use.
    pub version: u8,
    /// Processes.
    pub pids: bool,
    /// Memory.
    pub memory: bool,
    /// Memory and swap together.
    pub swap: bool,
    /// CPU time.
    pub cpu: bool,
}

impl Support {
    /// What this process may use.
    pub fn here() -> Self {
        let usable = |folder: &Path| access(folder, Access::WRITE_OK).is_ok();
        let root = Path::new(ROOT);
        if root.join("cgroup.controllers").exists() {
            // Below the root, which is not bound by the rule that a group with
            // processes has no groups below it.
            let offered = fs::read_to_string(root.join("cgroup.subtree_control"));
            let offered = offered.unwrap_or_default();
            let has = |name: &str| offered.split_whitespace().any(|word| word == name);
            if !usable(root) {
                return Self::default();
            }
            return Self {
                version: 2,
                pids: has("pids"),
                memory: has("memory"),
                swap: has("memory"),
                cpu: has("cpu"),
            };
        }
        let has = |name: &str, file: &str| {
            let folder = root.join(name);
            usable(&folder) && (file.is_empty() || folder.join(file).exists())
        };
        let support = Self {
            version: 1,
            pids: has("pids", ""),
            memory: has("memory", "memory.limit_in_bytes"),
            swap: has("memory", "memory.memsw.limit_in_bytes"),
            cpu: has("cpu", "cpu.cfs_quota_us"),
        };
        if support.pids || support.memory || support.cpu {
            support
        } else {
            Self::default()
        }
    }
}

/// Groups for one container.
#[derive(Debug)]
pub struct Groups {
    folders: Vec<PathBuf>,
}

impl Groups {
    /// Makes groups with this name and the limits of the settings.
    pub fn make(name: &str, settings: &Settings, support: Support) -> Result<Self> {
        let mut groups = Self {
            folders: Vec::new(),
        };
        let root = Path::new(ROOT);
        let quota = (settings.cpu_quota_us, settings.cpu_period_us);
        if support.version == 2 {
            let folder = groups.add(root.join(name))?;
            if settings.pids_limit > 0 {
                write(&folder, "pids.max", settings.pids_limit)?;
            }
            if settings.memory_bytes > 0 {
                write(&folder, "memory.max", settings.memory_bytes)?;
                if settings.memory_swap_bytes > 0 {
                    let swap = settings.memory_swap_bytes - settings.memory_bytes;
                    write(&folder, "memory.swap.max", swap)?;
                }
            }
            if quota.0 > 0 {
                fs::write(folder.join("cpu.max"), format!("{} {}", quota.0, quota.1))?;
            }
            return Ok(groups);
        }
        if support.pids && settings.pids_limit > 0 {
            let folder = groups.add(root.join("pids").join(name))?;
            write(&folder, "pids.max", settings.pids_limit)?;
        }
        if support.memory && settings.memory_bytes > 0 {
            let folder = groups.add(root.join("memory").join(name))?;
            write(&folder, "memory.limit_in_bytes", settings.memory_bytes)?;
            if support.swap && settings.memory_swap_bytes > 0 {
                let both = settings.memory_swap_bytes;
                write(&folder, "memory.memsw.limit_in_bytes", both)?;
            }
        }
        if support.cpu && quota.0 > 0 {
            let folder = groups.add(root.join("cpu").join(name))?;
            write(&folder, "cpu.cfs_period_us", quota.1)?;
            write(&folder, "cpu.cfs_quota_us", quota.0)?;
        }
        Ok(groups)
    }

    fn add(&mut self, folder: PathBuf) -> Result<PathBuf> {
        fs::create_dir(&folder)?;
        self.folders.push(folder.clone());
        Ok(folder)
    }

    /// A read-only view of the group that counts CPU time, and where engines
    /// show it.
    pub fn show(&self, place: &Path) -> std::result::Result<Option<(String, String)>, String> {
        let counts = |folder: &&PathBuf| folder.join("cpu.stat").exists();
        let Some(folder) = self.folders.iter().find(counts) else {
            return Ok(None);
        };
        let source = place.join("group");
        let shown = fs::create_dir(&source)
            .and_then(|()| Ok(super::keeper::bwrap::read_only_bind(folder, &source)?));
        shown.map_err(|error| format!("showing the control group: {error}"))?;
        let target = if folder.starts_with(Path::new(ROOT).join("cpu")) {
            "/sys/fs/cgroup/cpu"
        } else {
            ROOT
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

/// Every group with this name, in whichever hierarchy.
pub fn named(name: &str) -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut found = vec![root.join(name)];
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        // Some hierarchies have two names, one of them a link.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path().join(name));
        }
    }
    found.retain(|folder| folder.join("cgroup.procs").exists());
    found
}

/// Names of groups with this prefix that have been empty for long, in whichever
/// hierarchy.
pub fn abandoned(prefix: &str) -> Vec<String> {
    const LONG: Duration = Duration::from_secs(60);
    let root = Path::new(ROOT);
    let below = fs::read_dir(root).into_iter().flatten().flatten();
    let hierarchies = below
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path());
    let mut names = Vec::new();
    for parent in hierarchies.chain([root.to_owned()]) {
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

/// Kills every process in groups of ours.
pub fn kill_all(folders: &[PathBuf]) {
    for folder in folders {
        let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        for pid in list.lines().filter_map(|line| line.parse().ok()) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Takes groups away. The last process may need a moment to be gone.
pub fn remove_all(folders: &[PathBuf]) {
    for folder in folders {
        for _ in 0..200 {
            match fs::remove_dir(folder) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                _ => break,
            }
        }
    }
}
