//! Recorded conversations, read again: what the evidence says that the inspector
//! said must be what it said, and what a control came to must follow from it.

use crate::verify::artifacts::Loaded;
use tki_evidence::calibrate::{self, NotPassed};
use tki_evidence::catalogue;
use tki_evidence::controls::{self, Relaxation};
use tki_evidence::evidence::{Evidence, RawFacts};
use tki_evidence::request::control_nonce;
use tki_evidence::transcript::{self, Heard, Lines};
use tki_evidence::wire::{Challenge, Limits};

fn conversation<'a>(
    loaded: &'a Loaded,
    path: &str,
    known: &mut Lines<'a>,
) -> Result<(Challenge, Heard), String> {
    let bytes = loaded
        .get(path)
        .ok_or_else(|| format!("{path} is missing"))?;
    transcript::read_with(bytes, known).map_err(|error| format!("{path}: {error}"))
}

/// Compares the run's conversation with its evidence; gives the number of
/// observations and the challenge's nonce.
pub fn compare_run(evidence: &Evidence, loaded: &Loaded) -> Result<(usize, String), String> {
    let path = evidence
        .probes
        .first()
        .map(|probe| probe.artifact_path.as_str());
    let path = path.ok_or("there are no probes")?;
    let (challenge, heard) = conversation(loaded, path, &mut Lines::default())?;
    let asked = challenge.probes.iter().map(String::as_str);
    let required = catalogue::required(!evidence.controls.is_empty());
    if !asked.eq(required.map(|probe| probe.id)) || !challenge.lock {
        return Err("the inspector was asked something else".into());
    }
    let seen = heard.by_probe();
    for probe in &evidence.probes {
        if probe.artifact_path != path {
            return Err(format!("{} points elsewhere", probe.probe_id));
        }
        let heard = seen.get(probe.probe_id.as_str());
        let heard = heard.map_or(&[][..], Vec::as_slice);
        if !heard.iter().copied().eq(&probe.observations) {
            return Err(format!(
                "{}: the conversation says otherwise",
                probe.probe_id
            ));
        }
    }
    // What the host added to the inspector's texts is not in the conversation.
    let raw = RawFacts {
        host_namespaces: evidence.raw.host_namespaces.clone(),
        outside: evidence.raw.outside.clone(),
        seccomp_profile: evidence.raw.seccomp_profile.clone(),
        ..heard.raw
    };
    if raw != evidence.raw || heard.information != evidence.information {
        return Err("the kernel texts are not those of the conversation".into());
    }
    Ok((heard.observations.len(), challenge.nonce))
}

/// What every inspector of a run is told alike. Whether /out has a size of its
/// own depends on what stands behind it, which is shown elsewhere.
fn terms(challenge: &Challenge) -> (&str, &str, Limits) {
    let limits = Limits {
        out_bytes: 0,
        ..challenge.limits
    };
    (&challenge.env_canary, &challenge.host_canary, limits)
}

/// Recomputes which probes flipped in each control. Each has a conversation of
/// its own, which is neither the run's nor another control's. `nonce` is the
/// run's own.
pub fn compare_controls(evidence: &Evidence, loaded: &Loaded, nonce: &str) -> Result<(), String> {
    let mut lines = Lines::default();
    let run = evidence.probes.first().ok_or("there are no probes")?;
    let mut known = vec![conversation(loaded, &run.artifact_path, &mut lines)?];
    for result in &evidence.controls {
        let Some(control) = controls::find(&result.control) else {
            return Err(format!("{} is no control", result.control));
        };
        let wrong = |what: &str| Err(format!("{}: {what}", control.name));
        let (challenge, heard) = conversation(loaded, &result.artifact_path, &mut lines)?;
        let asked = challenge.probes.iter().map(String::as_str);
        if !asked.eq(controls::probes(control)) {
            return wrong("the inspector was asked something else");
        }
        if challenge.lock == control.relaxations.contains(&Relaxation::LockOff) {
            return wrong("the lock was not as it says");
        }
        if known
            .iter()
            .any(|(other, _)| terms(other) != terms(&challenge))
        {
            return wrong("it was asked with other limits or canaries than the run");
        }
        if challenge.nonce != control_nonce(nonce, control.name) {
            return wrong("it belongs to another run or to another control");
        }
        // Another nonce in the same words: no two inspectors see and take the
        // same to the microsecond.
        let same_words = |other: &Heard| {
            other.elapsed_us == heard.elapsed_us
                && other.raw == heard.raw
                && other.observations == heard.observations
        };
        if known.iter().any(|(_, other)| same_words(other)) {
            return wrong("its conversation is another one under another nonce");
        }
        let NotPassed { flipped, unproven } = calibrate::not_passed(control, &heard, &evidence.raw);
        if flipped != result.flipped || unproven != result.unproven {
            return wrong("something else flipped");
        }
        known.push((challenge, heard));
    }
    Ok(())
}
