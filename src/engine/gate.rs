//! The exec gate: a supervisor that the kernel asks about every execve and
//! execveat of a container (seccomp user notification). It lets exactly the
//! first exec of the container's first process through, which is the one that
//! starts the inspector, and answers EPERM to all others.
//!
//! The container holds no end of it: the listener is a descriptor outside, and
//! a question that nobody answers any more fails by itself.

use crate::engine::descriptors;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{Error, ErrorKind, Result};
use std::mem::size_of;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;
use tki_evidence::evidence::GateReport;

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
    /// The container's first process, as this process sees it.
    first: u32,
    allowed: u32,
    refused: u32,
    broken: Option<String>,
}

impl Gate {
    /// A gate before the container whose first process is `first`.
    pub fn new(listener: OwnedFd, first: u32) -> Self {
        Self {
            listener,
            first,
            allowed: 0,
            refused: 0,
            broken: None,
        }
    }

    /// Readable when the kernel asks.
    pub fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers one question, if one still waits. False when nobody is left who
    /// could ask.
    pub fn answer(&mut self) -> bool {
        let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
        let now = Timespec::default();
        if poll(&mut fds, Some(&now)).is_err() {
            return false;
        }
        let events = fds[0].revents();
        if !events.contains(PollFlags::IN) {
            return !events.contains(PollFlags::HUP);
        }
        if self.allowed + self.refused >= MOST_ANSWERS {
            self.broken = Some(format!("more than {MOST_ANSWERS} execs were tried"));
            return false;
        }
        let Some(question) = self.receive() else {
            // It vanished: the asker was interrupted or is gone.
            return true;
        };
        let first = self.allowed == 0 && question.pid == self.first;
        if self.send(&question, first) {
            if first {
                self.allowed += 1;
            } else {
                self.refused += 1;
            }
        }
        true
    }

    fn receive(&self) -> Option<libc::seccomp_notif> {
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
        (result == 0).then_some(question)
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
    pub fn report(&self, how: &str) -> GateReport {
        let active = self.broken.is_none() && self.allowed == 1;
        GateReport {
            active,
            reason: match &self.broken {
                Some(why) => why.clone(),
                None if active => how.to_owned(),
                None => "the gate was never asked".to_owned(),
            },
            allowed: self.allowed,
            refused: self.refused,
        }
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
    /// Listens at a path that only this user can reach.
    pub fn open(path: &Path) -> Result<Self> {
        let socket = UnixListener::bind(path)?;
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

    /// Ends the supervision. The container has ended, or is to get EPERM from
    /// now on.
    pub fn close(self) -> GateReport {
        drop(self.stop);
        let _ = std::fs::remove_file(&self.path);
        let none = |reason: &str| GateReport {
            reason: reason.to_owned(),
            ..GateReport::default()
        };
        match self.thread.join() {
            Ok(Ok(gate)) => gate.report("the engine's runtime handed its listener to the gate"),
            Ok(Err(why)) => none(&why),
            Err(_) => none("the supervisor panicked"),
        }
    }
}

/// What a runtime tells when it hands over a listener: the part that matters.
#[derive(serde::Deserialize)]
struct Handover {
    pid: u32,
}

fn supervise(socket: &UnixListener, stopped: &UnixStream) -> std::result::Result<Gate, String> {
    let wait = |what: BorrowedFd| -> std::result::Result<bool, String> {
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
    };
    if !wait(socket.as_fd())? {
        return Err("no runtime handed over a listener".into());
    }
    let (connection, _) = socket.accept().map_err(|error| error.to_string())?;
    if !wait(connection.as_fd())? {
        return Err("no runtime handed over a listener".into());
    }
    let (listener, told) = handed_over(&connection).map_err(|error| error.to_string())?;
    let mut gate = Gate::new(listener, told.pid);
    // What is asked before the end is told is still answered.
    while wait(gate.listener())? {
        if !gate.answer() {
            break;
        }
    }
    Ok(gate)
}

/// The listener and the runtime's words: one message, and its rest up to the
/// end of the connection.
fn handed_over(mut connection: &UnixStream) -> Result<(OwnedFd, Handover)> {
    const MOST: usize = 1024 * 1024;
    connection.set_read_timeout(Some(Duration::from_secs(5)))?;
    let (mut words, descriptors) = descriptors::receive(connection, 64 * 1024)?;
    let mut rest = Vec::new();
    connection.by_ref().take(MOST as u64).read_to_end(&mut rest)?;
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
