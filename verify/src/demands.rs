//! What the verifier demands beyond the built-in bar: policy and assurance.

use crate::checks::Checks;
use crate::{Inputs, Outcome};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use tki_evidence::engine_kind::EngineKind;
use tki_evidence::evidence::{Evidence, Verdict};
use tki_evidence::policy::{Policy, kernel_version};
use tki_evidence::step_code::StepCode;
use tki_evidence::verification::Assurance;
use tki_evidence::{calibrate, controls};

/// One step per demand of the policy.
pub fn policy(checks: &mut Checks, evidence: &Evidence, inputs: &Inputs) {
    let Some(policy) = inputs.policy() else {
        checks.add(
            StepCode::Policy,
            Outcome::NotChecked,
            "what a policy demands",
            "no policy was given",
            "--policy",
            "demand more than the built-in bar with --policy FILE",
        );
        return;
    };
    let before = checks.steps.len();
    if let Some(threshold) = policy.threshold {
        // Without a list of signers nobody was counted, which is not enough.
        let met = checks.all_ok(&[StepCode::Signature]);
        let expected = format!("signatures by {threshold} listed signers");
        let got = if met {
            "they are there"
        } else {
            "they are not shown"
        };
        demand(checks, met, expected, got.into(), "threshold");
    }
    probes(checks, evidence, policy);
    required_controls(checks, evidence, policy);
    machine(checks, evidence, policy);
    outside(checks, evidence, policy);
    if checks.steps.len() == before {
        let outcome = Outcome::Ok;
        checks.add(
            StepCode::Policy,
            outcome,
            "what the policy demands",
            "nothing more",
            "policy",
            "",
        );
    }
}

fn demand(checks: &mut Checks, met: bool, expected: String, got: String, place: &str) {
    let outcome = if met { Outcome::Ok } else { Outcome::Blocked };
    let next = "your policy demands more than this run shows: ask for a run that does";
    checks.add(StepCode::Policy, outcome, expected, got, place, next);
}

fn probes(checks: &mut Checks, evidence: &Evidence, policy: &Policy) {
    let find = |id: &str| evidence.probes.iter().find(|probe| probe.probe_id == id);
    for id in &policy.required_probes {
        let verdict = find(id).map(|probe| probe.verdict);
        let got = verdict.map_or("it was not run", Verdict::name);
        let met = verdict == Some(Verdict::Pass);
        demand(
            checks,
            met,
            format!("{id} PASS"),
            got.into(),
            "required_probes",
        );
    }
    for (id, least) in &policy.minimum_layers {
        let layers = find(id).map_or(0, |probe| probe.layers);
        // How many layers there are is known only from controls that hold.
        let met = layers >= *least && checks.all_ok(&[StepCode::Controls]);
        let expected = format!("{id}: at least {least} layers, shown by controls");
        demand(
            checks,
            met,
            expected,
            format!("{layers} layers"),
            "minimum_layers",
        );
    }
    if let Some(gate) = policy.gate {
        let exec = find("PR-EXEC-1").and_then(|probe| probe.enforced_by.clone());
        let met = exec.as_deref() == Some(gate.name())
            || gate == tki_evidence::policy::Gate::Inspector && exec.as_deref() == Some("launcher");
        let got = exec.unwrap_or_else(|| "nobody".into());
        demand(
            checks,
            met,
            format!("exec denied by the {}", gate.name()),
            got,
            "gate",
        );
    }
}

