//! Whether crun can run on this host's cgroups, and which groups a user's Podman may use.

use crate::engine::support::Support;
use crate::host::groups::ROOT;
use std::path::Path;

/// Control groups of version 2 that were delegated to the user. Without systemd Podman
/// makes none for a user, and drops the limits, unless it is named a group to make them in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delegated {
    /// The group, as Podman is named it.
    pub parent: Option<String>,
    /// The controllers that it hands on.
    pub controllers: Vec<String>,
}

impl Delegated {
    /// Those of this process's user.
    pub fn here() -> Self {
        Self::of(&Support::here())
    }

    fn of(support: &Support) -> Self {
        let groups = [
            ("pids", &support.pids),
            ("memory", &support.memory),
            ("cpu", &support.cpu),
        ];
        let group = groups.iter().find_map(|(_, group)| group.as_deref());
        let below = group.and_then(|group| group.strip_prefix(ROOT).ok());
        // What is not plain text would be another group by the time that Podman reads it.
        let parent = below
            .and_then(Path::to_str)
            .filter(|_| support.version == 2);
        let Some(parent) = parent else {
            return Self::default();
        };
        let handed = groups.iter().filter(|(_, group)| group.is_some());
        Self {
            parent: Some(format!("/{parent}")),
            controllers: handed.map(|(name, _)| (*name).to_owned()).collect(),
        }
    }
}

/// Why crun cannot run here, if it cannot: it refuses a host whose version 1
/// hierarchies stand beside a version 2 hierarchy that has controllers.
pub fn crun_refuses(cgroups: &Path) -> Option<&'static str> {
    if cgroups.join("cgroup.controllers").exists() {
        return None;
    }
    let beside = std::fs::read_to_string(cgroups.join("unified/cgroup.controllers")).ok()?;
    (!beside.trim().is_empty())
        .then_some("crun cannot run on this host's cgroups (versions 1 and 2 side by side)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_group_is_named_as_podman_knows_it() {
        let group = Some("/sys/fs/cgroup/user.slice/x".into());
        let support = |version| Support {
            version,
            pids: group.clone(),
            memory: None,
            swap: false,
            cpu: group.clone(),
        };
        let found = Delegated::of(&support(2));
        assert_eq!(found.parent.as_deref(), Some("/user.slice/x"));
        assert_eq!(found.controllers, ["pids", "cpu"]);
        assert_eq!(Delegated::of(&support(1)), Delegated::default());
        assert_eq!(Delegated::of(&Support::default()), Delegated::default());
    }

    #[test]
    fn only_a_hybrid_with_controllers_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(crun_refuses(folder.path()), None, "version 1 alone");
        at("unified/cgroup.controllers", "\n");
        assert_eq!(crun_refuses(folder.path()), None, "nothing in version 2");
        at("unified/cgroup.controllers", "hugetlb\n");
        assert!(crun_refuses(folder.path()).is_some());
        at("cgroup.controllers", "cpu memory pids\n");
        assert_eq!(crun_refuses(folder.path()), None, "version 2 alone");
    }
}
