//! Finding programs, and waiting for a process of ours, for so long at most.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
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

/// Runs a program to its end and gives what it printed, if it succeeded within `limit`.
/// One that says more than a pipe holds does not end, and is not believed. Whatever it has
/// started and left behind with its output is not waited for.
pub fn told_by(command: &mut Command, limit: Duration) -> Option<Vec<u8>> {
    let command = command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let output = child.stdout.take()?;
    rustix::io::ioctl_fionbio(&output, true).ok()?;
    let status = wait_at_most(&mut child, limit);
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let mut text = Vec::new();
    match output.take(PIPE).read_to_end(&mut text) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => return None,
        _ => {}
    }
    status?.success().then_some(text)
}

/// What a pipe holds, and what is read of one at the most.
const PIPE: u64 = 64 << 10;

/// Nobody listens at a socket any more. One whose queue is full is in use, and not waited
/// for.
pub fn is_deserted(socket: &Path) -> bool {
    let connected = || -> rustix::io::Result<()> {
        let address = SocketAddrUnix::new(socket)?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&probe, &address)
    };
    connected() == Err(rustix::io::Errno::CONNREFUSED)
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

    #[test]
    fn what_a_program_says_is_heard_and_not_waited_for() {
        let said = |text: &str| {
            let mut sh = Command::new("sh");
            told_by(sh.args(["-c", text]), Duration::from_secs(60))
        };
        assert_eq!(said("echo word").unwrap(), b"word\n");
        assert_eq!(said("echo word; exit 1"), None);
        // Another process holds on to the pipe, and would for a minute.
        let began = Instant::now();
        assert_eq!(said("sleep 60 & echo $!").map(|pid| end(&pid)), Some(true));
        assert!(began.elapsed() < Duration::from_secs(50));
        let mut endless = Command::new("yes");
        assert_eq!(told_by(&mut endless, Duration::from_millis(100)), None);
    }

    /// Ends a process that a test has left behind.
    fn end(pid: &[u8]) -> bool {
        let pid = String::from_utf8_lossy(pid).trim().parse().ok();
        let pid = pid.and_then(Pid::from_raw).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok()
    }

    #[test]
    fn a_socket_is_deserted_once_nobody_listens() {
        use std::os::unix::net::UnixListener;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        assert!(!is_deserted(&path));
        let listener = UnixListener::bind(&path).unwrap();
        assert!(!is_deserted(&path));
        // That one still waits to be accepted, and now there is room for no other:
        // connecting would wait for ever.
        rustix::net::listen(&listener, 0).unwrap();
        assert!(!is_deserted(&path));
        drop(listener);
        assert!(is_deserted(&path));
    }
}
