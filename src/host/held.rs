//! Processes that others have started, held while they are looked at: should the
//! number become another's meanwhile, no signal reaches that one.
//!
//! A name (`comm`) and a command line are whatever a process wants them to be, so they
//! only say where to look. Whose a process is follows from what the kernel alone
//! writes: the file that it executes, its user ids, its namespaces.

use crate::files::read_bounded;
use crate::host::process::wait_for;
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};
use std::fs::Metadata;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a process may take to end that was made to.
const END: Duration = Duration::from_secs(5);

/// The longest command line that is read.
const LONGEST_LINE: u64 = 1 << 20;

/// The namespaces that a part of an engine on this host shares with us. Mounts are not
/// among them: see [`Held::has_our_root`].
const SHARED: [&str; 5] = ["pid", "user", "net", "ipc", "uts"];

/// Of those, what a user's own Podman shares with its user. It has a user namespace.
const SHARED_BY_A_USER: [&str; 1] = ["pid"];

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

    /// Holds every process that is called this and is a part of an engine of this user's
    /// on this host: it executes a program whose file name `is_program` accepts.
    pub fn parts(name: &str, is_program: fn(&str) -> bool) -> impl Iterator<Item = Self> {
        let held = pids().filter_map(move |pid| Self::named(pid, name));
        held.filter(move |held| held.is_part(is_program))
    }

    /// Holds every process.
    pub fn all() -> impl Iterator<Item = Self> {
        pids().filter_map(Self::of)
    }

    /// Holds a process.
    pub fn of(pid: Pid) -> Option<Self> {
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { descriptor, pid })
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// It is a part of an engine of this user's on this host, whatever it calls itself.
    pub fn is_part(&self, is_program: impl Fn(&str) -> bool) -> bool {
        let shared: &[&str] = match geteuid().is_root() {
            true => &SHARED,
            false => &SHARED_BY_A_USER,
        };
        self.is_wholly_ours()
            && self.shares(shared)
            && self.has_our_root()
            && self.executes(is_program)
            // All of that was told about this process, and not about a later one.
            && !self.has_ended_by(Instant::now())
    }

    /// Its real, effective, saved and file system user ids are this user's: a program
    /// with the set-user-id bit keeps the real one of the user who has started it.
    pub fn is_wholly_ours(&self) -> bool {
        let us = geteuid().as_raw().to_string();
        let ids = self.status("Uid:");
        ids.is_some_and(|ids| {
            let mut ids = ids.split_whitespace();
            ids.clone().count() == 4 && ids.all(|id| id == us)
        })
    }

    /// It is in the same namespaces of these kinds as this process.
    pub fn shares(&self, kinds: &[&str]) -> bool {
        let of = |folder: &Path, kind: &str| std::fs::metadata(folder.join("ns").join(kind));
        kinds.iter().all(|kind| {
            let theirs = of(&self.folder(), kind);
            let ours = of(Path::new("/proc/self"), kind);
            matches!((theirs, ours), (Ok(theirs), Ok(ours)) if is_same(&theirs, &ours))
        })
    }

    /// Its root directory is ours. Engines and the Podman service of a run may have mounts
    /// of their own, but on top of the host's; a container has another root.
    fn has_our_root(&self) -> bool {
        let theirs = std::fs::metadata(self.folder().join("root"));
        let ours = std::fs::metadata("/");
        matches!((theirs, ours), (Ok(theirs), Ok(ours)) if is_same(&theirs, &ours))
    }

    /// The file that it executes has a name that is accepted, and is where nobody but
    /// root, or this user, could have put it. A link by that name leads to another file.
    fn executes(&self, is_program: impl Fn(&str) -> bool) -> bool {
        let link = self.folder().join("exe");
        let Ok(path) = std::fs::read_link(&link) else {
            return false;
        };
        let name = path.file_name().and_then(|name| name.to_str());
        if !name.is_some_and(is_program) || !is_installed(&path) {
            return false;
        }
        // Through the link the kernel leads to the file itself, by its path to what is
        // there now.
        let (running, there) = (std::fs::metadata(&link), std::fs::symlink_metadata(&path));
        matches!((running, there), (Ok(running), Ok(there)) if is_same(&running, &there))
    }

    /// A line of what the kernel tells about it.
    fn status(&self, field: &str) -> Option<String> {
        let status = read_bounded(&self.folder().join("status"), LONGEST_LINE).ok()?;
        let status = String::from_utf8_lossy(&status);
        let mut lines = status.lines().filter_map(|line| line.strip_prefix(field));
        lines.next().map(|value| value.trim().to_owned())
    }

    /// The number of the process that it is a child of.
    pub fn parent(&self) -> Option<Pid> {
        Pid::from_raw(self.status("PPid:")?.parse().ok()?)
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
            let is_its = child.status("PPid:")? == pid && is_wanted(&child.status("Name:")?);
            // While the parent lives nobody else has its number.
            (is_its && !self.has_ended_by(Instant::now())).then_some(child)
        });
        children.collect()
    }

    /// Asks it to end, and does not wait.
    pub fn ask_to_end(&self) {
        let _ = pidfd_send_signal(&self.descriptor, Signal::TERM);
    }

    /// Kills it, and does not wait.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.descriptor, Signal::KILL);
    }

    /// Kills it, then these, and waits until all have ended.
    pub fn end_with(self, others: Vec<Self>) {
        let all: Vec<Self> = std::iter::once(self).chain(others).collect();
        for process in &all {
            process.kill();
        }
        let until = Instant::now() + END;
        for process in &all {
            process.has_ended_by(until);
        }
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The numbers of all processes.
fn pids() -> impl Iterator<Item = Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw)
}

