//! Control groups of a container that was removed by force. Engines forget them if a
//! part of theirs was killed while the runtime made the container.

use crate::engine::api::names::is_id;
use crate::engine::local::remove_groups;
use std::path::{Path, PathBuf};

/// Takes away groups of this host that an engine made for the container with this
/// id, and ends what is still in them.
pub fn take_away(id: &str) {
    remove_groups(&of(Path::new("/sys/fs/cgroup"), id));
}

/// Where Docker and Podman make groups when systemd does not do it for them.
fn of(root: &Path, id: &str) -> Vec<PathBuf> {
    if !is_id(id) {
        return Vec::new();
    }
    let hierarchies = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = hierarchies.map(|entry| entry.path()).collect();
    folders.push(root.to_owned());
    let places = [format!("docker/{id}"), format!("libpod_parent/libpod-{id}")];
    let groups = folders
        .iter()
        .flat_map(|folder| places.iter().map(move |place| folder.join(place)));
    let mut found: Vec<PathBuf> = groups.filter(|group| group.is_dir()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_that_container_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let (id, other) = ("ab".repeat(32), "cd".repeat(32));
        for group in [
            format!("pids/libpod_parent/libpod-{id}"),
            format!("memory/docker/{id}"),
            format!("memory/docker/{other}"),
            format!("docker/{id}"),
        ] {
            std::fs::create_dir_all(folder.path().join(group)).unwrap();
        }
        let wanted = [
            format!("docker/{id}"),
            format!("memory/docker/{id}"),
            format!("pids/libpod_parent/libpod-{id}"),
        ];
        let wanted = wanted.map(|group| folder.path().join(group));
        assert_eq!(of(folder.path(), &id), wanted);
        for not_an_id in ["", "..", "tki-attest-x", &id[..12]] {
            assert_eq!(of(folder.path(), not_an_id), [""; 0].map(PathBuf::from));
        }
    }
}
