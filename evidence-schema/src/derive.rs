//! Everything in evidence that follows from what was recorded. `run` fills it
//! in with these functions; `verify` fills it in again and compares.

use crate::calibrate::{self, Comparable};
use crate::catalogue::{self, ProbeSpec};
use crate::coherent::is_own_image;
use crate::evidence::{
    ControlResult, Evidence, Holdings, ImageIdentity, Inventory, MatrixRow, OutsideFacts,
    ProbeResult, RawFacts, Status, Summary, SyscallLayers, Verdict, Witnesses,
};
use crate::fields;
use crate::judge::profile::Calls;
use crate::judge::{self, Sweeps, Texts};
use crate::kernel::{self, KernelKind};
use crate::matrix::Matrix;
use crate::observation::Observation;
use crate::seccomp::is_gated;
use crate::settings;
use crate::stamp::sha256_hex;
use crate::venue;
use crate::witness;
use alloc::borrow::Cow;
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

/// What follows from the recorded facts.
#[derive(Clone, Debug)]
pub struct Derived<'a> {
    /// The probes' results, without their observations and artifact.
    pub probes: Vec<ProbeResult>,
    /// The controls; borrowed where they already say what follows.
    pub controls: Vec<Cow<'a, ControlResult>>,
    /// Whose kernel it was.
    pub kernel_kind: KernelKind,
    /// What each witness says.
    pub witnesses: Witnesses,
    /// Nothing but our own image changed.
    pub unchanged: bool,
    /// The acceptance tests.
    pub matrix: Vec<MatrixRow>,
    /// Which layer denied each system call.
    pub syscalls: SyscallLayers,
    /// The count of verdicts.
    pub summary: Summary,
    /// What the run came to.
    pub status: Status,
    /// What is not shown.
    pub not_proven: Vec<String>,
}

/// The result of one probe. `artifact_path` is left as it is given.
pub fn probe_result(
    probe: &ProbeSpec,
    observations: Vec<Observation>,
    texts: &Texts,
    matrix: &Matrix,
    artifact_path: String,
) -> ProbeResult {
    let mut result = follows(probe, &observations, texts, matrix, false);
    result.observations = observations;
    result.artifact_path = artifact_path;
    result
}

/// The result of one probe, without its observations and its artifact.
fn follows(
    probe: &ProbeSpec,
    observations: &[Observation],
    texts: &Texts,
    matrix: &Matrix,
    gate: bool,
) -> ProbeResult {
    let judgement = judge::judge(probe, observations, texts);
    ProbeResult {
        probe_id: probe.id.into(),
        operation: probe.operation.into(),
        expected: probe.expected.into(),
        actual_stderr_or_value: match judge::own_kernel::proof(probe, observations, texts) {
            Some(proof) => format!("{} {proof}", judge::actual(observations)),
            None => judge::actual(observations),
        },
        errno_or_exit: judge::errno_or_exit(probe, observations),
        verdict: judgement.verdict,
        artifact_path: String::new(),
        requirements: probe.requirements.iter().map(|r| (*r).into()).collect(),
        tests: matrix.tests_of(probe.id),
        calibrated_by: Vec::new(),
        denied_by: Vec::new(),
        layers: 0,
        enforced_by: judge::enforced_by(probe, observations, gate),
        reasons: judgement.reasons,
        observations: Vec::new(),
    }
}

