//! The exec gate: it answered at least what the probes were answered by it.

use super::forms::is_harmless;
use super::{Found, seen, shown};
use crate::catalogue;
use crate::evidence::Evidence;
use crate::observation::{Observation, Phase, State};
use crate::seccomp::{About, Rules};
use crate::syscalls;

/// How a gate that stands was put there.
const WAYS: &[&str] = &[
    "the engine's runtime handed its listener to the gate",
    "its filter was loaded before the launcher's own",
    "a filter of the keeper's own asks it",
];

/// A gate that answers more is broken.
const MOST_ANSWERS: u32 = 4096;

pub fn check(found: &mut Found, evidence: &Evidence) {
    const FIELDS: &str = "sandbox.gate";
    let gate = &evidence.sandbox.gate;
    let good = !gate.reason.trim().is_empty() && is_harmless(&gate.reason);
    found.must(good, FIELDS, || shown(&gate.reason));
    if !gate.active {
        found.must(!WAYS.contains(&gate.reason.as_str()), FIELDS, || {
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
    let answered = answered(evidence);
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

/// How many execs before the lock only the gate can have refused. Where the gate has a
/// filter of its own, the profile's denial goes before its question.
fn answered(evidence: &Evidence) -> u32 {
    let gate = &evidence.sandbox.gate;
    let rules = Rules::parse(evidence.raw.seccomp_profile.as_bytes()).ok();
    let asks = |call: &str| {
        let denied = rules
            .as_ref()
            .is_none_or(|rules| rules.about(call) == About::Denied);
        !gate.plain_profile.is_empty() || !denied
    };
    let probe = catalogue::find("PR-EXEC-1");
    let operations = probe.map_or(&[][..], |probe| probe.operations).iter();
    let refused = |seen: &&Observation| {
        seen.state == State::Denied && seen.step.is_none() && seen.errno.as_deref() == Some("EPERM")
    };
    let tried = operations.filter(|operation| {
        let call = operation.id.split('(').next().unwrap_or_default();
        let seen = seen(evidence, "PR-EXEC-1", operation.id, Phase::Engine);
        asks(call) && seen.filter(refused).is_some()
    });
    let sweep = seen(evidence, "XP-ABI-SWEEP", "sweep", Phase::Engine);
    let sweep = sweep
        .and_then(|seen| seen.value.as_deref())
        .unwrap_or_default();
    let swept = ["execve", "execveat"].into_iter().filter(|call| {
        let entry = syscalls::number(call).map(|number| format!("{number}=EPERM"));
        asks(call) && entry.is_some_and(|entry| sweep.split(' ').any(|own| own == entry))
    });
    u32::try_from(tried.count() + swept.count()).unwrap_or(u32::MAX)
}
