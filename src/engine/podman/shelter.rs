//! Mounts of the service's own.
//!
//! A Podman that starts binds its storage directory onto itself. One that ends while
//! nothing is mounted takes that away again, and then leaves word of it for the others.
//! Ended between the two it leaves none: what another one mounts next, the next bind
//! covers, and it can be neither used nor removed. So the service of a run, and the
//! Podmans that its monitors start, get a mount namespace. No end of others' can
//! do that to them, nor theirs to others, and what they have mounted goes with the last
//! of them.

use crate::host::namespaces::unshare;
use rustix::fs::{CWD, fstat, stat};
use rustix::io::Errno;
use rustix::mount::{
    MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount_change, move_mount, open_tree,
};
use std::io::Result;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Moves this thread, and what it starts from then on, into a mount namespace; tells
/// whether it is there. Mounts of the host's stay visible as they come and go, as far as the
/// host shares them.
pub fn enter() -> Result<bool> {
    // Before 5.2 the kernel has no way to show later mounts there: it does not know
    // the call, and otherwise misses the path.
    let knows_how = open_tree(CWD, "", OpenTreeFlags::OPEN_TREE_CLONE).err() == Some(Errno::NOENT);
    if !knows_how || unshare(libc::CLONE_NEWNS).is_err() {
        return Ok(false);
    }
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave)?;
    Ok(true)
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

    fn has_mount(point: &Path) -> bool {
        let table = std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
        table.matches(&format!(" {} ", point.display())).count() == 1
    }

    fn mount_memory(point: &Path) {
        mount("none", point, "tmpfs", MountFlags::empty(), None).unwrap();
    }

    /// A host may show later mounts to everybody by itself, or not.
    #[test]
    fn a_thread_in_a_shelter_sees_what_it_is_shown_and_shows_nothing() {
        if !rustix::process::geteuid().is_root() {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "skipped: {}: not root", module_path!());
            return;
        }
        for kind in [
            MountPropagationFlags::PRIVATE,
            MountPropagationFlags::SHARED,
        ] {
            let folder = tempfile::tempdir().unwrap();
            mount_memory(folder.path());
            mount_change(folder.path(), kind).unwrap();
            let (late, own) = (folder.path().join("late"), folder.path().join("own"));
            for folder in [&late, &own] {
                std::fs::create_dir(folder).unwrap();
            }
            let (late, own) = (late.as_path(), own.as_path());
            let (views, shown) = channel::<View>();
            let (done, seen) = channel();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    assert!(enter().unwrap());
                    mount_memory(own);
                    done.send(()).unwrap();
                    let view = shown.recv().unwrap();
                    let is_shared = kind == MountPropagationFlags::SHARED;
                    assert_eq!(late.join("file").exists(), is_shared);
                    // Once is enough.
                    view.show().unwrap();
                    view.show().unwrap();
                    assert!(has_mount(late));
                    assert_eq!(std::fs::read(late.join("file")).unwrap(), b"late");
                    done.send(()).unwrap();
                    // The host takes it away.
                    assert!(shown.recv().is_err());
                    assert!(has_mount(own) && !has_mount(late));
                });
                seen.recv().unwrap();
                assert!(!has_mount(own));
                mount_memory(late);
                std::fs::write(late.join("file"), "late").unwrap();
                views.send(View::of(late).unwrap()).unwrap();
                seen.recv().unwrap();
                unmount(late, UnmountFlags::DETACH).unwrap();
                std::fs::remove_dir(late).unwrap();
                drop(views);
            });
            unmount(folder.path(), UnmountFlags::DETACH).unwrap();
        }
    }
}
