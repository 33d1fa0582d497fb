//! Who answers for a gate: a thread that waits for the listener, from an OCI runtime or
//! from a launcher of ours, and for the end.

use super::{Closed, Gate, State, load};
use crate::host::descriptors;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What became of a supervision.
type Supervision = std::result::Result<Gate, Unsupervised>;

/// Why nobody ever supervised.
#[derive(Debug, thiserror::Error)]
enum Unsupervised {
    /// The engine's runtime did not connect, or hung up.
    #[error("no runtime handed over a listener")]
    NoRuntime,
    /// The launcher did not come as far as its filter.
    #[error("no listener was handed over")]
    NoLauncher,
    /// The launcher does not say who it is.
    #[error("no process id")]
    NoProcess,
    /// It came without a listener.
    #[error("no listener")]
    NoListener,
    /// The socket fails.
    #[error(transparent)]
    Socket(#[from] Error),
}

/// The supervisor for an OCI runtime, which hands the listener over through a
/// socket (`listenerPath`). It answers in a thread of its own until the
/// container has ended or it is told to stop.
#[derive(Debug)]
pub struct Doorway {
    path: PathBuf,
    stop: UnixStream,
    thread: JoinHandle<Supervision>,
}

impl Doorway {
    /// Listens at `socket`, to which `path` leads: one that only this user can reach.
    pub fn open(path: &Path, socket: UnixListener) -> Result<Self> {
        let (stop, stopped) = UnixStream::pair()?;
        let thread = std::thread::spawn(move || supervise(&socket, &stopped));
        Ok(Self {
            path: path.to_owned(),
            stop,
            thread,
        })
    }

    /// Where the runtime must connect to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the supervision. The container has ended, or can execute nothing from
    /// now on.
    pub fn close(self) -> Closed {
        drop(self.stop);
        let _ = std::fs::remove_file(&self.path);
        report(
            self.thread,
            "the engine's runtime handed its listener to the gate",
        )
    }
}

/// The supervisor for a launcher that is executed with the gate's filter
/// already loaded: bubblewrap, which cannot load one that asks.
#[derive(Debug)]
pub struct Forerunner {
    stop: UnixStream,
    first: Arc<AtomicU32>,
    thread: JoinHandle<Supervision>,
}

impl Forerunner {
    /// Begins to wait. The second socket is for the process that will be the
    /// launcher, which gives it to [`hand_over`].
    pub fn start() -> Result<(Self, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        let (stop, stopped) = UnixStream::pair()?;
        let first = Arc::new(AtomicU32::new(0));
        let shared = Arc::clone(&first);
        let thread = std::thread::spawn(move || {
            if !wait(ours.as_fd(), &stopped)? {
                return Err(Unsupervised::NoLauncher);
            }
            let (pid, found) = descriptors::receive(&ours, 4)?;
            let pid = <[u8; 4]>::try_from(pid).map_err(|_| Unsupervised::NoProcess)?;
            let [listener] =
                <[OwnedFd; 1]>::try_from(found).map_err(|_| Unsupervised::NoListener)?;
            let mut gate = Gate::new(listener, 0);
            gate.first = shared;
            gate.launcher = Some(u32::from_ne_bytes(pid));
            Ok(answer_all(gate, &stopped))
        });
        let forerunner = Self {
            stop,
            first,
            thread,
        };
        Ok((forerunner, theirs))
    }

    /// The container's first process: its next exec may pass.
    pub fn expect(&self, pid: u32) {
        self.first.store(pid, Ordering::SeqCst);
    }

    /// Ends the supervision.
    pub fn close(self) -> Closed {
        drop(self.stop);
        report(
            self.thread,
            "its filter was loaded before the launcher's own",
        )
    }
}

/// Loads the gate's filter into this process, which must not gain privileges
/// any more, and hands its listener over. Allocates nothing.
pub fn hand_over(socket: &UnixStream, filter: &[libc::sock_filter]) -> Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let listener = load(filter, true)?.ok_or(ErrorKind::NotFound)?;
    descriptors::send_with(
        socket,
        &std::process::id().to_ne_bytes(),
        &[listener.as_fd()],
    )
}

fn report(thread: JoinHandle<Supervision>, how: &str) -> Closed {
    match thread.join() {
        Ok(Ok(gate)) => gate.closed(how),
        Ok(Err(why)) => Closed::none(&why.to_string()),
        Err(_) => Closed::none("the supervisor panicked"),
    }
}

