//! The exec gate: it answered at least what the probes were answered by it.

use super::forms::is_harmless;
use super::kernel::is_local;
use super::{Found, seen, shown};
use crate::catalogue;
use crate::derive;
use crate::evidence::Evidence;
use crate::judge::profile::Calls;
use crate::kernel;
use crate::observation::{Observation, Phase, State};
use crate::remembered::{self, NOT_TRIED};
use crate::seccomp::{About, GATED};
use crate::syscalls;
use crate::time::parse_rfc3339;
use alloc::borrow::Cow;
use alloc::format;

/// How a gate that stands was put there.
const WAYS: &[&str] = &[
    "the engine's runtime handed its listener to the gate",
    "its filter was loaded before the launcher's own",
    "a filter of the keeper's own asks it",
];

/// A gate that answers more is broken.
const MOST_ANSWERS: u32 = 4096;

/// A gate that was not tried was refused before this run, by an engine that is asked for
/// one through the profile, and left the profile alone.
fn is_not_tried_for_a_reason(evidence: &Evidence) -> bool {
    let gate = &evidence.sandbox.gate;
    if !gate.reason.starts_with(NOT_TRIED) {
        return true;
    }
    let refused = remembered::parse(&gate.reason).map(|(_, when)| when);
    let started = parse_rfc3339(&evidence.started);
    let is_before = matches!((refused, started), (Some(when), Some(start)) if when <= start);
    is_before && !is_local(evidence.runtime.kind()) && gate.plain_profile.is_empty()
}

pub fn check(found: &mut Found, evidence: &Evidence) {
    const FIELDS: &str = "sandbox.gate";
    let gate = &evidence.sandbox.gate;
    let good = !gate.reason.trim().is_empty() && is_harmless(&gate.reason);
    found.must(good, FIELDS, || shown(&gate.reason));
    if !gate.active {
        found.must(!WAYS.contains(&gate.reason.as_str()), FIELDS, || {
            shown(&gate.reason)
        });
        found.must(is_not_tried_for_a_reason(evidence), FIELDS, || {
            shown(&gate.reason)
        });
        return;
    }
    found.must(WAYS.contains(&gate.reason.as_str()), FIELDS, || {
        shown(&gate.reason)
    });
    let listener = gate.reason == WAYS[0];
    found.must(listener != gate.plain_profile.is_empty(), FIELDS, || {
        "its profile is not as it was put there".into()
    });
    let answered = Execs::of(evidence).answered();
    let good = (answered..MOST_ANSWERS).contains(&gate.refused);
    found.must(
        good,
        "sandbox.gate.refused, PR-EXEC-1, XP-ABI-SWEEP",
        || {
            format!(
                "it refused {}, and the probes were refused {answered}",
                gate.refused
            )
        },
    );
    // Beside the engine's filter stands the one that asks.
    let filters = crate::facts::status_field(&evidence.raw.proc_self_status, "Seccomp_filters");
    let filters = filters.and_then(super::number);
    found.must(
        listener || filters.is_none_or(|count| count >= 2),
        FIELDS,
        || "there is no filter that asks it".into(),
    );
}

/// What the profile says about the exec calls, and what the sweep got for them.
struct Execs<'a> {
    evidence: &'a Evidence,
    calls: Option<Cow<'static, Calls>>,
    sweep: &'a str,
}

impl<'a> Execs<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        let place = kernel::place(&evidence.raw, kernel::own(evidence));
        let sweep = seen(evidence, derive::SWEEP, "sweep", Phase::Engine);
        Self {
            evidence,
            calls: Calls::of(derive::plain_profile(evidence), place),
            sweep: sweep
                .and_then(|seen| seen.value.as_deref())
                .unwrap_or_default(),
        }
    }

    fn is(&self, call: &str, about: About) -> bool {
        let found = self.calls.as_ref().zip(syscalls::number(call));
        found.is_some_and(|(calls, number)| calls.get(number).about == about)
    }

    fn is_swept_as(&self, call: &str, answer: &str) -> bool {
        let entry = syscalls::number(call).map(|number| format!("{number}={answer}"));
        entry.is_some_and(|entry| self.sweep.split(' ').any(|own| own == entry))
    }

    /// What was tried before the lock: the call, and what was seen.
    fn tried(&self) -> impl Iterator<Item = (&'static str, &'a Observation)> {
        let evidence = self.evidence;
        let probe = catalogue::find("PR-EXEC-1");
        let operations = probe.map_or(&[][..], |probe| probe.operations).iter();
        operations.filter_map(move |operation| {
            let call = operation.id.split('(').next().unwrap_or_default();
            let seen = seen(evidence, "PR-EXEC-1", operation.id, Phase::Engine)?;
            Some((call, seen))
        })
    }

    /// How many execs before the lock only the gate can have refused. Where the gate has a
    /// filter of its own, the profile's denial goes before its question, and where the
    /// profile looks at arguments nobody knows.
    fn answered(&self) -> u32 {
        let asks = |call: &str| {
            let extended = !self.evidence.sandbox.gate.plain_profile.is_empty();
            extended || self.is(call, About::Allowed)
        };
        let refused = |seen: &Observation| {
            seen.state == State::Denied
                && seen.step.is_none()
                && seen.errno.as_deref() == Some("EPERM")
        };
        let tried = self
            .tried()
            .filter(|(call, seen)| asks(call) && refused(seen));
        let swept = GATED
            .into_iter()
            .filter(|call| asks(call) && self.is_swept_as(call, "EPERM"));
        u32::try_from(tried.count() + swept.count()).unwrap_or(u32::MAX)
    }
}

/// What the profile denies for all arguments and the sweep got no answer to was not executed.
pub fn execs(found: &mut Found, evidence: &Evidence) {
    let execs = Execs::of(evidence);
    let executed = |(_, seen): &(&str, &Observation)| seen.state == State::Allowed;
    for (call, seen) in execs.tried().filter(executed) {
        let denied = execs.is(call, About::Denied) && execs.is_swept_as(call, "EPERM");
        found.must(!denied, "PR-EXEC-1, XP-ABI-SWEEP", || {
            format!("{} was allowed, and {call} is denied", seen.operation)
        });
    }
}
