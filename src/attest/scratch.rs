//! The host's side of /in and /out.
//!
//! A bind inherits the flags of the mount it comes from. So both directories
//! lie on a small tmpfs of our own, mounted `noexec,nosuid,nodev` with a size,
//! where the host lets us mount one. As soon as the container runs, it holds
//! that file system by itself, and the host's mount and directory are taken
//! away: nothing is left to clean up, whatever happens to us afterwards.

//!
//! Modes below that directory are open, so that a denial inside can only come from the
//! mount. The directory itself is this user's alone, and so nobody else reaches them: an
//! engine runs as root or as this user, and binds what lies below. Everything is made by
//! descriptor, and modes are opened last.

use crate::attest::janitor::Janitor;
use crate::failure::Failure;
use crate::files::{Folder, folder_of, is_folder, is_trusted};
use crate::sandbox::profile::{Limits, USER};
use rustix::fs::{FlockOperation, Gid, Stat, Uid, fchown, flock};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use tki_evidence::evidence::OutBacking;
use tki_evidence::settings::Memory;

/// All scratch directories are called this and the run's id.
const PREFIX: &str = "tki-attest-";
/// Held locked by the run that the directory belongs to.
const LOCK: &str = ".tki-attest-run";

/// Mounts something on a directory.
type Cover<'a> = dyn Fn(&Path) -> rustix::io::Result<()> + 'a;

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
    fn make(parent: Folder, name: &str, cover: Option<&Cover>) -> io::Result<Self> {
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

    fn is_mounted(&self) -> bool {
        self.mounted == Some(Ok(()))
    }

    fn remove(&mut self) {
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

/// The host's side of /in and /out, gone when dropped.
#[derive(Debug)]
pub struct Scratch<'a> {
    janitor: &'a Janitor,
    claim: Claim,
    input: Folder,
    /// What stands behind /out.
    pub(super) backing: OutBacking,
}

impl<'a> Scratch<'a> {
    /// Makes the directories, with the file that the probes try to change.
    pub fn new(run_id: &str, limits: &Limits, janitor: &'a Janitor) -> Result<Self, Failure> {
        let name = format!("{PREFIX}{run_id}");
        let failed = |error: io::Error| {
            Failure::blocked(
                "scratch.unusable",
                format!("cannot make {name} for /in and /out: {error}"),
                "make room or give the right to write there (or set TMPDIR), then run again",
            )
        };
        let parent = parent().map_err(failed)?;
        janitor.make(&parent.path().join(&name));
        let cover = |base: &Path| mount_tmpfs(base, limits);
        let claim = Claim::make(parent, &name, Some(&cover)).map_err(failed)?;
        let backing = match &claim.mounted {
            Some(Err(error)) => OutBacking {
                kind: "directory".into(),
                reason: format!("the host does not let us mount a tmpfs ({error})"),
                maker: "launcher".into(),
            },
            _ => OutBacking {
                kind: "tmpfs".into(),
                reason: format!(
                    "noexec,nosuid,nodev,size={},nr_inodes={}",
                    limits.out_bytes, limits.out_files
                ),
                maker: "launcher".into(),
            },
        };
        let input = fill(claim.folder()).map_err(failed)?;
        Ok(Self {
            janitor,
            claim,
            input,
            backing,
        })
    }

    /// The directory that holds both.
    pub fn base(&self) -> &Path {
        self.claim.folder.path()
    }

    /// The same, held.
    pub fn folder(&self) -> &Folder {
        &self.claim.folder
    }

    /// The host's side of /in, held.
    pub fn input_folder(&self) -> &Folder {
        &self.input
    }

    /// The host's side of /in.
    pub fn input(&self) -> PathBuf {
        self.base().join(INPUT)
    }

    /// The host's side of /out.
    pub fn output(&self) -> PathBuf {
        self.base().join(OUTPUT)
    }

    /// What stands behind /out.
    pub fn backing(&self) -> &OutBacking {
        &self.backing
    }

    /// The container runs and holds the file system: ours can go. A plain
    /// directory has to stay until the end.
    pub fn release(&mut self) {
        if self.claim.is_mounted() && !self.claim.gone {
            self.claim.remove();
            self.janitor.gone(self.base());
        }
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if !self.claim.gone {
            self.claim.remove();
            self.janitor.gone(self.base());
        }
    }
}

const INPUT: &str = "in";
const OUTPUT: &str = "out";

/// Makes both directories and the file that the probes try to change; gives the one for
/// /in. They are open to everybody as far as modes are concerned, and lie where nobody
/// else gets.
fn fill(base: &Folder) -> io::Result<Folder> {
    let [input, output] = [base.make(INPUT)?, base.make(OUTPUT)?];
    let text = b"The probes try to change this file.\n";
    let target = input.write("tki-probe-target", text, 0o666)?;
    for made in [target.as_fd(), input.as_fd(), output.as_fd()] {
        give_to_sandbox(made);
    }
    input.set_mode(0o777)?;
    output.set_mode(0o777)?;
    Ok(input)
}

/// Gives a file to the user of the sandbox. Without root the open modes have to do.
fn give_to_sandbox(file: impl AsFd) {
    let mut ids = USER.split(':').filter_map(|id| id.parse().ok());
    if let (Some(uid), Some(gid)) = (ids.next(), ids.next()) {
        let _ = fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    }
}

fn mount_tmpfs(base: &Path, limits: &Limits) -> rustix::io::Result<()> {
    let Memory { bytes, files } = limits.out();
    let options = CString::new(format!("size={bytes},nr_inodes={files},mode=0700"))
        .map_err(|_| rustix::io::Errno::INVAL)?;
    let flags = MountFlags::NOEXEC | MountFlags::NOSUID | MountFlags::NODEV;
    mount("tki-attest", base, "tmpfs", flags, Some(options.as_c_str()))
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
    let now = crate::clock::now();
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
#[path = "scratch_tests.rs"]
mod tests;