/// Waits for something to read; false if the supervision is to stop first.
fn wait(what: BorrowedFd, stopped: &UnixStream) -> Result<bool> {
    let mut fds = [
        PollFd::from_borrowed_fd(what, PollFlags::IN),
        PollFd::new(stopped, PollFlags::IN),
    ];
    loop {
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(!fds[0].revents().is_empty()),
        }
    }
}

/// Answers until nobody is left who could ask, or the gate breaks.
fn answer_all(mut gate: Gate, stopped: &UnixStream) -> Gate {
    loop {
        let state = match wait(gate.listener(), stopped) {
            Ok(true) => gate.answer(),
            Ok(false) => State::Over,
            Err(why) => gate.break_down(format!("the gate cannot listen: {why}")),
        };
        if state != State::Standing {
            return gate;
        }
    }
}

/// What a runtime tells when it hands over a listener: the part that matters.
#[derive(serde::Deserialize)]
struct Handover {
    pid: u32,
}

fn supervise(socket: &UnixListener, stopped: &UnixStream) -> Supervision {
    if !wait(socket.as_fd(), stopped)? {
        return Err(Unsupervised::NoRuntime);
    }
    let (connection, _) = socket.accept()?;
    if !wait(connection.as_fd(), stopped)? {
        return Err(Unsupervised::NoRuntime);
    }
    let (listener, told) = handed_over(&connection)?;
    Ok(answer_all(Gate::new(listener, told.pid), stopped))
}

/// The listener and the runtime's words: one message, and its rest up to the
/// end of the connection.
fn handed_over(mut connection: &UnixStream) -> Result<(OwnedFd, Handover)> {
    const MOST: usize = 1024 * 1024;
    connection.set_read_timeout(Some(Duration::from_secs(5)))?;
    let (mut words, descriptors) = descriptors::receive(connection, 64 * 1024)?;
    let mut rest = Vec::new();
    connection
        .by_ref()
        .take(MOST as u64)
        .read_to_end(&mut rest)?;
    words.extend(rest);
    let told = serde_json::from_slice(&words)?;
    match <[OwnedFd; 1]>::try_from(descriptors) {
        Ok([listener]) => Ok((listener, told)),
        Err(_) => Err(Error::from(ErrorKind::InvalidData)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::gate::filter;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// A real filter before a real shell: the launcher's exec fails twice, passes,
    /// and what it has become may not execute any more.
    #[test]
    fn an_exec_counts_once_it_has_taken_place() {
        let (forerunner, socket) = Forerunner::start().unwrap();
        let filter = filter();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "/bin/true; echo $?"]);
        // SAFETY: between fork and exec only system calls are made.
        unsafe {
            command.pre_exec(move || {
                hand_over(&socket, &filter)?;
                for missing in [c"/nowhere/a", c"/nowhere/b"] {
                    let arguments = [missing.as_ptr(), std::ptr::null()];
                    libc::execve(missing.as_ptr(), arguments.as_ptr(), std::ptr::null());
                }
                Ok(())
            });
        }
        let said = command.output().unwrap();
        drop(command);
        assert_eq!(String::from_utf8_lossy(&said.stdout), "126\n", "{said:?}");
        let Closed { report, broken } = forerunner.close();
        assert_eq!((report.allowed, report.refused), (0, 1), "{report:?}");
        assert!(!broken);
    }

    /// A program that tries to execute for ever, with the real filter before it: nobody but
    /// the gate ends it.
    #[test]
    fn a_gate_that_is_asked_too_much_ends_the_container() {
        use std::os::unix::process::ExitStatusExt;
        let (forerunner, socket) = Forerunner::start().unwrap();
        let filter = filter();
        // The launcher becomes the container, another file, as soon as it is let through.
        let launcher = "exec {$ARGV[0]} 'container', '-e', $ARGV[1] while 1";
        let container = "exec {'/bin/true'} 'true' while 1";
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("container");
        std::fs::copy("/usr/bin/perl", &copy).unwrap();
        let mut command = Command::new("/usr/bin/perl");
        command.args(["-e", launcher]).arg(&copy).arg(container);
        command.stderr(std::process::Stdio::null());
        // SAFETY: between fork and exec only system calls are made.
        unsafe {
            command.pre_exec(move || hand_over(&socket, &filter));
        }
        let mut child = command.spawn().unwrap();
        drop(command);
        forerunner.expect(child.id());
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let Closed { report, broken } = forerunner.close();
        assert!(broken && !report.active, "{report:?}");
        assert!(report.reason.contains("more than 4096"), "{report:?}");
    }
}
