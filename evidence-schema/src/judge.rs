//! Observations and raw facts → verdicts. Pure: no clock, no files, no engine.
//!
//! The rules, for each operation in each phase that the probe requires:
//!
//! | expected | seen | verdict |
//! |---|---|---|
//! | denied | denied with an accepted errno (or SIGSYS where EPERM is accepted) | PASS |
//! | denied | denied with any other errno or signal | UNPROVEN: something else stood in the way |
//! | denied | allowed | FAIL |
//! | allowed | allowed | PASS |
//! | allowed | denied | FAIL |
//! | fact | the raw fact satisfies the rule and the reading agrees | PASS |
//! | fact | the raw fact violates the rule, or the reading differs | FAIL |
//! | any | not reached, error, missing, tried twice | UNPROVEN |
//!
//! A probe is as good as its worst operation. On a kernel that is not the host's some have
//! another proof: [`own_kernel`].

mod facts;
pub mod own_kernel;
pub mod profile;
pub mod sweep;
mod texts;

pub use facts::{label_parts, mount_flags, mount_table};
pub use texts::{Sweeps, Texts};

use crate::catalogue::{Expect, OperationSpec, ProbeSpec};
use crate::evidence::Verdict;
use crate::observation::{Observation, Phase, State};
use crate::wire::ProbeObservation;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::borrow::Borrow;

/// A verdict and, unless it is PASS, the reasons for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What follows.
    pub verdict: Verdict,
    /// One line per operation that did not meet its expectation.
    pub reasons: Vec<String>,
}

impl Judgement {
    fn pass() -> Self {
        Self {
            verdict: Verdict::Pass,
            reasons: Vec::new(),
        }
    }

    fn worsen(&mut self, verdict: Verdict, reason: String) {
        self.verdict = self.verdict.max(verdict);
        self.reasons.push(reason);
    }
}

/// The verdict on one probe of a conversation. Most observations of a bundle are
/// shared by its conversations; where the same ones were judged before, and none
/// depends on the texts of its container, the verdict is the same.
pub fn verdict(probe: &ProbeSpec, seen: &[&Arc<ProbeObservation>], texts: &Texts) -> Verdict {
    let judge = || {
        let seen: Vec<&Observation> = seen.iter().map(|own| &own.seen).collect();
        judge(probe, &seen, texts).verdict
    };
    if reads_texts(probe) || texts.own.is_some() {
        return judge();
    }
    texts.known_verdict(probe.id, seen, judge)
}

/// Whether anything but the observations themselves bears on the verdict.
fn reads_texts(probe: &ProbeSpec) -> bool {
    let rules = probe.operations.iter().map(|operation| operation.expect);
    probe.id == LOCK
        || rules.into_iter().any(|expect| match expect {
            Expect::Fact(rule) => facts::reads_texts(rule),
            Expect::Denied(_) | Expect::Allowed | Expect::Recorded => false,
        })
}

/// The probe whose denials are the lock's.
const LOCK: &str = "PR-EXEC-1";

/// Judges one probe by everything that was seen of it.
pub fn judge<O: Borrow<Observation>>(
    probe: &ProbeSpec,
    observations: &[O],
    texts: &Texts,
) -> Judgement {
    let mut judgement = Judgement::pass();
    let orderly = is_orderly(probe, observations);
    for (index, phase) in probe.phases.iter().enumerate() {
        if !probe.required_phases.contains(phase) {
            continue;
        }
        for (number, operation) in probe.operations.iter().enumerate() {
            let found = if orderly {
                Ok(observations[index * probe.operations.len() + number].borrow())
            } else {
                the_one(observations, operation, *phase)
            };
            match found {
                Ok(seen) => match own_kernel::check(probe, operation, seen, texts) {
                    Some(problems) => {
                        for (verdict, problem) in problems {
                            let place = Place(operation.id, *phase);
                            judgement.worsen(verdict, format!("{place}: {problem}"));
                        }
                    }
                    None => judge_operation(&mut judgement, operation, *phase, seen, texts),
                },
                Err(why) => {
                    let place = Place(operation.id, *phase);
                    judgement.worsen(Verdict::Unproven, format!("{place}: {why}"));
                }
            }
        }
    }
    for seen in observations.iter().map(Borrow::borrow) {
        if !orderly && !probe.operations.iter().any(|op| op.id == seen.operation) {
            judgement.worsen(
                Verdict::Unproven,
                format!("{}: not an operation of this probe", seen.operation),
            );
        }
    }
    if probe.id == LOCK
        && let Some(problem) = facts::lock_problem(texts)
    {
        judgement.worsen(Verdict::Unproven, problem);
    }
    judgement
}

/// Exactly the probe's operations, once each, in its order, phase by phase: then
/// nothing has to be looked for.
fn is_orderly<O: Borrow<Observation>>(probe: &ProbeSpec, observations: &[O]) -> bool {
    let phases = probe.phases.iter();
    let expected = phases.flat_map(|phase| probe.operations.iter().map(move |op| (*phase, op.id)));
    let seen = observations.iter().map(Borrow::borrow);
    seen.map(|seen| (seen.phase, seen.operation.as_str()))
        .eq(expected)
}

