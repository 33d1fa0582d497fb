//! The exec gate: a supervisor that the kernel asks about every execve and
//! execveat of a container (seccomp user notification). It lets exactly the
//! first exec of the container's first process through, which is the one that
//! starts the inspector, and answers EPERM to all others.
//!
//! An exec counts once it has taken place: a launcher whose exec failed or was
//! interrupted may ask again.
//!
//! The container holds no end of it: the listener is a descriptor outside, and
//! a question that nobody answers any more fails by itself. A gate that can no longer
//! do its work ends the container: nobody would watch it.

use crate::engine::descriptors;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::io::{Error, ErrorKind, Result};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tki_evidence::evidence::GateReport;

/// Who keeps the container from executing anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GateChoice {
    /// The launcher where the engine lets it, else the inspector.
    Auto,
    /// The launcher, or the run is BLOCKED.
    Require,
    /// Only the inspector.
    Off,
}

/// The most answers in a container's life: probes try a few dozen execs, and a
/// supervisor that answers for ever could be kept busy for ever.
const MOST_ANSWERS: u32 = 4096;

/// `SECCOMP_RET_*`, from the kernel's interface.
const RET_ALLOW: u32 = 0x7fff_0000;
const RET_USER_NOTIF: u32 = 0x7fc0_0000;
const ARCH_X86_64: u32 = 0xc000_003e;
const EXECVE: u32 = libc::SYS_execve as u32;
const EXECVEAT: u32 = libc::SYS_execveat as u32;

/// The filter that asks about both calls and leaves everything else to the
/// filters beside it.
pub fn filter() -> Vec<libc::sock_filter> {
    let load = |offset: u32| libc::sock_filter {
        code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        jt: 0,
        jf: 0,
        k: offset,
    };
    let is = |value: u32, jt: u8, jf: u8| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt,
        jf,
        k: value,
    };
    let ret = |action: u32| libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: action,
    };
    vec![
        load(4),
        // Other architectures are the profile's to refuse.
        is(ARCH_X86_64, 0, 3),
        load(0),
        is(EXECVE, 2, 0),
        is(EXECVEAT, 1, 0),
        ret(RET_ALLOW),
        ret(RET_USER_NOTIF),
    ]
}

/// Loads a filter into this process. With `listen`, gives the descriptor on
/// which the kernel asks.
pub fn load(filter: &[libc::sock_filter], listen: bool) -> Result<Option<OwnedFd>> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| Error::from(ErrorKind::InvalidInput))?,
        filter: filter.as_ptr().cast_mut(),
    };
    let flags = if listen {
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER
    } else {
        0
    };
    // SAFETY: the program points to `filter`, which outlives the call; the
    // kernel copies it and checks it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    if result < 0 {
        return Err(Error::last_os_error());
    }
    if !listen {
        return Ok(None);
    }
    let fd = i32::try_from(result).map_err(|_| Error::from(ErrorKind::InvalidData))?;
    // SAFETY: the kernel has just made this descriptor, for us alone.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// A supervisor with its listener.
#[derive(Debug)]
pub struct Gate {
    listener: OwnedFd,
    /// The container's first process, as this process sees it; 0 while it is
    /// not known.
    first: Arc<AtomicU32>,
    /// A process that may execute once to become the launcher itself.
    launcher: Option<u32>,
    /// Who was let through, and what each was executing when it asked.
    passed: Vec<(u32, Option<Program>)>,
    allowed: u32,
    refused: u32,
    /// Questions that came again.
    repeated: u32,
    /// The container's first process, held when the kernel asked for it.
    container: Option<OwnedFd>,
    broken: Option<String>,
}

/// What has become of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It stands.
    Standing,
    /// Nobody is left who could ask: the container has ended.
    Over,
    /// It cannot do its work any more, and has ended the container.
    Broken,
}

/// What a gate did, once the container has ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Closed {
    /// For the evidence.
    pub report: GateReport,
    /// It broke, and the container was ended for it; the report has the reason.
    pub broken: bool,
}

/// A file, by device and number.
type Program = (u64, u64);

