//! The container's first process. Its number is the engine's word, and a number says
//! little: the engine may be another machine's, or lie. So the process is held first, and
//! then this host's kernel must show that it is the container's.

use crate::host::held::{Held, is_same};
use crate::host::process::wait_for;
use crate::host::unseen::Unseen;
use rustix::process::Pid;
use std::fmt;
use std::fs::{self, File};
use std::io::{Error, Result};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tki_evidence::controller::Controller;
use tki_evidence::described::names::PROGRAMS;
use tki_evidence::facts;

/// What a process must have to be the container's first.
#[derive(Debug)]
pub struct Marks {
    /// What it must see as /in.
    input: Input,
    /// The engine makes control groups for its containers.
    has_groups: bool,
}

impl Marks {
    /// Of a container that sees this as /in, on an engine that cannot set these limits.
    pub fn new(input: Input, lacks: &[Controller]) -> Self {
        Self {
            input,
            has_groups: !Controller::ALL.iter().all(|one| lacks.contains(one)),
        }
    }

    /// The engine makes control groups for its containers.
    pub fn has_groups(&self) -> bool {
        self.has_groups
    }
}

/// What an engine says of a container's first process.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// Its number, if the engine tells it.
    pub pid: Option<i32>,
    /// What the container's control groups are called, where the engine makes any.
    pub group: &'a str,
}

/// What a container of ours sees as /in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A directory of this host, by device and number, before the container was made.
    Directory(u64, u64),
    /// A volume, by name.
    Volume(String),
    /// Nobody knows.
    Unknown,
}

impl Input {
    /// This directory of the host.
    pub fn directory(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(found) => Self::Directory(found.dev(), found.ino()),
            Err(_) => Self::Unknown,
        }
    }

    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(name) = text.strip_prefix("volume ") {
            return Some(Self::Volume(name.to_owned()));
        }
        let (device, number) = text.strip_prefix("directory ")?.split_once(' ')?;
        Some(Self::Directory(device.parse().ok()?, number.parse().ok()?))
    }
}

impl fmt::Display for Input {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(device, number) => write!(out, "directory {device} {number}"),
            Self::Volume(name) => write!(out, "volume {name}"),
            Self::Unknown => write!(out, "unknown"),
        }
    }
}

/// The container's first process, held.
#[derive(Debug)]
pub struct First {
    process: Held,
    /// What it must see as /in.
    pub input: Input,
}

impl First {
    /// The process that the engine names, if this host's kernel shows that it is the
    /// container's; otherwise why it is not taken for it.
    pub fn find(named: Named, marks: &Marks) -> std::result::Result<Self, Unseen> {
        let pid = named.pid.and_then(Pid::from_raw);
        let pid = pid.ok_or(Unseen::Unnamed)?;
        let process = Held::of(pid).ok_or(Unseen::NotHere)?;
        let first = Self {
            process,
            input: marks.input.clone(),
        };
        let read = |name: &str| fs::read_to_string(first.folder().join(name));
        if read("comm").map_or(true, |name| !PROGRAMS.contains(&name.trim_end())) {
            return Err(Unseen::NotHere);
        }
        let membership = read("cgroup").map_err(|error| Unseen::Unreadable {
            name: "cgroup",
            error,
        })?;
        if marks.has_groups && !is_in(&membership, named.group) {
            return Err(Unseen::OtherGroup(first.process.pid()));
        }
        // A user's own container shows its root to a visitor alone. What is mounted there
        // everybody may read.
        let is_root = rustix::process::geteuid().is_root();
        if is_root || matches!(first.input, Input::Volume(_)) {
            first.has_our_input().map_err(Unseen::OtherInput)?;
        }
        match first.is_there() {
            true => Ok(first),
            false => Err(Unseen::NotHere),
        }
    }

