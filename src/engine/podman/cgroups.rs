//! Whether crun can run on this host's cgroups.

use std::path::Path;

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
