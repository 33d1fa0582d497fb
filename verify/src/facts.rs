//! Witnesses, inventory, and verdicts recomputed from the recorded facts.

use crate::Outcome;
use crate::checks::Checks;
use alloc::borrow::Cow;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use tki_evidence::catalogue;
use tki_evidence::coherent::{self, Contradiction};
use tki_evidence::derive::{self, Derived};
use tki_evidence::evidence::{Evidence, ProbeResult, Status, Verdict};
use tki_evidence::matrix::Matrix;
use tki_evidence::step_code::StepCode;

/// Every fact that two witnesses share.
pub fn witnesses(checks: &mut Checks, evidence: &Evidence) {
    let rows = &evidence.witnesses.agreement;
    let disagreement: Vec<String> = rows
        .iter()
        .filter(|row| !row.agree)
        .map(|row| {
            let said = |what: &Option<String>| what.clone().unwrap_or_else(|| "-".into());
            format!(
                "{}: inside {}, outside {}, configured {}",
                row.fact,
                said(&row.inside),
                said(&row.outside),
                said(&row.configured)
            )
        })
        .collect();
    let outcome = if !disagreement.is_empty() {
        Outcome::False
    } else if rows.is_empty() {
        Outcome::Blocked
    } else {
        Outcome::Ok
    };
    let got = if disagreement.is_empty() {
        format!("{} shared facts", rows.len())
    } else {
        disagreement.join("; ")
    };
    checks.add(
        StepCode::Witnesses,
        outcome,
        "agreement on every fact that two witnesses share",
        got,
        "witnesses",
        "two views of the same container contradict each other: reject it",
    );
}

/// The host's own view; where it could not be had, nothing stands in for it.
pub fn outside(checks: &mut Checks, evidence: &Evidence) {
    let view = &evidence.witnesses.outside;
    let found = coherent::outside(evidence);
    let (outcome, got) = match view.available {
        true if coherent::is_silent(&evidence.raw) => (
            Outcome::Blocked,
            "the prober gave nothing to hold it against".into(),
        ),
        _ if !found.is_empty() => (Outcome::False, listed(&found)),
        true => (Outcome::Ok, seen(evidence)),
        false => (Outcome::NotChecked, view.source.clone()),
    };
    checks.add(
        StepCode::Outside,
        outcome,
        "the container as its host saw it: the same process, and the same kernel's word on it",
        got,
        "witnesses.outside",
        "run as root on the engine's own host if you need the host as a witness",
    );
}

/// How much the host saw, and what it had no right to.
fn seen(evidence: &Evidence) -> String {
    let facts = evidence.witnesses.outside.facts.len();
    match evidence.raw.outside.absent.as_slice() {
        [] => format!("{facts} facts"),
        absent => format!("{facts} facts; absent, no right: {}", absent.join(", ")),
    }
}

/// Contradictions in one line.
pub fn listed(found: &[Contradiction]) -> String {
    let lines: Vec<String> = found.iter().map(Contradiction::to_string).collect();
    lines.join("; ")
}

/// Nothing changed on the engine but that our own image was added.
pub fn inventory(checks: &mut Checks, evidence: &Evidence) {
    let found = coherent::inventory(evidence);
    let (outcome, got) = if !found.is_empty() {
        (Outcome::False, listed(&found))
    } else if derive::unchanged(&evidence.inventory, &evidence.image) {
        (Outcome::Ok, "unchanged".into())
    } else {
        (Outcome::Blocked, "changed".into())
    };
    checks.add(
        StepCode::Inventory,
        outcome,
        "nothing changed on the engine but that our own image was added",
        got,
        "inventory",
        "something else changed on the engine at the same time: run again when it is quiet",
    );
}

/// Exactly the required probes.
pub fn probe_set(checks: &mut Checks, evidence: &Evidence) {
    let required = catalogue::required(!evidence.controls.is_empty());
    let wanted: Vec<&str> = required.map(|probe| probe.id).collect();
    let found: Vec<&str> = evidence
        .probes
        .iter()
        .map(|probe| probe.probe_id.as_str())
        .collect();
    checks.add(
        StepCode::Probes,
        if wanted == found {
            Outcome::Ok
        } else {
            Outcome::Blocked
        },
        wanted.join(" "),
        found.join(" "),
        "probes",
        "exactly the required probes, once each and in order, must be there: ask for a new run",
    );
}

