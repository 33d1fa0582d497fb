//! The prober's side of the conversation.

use crate::families::{Context, environment};
use crate::outcome::Outcome;
use crate::runner::{self, Deadlines, Stop, Task};
use crate::sys::{self, Errno, POLLIN, PollFd};
use crate::{information, lock};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::OnceCell;
use core::ffi::CStr;
use tki_evidence::catalogue::{self, ProbeSpec};
use tki_evidence::observation::{Observation, Phase};
use tki_evidence::wire::{
    Challenge, Done, Hello, HostMessage, MAX_CHALLENGE, PROTOCOL, ProbeObservation, ProberMessage,
    Raw, Refused,
};
use tki_inside::io;
use tki_inside::selfcheck::{self, Invariant};

pub(crate) const DONE: i32 = 0;
const USAGE: i32 = 2;
pub(crate) const BLOCKED: i32 = 3;

/// How long the prober waits for its challenge.
const CHALLENGE_DEADLINE_US: u64 = 60_000_000;

/// The longest that a challenge may ask for.
const MOST_OVERALL_MS: u32 = 600_000;

/// Kernel texts that go into the evidence, by name.
const TEXTS: &[(&str, &CStr)] = &[
    ("mountinfo", c"/proc/self/mountinfo"),
    ("proc_net_dev", c"/proc/net/dev"),
    ("proc_net_route", c"/proc/net/route"),
    ("proc_net_ipv6_route", c"/proc/net/ipv6_route"),
    ("proc_self_status", c"/proc/self/status"),
    ("proc_self_limits", c"/proc/self/limits"),
    ("proc_self_cgroup", c"/proc/self/cgroup"),
    ("proc_version", c"/proc/version"),
    ("lsm_label", c"/proc/self/attr/current"),
    ("boot_id", c"/proc/sys/kernel/random/boot_id"),
];

/// Runs the whole conversation and returns the exit status. The challenge comes
/// from standard input, or from a file if one is named: then nobody listens, and
/// only the deadlines end it.
pub fn probe(file: Option<&[u8]>, environment: &[&[u8]], place: Place) -> i32 {
    let missing = match admitted(place) {
        Ok(missing) => missing,
        Err(status) => return status,
    };
    let mut out = Output::default();
    greet(&mut out, &missing);
    let read = match file {
        None => hear_challenge(),
        Some(path) => read_challenge(path),
    };
    let challenge = match read.and_then(|line| parse(&line)) {
        Ok(challenge) => challenge,
        Err((status, reason)) => return refuse(status, reason),
    };
    let started = sys::now_us();
    match plan(&challenge, &missing) {
        Err((status, reason)) => refuse(status, reason),
        Ok(probes) => {
            let overall_ms = challenge.overall_deadline_ms.min(MOST_OVERALL_MS);
            let deadlines = Deadlines {
                probe_us: u64::from(challenge.probe_deadline_ms) * 1000,
                overall_at: started + u64::from(overall_ms) * 1000,
                host: file.is_none(),
            };
            match run(&mut out, &challenge, &probes, environment, deadlines) {
                Ok(()) => DONE,
                Err(Stop::HostGone) => BLOCKED,
                Err(Stop::Deadline) => refuse(BLOCKED, "the overall deadline has passed".into()),
            }
        }
    }
}

/// Whose process id namespace the prober is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Its own, of which it is process 1.
    Own,
    /// That of a neighbour, for a control that shows others' processes.
    Joined,
}

/// The self-check before anything is done: what is missing here and may be, or the exit
/// status.
pub(crate) fn admitted(place: Place) -> Result<Vec<Invariant>, i32> {
    let missing = selfcheck::missing();
    let may_be_missing = |invariant: &Invariant| {
        !invariant.structural || (place == Place::Joined && invariant.name == selfcheck::PID_1.name)
    };
    if !missing.iter().all(may_be_missing) {
        io::print(2, &refusal(&missing));
        return Err(BLOCKED);
    }
    if sys::now_us() == 0 {
        let reason = "no clock: no deadline could be kept";
        return Err(refuse(BLOCKED, reason.into()));
    }
    Ok(missing)
}

/// The first line.
pub(crate) fn greet(out: &mut Output, missing: &[Invariant]) {
    out.send(&ProberMessage::Hello(Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").into(),
        missing: missing.iter().map(|i| i.name.into()).collect(),
    }));
    out.flush();
}

/// What a person reads who starts the prober anywhere else.
fn refusal(missing: &[Invariant]) -> String {
    let mut text =
        String::from("tki-prober: BLOCKED: this is not its sandbox. Nothing was tried.\n");
    for invariant in missing {
        text += &format!("  missing {:<17} {}\n", invariant.name, invariant.meaning);
    }
    text + "Next: launch it with `tki-attest run`.\n"
}

/// Says why this is the end, and gives the status that says so too.
pub(crate) fn refuse(status: i32, reason: String) -> i32 {
    let mut out = Output::default();
    out.send(&ProberMessage::Refused(Refused { reason }));
    out.flush();
    status
}

/// Standard output, in few large pieces: every piece wakes three programs on
/// its way to the host, and what wakes them slows the probes.
#[derive(Default)]
pub(crate) struct Output {
    waiting: Vec<u8>,
}

impl Output {
    const PIECE: usize = 48 * 1024;

    fn send(&mut self, message: &ProberMessage) {
        if let Ok(line) = serde_json::to_vec(message) {
            self.waiting.extend_from_slice(&line);
            self.waiting.push(b'\n');
        }
        if self.waiting.len() > Self::PIECE {
            self.flush();
        }
    }

    pub(crate) fn send_raw(&mut self, name: &str, text: String) {
        self.send(&ProberMessage::Raw(Raw {
            name: name.into(),
            text,
        }));
    }

