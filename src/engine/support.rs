//! Which limits control groups can carry here, and below which groups they are
//! made. For root these are the first groups of each hierarchy. For others they
//! are what was delegated to them: with version 1 the group that this process is
//! in, with version 2, where a group with processes hands no controller on, the
//! nearest one above it that does.

use crate::host::groups::{Places, ROOT};
use crate::host::system::is_root;
use rustix::fs::{Access, Mode, OFlags, access, open};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tki_evidence::described::local::Carried;
use tki_evidence::settings::Settings;

/// Which limits control groups can carry here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// 1, 2, or 0 if there are none that we may use.
    pub version: u8,
    /// The group below which one with a limit of processes can be made.
    pub pids: Option<PathBuf>,
    /// The same for memory.
    pub memory: Option<PathBuf>,
    /// Memory and swap can be limited together.
    pub swap: bool,
    /// The same for CPU time.
    pub cpu: Option<PathBuf>,
}

impl Support {
    /// What this process may use, found out once.
    pub fn here() -> Self {
        static FOUND: OnceLock<Support> = OnceLock::new();
        FOUND.get_or_init(Self::look).clone()
    }

    fn look() -> Self {
        let places = Places::of_this_thread();
        let place = |controller: &str| places.of(controller);
        let root = is_root();
        let support = if Path::new(ROOT).join("cgroup.controllers").exists() {
            match place("") {
                None => Self::default(),
                Some(place) if root => Self::of_root_in_version_2(&place.mounted),
                Some(place) => Self::of_version_2(&place.own, &place.mounted),
            }
        } else {
            Self::of_version_1(|controller| {
                let found = place(controller)?;
                Some(if root { found.mounted } else { found.own })
            })
        };
        match support {
            Self {
                version: 1,
                pids: None,
                memory: None,
                cpu: None,
                ..
            } => Self::default(),
            some => some,
        }
    }

    /// The first group, which is not bound by the rule that a group with processes
    /// hands no controller on. Root can have groups there even if none has limits.
    fn of_root_in_version_2(first: &Path) -> Self {
        match Self::of_version_2(first, first) {
            Self { version: 0, .. } if can_make_in(first) => Self {
                version: 2,
                ..Self::default()
            },
            found => found,
        }
    }

    /// Each controller has a hierarchy, and so a group, of its own.
    fn of_version_1(group: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let usable = |controller: &str, file: &str| {
            group(controller).filter(|folder| folder.join(file).exists() && can_make_in(folder))
        };
        let memory = usable("memory", "memory.limit_in_bytes");
        Self {
            version: 1,
            pids: usable("pids", "cgroup.procs"),
            swap: memory
                .as_ref()
                .is_some_and(|folder| folder.join("memory.memsw.limit_in_bytes").exists()),
            memory,
            cpu: usable("cpu", "cpu.cfs_quota_us"),
        }
    }

    /// The nearest group, from `own` up to `mounted`, that hands controllers on
    /// to groups below it and lets us make some.
    fn of_version_2(own: &Path, mounted: &Path) -> Self {
        let groups = own.ancestors().take_while(|g| g.starts_with(mounted));
        for folder in groups {
            let offered = fs::read_to_string(folder.join("cgroup.subtree_control"));
            let offered = offered.unwrap_or_default();
            let offers = |name: &str| {
                let there = offered.split_whitespace().any(|word| word == name);
                there.then(|| folder.to_owned())
            };
            let found = Self {
                version: 2,
                pids: offers("pids"),
                memory: offers("memory"),
                swap: offers("memory").is_some() && Path::new("/proc/swaps").exists(),
                cpu: offers("cpu"),
            };
            let some = found.pids.is_some() || found.memory.is_some() || found.cpu.is_some();
            // A process goes from one group to another only for a process that may
            // write to what both have above them.
            if some
                && access(folder.join("cgroup.procs"), Access::WRITE_OK).is_ok()
                && can_make_in(folder)
            {
                return found;
            }
        }
        Self::default()
    }

    /// What control groups carry of the limits that are wanted.
    pub fn carried(&self, wanted: &Settings) -> Carried {
        let carried = |can: bool, value: i64| if can { value } else { 0 };
        Carried {
            pids_limit: carried(self.pids.is_some(), wanted.pids_limit),
            memory_bytes: carried(self.memory.is_some(), wanted.memory_bytes),
            memory_swap_bytes: carried(self.swap, wanted.memory_swap_bytes),
            cpu_period_us: carried(self.cpu.is_some(), wanted.cpu_period_us),
            cpu_quota_us: carried(self.cpu.is_some(), wanted.cpu_quota_us),
        }
    }