/// The observation of one operation in one phase, or why there is not exactly one.
fn the_one<'a, O: Borrow<Observation>>(
    observations: &'a [O],
    operation: &OperationSpec,
    phase: Phase,
) -> Result<&'a Observation, &'static str> {
    let mut matching = observations
        .iter()
        .map(Borrow::borrow)
        .filter(|seen| seen.phase == phase && seen.operation == operation.id);
    match (matching.next(), matching.next()) {
        (Some(seen), None) => Ok(seen),
        (None, _) => Err("not observed"),
        (Some(_), Some(_)) => Err("observed twice"),
    }
}

fn judge_operation(
    judgement: &mut Judgement,
    operation: &OperationSpec,
    phase: Phase,
    seen: &Observation,
    texts: &Texts,
) {
    // Written out only where there is something to say.
    let place = Place(operation.id, phase);
    if matches!(seen.state, State::NotReached | State::Error)
        && operation.expect != Expect::Recorded
    {
        return judgement.worsen(Verdict::Unproven, format!("{place}: {}", seen.proof()));
    }
    match operation.expect {
        Expect::Recorded => {}
        Expect::Denied(errnos) => match seen.state {
            State::Denied if is_accepted_denial(seen, errnos) => {}
            State::Denied => judgement.worsen(
                Verdict::Unproven,
                format!(
                    "{place}: denied by {}, which does not prove this boundary (expected {})",
                    seen.proof(),
                    errnos.join(" or ")
                ),
            ),
            _ => judgement.worsen(Verdict::Fail, format!("{place}: {}", seen.proof())),
        },
        Expect::Allowed => {
            if seen.state != State::Allowed || seen.errno.is_some() || seen.signal.is_some() {
                judgement.worsen(
                    Verdict::Fail,
                    format!("{place}: expected to work, got {}", seen.proof()),
                );
            }
        }
        Expect::Fact(rule) => {
            for (verdict, problem) in facts::check(rule, seen, texts) {
                judgement.worsen(verdict, format!("{place}: {problem}"));
            }
        }
    }
}

/// An operation in a phase, for a reader.
struct Place(&'static str, Phase);

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        write!(f, "{} in phase {}", self.0, self.1.name())
    }
}

/// A denial must say by what, and by one thing only: an errno from a call that
/// returned, or a signal from one that did not.
fn is_accepted_denial(seen: &Observation, errnos: &[&str]) -> bool {
    match (&seen.errno, &seen.signal) {
        (Some(errno), None) => errnos.contains(&errno.as_str()) && seen.returned == Some(-1),
        (None, Some(signal)) => {
            let accepted = errnos.contains(&signal.as_str());
            let filter = signal == "SIGSYS" && errnos.contains(&"EPERM");
            (accepted || filter) && seen.returned.is_none()
        }
        _ => false,
    }
}

/// What came back, in a line: each proof with the operations that gave it.
pub fn actual(observations: &[Observation]) -> String {
    let mut parts = Vec::new();
    for phase in [Phase::Engine, Phase::Locked] {
        // In the order in which the proofs came; there may be as many as observations.
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut groups: Vec<Vec<&str>> = Vec::new();
        for seen in observations.iter().filter(|seen| seen.phase == phase) {
            let place = *places.entry(seen.proof()).or_insert(groups.len());
            if place == groups.len() {
                groups.push(Vec::new());
            }
            groups[place].push(&seen.operation);
        }
        let mut words = vec![String::new(); groups.len()];
        for (proof, place) in places {
            words[place] = format!("{} -> {proof}", groups[place].join(", "));
        }
        if !words.is_empty() {
            parts.push(format!("[{}] {}", phase.name(), words.join("; ")));
        }
    }
    parts.join(" ")
}

/// The errnos and signals that came back in the required phases, or `0`.
pub fn errno_or_exit(probe: &ProbeSpec, observations: &[Observation]) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut known = BTreeSet::new();
    for seen in observations {
        if !probe.required_phases.contains(&seen.phase) {
            continue;
        }
        for word in [&seen.errno, &seen.signal].into_iter().flatten() {
            if known.insert(word.as_str()) {
                words.push(word);
            }
        }
    }
    if words.is_empty() {
        "0".into()
    } else {
        words.join(",")
    }
}

/// Who denied it, where that is not plainly the engine. PR-EXEC-1 is enforced by the
/// launcher if a gate of its stands there and the engine phase already gave what is expected:
/// without one, something else did that in its place.
pub fn enforced_by(probe: &ProbeSpec, seen: &[Observation], gate: bool) -> Option<String> {
    if probe.id != LOCK {
        return None;
    }
    let engine: Vec<&Observation> = seen
        .iter()
        .filter(|seen| seen.phase == Phase::Engine)
        .collect();
    let launcher = gate
        && engine.len() == probe.operations.len()
        && engine
            .iter()
            .all(|seen| seen.state == State::Denied && is_accepted_denial(seen, &["EPERM"]));
    Some(if launcher { "launcher" } else { "inspector" }.into())
}

#[cfg(test)]
mod tests;
