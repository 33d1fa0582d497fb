//! Everything in evidence that follows from what was recorded. `run` fills it
//! in with these functions; `verify` fills it in again and compares.

use crate::catalogue::{self, ProbeSpec};
use crate::controls;
use crate::evidence::{
    ControlResult, Evidence, Holdings, Inventory, ProbeResult, RawFacts, Status, Summary, Verdict,
};
use crate::judge;
use crate::matrix::Matrix;
use crate::observation::Observation;
use crate::settings;
use crate::transcript::Heard;
use crate::witness;

/// The result of one probe. `artifact_path` is left as it is given.
pub fn probe_result(
    probe: &ProbeSpec,
    observations: Vec<Observation>,
    raw: &RawFacts,
    matrix: &Matrix,
    artifact_path: String,
) -> ProbeResult {
    let judgement = judge::judge(probe, &observations, raw);
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

/// What the controls show about each probe: which of them made it fail, which
/// layers had to go for that, and how many of them at least.
fn calibrate(probes: &mut [ProbeResult], controls: &mut [ControlResult]) {
    for control in controls.iter_mut() {
        // What must flip is ours to say, not the bundle's.
        match controls::find(&control.control) {
            Some(known) => {
                let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
                control.relaxed = known.relaxed.to_owned();
                control.layers = list(known.layers);
                control.probes = controls::probes(known).map(str::to_owned).collect();
                control.must_flip = list(known.must_flip);
                control.may_flip = list(known.may_flip);
                control.holds = known.holds(&control.flipped);
            }
            None => control.holds = false,
        }
    }
    for probe in probes {
        let flipping: Vec<&ControlResult> = controls
            .iter()
            .filter(|control| control.flipped.contains(&probe.probe_id))
            .collect();
        let fewest = flipping.iter().map(|control| control.layers.len()).min();
        let mut layers: Vec<String> = flipping
            .iter()
            .filter(|control| Some(control.layers.len()) == fewest)
            .flat_map(|control| control.layers.iter().cloned())
            .collect();
        layers.sort();
        layers.dedup();
        probe.calibrated_by = flipping.iter().map(|c| c.control.clone()).collect();
        probe.denied_by = layers;
        probe.layers = u32::try_from(fewest.unwrap_or(0)).unwrap_or(u32::MAX);
    }
}

/// Probes that did not pass in a control, sorted. They are judged by the same
/// rules as the run itself, against the profile that stood there.
pub fn flipped(control: &controls::Control, heard: &Heard, run: &RawFacts) -> Vec<String> {
    let raw = RawFacts {
        host_namespaces: run.host_namespaces.clone(),
        seccomp_profile: control
            .profile()
            .map_or_else(|| run.seccomp_profile.clone(), str::to_owned),
        ..heard.raw.clone()
    };
    let seen = heard.by_probe();
    let mut flipped: Vec<String> = controls::probes(control)
        .filter_map(catalogue::find)
        .filter(|probe| {
            let seen = seen.get(probe.id).map_or(&[][..], Vec::as_slice);
            judge::judge(probe, seen, &raw).verdict != Verdict::Pass
        })
        .map(|probe| probe.id.to_owned())
        .collect();
    flipped.sort();
    flipped
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
    if evidence.summary.failed > 0 || disagreement {
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
    if evidence.venue == "dev" {
        lines.push("Anything about an approved venue: this is a developer's machine.".to_owned());
    }
    lines
}

/// Fills in everything that follows from the recorded facts.
pub fn derive(evidence: &mut Evidence, matrix: &Matrix) {
    for result in &mut evidence.probes {
        if let Some(spec) = catalogue::find(&result.probe_id) {
            *result = probe_result(
                spec,
                std::mem::take(&mut result.observations),
                &evidence.raw,
                matrix,
                std::mem::take(&mut result.artifact_path),
            );
        }
    }
    calibrate(&mut evidence.probes, &mut evidence.controls);
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
