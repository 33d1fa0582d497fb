//! Mounts of the service's own.
//!
//! A Podman that starts binds its storage directory onto itself. One that ends while
//! nothing is mounted takes that away again, and then leaves word of it for the others.
//! Ended between the two it leaves none: what another one mounts next, the next bind
//! covers, and it can be neither used nor removed. So the service of a run, and the
//! Podmans that its monitors start, get a mount namespace. No end of others' can
//! do that to them, nor theirs to others, and what they have mounted goes with the last
//! of them.

use crate::engine::namespaces::unshare;
use rustix::fs::{CWD, fstat, stat};
use rustix::io::Errno;
use rustix::mount::{
    MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount_change, move_mount, open_tree,
};
use std::io::Result;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Moves this thread, and what it starts from then on, into a mount namespace. Mounts
/// of the host's stay visible there as they come and go, as far as the host shares
/// them.
pub fn enter() -> Result<()> {
    // Before 5.2 the kernel has no way to show later mounts there: it does not know
    // the call, and otherwise misses the path.
    match open_tree(CWD, "", OpenTreeFlags::OPEN_TREE_CLONE) {
        Err(Errno::NOENT) => {}
        other => drop(other?),
    }
    unshare(libc::CLONE_NEWNS)?;
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave)?;
    Ok(())
}

/// A directory of the host's with what is mounted there, to be shown in another mount
/// namespace at the same path.
#[derive(Debug)]
pub struct View {
    tree: OwnedFd,
    path: PathBuf,
}

impl View {
    /// Of a directory as this thread sees it.
    pub fn of(path: &Path) -> Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        Ok(Self {
            tree: open_tree(CWD, path, flags)?,
            path: path.to_owned(),
        })
    }

    /// Shows it where this thread is, unless it is to be seen there already. It
    /// goes when the directory is removed, wherever that is done.
    pub fn show(&self) -> Result<()> {
        if stat(&self.path)?.st_dev == fstat(&self.tree)?.st_dev {
            return Ok(());
        }
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        Ok(move_mount(&self.tree, "", CWD, &self.path, flags)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    use std::sync::mpsc::channel;

    fn mount_points() -> String {
        std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap()
    }

    #[test]
    fn a_thread_in_a_shelter_sees_what_it_is_shown_and_shows_nothing() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root may mount");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (late, inner) = (folder.path().join("late"), folder.path().join("inner"));
        let file = late.join("file");
        for folder in [&late, &inner] {
            std::fs::create_dir(folder).unwrap();
        }
        let none = MountFlags::empty();
        let (views, shown) = channel::<View>();
        let (seen, sees) = channel();
        std::thread::scope(|scope| {
            let (file, inner) = (&file, &inner);
            scope.spawn(move || {
                enter().unwrap();
                mount("none", inner, "tmpfs", none, None).unwrap();
                seen.send(mount_points()).unwrap();
                let view = shown.recv().unwrap();
                assert!(!file.exists());
                // Once is enough.
                view.show().unwrap();
                view.show().unwrap();
                let (_, name) = (file, view.path.to_str().unwrap().to_owned());
                assert_eq!(std::fs::read(file).unwrap(), b"late");
                assert_eq!(mount_points().matches(&name).count(), 1);
                seen.send(String::new()).unwrap();
                // The host takes it away.
                assert!(shown.recv().is_err());
                assert!(!mount_points().contains(&name));
            });
            let inside: String = sees.recv().unwrap();
            assert!(inside.contains(inner.to_str().unwrap()));
            assert!(!mount_points().contains(inner.to_str().unwrap()));
            mount("none", &late, "tmpfs", none, None).unwrap();
            std::fs::write(file, "late").unwrap();
            views.send(View::of(&late).unwrap()).unwrap();
            sees.recv().unwrap();
            unmount(&late, UnmountFlags::DETACH).unwrap();
            std::fs::remove_dir(&late).unwrap();
            drop(views);
        });
    }
}
