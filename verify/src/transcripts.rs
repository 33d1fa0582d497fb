//! Recorded conversations, read again: what the evidence says that the prober
//! said must be what it said, and what a control came to must follow from it.

use crate::artifacts::{Loaded, NEIGHBOUR};
use crate::terms::{self, TermsError};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::{format, vec};
use tki_evidence::calibrate::{self, NotPassed};
use tki_evidence::catalogue;
use tki_evidence::controls::{self, Relaxation};
use tki_evidence::derive;
use tki_evidence::evidence::{Evidence, RawFacts};
use tki_evidence::judge::{Sweeps, Texts};
use tki_evidence::kernel;
use tki_evidence::request::control_nonce;
use tki_evidence::transcript::{self, Heard, Lines, TranscriptError};
use tki_evidence::wire::{Challenge, Limits};

/// Why a recorded conversation is not that of the evidence.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// Its file is not there.
    #[error("{0} is missing")]
    Missing(String),
    /// It breaks the protocol.
    #[error("{path}: {source}")]
    Broken {
        /// The file.
        path: String,
        /// How.
        source: TranscriptError,
    },
    /// The evidence has no probes, and so names no conversation.
    #[error("there are no probes")]
    NoProbes,
    /// Other probes were asked for than a run asks for.
    #[error("the prober was asked something else")]
    Asked,
    /// The host or the prober said what none of this version says.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// A probe names another file.
    #[error("{0} points elsewhere")]
    Elsewhere(String),
    /// A probe has other observations.
    #[error("{0}: the conversation says otherwise")]
    Otherwise(String),
    /// The evidence has other kernel texts.
    #[error("the kernel texts are not those of the conversation")]
    Texts,
    /// The evidence has other namespaces of the neighbour.
    #[error("the neighbour's namespaces are not those of its own words")]
    Neighbour,
    /// A control that there is not.
    #[error("{0} is no control")]
    NoControl(String),
    /// A control's conversation is not that of the evidence.
    #[error("{control}: {source}")]
    Control {
        /// The control.
        control: &'static str,
        /// Why.
        source: ControlError,
    },
}

/// Why a control's conversation is not that of the evidence.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Other probes were asked for than this control asks for.
    #[error("the prober was asked something else")]
    Asked,
    /// The lock was stacked where it is relaxed, or the other way round.
    #[error("the lock was not as it says")]
    Lock,
    /// What every prober of a run is told alike differs.
    #[error("it was asked with other limits or canaries than the run")]
    OtherTerms,
    /// The nonce does not follow from the run's and the control's name.
    #[error("it belongs to another run or to another control")]
    Nonce,
    /// The host or the prober said what none of this version says.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// The kernel is another one, or was booted since.
    #[error("it ran on another kernel than the run")]
    Kernel,
    /// The same words, to the microsecond, in two conversations.
    #[error("its conversation is another one under another nonce")]
    Copied,
    /// Other probes flipped than the evidence says.
    #[error("something else flipped")]
    Flipped,
    /// It is not in the namespace that it should share with the neighbour.
    #[error("it did not join the neighbour's {0} namespace")]
    NotJoined(&'static str),
    /// The evidence has another sweep.
    #[error("its sweep is not that of the evidence")]
    Sweep,
}

/// A conversation.
type Said = (Challenge, Heard);

/// The run's conversation, and its lines, of which controls repeat most.
pub struct Run<'a> {
    said: Said,
    lines: Lines<'a>,
}

impl Run<'_> {
    /// The challenge's nonce.
    pub fn nonce(&self) -> &str {
        &self.said.0.nonce
    }

    /// The number of observations.
    pub fn observations(&self) -> usize {
        self.said.1.observations.len()
    }
}

/// The bytes of a conversation.
fn file<'a>(loaded: &'a Loaded, path: &str) -> Result<&'a [u8], ConversationError> {
    let bytes = loaded.get(path);
    let bytes = bytes.ok_or_else(|| ConversationError::Missing(path.to_owned()))?;
    Ok(bytes)
}

