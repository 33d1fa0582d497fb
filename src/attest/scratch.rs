//! The host's side of /in and /out.
//!
//! A bind inherits the flags of the mount it comes from. So both directories
//! lie on a small tmpfs of our own, mounted `noexec,nosuid,nodev` with a size,
//! where the host lets us mount one. As soon as the container runs, it holds
//! that file system by itself, and the host's mount and directory are taken
//! away: nothing is left to clean up, whatever happens to us afterwards.

use crate::attest::janitor::Janitor;
use crate::failure::Failure;
use crate::sandbox::profile::{Limits, USER};
use rustix::fs::{FlockOperation, Mode, flock};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tki_evidence::evidence::OutBacking;

/// All scratch directories are called this and the run's id.
const PREFIX: &str = "tki-attest-";
/// Held locked by the run that the directory belongs to.
pub const LOCK: &str = ".tki-attest-run";

/// The host's side of /in and /out, gone when dropped.
#[derive(Debug)]
pub struct Scratch<'a> {
    janitor: &'a Janitor,
    base: PathBuf,
    mounted: bool,
    released: bool,
    backing: OutBacking,
    _lock: File,
}

impl<'a> Scratch<'a> {
    /// Makes the directories, with the file that the probes try to change.
    pub fn new(run_id: &str, limits: &Limits, janitor: &'a Janitor) -> Result<Self, Failure> {
        let base = parent().join(format!("{PREFIX}{run_id}"));
        janitor.make(&base);
        let failed = |what: &str, error: std::io::Error| {
            Failure::blocked(
                "scratch.unusable",
                format!("{what} {}: {error}", base.display()),
                "make room or give the right to write there (or set TMPDIR), then run again",
            )
        };
        // Traversable, because the engine may not be root; nothing else.
        rustix::fs::mkdir(&base, Mode::from_raw_mode(0o711))
            .map_err(|error| failed("cannot make", error.into()))?;
        let mounted = mount_tmpfs(&base, limits);
        let backing = match &mounted {
            Ok(()) => OutBacking {
                kind: "tmpfs".into(),
                reason: format!("noexec,nosuid,nodev,size={}", limits.out_bytes),
            },
            Err(error) => OutBacking {
                kind: "directory".into(),
                reason: format!("the host does not let us mount a tmpfs ({error})"),
            },
        };
        let lock = File::create(base.join(LOCK)).map_err(|error| failed("cannot write", error));
        let lock = match lock {
            Ok(lock) => lock,
            Err(failure) => {
                take_away(&base, mounted.is_ok());
                return Err(failure);
            }
        };
        let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        let scratch = Self {
            janitor,
            base,
            mounted: mounted.is_ok(),
            released: false,
            backing,
            _lock: lock,
        };
        scratch.fill().map_err(|error| {
            Failure::blocked(
                "scratch.unusable",
                format!("cannot prepare {}: {error}", scratch.base.display()),
                "make room there, then run again",
            )
        })?;
        Ok(scratch)
    }

    fn fill(&self) -> std::io::Result<()> {
        let target = self.input().join("tki-probe-target");
        // Open to everybody as far as modes are concerned, so that a denial
        // can only come from the mount.
        for folder in [self.input(), self.output()] {
            fs::create_dir(&folder)?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o777))?;
        }
        fs::write(&target, "The probes try to change this file.\n")?;
        fs::set_permissions(&target, fs::Permissions::from_mode(0o666))?;
        let mut ids = USER.split(':').filter_map(|id| id.parse().ok());
        if let (Some(uid), Some(gid)) = (ids.next(), ids.next()) {
            for path in [self.input(), self.output(), target] {
                // Without root the open modes have to do.
                let _ = std::os::unix::fs::chown(path, Some(uid), Some(gid));
            }
        }
        Ok(())
    }

    /// The directory that holds both.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// The host's side of /in.
    pub fn input(&self) -> PathBuf {
        self.base.join("in")
    }

    /// The host's side of /out.
    pub fn output(&self) -> PathBuf {
        self.base.join("out")
    }

    /// What stands behind /out.
    pub fn backing(&self) -> &OutBacking {
        &self.backing
    }

    /// The container runs and holds the file system: ours can go. A plain
    /// directory has to stay until the end.
    pub fn release(&mut self) {
        if self.mounted && !self.released {
            take_away(&self.base, true);
            self.janitor.gone(&self.base);
            self.released = true;
        }
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if !self.released {
            take_away(&self.base, self.mounted);
            self.janitor.gone(&self.base);
        }
    }
}

fn mount_tmpfs(base: &Path, limits: &Limits) -> rustix::io::Result<()> {
    let options = CString::new(format!("size={},nr_inodes=1k,mode=0711", limits.out_bytes))
        .map_err(|_| rustix::io::Errno::INVAL)?;
    let flags = MountFlags::NOEXEC | MountFlags::NOSUID | MountFlags::NODEV;
    mount("tki-attest", base, "tmpfs", flags, Some(options.as_c_str()))
}

fn take_away(base: &Path, mounted: bool) {
    if mounted {
        let _ = unmount(base, UnmountFlags::DETACH);
        let _ = fs::remove_dir(base);
    } else {
        let _ = fs::remove_dir_all(base);
    }
}

/// Where an engine may put what it needs until the container has started. It is
/// called like the others, and locked like them, so that `clean` finds it.
pub fn beside(run_id: &str) -> PathBuf {
    parent().join(format!("{PREFIX}{run_id}-engine"))
}

/// Where scratch directories are made: a place that engines see too.
fn parent() -> PathBuf {
    let candidates = [
        Some(PathBuf::from("/run")),
        std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
    ];
    candidates
        .into_iter()
        .flatten()
        .find(|path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok())
        .unwrap_or_else(std::env::temp_dir)
}

/// What interrupted runs left: directories of ours whose process no longer
/// holds their lock.
pub fn leftovers() -> Vec<PathBuf> {
    let mut abandoned_ones = Vec::new();
    let entries = fs::read_dir(parent()).into_iter().flatten().flatten();
    for entry in entries {
        let base = entry.path();
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !ours {
            continue;
        }
        let abandoned = match File::open(base.join(LOCK)) {
            Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
            // Ended between making the directory and its lock, long ago: a run
            // that has just begun may be between the two as well.
            Err(_) => is_old_and_empty(&base),
        };
        if abandoned {
            abandoned_ones.push(base);
        }
    }
    abandoned_ones
}

fn is_old_and_empty(base: &Path) -> bool {
    const LONG_AGO: std::time::Duration = std::time::Duration::from_secs(600);
    let old = fs::metadata(base)
        .and_then(|metadata| metadata.modified())
        .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > LONG_AGO));
    old && fs::read_dir(base).is_ok_and(|mut entries| entries.next().is_none())
}

/// Takes a leftover away.
pub fn remove(base: &Path) {
    let _ = unmount(base, UnmountFlags::DETACH);
    take_away(base, false);
}
