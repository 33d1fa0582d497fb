//! The host's side of /in and /out.
//!
//! A bind inherits the flags of the mount it comes from. So both directories
//! lie on a small tmpfs of our own, mounted `noexec,nosuid,nodev` with a size,
//! where the host lets us mount one. As soon as the container runs, it holds
//! that file system by itself, and the host's mount and directory are taken
//! away: nothing is left to clean up, whatever happens to us afterwards.
//!
//! What an inspection reads lies on a second tmpfs, mounted on the directory behind /in, with room
//! for just that: /out has the size that was attested, whatever /in takes. Both go together.
//!
//! Modes below that directory are open, so that a denial inside can only come from the
//! mount. The directory itself is this user's alone, and so nobody else reaches them: an
//! engine runs as root or as this user, and binds what lies below. Everything is made by
//! descriptor, and modes are opened last.

use crate::files::Folder;
use crate::host::claim::{Claim, PREFIX, parent};
use crate::host::error::HostError;
use crate::host::janitor::Janitor;
use rustix::fs::{Gid, Uid, fchown};
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use tki_evidence::evidence::OutBacking;
use tki_evidence::settings::Memory;

/// The host's side of /in and /out, gone when dropped.
#[derive(Debug)]
pub struct Scratch<'a> {
    janitor: &'a Janitor,
    claim: Claim,
    input: Folder,
    /// What stands behind /out.
    backing: OutBacking,
}

/// What is behind /in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The file that the probes try to change, beside /out.
    Target,
    /// Nothing yet, with room of its own for so much.
    Room(Memory),
}

impl<'a> Scratch<'a> {
    /// Makes the directories. `size` is that of /out, `owner` the sandbox's user (`UID:GID`),
    /// and `maker` who evidence says has made them.
    pub fn new(
        run_id: &str,
        size: Memory,
        input: Input,
        owner: &str,
        maker: &str,
        janitor: &'a Janitor,
    ) -> Result<Self, HostError> {
        let name = format!("{PREFIX}{run_id}");
        let failed = |error: io::Error| HostError::Scratch {
            name: name.clone(),
            error,
        };
        let parent = parent().map_err(failed)?;
        janitor.make(&parent.path().join(&name));
        let cover = |base: &Path| mount_tmpfs(base, size);
        let claim = Claim::make(parent, &name, Some(&cover)).map_err(failed)?;
        let backing = match claim.mounted() {
            Some(Err(error)) => OutBacking {
                kind: "directory".into(),
                reason: format!("the host does not let us mount a tmpfs ({error})"),
                maker: maker.to_owned(),
            },
            _ => OutBacking {
                kind: "tmpfs".into(),
                reason: format!(
                    "noexec,nosuid,nodev,size={},nr_inodes={}",
                    size.bytes, size.files
                ),
                maker: maker.to_owned(),
            },
        };
        let input = match input {
            Input::Target => fill(claim.folder(), owner),
            Input::Room(room) => make_room(claim.folder(), owner, claim.is_mounted(), room),
        };
        let input = input.map_err(failed)?;
        Ok(Self {
            janitor,
            claim,
            input,
            backing,
        })
    }

    /// The directory that holds both.
    pub fn base(&self) -> &Path {
        self.claim.folder().path()
    }

    /// The same, held.
    pub fn folder(&self) -> &Folder {
        self.claim.folder()
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
        if self.claim.is_mounted() && !self.claim.is_gone() {
            self.claim.remove();
            self.janitor.gone(self.base());
        }
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if !self.claim.is_gone() {
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
fn fill(base: &Folder, owner: &str) -> io::Result<Folder> {
    let input = base.make(INPUT)?;
    let text = b"The probes try to change this file.\n";
    let target = input.write("tki-probe-target", text, 0o666)?;
    for made in [target.as_fd(), input.as_fd()] {
        give_to(owner, made);
    }
    input.set_mode(0o777)?;
    make_output(base, owner)?;
    Ok(input)
}

/// Makes both directories, that for /in empty, and with a file system of its own if the one of
/// both is one of ours. What comes there belongs to this user, and the mount inside is read-only.
fn make_room(base: &Folder, owner: &str, mounted: bool, room: Memory) -> io::Result<Folder> {
    let mut input = base.make(INPUT)?;
    if mounted {
        mount_tmpfs(&input.alias(), room)?;
        // What was held lies below the mount.
        input = base.enter(INPUT)?;
    }
    input.set_mode(0o755)?;
    make_output(base, owner)?;
    Ok(input)
}

fn make_output(base: &Folder, owner: &str) -> io::Result<()> {
    let output = base.make(OUTPUT)?;
    give_to(owner, output.as_fd());
    output.set_mode(0o777)
}

/// Gives a file to the sandbox's user. Without root the open modes have to do.
fn give_to(owner: &str, file: impl AsFd) {
    let mut ids = owner.split(':').filter_map(|id| id.parse().ok());
    if let (Some(uid), Some(gid)) = (ids.next(), ids.next()) {
        let _ = fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    }
}

fn mount_tmpfs(base: &Path, size: Memory) -> rustix::io::Result<()> {
    let Memory { bytes, files } = size;
    let options = CString::new(format!("size={bytes},nr_inodes={files},mode=0700"))
        .map_err(|_| rustix::io::Errno::INVAL)?;
    let flags = MountFlags::NOEXEC | MountFlags::NOSUID | MountFlags::NODEV;
    mount("tki-attest", base, "tmpfs", flags, Some(options.as_c_str()))
}

#[cfg(test)]
#[path = "scratch_tests.rs"]
mod tests;