/// What a process executes.
fn program_of(pid: u32) -> Option<Program> {
    let found = std::fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((found.dev(), found.ino()))
}

impl Gate {
    /// A gate before the container whose first process is `first`.
    pub fn new(listener: OwnedFd, first: u32) -> Self {
        Self {
            listener,
            first: Arc::new(AtomicU32::new(first)),
            launcher: None,
            passed: Vec::new(),
            allowed: 0,
            refused: 0,
            repeated: 0,
            container: None,
            broken: None,
        }
    }

    /// Readable when the kernel asks.
    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers one question, if one still waits.
    pub fn answer(&mut self) -> State {
        let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
        let now = Timespec::default();
        match poll(&mut fds, Some(&now)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return State::Standing,
            Err(error) => return self.break_down(format!("the gate cannot listen: {error}")),
        }
        let events = fds[0].revents();
        if !events.contains(PollFlags::IN) {
            return match events.contains(PollFlags::HUP) {
                true => State::Over,
                false => State::Standing,
            };
        }
        if self.allowed + self.refused + self.repeated >= MOST_ANSWERS {
            return self.break_down(format!("more than {MOST_ANSWERS} execs were tried"));
        }
        let question = match self.receive() {
            Ok(question) => question,
            // It vanished: the asker was interrupted or is gone.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                return State::Standing;
            }
            Err(error) => return self.break_down(format!("the gate cannot listen: {error}")),
        };
        let program = program_of(question.pid);
        if self.asks_again(question.pid, program) {
            self.repeated += u32::from(self.send(&question, true));
            return State::Standing;
        }
        let launcher = self.launcher == Some(question.pid);
        let first = self.allowed == 0 && question.pid == self.first.load(Ordering::SeqCst);
        if first {
            self.container = self.hold(&question);
        }
        if self.send(&question, launcher || first) {
            match (launcher, first) {
                (true, _) => self.launcher = None,
                (_, true) => self.allowed += 1,
                _ => self.refused += 1,
            }
            if launcher || first {
                self.passed.push((question.pid, program));
            }
        }
        State::Standing
    }

    /// The gate cannot do its work any more: the container ends, at once and by this
    /// process, whatever becomes of the engine.
    fn break_down(&mut self, why: String) -> State {
        self.broken.get_or_insert(why);
        if let Some(container) = &self.container {
            let _ = pidfd_send_signal(container, Signal::KILL);
        }
        State::Broken
    }

    /// Holds the process that asks. It still asks once it is held, so that it is this one.
    fn hold(&self, question: &libc::seccomp_notif) -> Option<OwnedFd> {
        let pid = Pid::from_raw(i32::try_from(question.pid).ok()?)?;
        let held = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // SAFETY: the kernel reads one number, whose size is part of the request's number.
        let valid = unsafe {
            libc::ioctl(
                self.listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const question.id,
            )
        };
        (valid == 0).then_some(held)
    }

    /// A signal at the wrong moment makes the kernel forget an answer that it has
    /// taken, and ask once more. Whoever was let through and still executes what
    /// it did has not passed: it is the launcher still, not the container.
    fn asks_again(&self, pid: u32, program: Option<Program>) -> bool {
        program.is_some() && self.passed.contains(&(pid, program))
    }

    fn receive(&self) -> Result<libc::seccomp_notif> {
        // SAFETY: a structure of plain integers, which the kernel wants zeroed.
        let mut question: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes at most one structure, whose size is part
        // of the request's number.
        let result = unsafe {
            libc::ioctl(
                self.listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut question,
            )
        };
        match result {
            0 => Ok(question),
            _ => Err(Error::last_os_error()),
        }
    }

    /// True if the answer arrived: an asker that is gone counts for nothing.
    fn send(&self, question: &libc::seccomp_notif, allow: bool) -> bool {
        let mut answer = libc::seccomp_notif_resp {
            id: question.id,
            val: 0,
            error: if allow { 0 } else { -libc::EPERM },
            flags: if allow {
                libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32
            } else {
                0
            },
        };
        // SAFETY: the kernel reads one structure, whose size is part of the
        // request's number.
        let result = unsafe {
            libc::ioctl(
                self.listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw mut answer,
            )
        };
        result == 0
    }

    /// What it did, once the container has ended.
    pub fn closed(&self, how: &str) -> Closed {
        let active = self.broken.is_none() && self.allowed == 1;
        let broken = self.broken.is_some();
        let report = GateReport {
            active,
            reason: match &self.broken {
                Some(why) => why.clone(),
                None if active => how.to_owned(),
                None => "the gate was never asked".to_owned(),
            },
            allowed: self.allowed,
            refused: self.refused,
            plain_profile: String::new(),
        };
        Closed { report, broken }
    }
}