    /// What a visitor was handed: the process by its number, which `held` has held since
    /// a process looked at it.
    pub fn handed(pid: i32, held: BorrowedFd, input: Input) -> Result<Self> {
        let process = Pid::from_raw(pid).and_then(Held::of);
        let process = process.ok_or_else(gone)?;
        // Both are the same process if the one that was held first has not ended.
        let first = Self { process, input };
        match wait_for(held, Instant::now()) {
            true => Err(gone()),
            false => Ok(first),
        }
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// What the kernel shows about it.
    pub fn folder(&self) -> PathBuf {
        self.process.folder()
    }

    /// It has not ended: what was read of it since it was held is its own.
    pub fn is_there(&self) -> bool {
        !self.process.has_ended_by(Instant::now())
    }

    /// What it sees as /in is the directory or the volume of this run.
    pub fn has_our_input(&self) -> Result<()> {
        let is_ours = match &self.input {
            Input::Directory(device, number) => {
                let theirs = fs::metadata(self.folder().join("root/in"))?;
                (*device, *number) == (theirs.dev(), theirs.ino())
            }
            Input::Volume(name) => {
                let table = fs::read_to_string(self.folder().join("mountinfo"))?;
                is_volume(&table, name)
            }
            Input::Unknown => false,
        };
        match is_ours {
            true => Ok(()),
            false => Err(Error::other(format!(
                "process {} does not see the /in of this run",
                self.pid()
            ))),
        }
    }

    /// Its network namespace, which must be neither ours nor the host's.
    pub fn network(&self) -> Result<File> {
        let namespace = self.namespace("net")?;
        let found = namespace.metadata()?;
        let is_that_of = |process: &str| {
            let other = fs::metadata(Path::new("/proc").join(process).join("ns/net"));
            other.map(|other| is_same(&found, &other))
        };
        // Not everybody may look at process 1, nor root everywhere; its namespace is ours
        // unless this tool is in a container itself.
        if is_that_of("self")? || is_that_of("1").unwrap_or(false) {
            return Err(Error::other(format!(
                "process {} has no network namespace of its own",
                self.pid()
            )));
        }
        Ok(namespace)
    }

    /// One of its namespaces.
    pub fn namespace(&self, kind: &str) -> Result<File> {
        let file = File::open(self.folder().join("ns").join(kind))?;
        match self.is_there() {
            true => Ok(file),
            false => Err(gone()),
        }
    }
}

impl AsFd for First {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

/// What is mounted last at /in is the directory in which an engine keeps this volume.
fn is_volume(table: &str, name: &str) -> bool {
    let mounts = facts::mounts(table).unwrap_or_default();
    let mut inner = mounts.iter().rev();
    let input = inner.find(|mount| mount.mount_point == "/in");
    input.is_some_and(|mount| mount.root.ends_with(&format!("/{name}/_data")))
}

fn gone() -> Error {
    Error::other("the container's process is gone")
}

/// One of the groups in a `/proc/PID/cgroup` is called by this name, as engines and systemd
/// do: `NAME`, `libpod-NAME`, `docker-NAME.scope`.
pub fn is_in(membership: &str, name: &str) -> bool {
    let paths = membership
        .lines()
        .filter_map(|line| line.splitn(3, ':').nth(2));
    let mut groups = paths.flat_map(|path| path.split('/'));
    !name.is_empty()
        && groups.any(|group| {
            let group = group.strip_suffix(".scope").unwrap_or(group);
            let short = ["docker-", "libpod-"]
                .iter()
                .find_map(|p| group.strip_prefix(p));
            group == name || short == Some(name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_handed_on_as_it_is() {
        for input in [
            Input::Directory(64, 7),
            Input::Volume("tki-attest-x".into()),
        ] {
            assert_eq!(Input::parse(&input.to_string()), Some(input));
        }
        for text in ["", "unknown", "directory 7", "directory 7 x", "volume"] {
            assert_eq!(Input::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_volume_is_known_by_the_directory_that_is_mounted() {
        let line = "9 1 8:1 /var/lib/docker/volumes/tki-attest-x/_data /in ro - ext4 /dev/sda rw\n";
        assert!(is_volume(line, "tki-attest-x"));
        for name in ["", "x", "tki-attest-", "tki-attest-y"] {
            assert!(!is_volume(line, name), "{name}");
        }
        assert!(!is_volume(&line.replace("/in", "/out"), "tki-attest-x"));
        let over = format!("{line}{}", line.replace("tki-attest-x", "other"));
        assert!(!is_volume(&over, "tki-attest-x"));
    }

    #[test]
    fn a_group_is_known_by_the_containers_name() {
        let id = "ab".repeat(32);
        for path in [
            format!("8:pids:/docker/{id}"),
            format!("8:pids:/\n0::/system.slice/docker-{id}.scope"),
            format!("0::/machine.slice/libpod-{id}.scope/container"),
            format!("1:cpu:/libpod_parent/libpod-{id}"),
            format!("0::/../../docker/{id}"),
        ] {
            assert!(is_in(&path, &id), "{path}");
            assert!(!is_in(&path, &"cd".repeat(32)), "{path}");
            assert!(!is_in(&path, ""), "{path}");
        }
        for path in [
            format!("0::/docker/x{id}"),
            format!("0:{id}:/"),
            "0::/".into(),
        ] {
            assert!(!is_in(&path, &id), "{path}");
        }
        assert!(is_in("3:memory:/tki-attest-x", "tki-attest-x"));
    }
}