fn conversation<'a>(
    loaded: &'a Loaded,
    path: &str,
    known: &mut Lines<'a>,
) -> Result<Said, ConversationError> {
    let said = transcript::read_with(file(loaded, path)?, known);
    said.map_err(|source| ConversationError::Broken {
        path: path.to_owned(),
        source,
    })
}

/// Compares the run's conversation with its evidence; gives it.
pub fn compare_run<'a>(
    evidence: &'a Evidence,
    loaded: &'a Loaded,
) -> Result<Run<'a>, ConversationError> {
    let path = evidence
        .probes
        .first()
        .map(|probe| probe.artifact_path.as_str());
    let path = path.ok_or(ConversationError::NoProbes)?;
    let said = evidence.probes.iter();
    let said = said.map(|probe| (probe.probe_id.as_str(), probe.observations.as_slice()));
    let mut lines = Lines::expecting(said);
    let (challenge, heard) = conversation(loaded, path, &mut lines)?;
    let asked = challenge.probes.iter().map(String::as_str);
    let required = catalogue::required(!evidence.controls.is_empty());
    if !asked.eq(required.map(|probe| probe.id)) || !challenge.lock {
        return Err(ConversationError::Asked);
    }
    let sweeps = Sweeps::default();
    let texts = Texts::of_run(&heard.raw, &sweeps);
    terms::check(evidence, &challenge, &heard, &[], &texts)?;
    terms::check_out(evidence, &challenge.limits)?;
    let mut seen = heard.by_probe();
    for probe in &evidence.probes {
        if probe.artifact_path != path {
            return Err(ConversationError::Elsewhere(probe.probe_id.clone()));
        }
        let own = seen.of(&probe.probe_id).map(|own| &own.seen);
        if !own.eq(&probe.observations) {
            return Err(ConversationError::Otherwise(probe.probe_id.clone()));
        }
    }
    let information = heard.information.iter().map(AsRef::as_ref);
    if !same_texts(&heard.raw, &evidence.raw) || !information.eq(&evidence.information) {
        return Err(ConversationError::Texts);
    }
    compare_neighbour(evidence, loaded, path)?;
    let said = (challenge, heard);
    Ok(Run { said, lines })
}

/// The control is in the neighbour's namespace of this kind, if there is a neighbour.
fn joined(kind: &str, control: &RawFacts, run: &RawFacts) -> bool {
    let is_of_kind = |link: &&String| link.split(':').next() == Some(kind);
    let neighbours = run.neighbour_namespaces.iter().find(is_of_kind);
    neighbours.is_none_or(|joined| control.namespaces.contains(joined))
}