/// The supervisor for an OCI runtime, which hands the listener over through a
/// socket (`listenerPath`). It answers in a thread of its own until the
/// container has ended or it is told to stop.
#[derive(Debug)]
pub struct Doorway {
    path: PathBuf,
    stop: UnixStream,
    thread: JoinHandle<std::result::Result<Gate, String>>,
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
    thread: JoinHandle<std::result::Result<Gate, String>>,
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
                return Err("no listener was handed over".into());
            }
            let (pid, found) = descriptors::receive(&ours, 4).map_err(|e| e.to_string())?;
            let pid = <[u8; 4]>::try_from(pid).map_err(|_| "no process id")?;
            let [listener] = <[OwnedFd; 1]>::try_from(found).map_err(|_| "no listener")?;
            let mut gate = Gate::new(listener, 0);
            gate.first = shared;
            gate.launcher = Some(u32::from_ne_bytes(pid));
            answer_all(gate, &stopped)
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

fn report(thread: JoinHandle<std::result::Result<Gate, String>>, how: &str) -> Closed {
    match thread.join() {
        Ok(Ok(gate)) => gate.closed(how),
        Ok(Err(why)) => Closed::none(&why),
        Err(_) => Closed::none("the supervisor panicked"),
    }
}

impl Closed {
    /// There was no gate.
    pub fn none(why: &str) -> Self {
        let report = GateReport {
            reason: why.to_owned(),
            ..GateReport::default()
        };
        Self {
            report,
            broken: false,
        }
    }
}

/// Waits for something to read; false if the supervision is to stop first.
fn wait(what: BorrowedFd, stopped: &UnixStream) -> std::result::Result<bool, String> {
    let mut fds = [
        PollFd::from_borrowed_fd(what, PollFlags::IN),
        PollFd::new(stopped, PollFlags::IN),
    ];
    loop {
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
            Ok(_) => return Ok(!fds[0].revents().is_empty()),
        }
    }
}

/// Answers until nobody is left who could ask, or the gate breaks.
fn answer_all(mut gate: Gate, stopped: &UnixStream) -> std::result::Result<Gate, String> {
    loop {
        let state = match wait(gate.listener(), stopped) {
            Ok(true) => gate.answer(),
            Ok(false) => State::Over,
            Err(why) => gate.break_down(format!("the gate cannot listen: {why}")),
        };
        if state != State::Standing {
            return Ok(gate);
        }
    }
}

/// What a runtime tells when it hands over a listener: the part that matters.
#[derive(serde::Deserialize)]
struct Handover {
    pid: u32,
}

fn supervise(socket: &UnixListener, stopped: &UnixStream) -> std::result::Result<Gate, String> {
    if !wait(socket.as_fd(), stopped)? {
        return Err("no runtime handed over a listener".into());
    }
    let (connection, _) = socket.accept().map_err(|error| error.to_string())?;
    if !wait(connection.as_fd(), stopped)? {
        return Err("no runtime handed over a listener".into());
    }
    let (listener, told) = handed_over(&connection).map_err(|error| error.to_string())?;
    answer_all(Gate::new(listener, told.pid), stopped)
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

/// The kernel's structures are what this file takes them for.
const _: () = assert!(size_of::<libc::seccomp_notif>() == 80);
const _: () = assert!(size_of::<libc::seccomp_notif_resp>() == 24);

#[cfg(test)]
mod tests {
    use super::*;
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
