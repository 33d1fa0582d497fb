//! Everything in evidence that follows from what was recorded. `run` fills it
//! in with these functions; `verify` fills it in again and compares.

use crate::calibrate;
use crate::catalogue::{self, ProbeSpec};
use crate::evidence::{Evidence, Holdings, Inventory, ProbeResult, Status, Summary, Verdict};
use crate::judge::{self, Sweeps, Texts};
use crate::matrix::Matrix;
use crate::observation::Observation;
use crate::seccomp::is_gated;
use crate::settings;
use crate::stamp::sha256_hex;
use crate::venue;
use crate::witness;

/// The result of one probe. `artifact_path` is left as it is given.
pub fn probe_result(
    probe: &ProbeSpec,
    observations: Vec<Observation>,
    texts: &Texts,
    matrix: &Matrix,
    artifact_path: String,
) -> ProbeResult {
    let judgement = judge::judge(probe, &observations, texts);
    ProbeResult {
        probe_id: probe.id.into(),
        operation: probe.operation.into(),
        expected: probe.expected.into(),
        actual_stderr_or_value: judge::actual(&observations),
        errno_or_exit: judge::errno_or_exit(probe, &observations),
        verdict: judgement.verdict,
        artifact_path,
        requirements: probe.requirements.iter().map(|r| (*r).into()).collect(),
        tests: matrix.tests_of(probe.id),
        calibrated_by: Vec::new(),
        denied_by: Vec::new(),
        layers: 0,
        enforced_by: judge::enforced_by(probe, &observations),
        reasons: judgement.reasons,
        observations,
    }
}

/// Nothing but our own image changed.
pub fn unchanged(inventory: &Inventory) -> bool {
    let rest = |holdings: &Holdings| {
        let mut holdings = holdings.clone();
        holdings
            .images
            .retain(|image| !inventory.own_images.contains(image));
        holdings
    };
    rest(&inventory.before) == rest(&inventory.after)
}

/// Counts verdicts of the required probes. A missing probe is UNPROVEN.
pub fn summary(probes: &[ProbeResult], with_controls: bool) -> Summary {
    let verdict = |probe: &ProbeSpec| {
        let mut found = probes.iter().filter(|result| result.probe_id == probe.id);
        match (found.next(), found.next()) {
            (Some(result), None) => result.verdict,
            _ => Verdict::Unproven,
        }
    };
    let count = |wanted: Verdict| {
        let required = catalogue::required(with_controls);
        let matching = required.filter(|probe| verdict(probe) == wanted);
        u32::try_from(matching.count()).unwrap_or(u32::MAX)
    };
    Summary {
        required: u32::try_from(catalogue::required(with_controls).count()).unwrap_or(u32::MAX),
        passed: count(Verdict::Pass),
        failed: count(Verdict::Fail),
        unproven: count(Verdict::Unproven),
    }
}

/// What the run came to.
pub fn status(evidence: &Evidence) -> Status {
    let disagreement = evidence.witnesses.agreement.iter().any(|row| !row.agree);
    let broken_control = evidence.controls.iter().any(|control| !control.holds);
    if evidence.summary.failed > 0 || disagreement || idle_gate(evidence) {
        Status::SandboxAttestationFailed
    } else if evidence.summary.passed != evidence.summary.required
        || !evidence.inventory.unchanged
        || broken_control
        || !deviations(evidence).is_empty()
        || !settings::shortfalls(&evidence.sandbox.configured).is_empty()
    {
        Status::SandboxAttestationPartial
    } else {
        Status::SandboxAttested
    }
}

/// SHA-256 (hex) of the profile that was chosen, before an exec gate extended
/// it. `None` if what the engine was given does not follow from it.
pub fn chosen_profile(evidence: &Evidence) -> Option<String> {
    match evidence.sandbox.gate.plain_profile.as_str() {
        "" => Some(evidence.seccomp_sha256.clone()),
        plain => {
            is_gated(&evidence.raw.seccomp_profile, plain).then(|| sha256_hex(plain.as_bytes()))
        }
    }
}

/// The run's settings as controls start from them: those have no gate, and so
/// not the profile that it extended.
pub fn without_gate(evidence: &Evidence) -> settings::Settings {
    let mut run = evidence.sandbox.configured.clone();
    if let Some(chosen) = chosen_profile(evidence) {
        run.seccomp = chosen;
    }
    run
}