/// Nothing changed but that our own image was added. An image that lost its tag to it is
/// still there.
pub fn unchanged(inventory: &Inventory, own: &ImageIdentity) -> bool {
    // Taken apart by name, so that no kind of holding can be forgotten here.
    let Holdings {
        containers,
        networks,
        volumes,
        images,
        modules,
    } = &inventory.before;
    let after = &inventory.after;
    let held: BTreeSet<&String> = images.iter().collect();
    let (kept, added): (Vec<&String>, Vec<&String>) =
        after.images.iter().partition(|image| held.contains(image));
    *containers == after.containers
        && *networks == after.networks
        && *volumes == after.volumes
        && *modules == after.modules
        && images.iter().eq(kept)
        && added.iter().all(|image| is_own_image(own, image))
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

/// What the run came to; `derived` holds all of it but this.
fn status(evidence: &Evidence, derived: &Derived) -> Status {
    let disagreement = derived.witnesses.agreement.iter().any(|row| !row.agree);
    let run = Comparable::of(&without_gate(evidence)).on(derived.kernel_kind, &derived.probes);
    let is_broken =
        |control: &ControlResult| !control.holds && !calibrate::only_shows_nothing(control, &run);
    let broken_control = derived.controls.iter().any(|control| is_broken(control));
    let summary = &derived.summary;
    if summary.failed > 0 || disagreement || idle_gate(evidence, &derived.probes) {
        Status::SandboxAttestationFailed
    } else if summary.passed != summary.required
        || !derived.unchanged
        || broken_control
        || !deviations(evidence).is_empty()
        || !settings::shortfalls(&evidence.sandbox.configured).is_empty()
    {
        Status::SandboxAttestationPartial
    } else {
        Status::SandboxAttested
    }
}

/// The profile that was chosen, before an exec gate extended it.
pub fn plain_profile(evidence: &Evidence) -> &str {
    match evidence.sandbox.gate.plain_profile.as_str() {
        "" => &evidence.raw.seccomp_profile,
        plain => plain,
    }
}

/// What the sweep with marks tells: which layer denied each call. What it disproves counts
/// for the sweep without marks, where the kernel's own EPERM looks like the filter's.
fn marks(evidence: &Evidence, probes: &mut [ProbeResult]) -> SyscallLayers {
    let (raw, plain) = (&evidence.raw, plain_profile(evidence));
    let place = kernel::place(raw, kernel::own(evidence));
    let calls = (!raw.marked_sweep.is_empty()).then(|| Calls::of(plain, place));
    let Some(Some(calls)) = calls else {
        return SyscallLayers::default();
    };
    let (problems, layers) = judge::sweep::told(&raw.marked_sweep, &calls);
    let failures = problems
        .iter()
        .filter(|(verdict, _)| *verdict == Verdict::Fail);
    if let Some(sweep) = probes.iter_mut().find(|probe| probe.probe_id == SWEEP) {
        for (_, what) in failures {
            sweep.verdict = Verdict::Fail;
            sweep.reasons.push(format!("control marks: {what}"));
        }
    }
    layers
}

/// The probe of a security module's label.
const LABEL: &str = "XP-ID-LSM";

/// Says of the probes that only a filter could have let pass why there is none.
fn name_cause(evidence: &Evidence, probes: &mut [ProbeResult]) {
    let Some(cause) = kernel::ignored_profile(evidence) else {
        return;
    };
    for probe in probes {
        if kernel::for_want_of_a_filter(&probe.probe_id, probe.verdict) {
            probe.reasons.push(cause.to_owned());
        }
    }
}

/// The probe that tries every system call.
pub const SWEEP: &str = "XP-ABI-SWEEP";

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
fn idle_gate(evidence: &Evidence, probes: &[ProbeResult]) -> bool {
    let enforced = |probe: &ProbeResult| probe.enforced_by.as_deref() == Some("launcher");
    let gate = &evidence.sandbox.gate;
    if gate.active {
        gate.allowed != 1 || !probes.iter().any(enforced)
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
    let controls: Vec<Cow<ControlResult>> = evidence.controls.iter().map(Cow::Borrowed).collect();
    let unchanged = evidence.inventory.unchanged;
    not_proven_by(evidence, &evidence.probes, &controls, unchanged)
}

fn not_proven_by(
    evidence: &Evidence,
    probes: &[ProbeResult],
    controls: &[Cow<ControlResult>],
    unchanged: bool,
) -> Vec<String> {
    let mut lines = vec![
        "That root on the venue did not make this file up: observations are self-reported unless \
         a listed key signed them."
            .to_owned(),
        "That the kernel has no bug through which the boundaries could be passed.".to_owned(),
        "That a later container gets the same settings: this is one container, once.".to_owned(),
        fields::not_proven(),
    ];
    let exec = probes.iter().find(|probe| probe.probe_id == "PR-EXEC-1");
    if exec.and_then(|probe| probe.enforced_by.as_deref()) == Some("inspector") {
        lines.push(
            "That the engine denies execve: it cannot, because it needs one exec to start; the \
             prober's own stacked filter does (enforced_by: inspector)."
                .to_owned(),
        );
    }
    let not_here = not_on_this_kernel(controls);
    let label = judge::label_parts(&evidence.raw.lsm_label).0;
    let has_label = !["", "unconfined"].contains(&label);
    if !has_label {
        lines.push(
            "That a security module confines the container: the kernel gives it no label, and \
             the engine speaks of none."
                .to_owned(),
        );
    }
    let uncalibrated: Vec<&str> = probes
        .iter()
        .filter(|probe| probe.calibrated_by.is_empty())
        .map(|probe| probe.probe_id.as_str())
        .filter(|id| !not_here.contains(id) && (*id != LABEL || has_label))
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
    if !not_here.is_empty() {
        lines.push(format!(
            "That these probes would have failed without their boundary: {}. This kernel has not \
             what they try: in the control `seccomp`, without a filter, it refused them by itself.",
            not_here.join(", ")
        ));
    }
    let marks = &evidence.raw.marked_sweep;
    if !evidence.controls.is_empty() && !judge::sweep::has_marks(marks) {
        lines.push(
            "That it was the filter that denied each system call: no mark came back in the \
             control `marks`; that the profile denies them was read, not seen."
                .to_owned(),
        );
    }
    if !evidence.witnesses.outside.available {
        lines.push(format!(
            "That the host saw the same from outside: {}.",
            evidence.witnesses.outside.source
        ));
    }
    if !venue::is_here(&evidence.venue_facts) {
        lines.push(format!(
            "Anything about the engine's host but what the engine itself says: the engine is not \
             on the host that the tool ran on (engine_at: {}). Canaries, the outside witness, \
             the host's namespaces and the facts about a machine are of another one than the \
             container's.",
            evidence.venue_facts.engine_at
        ));
    }
    lines.extend(kernel::not_proven(evidence));
    lines.extend(absent(
        &evidence.raw.outside,
        &evidence.venue,
        &evidence.runtime.engine,
    ));
    if evidence.request.is_none() {
        lines.push("That the run answers a verifier's question: no request was given.".to_owned());
    }
    if evidence.sandbox.out_backing.kind != "tmpfs" {
        lines.push(format!(
            "That files in /out cannot be executed or fill the disk: {}.",
            evidence.sandbox.out_backing.reason
        ));
    }
    if !unchanged {
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

/// Probes that try what not every kernel has, and which passed without a filter: it was the
/// kernel that refused them.
fn not_on_this_kernel(controls: &[Cow<ControlResult>]) -> Vec<&'static str> {
    const TABLES: [&str; 2] = ["XP-ABI-I386", "XP-ABI-X32"];
    let is_open = |control: &&Cow<ControlResult>| control.control == "seccomp" && control.holds;
    let Some(control) = controls.iter().find(is_open) else {
        return Vec::new();
    };
    let has = |list: &[String], id: &str| list.iter().any(|one| one == id);
    let refused = TABLES.into_iter().filter(|id| {
        has(&control.probes, id) && !has(&control.flipped, id) && !has(&control.unproven, id)
    });
    refused.collect()
}

/// What it costs that the host had no right to read everything, and who has it.
fn absent(texts: &OutsideFacts, venue: &str, engine: &str) -> Option<String> {
    (!texts.absent.is_empty()).then(|| {
        format!(
            "That the host saw the same {} from outside: absent, no right. The user who ran this \
             may not read them of the container's process, so what is said of them is the \
             prober's word alone. Root may: sudo tki-attest run --venue {venue} --engine \
             {engine}",
            texts.absent.join(" and ")
        )
    })
}

/// How often a probe is judged that is named again and again. Judging one may take as
/// long as the texts of the container are, and evidence that names one twice is refused.
const MOST_TIMES: u32 = 2;

/// What follows about each probe from what was seen of it.
pub(crate) fn results(
    said: &[ProbeResult],
    texts: &Texts,
    matrix: &Matrix,
    gate: bool,
) -> Vec<ProbeResult> {
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    let result = |said: &ProbeResult| {
        let Some(spec) = catalogue::find(&said.probe_id) else {
            return said.clone();
        };
        let times = times.entry(spec.id).or_default();
        *times += 1;
        match *times > MOST_TIMES {
            false => follows(spec, &said.observations, texts, matrix, gate),
            true => ProbeResult {
                verdict: Verdict::Unproven,
                reasons: vec!["the probe is named again and again".into()],
                ..follows(
                    spec,
                    &[],
                    &Texts::of_run(&RawFacts::default(), &Sweeps::default()),
                    matrix,
                    gate,
                )
            },
        }
    };
    said.iter().map(result).collect()
}

/// Everything that follows from the recorded facts.
pub fn derived<'a>(evidence: &'a Evidence, matrix: &Matrix) -> Derived<'a> {
    let sweeps = Sweeps::default();
    let kernel_kind = kernel::kind(evidence);
    let own = kernel::own_as(kernel_kind, &evidence.raw, &evidence.runtime);
    let mut texts = Texts::of_run(&evidence.raw, &sweeps).on(own);
    texts.label = &evidence.sandbox.configured.lsm;
    let gate = evidence.sandbox.gate.active;
    let mut probes = results(&evidence.probes, &texts, matrix, gate);
    let syscalls = marks(evidence, &mut probes);
    name_cause(evidence, &mut probes);
    let run = Comparable::of(&without_gate(evidence)).on(kernel_kind, &probes);
    let controls = calibrate::calibrate(&mut probes, &evidence.controls, &run);
    let unchanged = unchanged(&evidence.inventory, &evidence.image);
    let mut derived = Derived {
        kernel_kind,
        witnesses: witness::witnesses(
            &evidence.raw,
            &evidence.sandbox.configured,
            &evidence.witnesses.outside,
            kernel_kind,
        ),
        unchanged,
        matrix: matrix.bind(&probes),
        syscalls,
        summary: summary(&probes, !controls.is_empty()),
        status: Status::SandboxAttestationPartial,
        not_proven: not_proven_by(evidence, &probes, &controls, unchanged),
        probes,
        controls,
    };
    derived.status = status(evidence, &derived);
    derived
}

/// Fills in everything that follows from the recorded facts.
pub fn derive(evidence: &mut Evidence, matrix: &Matrix) {
    let derived = derived(evidence, matrix);
    let Derived {
        probes,
        controls,
        kernel_kind,
        witnesses,
        unchanged,
        matrix,
        syscalls,
        summary,
        status,
        not_proven,
    } = derived;
    let controls = controls.into_iter().map(Cow::into_owned).collect();
    for (said, mut derived) in evidence.probes.iter_mut().zip(probes) {
        derived.observations = core::mem::take(&mut said.observations);
        derived.artifact_path = core::mem::take(&mut said.artifact_path);
        *said = derived;
    }
    evidence.controls = controls;
    evidence.runtime.kernel_kind = kernel_kind;
    evidence.witnesses = witnesses;
    evidence.inventory.unchanged = unchanged;
    evidence.matrix = matrix;
    evidence.syscalls = syscalls;
    evidence.summary = summary;
    evidence.status = status;
    evidence.not_proven = not_proven;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_had_no_right_to_read_is_said() {
        let said = |names: &[&str]| {
            let texts = OutsideFacts {
                absent: names.iter().map(|name| (*name).to_owned()).collect(),
                ..OutsideFacts::default()
            };
            absent(&texts, "vps", "docker")
        };
        assert_eq!(said(&[]), None);
        let line = said(&["namespaces", "descriptors"]).unwrap();
        for words in [
            "the same namespaces and descriptors from outside: absent, no right.",
            "the prober's word alone.",
            "sudo tki-attest run --venue vps --engine docker",
        ] {
            assert!(line.contains(words), "{line}");
        }
        let line = said(&["descriptors"]).unwrap();
        assert!(line.contains("the same descriptors from outside"), "{line}");
    }
}