    pub(crate) fn flush(&mut self) {
        let _ = io::write_all(1, &self.waiting);
        self.waiting.clear();
    }
}

/// The challenge from a file of bounded length.
fn read_challenge(path: &[u8]) -> Result<Vec<u8>, (i32, String)> {
    let text = core::str::from_utf8(path)
        .map_err(|_| Errno::ENOENT)
        .and_then(io::c_path)
        .and_then(|path| io::read_text(&path));
    match text {
        Ok(text) if text.len() <= MAX_CHALLENGE => Ok(text.into_bytes()),
        Ok(_) => Err((USAGE, "the challenge is too long".into())),
        Err(_) => Err((BLOCKED, "the file with the challenge cannot be read".into())),
    }
}

/// Reads one line of bounded length, and nothing after it.
fn hear_challenge() -> Result<Vec<u8>, (i32, String)> {
    let give_up_at = sys::now_us() + CHALLENGE_DEADLINE_US;
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    while !line.ends_with(b"\n") {
        let left = give_up_at.saturating_sub(sys::now_us());
        let mut fds = [PollFd {
            fd: 0,
            events: POLLIN,
            revents: 0,
        }];
        match sys::poll(&mut fds, left / 1000) {
            Ok(0) => return Err((BLOCKED, "no challenge came".into())),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Err((BLOCKED, "cannot wait for a challenge".into())),
        }
        match sys::read(0, &mut buffer) {
            Ok(0) => return Err((BLOCKED, "standard input was closed".into())),
            Ok(count) => line.extend_from_slice(&buffer[..count]),
            Err(Errno::EINTR) => {}
            Err(_) => return Err((BLOCKED, "cannot read the challenge".into())),
        }
        if line.len() > MAX_CHALLENGE {
            return Err((USAGE, "the challenge is too long".into()));
        }
    }
    Ok(line)
}

fn parse(line: &[u8]) -> Result<Challenge, (i32, String)> {
    match serde_json::from_slice(line) {
        Ok(HostMessage::Challenge(challenge)) => Ok(challenge),
        Err(error) => Err((USAGE, format!("the challenge is malformed: {error}"))),
    }
}

/// What is to be done, if it may be done here.
fn plan(
    challenge: &Challenge,
    missing: &[Invariant],
) -> Result<Vec<&'static ProbeSpec>, (i32, String)> {
    if challenge.protocol != PROTOCOL {
        return Err((
            USAGE,
            format!(
                "protocol {} is not {PROTOCOL}: host and image are of different versions",
                challenge.protocol
            ),
        ));
    }
    for invariant in missing {
        if !challenge
            .accept_missing
            .iter()
            .any(|name| name == invariant.name)
        {
            return Err((BLOCKED, format!("missing invariant: {}", invariant.meaning)));
        }
    }
    if challenge.phases.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err((USAGE, "phases must be in order, each once".into()));
    }
    challenge
        .probes
        .iter()
        .map(|id| catalogue::find(id).ok_or_else(|| (USAGE, format!("no probe is called {id:?}"))))
        .collect()
}

fn run(
    out: &mut Output,
    challenge: &Challenge,
    probes: &[&'static ProbeSpec],
    environment: &[&[u8]],
    deadlines: Deadlines,
) -> Result<(), Stop> {
    let started = sys::now_us();
    let context = Context {
        env_canary: challenge.env_canary.clone(),
        host_canary: challenge.host_canary.clone(),
        limits: challenge.limits,
        descriptors: information::descriptors(),
        tree: OnceCell::new(),
    };
    sys::hold_directories();
    out.send_raw("namespaces", information::namespaces());
    out.send_raw(
        "env_keyset",
        environment::sorted_keys(environment.iter().copied()).join("\n"),
    );
    for (name, path) in TEXTS {
        // A text that the kernel does not have stays out; the judge knows
        // which ones it cannot do without.
        if let Ok(text) = io::read_text(path) {
            out.send_raw(name, text);
        }
    }
    for (name, text) in information::gather() {
        out.send(&ProberMessage::Info(Raw { name, text }));
    }
    let mut observations = 0;
    for phase in &challenge.phases {
        let locked = match phase {
            Phase::Locked if challenge.lock => lock::stack(),
            _ => Ok(0),
        };
        if *phase == Phase::Locked
            && let Ok(text) = io::read_text(c"/proc/self/status")
        {
            out.send_raw("proc_self_status_locked", text);
        }
        let in_phase = |probe: &&ProbeSpec| probe.phases.contains(phase);
        let probes: Vec<&'static ProbeSpec> = probes.iter().copied().filter(in_phase).collect();
        let seen = match locked {
            Ok(_) => runner::run(&probes, *phase, &context, deadlines)?,
            Err(errno) => not_locked(&probes, errno),
        };
        for (task, seen) in seen {
            observations += 1;
            out.send(&ProberMessage::Observation(ProbeObservation {
                probe: task.probe.id.into(),
                seen,
            }));
        }
    }
    out.send(&ProberMessage::Done(Done {
        nonce: challenge.nonce.clone(),
        observations,
        elapsed_us: sys::now_us() - started,
    }));
    out.flush();
    Ok(())
}

/// Without the lock nothing in phase `locked` was reached.
fn not_locked(probes: &[&'static ProbeSpec], errno: Errno) -> Vec<(Task, Observation)> {
    let not_reached = |task: Task| {
        let operation = task.operation.id;
        let seen = Outcome::not_reached("seccomp", errno).observed(Phase::Locked, operation);
        (task, seen)
    };
    let tasks = probes.iter().flat_map(|probe| runner::tasks_of(probe));
    tasks.map(not_reached).collect()
}