/// A gate is said to stand, but execs came through in the engine's phase; or it
/// is said not to stand, but to have answered.
pub fn idle_gate(evidence: &Evidence) -> bool {
    let enforced = |probe: &ProbeResult| probe.enforced_by.as_deref() == Some("launcher");
    let gate = &evidence.sandbox.gate;
    if gate.active {
        gate.allowed != 1 || !evidence.probes.iter().any(enforced)
    } else {
        gate.allowed != 0 || gate.refused != 0
    }
}

/// Settings that the engine did not take as it was asked to.
pub fn deviations(evidence: &Evidence) -> Vec<settings::Deviation> {
    settings::deviations(&evidence.sandbox.declared, &evidence.sandbox.configured)
}

/// What this evidence does not show, said in the evidence itself.
pub fn not_proven(evidence: &Evidence) -> Vec<String> {
    let mut lines = vec![
        "That root on the venue did not make this file up: observations are self-reported unless \
         a listed key signed them."
            .to_owned(),
        "That the kernel has no bug through which the boundaries could be passed.".to_owned(),
        "That a later container gets the same settings: this is one container, once.".to_owned(),
    ];
    let exec = evidence
        .probes
        .iter()
        .find(|probe| probe.probe_id == "PR-EXEC-1");
    if exec.and_then(|probe| probe.enforced_by.as_deref()) == Some("inspector") {
        lines.push(
            "That the engine denies execve: it cannot, because it needs one exec to start; the \
             inspector's own stacked filter does (enforced_by: inspector)."
                .to_owned(),
        );
    }
    let uncalibrated: Vec<&str> = evidence
        .probes
        .iter()
        .filter(|probe| probe.calibrated_by.is_empty())
        .map(|probe| probe.probe_id.as_str())
        .collect();
    if evidence.controls.is_empty() {
        lines.push(
            "That each probe would have failed without its boundary: no controls were run."
                .to_owned(),
        );
        lines.push(
            "That the limits of processes, memory, files, space and CPU hold: they are run into \
             only together with the controls."
                .to_owned(),
        );
    } else if !uncalibrated.is_empty() {
        lines.push(format!(
            "That these probes would have failed without their boundary, since no control made \
             them: {}.",
            uncalibrated.join(", ")
        ));
    }
    if !evidence.witnesses.outside.available {
        lines.push(format!(
            "That the host saw the same from outside: {}.",
            evidence.witnesses.outside.source
        ));
    }
    if evidence.request.is_none() {
        lines.push("That the run answers a verifier's question: no request was given.".to_owned());
    }
    if evidence.sandbox.out_backing.kind != "tmpfs" {
        lines.push(format!(
            "That files in /out cannot be executed or fill the disk: {}.",
            evidence.sandbox.out_backing.reason
        ));
    }
    if !evidence.inventory.unchanged {
        lines.push(
            "That nothing else on the engine changed: the inventories before and after differ."
                .to_owned(),
        );
    }
    for (name, artifact, said) in venue::proofs(&evidence.venue_facts) {
        if said != venue::ABSENT {
            lines.push(format!(
                "What {artifact} says ({name}): it was kept, and not checked. Whose key signed \
                 it, and that it is about this run, is for the verifying party to find out."
            ));
        }
    }
    if evidence.venue == "dev" {
        lines.push("Anything about an approved venue: this is a developer's machine.".to_owned());
    }
    lines
}

/// Fills in everything that follows from the recorded facts.
pub fn derive(evidence: &mut Evidence, matrix: &Matrix) {
    let sweeps = Sweeps::default();
    let texts = Texts::of_run(&evidence.raw, &sweeps);
    for result in &mut evidence.probes {
        if let Some(spec) = catalogue::find(&result.probe_id) {
            *result = probe_result(
                spec,
                std::mem::take(&mut result.observations),
                &texts,
                matrix,
                std::mem::take(&mut result.artifact_path),
            );
        }
    }
    let run = without_gate(evidence);
    calibrate::calibrate(&mut evidence.probes, &mut evidence.controls, &run);
    evidence.witnesses = witness::witnesses(
        &evidence.raw,
        &evidence.sandbox.configured,
        &evidence.witnesses.outside,
    );
    evidence.inventory.unchanged = unchanged(&evidence.inventory);
    evidence.matrix = matrix.bind(&evidence.probes);
    evidence.summary = summary(&evidence.probes, !evidence.controls.is_empty());
    evidence.status = status(evidence);
    evidence.not_proven = not_proven(evidence);
}