/// Derives everything again. A verdict that does not follow from the facts
/// is a false statement, whichever party made it.
pub fn derived(checks: &mut Checks, evidence: &Evidence) {
    let again = derive::derived(evidence, Matrix::built_in());
    let difference = first_difference(evidence, &again);
    let (outcome, got) = match difference {
        None => (Outcome::Ok, "the same".to_owned()),
        Some(difference) => (Outcome::False, difference),
    };
    checks.add(
        StepCode::Derived,
        outcome,
        "verdicts, witnesses, matrix, summary and status that follow from the recorded facts",
        got,
        "the whole bundle",
        "what the bundle concludes does not follow from what it records: reject it",
    );
}

/// One step per probe, and the status of the run.
pub fn verdicts(checks: &mut Checks, evidence: &Evidence) {
    for probe in &evidence.probes {
        let outcome = match probe.verdict {
            Verdict::Pass => Outcome::Ok,
            Verdict::Unproven => Outcome::Blocked,
            Verdict::Fail => Outcome::False,
        };
        let got = match outcome {
            Outcome::Ok => probe.errno_or_exit.clone(),
            _ => format!("{}: {}", probe.verdict.name(), probe.reasons.join("; ")),
        };
        let next = match outcome {
            Outcome::False => "this boundary leaks: do not use the sandbox",
            _ => "find out why it could not be proven, then run again",
        };
        checks.add(
            StepCode::Verdict,
            outcome,
            probe.expected.clone(),
            got,
            &probe.probe_id,
            next,
        );
    }
    let status = evidence.status;
    let outcome = match status {
        Status::SandboxAttested => Outcome::Ok,
        Status::SandboxAttestationPartial => Outcome::Blocked,
        Status::SandboxAttestationFailed => Outcome::False,
    };
    checks.add(
        StepCode::Status,
        outcome,
        Status::SandboxAttested.name(),
        status.name(),
        "status",
        "the run itself did not come to an attestation",
    );
}

/// Where evidence differs first from what follows, for a person.
fn first_difference(said: &Evidence, derived: &Derived) -> Option<String> {
    for (said, derived) in said.probes.iter().zip(&derived.probes) {
        if !is_same_result(said, derived) {
            return Some(format!(
                "{} says {} but {} follows{}",
                said.probe_id,
                said.verdict.name(),
                derived.verdict.name(),
                if said.verdict == derived.verdict {
                    " (another field of it differs)"
                } else {
                    ""
                }
            ));
        }
    }
    let parts = [
        // A control that was restated says something else than it did.
        (
            "controls",
            derived
                .controls
                .iter()
                .all(|c| matches!(c, Cow::Borrowed(_))),
        ),
        (
            "kernel_kind",
            said.runtime.kernel_kind == derived.kernel_kind,
        ),
        ("witnesses", said.witnesses == derived.witnesses),
        ("inventory", said.inventory.unchanged == derived.unchanged),
        ("matrix", said.matrix == derived.matrix),
        ("syscalls", said.syscalls == derived.syscalls),
        ("summary", said.summary == derived.summary),
        ("status", said.status == derived.status),
        ("not_proven", said.not_proven == derived.not_proven),
    ];
    parts
        .iter()
        .find(|(_, same)| !same)
        .map(|(name, _)| format!("{name} does not follow"))
}

/// Everything that follows is as it was said.
fn is_same_result(said: &ProbeResult, derived: &ProbeResult) -> bool {
    // Taken apart by name, so that a new field cannot be forgotten here.
    let ProbeResult {
        probe_id,
        operation,
        expected,
        actual_stderr_or_value,
        errno_or_exit,
        verdict,
        artifact_path: _,
        requirements,
        tests,
        calibrated_by,
        denied_by,
        layers,
        enforced_by,
        reasons,
        observations: _,
    } = derived;
    *probe_id == said.probe_id
        && *operation == said.operation
        && *expected == said.expected
        && *actual_stderr_or_value == said.actual_stderr_or_value
        && *errno_or_exit == said.errno_or_exit
        && *verdict == said.verdict
        && *requirements == said.requirements
        && *tests == said.tests
        && *calibrated_by == said.calibrated_by
        && *denied_by == said.denied_by
        && *layers == said.layers
        && *enforced_by == said.enforced_by
        && *reasons == said.reasons
}