    /// The same groups by descriptors, which lead there whatever is mounted
    /// over them later. They must be kept for as long as the paths are used.
    pub fn held(&self) -> Result<(Self, Vec<OwnedFd>)> {
        let mut descriptors = Vec::new();
        let mut hold = |group: &Option<PathBuf>| -> Result<Option<PathBuf>> {
            let Some(group) = group else {
                return Ok(None);
            };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let held = open(group, flags, Mode::empty())?;
            let path = format!("/proc/self/fd/{}", held.as_raw_fd());
            descriptors.push(held);
            Ok(Some(path.into()))
        };
        let support = Self {
            pids: hold(&self.pids)?,
            memory: hold(&self.memory)?,
            cpu: hold(&self.cpu)?,
            ..self.clone()
        };
        Ok((support, descriptors))
    }
}

/// Asked of the kernel, not tried: a group made to see whether it can be would stay
/// if the tool were killed at that moment.
fn can_make_in(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree with the files that matter, as systemd 252 leaves them for a user.
    fn session(folder: &Path) -> PathBuf {
        let own = folder.join("user.slice/user@1000.service/app.slice/run-u7.scope");
        fs::create_dir_all(&own).unwrap();
        let offers = [
            ("", "cpuset cpu io memory hugetlb pids rdma misc\n"),
            ("user.slice", "cpu memory pids\n"),
            ("user.slice/user@1000.service", "cpu memory pids\n"),
            ("user.slice/user@1000.service/app.slice", "memory pids\n"),
            ("user.slice/user@1000.service/app.slice/run-u7.scope", ""),
        ];
        for (group, text) in offers {
            fs::write(folder.join(group).join("cgroup.subtree_control"), text).unwrap();
            fs::write(folder.join(group).join("cgroup.procs"), "").unwrap();
        }
        own
    }

    /// Our own group has processes and hands nothing on; the one above does.
    #[test]
    fn with_version_2_the_nearest_group_that_hands_controllers_on_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let own = session(folder.path());
        let slice = own.parent().unwrap().to_owned();
        let found = Support::of_version_2(&own, folder.path());
        let wanted = Support {
            version: 2,
            pids: Some(slice.clone()),
            memory: Some(slice.clone()),
            swap: true,
            cpu: None,
        };
        assert_eq!(found, wanted);
        // Root uses the first group, with whatever it hands on.
        let first = Support::of_root_in_version_2(folder.path());
        assert_eq!(first.cpu, Some(folder.path().to_owned()));
        // Without anything handed on there is nothing, and nothing is left.
        fs::write(slice.join("cgroup.subtree_control"), "io\n").unwrap();
        let upper = Support::of_version_2(&own, &slice);
        assert_eq!(upper, Support::default());
        let bare = Support::of_root_in_version_2(&slice);
        assert_eq!((bare.version, bare.pids, bare.cpu), (2, None, None));
        let left = fs::read_dir(&slice).unwrap().count();
        assert_eq!(left, 3, "two files and the scope");
    }

    #[test]
    fn a_controller_that_is_missing_is_missed() {
        let folder = tempfile::tempdir().unwrap();
        let group = |name: &str| Some(folder.path().join(name));
        for (name, file) in [
            ("memory", "memory.limit_in_bytes"),
            ("cpu", "cpu.cfs_quota_us"),
        ] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join(file), "-1\n").unwrap();
        }
        let found = Support::of_version_1(group);
        assert_eq!((found.version, &found.pids, found.swap), (1, &None, false));
        assert_eq!(found.memory, group("memory"));
        assert_eq!(found.cpu, group("cpu"));
        let none = Support::of_version_1(|_| None);
        assert_eq!((none.pids, none.memory, none.cpu), (None, None, None));
    }

    #[test]
    fn groups_are_reached_by_descriptors_whatever_lies_over_them() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("group");
        fs::create_dir(&group).unwrap();
        let support = Support {
            version: 1,
            pids: Some(group.clone()),
            ..Support::default()
        };
        let (held, descriptors) = support.held().unwrap();
        fs::rename(&group, folder.path().join("elsewhere")).unwrap();
        fs::create_dir(held.pids.as_ref().unwrap().join("below")).unwrap();
        assert!(folder.path().join("elsewhere/below").is_dir());
        assert_eq!((descriptors.len(), held.memory), (1, None));
        assert!(support.held().is_err());
    }
}
