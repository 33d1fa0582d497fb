//! The probes, in forked children with deadlines. A denied call may end the
//! child instead of failing, and a probe that hangs must not take the others
//! along: the child that is lost costs one operation, and a new one goes on.

use crate::families::{self, Context};
use crate::outcome::Outcome;
use crate::sys::{self, Ended, Errno, POLLIN, PollFd};
use alloc::vec::Vec;
use tki_evidence::catalogue::{OperationSpec, ProbeSpec};
use tki_evidence::observation::{Observation, Phase};
use tki_inside::io;

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

/// An operation and the probe that it is of.
#[derive(Clone, Copy)]
pub struct Task {
    /// The probe.
    pub probe: &'static ProbeSpec,
    /// The operation.
    pub operation: &'static OperationSpec,
}

/// What a child is asked to do, and what ends it.
#[derive(Clone, Copy)]
struct Shift<'a> {
    tasks: &'a [Task],
    phase: Phase,
    context: &'a Context,
    deadlines: Deadlines,
}

/// Runs all operations of these probes in one phase. One child goes on from probe to probe:
/// an operation leaves nothing behind in its process, even if it succeeds. A probe that
/// cannot keep to that has a child of its own ([`families::has_own_child`]).
pub fn run(
    probes: &[&'static ProbeSpec],
    phase: Phase,
    context: &Context,
    deadlines: Deadlines,
) -> Result<Vec<(Task, Observation)>, Stop> {
    let tasks: Vec<Task> = probes.iter().flat_map(|probe| tasks_of(probe)).collect();
    let mut seen: Vec<Observation> = Vec::new();
    while let Some(next) = tasks.get(seen.len()) {
        let rest = &tasks[seen.len()..];
        let shift = Shift {
            tasks: &rest[..length_of_shift(next.probe, rest)],
            phase,
            context,
            deadlines,
        };
        let wanted = seen.len() + shift.tasks.len();
        let lost = run_child(shift, &mut seen)?;
        if sys::now_us() >= deadlines.overall_at {
            return Err(Stop::Deadline);
        }
        // The child was lost in this operation; the next child goes on after it.
        if seen.len() < wanted {
            let outcome = lost.unwrap_or_else(|| Outcome::error("the child ended early"));
            seen.push(outcome.observed(phase, tasks[seen.len()].operation.id));
        }
    }
    Ok(tasks.into_iter().zip(seen).collect())
}

/// The operations of a probe.
pub fn tasks_of(probe: &'static ProbeSpec) -> impl Iterator<Item = Task> {
    let operations = probe.operations.iter();
    operations.map(move |operation| Task { probe, operation })
}

/// How many operations one child is asked for: as many as can go together.
fn length_of_shift(first: &ProbeSpec, tasks: &[Task]) -> usize {
    let goes_along = |task: &Task| match families::has_own_child(first) {
        true => task.probe.id == first.id,
        false => !families::has_own_child(task.probe),
    };
    tasks.iter().take_while(|task| goes_along(task)).count()
}

/// Forks a child that tries these operations. Returns how the child was lost, if it was.
fn run_child(shift: Shift, seen: &mut Vec<Observation>) -> Result<Option<Outcome>, Stop> {
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
            child(shift, writer)
        }
        Ok(Some(pid)) => pid,
    };
    sys::close(writer);
    let read = read_observations(reader, shift, seen);
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

fn child(shift: Shift, writer: i32) -> ! {
    for task in shift.tasks {
        let outcome = match families::find(task.probe.id, task.operation.id) {
            Some(function) => function(shift.context),
            None => Outcome::error("no such operation"),
        };
        let line = serde_json::to_vec(&outcome.observed(shift.phase, task.operation.id));
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

/// How long the child is left alone before anything is read from it. Every piece that is
/// read at once stops both, and most children have ended before. What they say
/// meanwhile waits in the pipe; one that fills it waits for this long.
///
/// One that uses up the container's memory is listened to from the start. A reader that wakes
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

fn read_observations(reader: i32, shift: Shift, seen: &mut Vec<Observation>) -> Result<Read, Stop> {
    let first = seen.len();
    let deadlines = shift.deadlines;
    // Each probe has its own time, from when the one before it was through.
    let time_up = || (sys::now_us() + deadlines.probe_us).min(deadlines.overall_at);
    let mut until = time_up();
    let alone_us = match shift.tasks.first().map(|task| task.probe.id) {
        Some(families::USES_UP_MEMORY) => 0,
        _ => LEFT_ALONE_US.min(deadlines.probe_us / 2),
    };
    // Below zero it is nobody's, and the kernel passes over it.
    let host = if deadlines.host { 0 } else { -1 };
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    let mut listen = alone_us == 0;
    loop {
        let Some(left) = until.checked_sub(sys::now_us()).filter(|us| *us > 0) else {
            return Ok(Read::TimeUp);
        };
        // The child's end is told whether it is asked for or not.
        let (events, left) = match listen {
            true => (POLLIN, left),
            false => (0, left.min(alone_us)),
        };
        let mut fds = [(reader, events), (host, POLLIN)].map(|(fd, events)| PollFd {
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
            let Some(task) = shift.tasks.get(seen.len() - first) else {
                return Ok(Read::Garbled);
            };
            match serde_json::from_slice::<Observation>(&line) {
                Ok(observation) if observation.operation == task.operation.id => {
                    seen.push(observation);
                }
                _ => return Ok(Read::Garbled),
            }
            let next = shift.tasks.get(seen.len() - first);
            if next.is_some_and(|next| next.probe.id != task.probe.id) {
                until = time_up();
            }
            line.clear();
        }
    }
}