/// The same file.
pub fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Nobody but root and this user can change the file, or anything on the way to it. The
/// sticky bit does not help: a user who may make a name there may link another program.
fn is_installed(program: &Path) -> bool {
    let us = geteuid().as_raw();
    program.ancestors().all(|place| {
        let Ok(found) = std::fs::symlink_metadata(place) else {
            return false;
        };
        let kind = found.file_type();
        let fits = if place == program {
            // A set-id program runs as another user than the one who starts it.
            kind.is_file() && found.mode() & 0o6000 == 0
        } else {
            kind.is_dir()
        };
        fits && [0, us].contains(&found.uid()) && found.mode() & 0o022 == 0
    })
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

    /// What a process is called and says is of no account: what it executes, as whom and
    /// where is.
    #[test]
    fn a_part_of_an_engine_is_known_by_what_the_kernel_tells() {
        let sleeping = |command: &mut Command| {
            let child = command.arg("600").spawn().unwrap();
            let held = Held::of(Pid::from_child(&child)).unwrap();
            let started = Instant::now();
            let is_there = || {
                let line = held.command_line().unwrap_or_default();
                line.ends_with(b"600\0") && !line.starts_with(b"unshare")
            };
            while !is_there() {
                assert!(started.elapsed() < Duration::from_secs(50));
                std::thread::sleep(Duration::from_millis(5));
            }
            (child, held)
        };
        let is_sleep = |name: &str| name == "sleep";
        let (mut child, held) = sleeping(&mut Command::new("sleep"));
        assert!(held.is_part(is_sleep));
        assert!(!held.is_part(|name| name == "conmon"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!held.is_part(is_sleep), "it has ended");
        // A program of that name where others could have put it, and a link by that name.
        let folder = tempfile::tempdir().unwrap();
        let places = ["copy", "link"].map(|kind| folder.path().join(kind));
        places
            .iter()
            .for_each(|place| std::fs::create_dir(place).unwrap());
        let [copy, link] = places.map(|place| place.join("sleep"));
        std::fs::copy("/bin/sleep", &copy).unwrap();
        std::os::unix::fs::symlink("/bin/cat", &link).unwrap();
        let mut forged = vec![sleeping(&mut Command::new(copy))];
        let mut cat = Command::new(&link);
        // It waits for input that never comes.
        forged.push(sleeping(cat.args(["-", "--"]).stdin(Stdio::piped())));
        if geteuid().is_root() {
            use std::os::unix::process::CommandExt;
            forged.push(sleeping(Command::new("sleep").uid(58713)));
            for kinds in [&["--user"][..], &["--net"], &["--uts"], &["--ipc"]] {
                let mut apart = Command::new("unshare");
                forged.push(sleeping(apart.args(kinds).arg("sleep")));
            }
        }
        for (mut child, held) in forged {
            assert!(!held.is_part(is_sleep), "{:?}", held.command_line());
            assert!(child.try_wait().unwrap().is_none());
            child.kill().unwrap();
            child.wait().unwrap();
        }
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