/// What is said of the neighbour is what it said, beside the run's own conversation at
/// `path`.
fn compare_neighbour(
    evidence: &Evidence,
    loaded: &Loaded,
    path: &str,
) -> Result<(), ConversationError> {
    let said = &evidence.raw.neighbour_namespaces;
    if said.is_empty() {
        return Ok(());
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = format!("{folder}/{NEIGHBOUR}");
    let heard = transcript::read_neighbour(file(loaded, &path)?)
        .map_err(|source| ConversationError::Broken { path, source })?;
    match heard == *said {
        true => Ok(()),
        false => Err(ConversationError::Neighbour),
    }
}

/// The prober's kernel texts are the same. What the host added to them is not
/// in the conversation.
fn same_texts(heard: &RawFacts, said: &RawFacts) -> bool {
    // Taken apart by name, so that a new text cannot be forgotten here.
    let RawFacts {
        mountinfo,
        env_keyset,
        proc_net_dev,
        proc_net_route,
        proc_net_ipv6_route,
        proc_self_status,
        proc_self_status_locked,
        proc_self_limits,
        proc_self_cgroup,
        proc_version,
        lsm_label,
        boot_id,
        namespaces,
        host_namespaces: _,
        neighbour_namespaces: _,
        outside: _,
        sentry: _,
        seccomp_profile: _,
        marked_sweep: _,
    } = heard;
    *mountinfo == said.mountinfo
        && *env_keyset == said.env_keyset
        && *proc_net_dev == said.proc_net_dev
        && *proc_net_route == said.proc_net_route
        && *proc_net_ipv6_route == said.proc_net_ipv6_route
        && *proc_self_status == said.proc_self_status
        && *proc_self_status_locked == said.proc_self_status_locked
        && *proc_self_limits == said.proc_self_limits
        && *proc_self_cgroup == said.proc_self_cgroup
        && *proc_version == said.proc_version
        && *lsm_label == said.lsm_label
        && *boot_id == said.boot_id
        && *namespaces == said.namespaces
}

/// What every prober of a run is told alike. Whether /out has a size of its
/// own depends on what stands behind it, which is shown elsewhere.
fn terms(challenge: &Challenge) -> (&str, &str, Limits) {
    let limits = Limits {
        out_bytes: 0,
        out_files: 0,
        ..challenge.limits
    };
    (&challenge.env_canary, &challenge.host_canary, limits)
}

/// Recomputes which probes flipped in each control. Each has a conversation of
/// its own, which is neither the run's nor another control's.
pub fn compare_controls<'a>(
    evidence: &Evidence,
    loaded: &'a Loaded,
    run: Run<'a>,
) -> Result<(), ConversationError> {
    let Run { said, mut lines } = run;
    let (nonce, sweeps) = (said.0.nonce.clone(), Sweeps::default());
    let plain = derive::plain_profile(evidence);
    let mut known = vec![said];
    for result in &evidence.controls {
        let Some(control) = controls::find(&result.control) else {
            return Err(ConversationError::NoControl(result.control.clone()));
        };
        let of_control = |source| ConversationError::Control {
            control: control.name,
            source,
        };
        let wrong = |source| Err(of_control(source));
        let (challenge, heard) = conversation(loaded, &result.artifact_path, &mut lines)?;
        let asked = challenge.probes.iter().map(String::as_str);
        if !asked.eq(controls::probes(control).map(|probe| probe.id)) {
            return wrong(ControlError::Asked);
        }
        if challenge.lock == control.relaxations.contains(&Relaxation::LockOff) {
            return wrong(ControlError::Lock);
        }
        if known
            .iter()
            .any(|(other, _)| terms(other) != terms(&challenge))
        {
            return wrong(ControlError::OtherTerms);
        }
        if challenge.nonce != control_nonce(&nonce, control.name) {
            return wrong(ControlError::Nonce);
        }
        let label = evidence.sandbox.configured.lsm.as_str();
        let own = kernel::own(evidence);
        let texts = calibrate::texts(control, &heard, &evidence.raw, label, plain, &sweeps, own);
        terms::check(evidence, &challenge, &heard, control.relaxations, &texts)
            .map_err(|error| of_control(error.into()))?;
        // Kernels of their own are booted for each container.
        let same_boot = own.is_some() || heard.raw.boot_id == evidence.raw.boot_id;
        if heard.raw.proc_version != evidence.raw.proc_version || !same_boot {
            return wrong(ControlError::Kernel);
        }
        // Another nonce in the same words: no two probers see and take the
        // same to the microsecond.
        let same_words = |other: &Heard| {
            other.elapsed_us == heard.elapsed_us
                && other.raw == heard.raw
                && other.observations == heard.observations
        };
        if known.iter().any(|(_, other)| same_words(other)) {
            return wrong(ControlError::Copied);
        }
        let NotPassed { flipped, unproven } = calibrate::not_passed(control, &heard, &texts);
        if flipped != result.flipped || unproven != result.unproven {
            return wrong(ControlError::Flipped);
        }
        let mut kinds = control.relaxations.iter().filter_map(|one| one.joins());
        if let Some(kind) = kinds.find(|kind| !joined(kind, &heard.raw, &evidence.raw)) {
            return wrong(ControlError::NotJoined(kind));
        }
        let swept = || {
            heard
                .by_probe()
                .of(derive::SWEEP)
                .next()
                .and_then(|own| own.seen.value.clone())
        };
        if control.relaxations.contains(&Relaxation::Marks)
            && swept().unwrap_or_default() != evidence.raw.marked_sweep
        {
            return wrong(ControlError::Sweep);
        }
        known.push((challenge, heard));
    }
    Ok(())
}
