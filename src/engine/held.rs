//! Processes that others have started, held while they are looked at: should the
//! number become another's meanwhile, no signal reaches that one.

use crate::engine::process::wait_for;
use crate::files::read_bounded;
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a process may take to end that was made to.
const END: Duration = Duration::from_secs(5);

/// The longest command line that is read.
const LONGEST_LINE: u64 = 1 << 20;

/// A process that is held.
#[derive(Debug)]
pub struct Held {
    descriptor: OwnedFd,
    pid: Pid,
}

impl Held {
    /// Holds a process if it is called this. The name is read once the process is
    /// held, so that it is this one's.
    pub fn named(pid: Pid, name: &str) -> Option<Self> {
        let held = Self::of(pid)?;
        let found = std::fs::read(held.folder().join("comm")).ok()?;
        (found.strip_suffix(b"\n")? == name.as_bytes()).then_some(held)
    }

    /// Holds every process of this user that is called this.
    pub fn all(name: &str) -> impl Iterator<Item = Self> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let pids = numbers.filter_map(Pid::from_raw);
        let held = pids.filter_map(move |pid| Self::named(pid, name));
        held.filter(Self::is_this_users)
    }

    fn of(pid: Pid) -> Option<Self> {
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { descriptor, pid })
    }

    fn is_this_users(&self) -> bool {
        let owner = std::fs::metadata(self.folder()).map(|folder| folder.uid());
        owner.is_ok_and(|owner| owner == geteuid().as_raw())
    }

    /// What the kernel shows about it.
    pub fn folder(&self) -> PathBuf {
        Path::new("/proc").join(self.pid.as_raw_nonzero().to_string())
    }

    /// The words that it was started with, each with a zero byte after it.
    pub fn command_line(&self) -> Option<Vec<u8>> {
        read_bounded(&self.folder().join("cmdline"), LONGEST_LINE).ok()
    }

    /// Waits until it has ended, or until then; tells whether it has.
    pub fn has_ended_by(&self, until: Instant) -> bool {
        wait_for(self.descriptor.as_fd(), until)
    }

    /// Those of its children whose name is wanted.
    pub fn children(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Self> {
        let pid = self.pid.as_raw_nonzero().to_string();
        let list = self.folder().join("task").join(&pid).join("children");
        let list = std::fs::read_to_string(list).unwrap_or_default();
        let numbers = list.split_whitespace().filter_map(|pid| pid.parse().ok());
        let children = numbers.filter_map(Pid::from_raw).filter_map(|child| {
            let child = Self::of(child)?;
            let status = std::fs::read_to_string(child.folder().join("status")).ok()?;
            let field = |name: &str| {
                let mut lines = status.lines().filter_map(|line| line.strip_prefix(name));
                lines.next().map(str::trim)
            };
            let is_its = field("PPid:")? == pid && is_wanted(field("Name:")?);
            // While the parent lives nobody else has its number.
            (is_its && !self.has_ended_by(Instant::now())).then_some(child)
        });
        children.collect()
    }

    /// Asks it to end, and does not wait.
    pub fn ask_to_end(&self) {
        let _ = pidfd_send_signal(&self.descriptor, Signal::TERM);
    }

    /// Kills it, then these, and waits until all have ended.
    pub fn end_with(self, others: Vec<Self>) {
        let all: Vec<Self> = std::iter::once(self).chain(others).collect();
        for process in &all {
            let _ = pidfd_send_signal(&process.descriptor, Signal::KILL);
        }
        let until = Instant::now() + END;
        for process in &all {
            process.has_ended_by(until);
        }
    }
}

/// The word after an option that is given exactly once.
pub fn value_of<'a>(words: &[&'a str], option: &str) -> Option<&'a str> {
    let mut values = words.windows(2).filter(|pair| pair[0] == option);
    let value = values.next().map(|pair| pair[1]);
    value.filter(|_| values.next().is_none())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    /// A process and a child of it, by their names, once both are there: the kernel
    /// tells a name a moment after the program is executed.
    pub fn parent_and_child(parent: &Child, name: &str, child: &str) -> (Held, Held) {
        let started = Instant::now();
        loop {
            let held = Held::named(Pid::from_child(parent), name);
            let children = held.as_ref().map(|held| held.children(|n| n == child));
            match (held, children.and_then(|mut children| children.pop())) {
                (Some(held), Some(child)) => return (held, child),
                _ => assert!(started.elapsed() < Duration::from_secs(50)),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_process_is_held_by_its_name_and_ended_with_its_children() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & wait"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (held, sleep) = parent_and_child(&child, "sh", "sleep");
        assert!(Held::named(Pid::from_child(&child), "conmon").is_none());
        assert!(held.children(|name| name == "runc").is_empty());
        assert!(!held.has_ended_by(Instant::now()));
        assert!(held.command_line().unwrap().starts_with(b"sh\0-c\0"));
        held.end_with(vec![sleep]);
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn an_option_counts_once() {
        let words = ["-n", "a", "-id", "b", "-n", "c", "-last"];
        assert_eq!(value_of(&words, "-id"), Some("b"));
        for option in ["-n", "-last", "-x"] {
            assert_eq!(value_of(&words, option), None, "{option}");
        }
    }
}