fn required_controls(checks: &mut Checks, evidence: &Evidence, policy: &Policy) {
    let mut wanted: Vec<&str> = policy
        .required_controls
        .iter()
        .map(String::as_str)
        .collect();
    if wanted.contains(&"all") {
        // No engine can relax everything. Docker's are the measure, whichever engine it was: one
        // that can make fewer does not come off better for it. But nobody can take away a label
        // that the host does not give.
        let has_label = calibrate::has_label(&evidence.sandbox.configured);
        let measure = controls::of_engine(Some(EngineKind::Docker))
            .filter(|control| has_label || !calibrate::takes_label(control));
        wanted = measure.map(|control| control.name).collect();
    }
    if wanted.is_empty() {
        return;
    }
    let holds = |name: &&&str| {
        !evidence
            .controls
            .iter()
            .any(|result| result.control == **name && result.holds)
    };
    let missing: Vec<&&str> = wanted.iter().filter(holds).collect();
    let recomputed = checks.all_ok(&[StepCode::Controls]);
    let got = if !missing.is_empty() {
        format!(
            "{} of {} missing or not holding",
            missing.len(),
            wanted.len()
        )
    } else if !recomputed {
        "not recomputed from their conversations".into()
    } else {
        format!("{} hold", wanted.len())
    };
    let met = missing.is_empty() && recomputed;
    let expected = format!("{} controls, recomputed", wanted.len());
    demand(checks, met, expected, got, "required_controls");
}

fn machine(checks: &mut Checks, evidence: &Evidence, policy: &Policy) {
    let runtime = &evidence.runtime;
    if !policy.engines.is_empty() {
        let met = policy.engines.contains(&runtime.engine);
        let expected = policy.engines.join(" or ");
        demand(checks, met, expected, runtime.engine.clone(), "engines");
    }
    if !policy.venues.is_empty() {
        let met = policy.venues.contains(&evidence.venue);
        demand(
            checks,
            met,
            policy.venues.join(" or "),
            evidence.venue.clone(),
            "venues",
        );
    }
    let kernel = &runtime.kernel;
    if let Some(minimum) = &policy.kernels.minimum {
        let met = kernel_version(kernel)
            .zip(kernel_version(minimum))
            .is_some_and(|(kernel, minimum)| kernel >= minimum);
        let expected = format!("kernel {minimum} or newer");
        demand(checks, met, expected, kernel.clone(), "kernels.minimum");
    }
    for refused in &policy.kernels.refused {
        let met = !kernel.starts_with(refused.as_str());
        let expected = format!("no kernel {refused}…");
        demand(checks, met, expected, kernel.clone(), "kernels.refused");
    }
}

/// The host as a witness, who saw everything that root can see.
fn outside(checks: &mut Checks, evidence: &Evidence, policy: &Policy) {
    if !policy.require_outside {
        return;
    }
    let (view, absent) = (&evidence.witnesses.outside, &evidence.raw.outside.absent);
    let whole = view.available && absent.is_empty();
    let met = whole && checks.all_ok(&[StepCode::Outside]);
    let got = if !view.available {
        view.source.clone()
    } else if !whole {
        format!("absent, no right: {}", absent.join(", "))
    } else if !met {
        "EV-OUTSIDE is not ok".into()
    } else {
        "it is whole".into()
    };
    let expected = "the container as its host saw it, with nothing absent: a run by root there";
    demand(checks, met, expected.into(), got, "require_outside");
}

/// How far the evidence can be relied on, and whether that is enough.
pub fn assurance(checks: &mut Checks, inputs: &Inputs) -> Assurance {
    let sealed = [
        StepCode::Envelope,
        StepCode::Signature,
        StepCode::Types,
        StepCode::Subjects,
        StepCode::Bytes,
        StepCode::Statement,
    ];
    let found = match (checks.all_ok(&sealed), checks.all_ok(&[StepCode::Request])) {
        (true, true) => Assurance::SignedFresh,
        (true, false) => Assurance::Signed,
        (false, _) => Assurance::SelfReported,
    };
    let (outcome, expected) = match inputs.assurance() {
        None => (Outcome::Ok, "any, since none is demanded".to_owned()),
        Some(least) if found >= least => (Outcome::Ok, format!("at least {}", least.name())),
        Some(least) => (Outcome::Blocked, format!("at least {}", least.name())),
    };
    checks.add(
        StepCode::Assurance,
        outcome,
        expected,
        found.name(),
        "--require-assurance",
        "ask for a signed answer to your request, and give --allowed-signers and --request",
    );
    found
}
