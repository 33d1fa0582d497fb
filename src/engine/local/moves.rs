//! Moves between control groups, without the wait.
//!
//! Before the kernel moves a process from one group to another it lets every processor
//! come through the scheduler once: 8 to 16 ms in which a launch stands still. A move
//! that closely follows another is spared that. So while a container is made, a thread
//! of the tool moves itself to where it is, and the wait is over before it is needed.

use crate::host::groups::own_group;
use std::fs::OpenOptions;
use std::io::{Result, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two moves: less than the kernel stays ready for.
const PAUSE: Duration = Duration::from_millis(2);
/// The most moves, however long a launch takes.
const MOST: usize = 500;

/// For as long as this lives, processes are moved without a wait, if this user may
/// move any.
#[derive(Debug)]
pub struct Ready {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<usize>>,
}

impl Ready {
    /// Begins. Where it cannot be had, moves take as long as they take.
    pub fn begin() -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().spawn(move || move_until(&stopped));
        Self {
            stop: Some(stop),
            thread: thread.ok(),
        }
    }

    /// Ends it; tells how many moves were made.
    fn end(&mut self) -> usize {
        self.stop = None;
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(|moves| moves.ok()).unwrap_or(0)
    }
}

impl Drop for Ready {
    /// Waits for the thread: what follows may need a process that has only one.
    fn drop(&mut self) {
        self.end();
    }
}

/// Moves this thread into the group that it is in, until there is nobody left to say
/// when to stop; tells how often. The other threads stay out of it, even if another process
/// moves the whole process meanwhile.
fn move_until(stopped: &Receiver<()>) -> usize {
    let Some(group) = own_group() else {
        return 0;
    };
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    for moves in 0..MOST {
        if put(&thread, &group).is_err() {
            return moves;
        }
        if stopped.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) {
            return moves + 1;
        }
    }
    MOST
}

/// Puts a thread into a group. Its list of them has one name in version 1 and another
/// in version 2.
fn put(thread: &str, group: &Path) -> Result<()> {
    write(&group.join("tasks"), thread).or_else(|_| write(&group.join("cgroup.threads"), thread))
}

/// Writes to a file of the kernel's, which is not made if it is not there.
fn write(file: &Path, text: &str) -> Result<()> {
    let mut file = OpenOptions::new().write(true).open(file)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn groups() -> String {
        fs::read_to_string("/proc/self/cgroup").unwrap()
    }

    #[test]
    fn staying_changes_no_group() {
        let before = groups();
        let mut ready = Ready::begin();
        std::thread::sleep(PAUSE * 20);
        let moves = ready.end();
        assert_eq!(groups(), before);
        if rustix::process::geteuid().is_root() {
            assert!((1..MOST).contains(&moves), "{moves} moves");
        }
    }

    #[test]
    fn it_ends_when_there_is_nobody_left_to_tell_it() {
        let (stop, stopped) = channel();
        drop(stop);
        assert!(move_until(&stopped) <= 1);
    }

    #[test]
    fn a_file_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tasks");
        assert!(write(&file, "1").is_err());
        assert!(!file.exists());
    }
}
