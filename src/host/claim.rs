//! Directories of a run's own on this host, in the place for such directories: made,
//! locked while the run is alive, found again once it is not, and taken away.

use crate::clock;
use crate::files::{Folder, folder_of, is_folder, is_trusted};
use rustix::fs::{FlockOperation, Stat, flock};
use rustix::mount::{UnmountFlags, unmount};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// All scratch directories are called this and the run's id.
pub(super) const PREFIX: &str = "tki-attest-";
/// Held locked by the run that the directory belongs to.
const LOCK: &str = ".tki-attest-run";

/// Mounts something on a directory.
pub(super) type Cover<'a> = dyn Fn(&Path) -> rustix::io::Result<()> + 'a;

/// A directory of a run's own in the place for such directories. It is this user's alone,
/// and a lock in it says that the run is alive. Gone when dropped.
#[derive(Debug)]
pub struct Claim {
    parent: Folder,
    name: String,
    folder: Folder,
    mounted: Option<rustix::io::Result<()>>,
    gone: bool,
    _lock: File,
}

impl Claim {
    /// Makes one called `name` in `parent`. `cover` may mount something on it before
    /// anything is made there.
    pub(super) fn make(parent: Folder, name: &str, cover: Option<&Cover>) -> io::Result<Self> {
        let mut folder = parent.make(name)?;
        let mounted = cover.map(|cover| cover(&folder.alias()));
        if let Some(Ok(())) = mounted {
            // What was held lies below the mount.
            folder = parent.enter(name)?;
        }
        let claimed = folder.create(LOCK, 0o600).inspect_err(|_| {
            take_away(&parent, name, mounted == Some(Ok(())));
        })?;
        let _ = flock(&claimed, FlockOperation::NonBlockingLockExclusive);
        Ok(Self {
            parent,
            name: name.to_owned(),
            folder,
            mounted,
            gone: false,
            _lock: claimed,
        })
    }

    /// The directory.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// What became of the mount that was asked for, if one was.
    pub(super) fn mounted(&self) -> Option<rustix::io::Result<()>> {
        self.mounted
    }

    pub(super) fn is_mounted(&self) -> bool {
        self.mounted == Some(Ok(()))
    }

    /// It has been taken away.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    pub(super) fn remove(&mut self) {
        if !std::mem::replace(&mut self.gone, true) {
            take_away(&self.parent, &self.name, self.is_mounted());
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes a directory of ours, or what is mounted there.
fn take_away(parent: &Folder, name: &str, mounted: bool) {
    if mounted {
        let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
        let _ = unmount(parent.alias().join(name), flags);
        let _ = parent.remove_folder(name);
    } else {
        let _ = parent.remove_all(name);
    }
}

/// Where an engine may put what it needs until the container has started. It is
/// called like the others, and locked like them, so that `clean` finds it.
pub fn beside(run_id: &str) -> PathBuf {
    let name = format!("{PREFIX}{run_id}-engine");
    match parent() {
        Ok(parent) => parent.path().join(name),
        Err(_) => name.into(),
    }
}

/// Makes the directory that [`beside`] names.
pub fn claim(path: &Path) -> io::Result<Claim> {
    let name = path.file_name().and_then(OsStr::to_str);
    let name = name.ok_or(io::ErrorKind::InvalidInput)?;
    Claim::make(Folder::open(folder_of(path))?, name, None)
}

/// Where scratch directories are made: a place that engines see too, and in which nobody
/// else can exchange what is ours.
pub fn parent() -> io::Result<Folder> {
    let candidates = [
        Some(PathBuf::from("/run")),
        std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
        Some(std::env::temp_dir()),
    ];
    let mut why = None;
    for path in candidates.into_iter().flatten() {
        if rustix::fs::access(&path, rustix::fs::Access::WRITE_OK).is_err() {
            continue;
        }
        match Folder::open(&path) {
            Ok(folder) if folder.stat().is_ok_and(|found| is_safe(&found)) => return Ok(folder),
            Ok(_) => {
                let text = format!("{}: other users can exchange what is in it", path.display());
                why = Some(io::Error::other(text));
            }
            Err(error) => why = Some(io::Error::other(format!("{}: {error}", path.display()))),
        }
    }
    Err(why.unwrap_or_else(|| io::Error::other("there is no directory that can be written to")))
}

/// Nobody but root and this user can rename or remove what this user makes there.
fn is_safe(parent: &Stat) -> bool {
    const STICKY: u32 = 0o1000;
    is_trusted(parent.st_uid) && (parent.st_mode & 0o022 == 0 || parent.st_mode & STICKY != 0)
}

/// What interrupted runs left: directories of ours whose process no longer
/// holds their lock.
pub fn leftovers() -> Vec<PathBuf> {
    let Ok(parent) = parent() else {
        return Vec::new();
    };
    let names = parent.names().unwrap_or_default().into_iter();
    let abandoned = names.filter(|name| is_abandoned(&parent, name).unwrap_or(false));
    abandoned.map(|name| parent.path().join(name)).collect()
}

/// A directory that is called like ours and belongs to this user, and that no run holds.
/// What others have put there is theirs, and is not even opened.
fn is_abandoned(parent: &Folder, name: &OsStr) -> io::Result<bool> {
    let ours = |found: &Stat| {
        is_folder(found)
            && found.st_uid == rustix::process::geteuid().as_raw()
            && found.st_mode & 0o022 == 0
    };
    if !name.to_string_lossy().starts_with(PREFIX) || !parent.look(name)?.as_ref().is_some_and(ours)
    {
        return Ok(false);
    }
    let folder = parent.enter(name)?;
    Ok(match folder.open_file(LOCK)? {
        Some(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        // Ended between making the directory and its lock, long ago: a run
        // that has just begun may be between the two as well.
        None => is_old_and_empty(&folder),
    })
}

fn is_old_and_empty(folder: &Folder) -> bool {
    const LONG_AGO: u64 = 600;
    let now = clock::now();
    let old = folder.stat().is_ok_and(|found| {
        u64::try_from(found.st_mtime).is_ok_and(|then| now.saturating_sub(then) > LONG_AGO)
    });
    old && folder.names().is_ok_and(|names| names.is_empty())
}

/// Takes a leftover away; an error if it is still there then.
pub fn remove(base: &Path) -> io::Result<()> {
    let name = base.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = parent()?;
    if parent.path().join(name) != base {
        let why = "it is not where such directories are made";
        return Err(io::Error::other(why));
    }
    let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
    let _ = unmount(parent.alias().join(name), flags);
    parent.remove_all(name)
}

#[cfg(test)]
#[path = "claim_tests.rs"]
pub(super) mod tests;
