//! The engine's own description of the container, read again: what the evidence
//! calls `configured` must follow from it, and it must be this run's container.

use crate::Outcome;
use crate::artifacts::Loaded;
use crate::checks::{Checks, truth};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use tki_evidence::described::names::{LABEL_DEADLINE, LABEL_ROLE, LABEL_RUN, NAME_PREFIX, PROBER};
use tki_evidence::described::{self, Described, DescribedError};
use tki_evidence::evidence::Evidence;
use tki_evidence::settings::{Deviation, deviations};
use tki_evidence::step_code::StepCode;
use tki_evidence::time::parse_rfc3339;
use tki_evidence::wire::LONGEST_RUN;

/// What the description is called beside the evidence.
const DESCRIPTION: &str = "container.json";

/// Compares the description with the evidence; gives the deadline that it names.
pub fn container(checks: &mut Checks, evidence: &Evidence, loaded: Option<&Loaded>) -> Option<u64> {
    let (outcome, got, deadline) = match loaded.map(|loaded| compare(evidence, loaded)) {
        None => (Outcome::NotChecked, "no artifacts".to_owned(), None),
        Some(Ok(deadline)) => (truth(true), "the same".to_owned(), Some(deadline)),
        Some(Err(why)) => (Outcome::False, why.to_string(), None),
    };
    checks.add(
        StepCode::Container,
        outcome,
        "settings, name, labels, image and runtime as the engine's own description has them",
        got,
        "sandbox.configured",
        "the engine describes another container than the evidence does: reject it",
    );
    deadline
}

/// Why the description is not that of the evidence's container.
#[derive(Debug, thiserror::Error)]
enum ContainerError {
    #[error("{DESCRIPTION} is missing")]
    Missing,
    #[error("{DESCRIPTION} is no description of {engine}'s: {source}")]
    Unreadable {
        engine: String,
        source: DescribedError,
    },
    #[error("{}", different(.0))]
    Settings(Vec<Deviation>),
    #[error("{what} is {found:?}, not {wanted:?}")]
    Name {
        what: &'static str,
        found: String,
        wanted: String,
    },
    #[error("its program is not the prober")]
    Program,
    #[error("{LABEL_DEADLINE} is {0:?}, which no run has")]
    Deadline(String),
}

/// Settings that differ, in a line.
fn different(settings: &[Deviation]) -> String {
    let lines = settings.iter();
    let lines = lines.map(|d| format!("{} is {}, not {}", d.setting, d.configured, d.declared));
    lines.collect::<Vec<String>>().join("; ")
}

fn compare(evidence: &Evidence, loaded: &Loaded) -> Result<u64, ContainerError> {
    let engine = &evidence.runtime.engine;
    let ending = format!("/{DESCRIPTION}");
    let found = loaded.iter().find(|(path, _)| path.ends_with(&ending));
    let (_, bytes) = found.ok_or(ContainerError::Missing)?;
    let described = described::read(engine, bytes).map_err(|source| {
        let engine = engine.clone();
        ContainerError::Unreadable { engine, source }
    })?;
    same_settings(evidence, &described)?;
    same_names(evidence, &described)
}

/// What is said to be configured follows from the description.
fn same_settings(evidence: &Evidence, described: &Described) -> Result<(), ContainerError> {
    let said = &evidence.sandbox.configured;
    if *said == described.settings {
        return Ok(());
    }
    let different = deviations(said, &described.settings);
    Err(ContainerError::Settings(different))
}

/// It is the container of this run, made from its image; gives its deadline.
fn same_names(evidence: &Evidence, described: &Described) -> Result<u64, ContainerError> {
    let runtime = &evidence.runtime.oci_runtime;
    let label = |name: &str| described.labels.get(name).map_or("", String::as_str);
    let name = format!("{NAME_PREFIX}{}", evidence.run_id);
    for (what, found, wanted) in [
        ("its name", described.name.as_str(), name.as_str()),
        (LABEL_RUN, label(LABEL_RUN), &evidence.run_id),
        (LABEL_ROLE, label(LABEL_ROLE), "probe"),
        (
            "its image",
            &described.image_id,
            &evidence.image.engine_reported_id,
        ),
        (
            "its OCI runtime",
            described.oci_runtime.as_ref().unwrap_or(runtime),
            runtime,
        ),
    ] {
        if found != wanted {
            return Err(ContainerError::Name {
                what,
                found: found.to_owned(),
                wanted: wanted.to_owned(),
            });
        }
    }
    let [program, argument] = described.program.as_slice() else {
        return Err(ContainerError::Program);
    };
    if program.rsplit('/').next() != Some(PROBER) || argument != "probe" {
        return Err(ContainerError::Program);
    }
    let deadline = label(LABEL_DEADLINE);
    read_deadline(evidence, deadline).ok_or_else(|| ContainerError::Deadline(deadline.to_owned()))
}

/// The deadline of a container of this run, in the one form that it is written in.
pub fn read_deadline(evidence: &Evidence, text: &str) -> Option<u64> {
    let deadline: u64 = text.parse().ok()?;
    let is_possible = deadlines(evidence)?.contains(&deadline);
    (is_possible && deadline.to_string() == text).then_some(deadline)
}

/// When a container of this run may have been said to be nobody's: after the start,
/// and no later than the longest run. Both are rounded to seconds.
fn deadlines(evidence: &Evidence) -> Option<RangeInclusive<u64>> {
    let started = parse_rfc3339(&evidence.started)?;
    Some(started..=started.saturating_add(LONGEST_RUN + 2))
}
