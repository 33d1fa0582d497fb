//! Finding programs, and waiting for a process of ours, for so long at most.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Where a program is, by the search path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    find_in(std::env::split_paths(&std::env::var_os("PATH")?), name)
}

/// The search path for programs that we start, without what is relative in it: `.`, or
/// nothing between two colons, would have root execute what lies in the working directory.
pub fn search_path() -> OsString {
    let given = std::env::var_os("PATH").unwrap_or_default();
    let absolute = std::env::split_paths(&given).filter(|folder| folder.is_absolute());
    std::env::join_paths(absolute).unwrap_or_default()
}

/// The first of these directories that has the program. One that is not absolute
/// is another one for each working directory, and does not count.
pub fn find_in(folders: impl Iterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    folders
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| access(path, Access::EXEC_OK).is_ok() && path.is_file())
}

/// Waits for a child's end; `None` if it goes on after `limit`.
pub fn wait_at_most(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    if let Ok(Some(status)) = child.try_wait() {
        return Some(status);
    }
    // It has not been waited for, so its number is nobody else's.
    if let Ok(held) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) {
        wait_for(held.as_fd(), Instant::now() + limit);
    }
    child.try_wait().ok().flatten()
}

/// Waits until a process that is held has ended, or until then; tells whether it
/// has.
pub fn wait_for(held: BorrowedFd, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or_default();
        let mut ended = [PollFd::from_borrowed_fd(held, PollFlags::IN)];
        match poll(&mut ended, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            answer => return answer.is_ok_and(|ended| ended > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn an_end_is_seen_and_what_goes_on_is_not_waited_for() {
        let mut child = Command::new("true").spawn().unwrap();
        let status = wait_at_most(&mut child, Duration::from_secs(60));
        assert!(status.is_some_and(|status| status.success()));
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(wait_at_most(&mut child, Duration::from_millis(1)).is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
