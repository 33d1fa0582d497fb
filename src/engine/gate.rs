//! The exec gate: a supervisor that the kernel asks about every execve and
//! execveat of a container (seccomp user notification). It lets exactly the
//! first exec of the container's first process through, which is the one that
//! starts the prober, and answers EPERM to all others.
//!
//! An exec counts once it has taken place: a launcher whose exec failed or was
//! interrupted may ask again.
//!
//! The container holds no end of it: the listener is a descriptor outside, and
//! a question that nobody answers any more fails by itself. A gate that can no longer
//! do its work ends the container: nobody would watch it.

mod supervisors;

pub use supervisors::{Doorway, Forerunner, hand_over};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::io::{Error, ErrorKind, Result};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tki_evidence::evidence::GateReport;

/// Who keeps the container from executing anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GateChoice {
    /// The launcher where the engine lets it, else the prober.
    Auto,
    /// The launcher, or the run is BLOCKED.
    Require,
    /// Only the prober.
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
    /// taken, and ask once more. A process that was let through and still executes what
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

/// The kernel's structures are what this file takes them for.
const _: () = assert!(size_of::<libc::seccomp_notif>() == 80);
const _: () = assert!(size_of::<libc::seccomp_notif_resp>() == 24);
