//! One probe, in a forked child with a deadline. A denied call may end the
//! child instead of failing, and a probe that hangs must not take the others
//! along: the child that is lost costs one operation, and a new one goes on.

use crate::families::{self, Context};
use crate::io;
use crate::outcome::Outcome;
use crate::sys::{self, Ended, Errno, POLLIN, PollFd};
use alloc::vec::Vec;
use tki_evidence::catalogue::ProbeSpec;
use tki_evidence::observation::{Observation, Phase};

/// The host is gone or the overall deadline has passed: end at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Standard input was closed, or spoke out of turn.
    HostGone,
    /// The overall deadline has passed.
    Deadline,
}

/// What ends the probes: points in time, in microseconds of the monotonic clock,
/// and a host that goes.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// How long one probe may take.
    pub probe_us: u64,
    /// When everything must have ended.
    pub overall_at: u64,
    /// A host is at the other end of standard input; without it nothing goes on.
    pub host: bool,
}

/// What ends one child.
#[derive(Clone, Copy)]
struct Until {
    at: u64,
    /// Standard input, or below zero, which the kernel passes over.
    host: i32,
    /// How long it is left alone before somebody listens.
    alone_us: u64,
}

/// Runs all operations of a probe in one phase.
pub fn run(
    probe: &ProbeSpec,
    phase: Phase,
    context: &Context,
    deadlines: Deadlines,
) -> Result<Vec<Observation>, Stop> {
    let mut seen: Vec<Observation> = Vec::new();
    let until = Until {
        at: (sys::now_us() + deadlines.probe_us).min(deadlines.overall_at),
        host: if deadlines.host { 0 } else { -1 },
        alone_us: match probe.id {
            families::USES_UP_MEMORY => 0,
            _ => LEFT_ALONE_US,
        },
    };
    while seen.len() < probe.operations.len() {
        let before = seen.len();
        let lost = run_child(probe, phase, context, before, until, &mut seen)?;
        if sys::now_us() >= deadlines.overall_at {
            return Err(Stop::Deadline);
        }
        // The child was lost in this operation; the next child goes on after it.
        if let Some(operation) = probe.operations.get(seen.len()) {
            let outcome = lost.unwrap_or_else(|| Outcome::error("the child ended early"));
            seen.push(outcome.observed(phase, operation.id));
        }
    }
    Ok(seen)
}

/// Forks a child that tries the operations from `from` on. Returns how the
/// child was lost, if it was.
fn run_child(
    probe: &ProbeSpec,
    phase: Phase,
    context: &Context,
    from: usize,
    until: Until,
    seen: &mut Vec<Observation>,
) -> Result<Option<Outcome>, Stop> {
    let (reader, writer) = match sys::pipe() {
        Ok(ends) => ends,
        Err(errno) => return Ok(Some(Outcome::not_reached("pipe", errno))),
    };
    let pid = match sys::fork() {
        Err(errno) => {
            sys::close(reader);
            sys::close(writer);
            return Ok(Some(Outcome::not_reached("fork", errno)));
        }
        Ok(None) => {
            sys::close(reader);
            child(probe, phase, context, from, writer)
        }
        Ok(Some(pid)) => pid,
    };
    sys::close(writer);
    let read = read_observations(reader, until, seen, probe.operations.len());
    sys::close(reader);
    // It has ended or must. A child that cannot be killed is not waited for:
    // the end of process 1 takes it along.
    if read != Ok(Read::End) && sys::kill(pid).is_err() {
        return Err(Stop::Deadline);
    }
    let ended = sys::wait(pid);
    match read? {
        Read::TimeUp => Ok(Some(Outcome::error("deadline passed"))),
        Read::Garbled => Ok(Some(Outcome::error("the child's answer was garbled"))),
        Read::End => Ok(match ended {
            Ok(Ended::Exit(0)) => None,
            Ok(Ended::Exit(status)) => Some(Outcome::error(alloc::format!(
                "the child ended with status {status}"
            ))),
            Ok(Ended::Signal(number)) => Some(Outcome::signal(number)),
            Err(errno) => Some(Outcome::not_reached("wait", errno)),
        }),
    }
}

fn child(probe: &ProbeSpec, phase: Phase, context: &Context, from: usize, writer: i32) -> ! {
    for operation in &probe.operations[from..] {
        let outcome = match families::find(probe.id, operation.id) {
            Some(function) => function(context),
            None => Outcome::error("no such operation"),
        };
        let line = serde_json::to_vec(&outcome.observed(phase, operation.id));
        let sent = line.map(|mut line| {
            line.push(b'\n');
            io::write_all(writer, &line)
        });
        if !matches!(sent, Ok(Ok(()))) {
            sys::exit(4);
        }
    }
    sys::exit(0)
}

/// How long the child is left alone before somebody listens. Every piece that is
/// read at once stops both, and most children have ended before. What they say
/// meanwhile waits in the pipe; one that fills it waits for this long.
///
/// One that uses up the container's memory is listened to from the start. Whoever wakes
/// up beside it finds its own code gone from memory and wants it back, of which there is
/// none; and while the kernel takes away what the one that it has killed had, it does not
/// see that one any more, and kills the next: process 1.
const LEFT_ALONE_US: u64 = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    End,
    TimeUp,
    Garbled,
}

fn read_observations(
    reader: i32,
    until: Until,
    seen: &mut Vec<Observation>,
    most: usize,
) -> Result<Read, Stop> {
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    let mut listen = until.alone_us == 0;
    loop {
        let Some(left) = until.at.checked_sub(sys::now_us()).filter(|us| *us > 0) else {
            return Ok(Read::TimeUp);
        };
        // The child's end is told whether it is asked for or not.
        let (events, left) = match listen {
            true => (POLLIN, left),
            false => (0, left.min(until.alone_us)),
        };
        let mut fds = [(reader, events), (until.host, POLLIN)].map(|(fd, events)| PollFd {
            fd,
            events,
            revents: 0,
        });
        match sys::poll(&mut fds, left / 1000 + 1) {
            Ok(0) => {
                listen = true;
                continue;
            }
            Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(_) => return Ok(Read::Garbled),
        }
        if fds[1].revents != 0 {
            return Err(Stop::HostGone);
        }
        let count = match sys::read(reader, &mut buffer) {
            Ok(0) => return Ok(Read::End),
            Ok(count) => count,
            Err(Errno::EINTR) => continue,
            Err(_) => return Ok(Read::Garbled),
        };
        for byte in &buffer[..count] {
            if *byte != b'\n' {
                line.push(*byte);
                continue;
            }
            match serde_json::from_slice(&line) {
                Ok(observation) if seen.len() < most => seen.push(observation),
                _ => return Ok(Read::Garbled),
            }
            line.clear();
        }
    }
}
