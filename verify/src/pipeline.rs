//! The checks, in their order: envelope → signature → types → subjects →
//! evidence bytes → strict parse → version → stamp → artifacts → request and times →
//! image and profile → container and settings → kernel texts → witnesses → verdicts
//! recomputed → controls → matrix →
//! venue → policy → decision.
//!
//! Nothing in the file is believed that can be computed again: what the
//! evidence derives is derived again from what it records, with the functions
//! that `run` used, and compared. Equal bytes, inputs and clock give equal
//! decisions.

use crate::artifacts::{self, Checked, Loaded, Source};
use crate::checks::{Checks, truth};
use crate::error::{EvidenceError, INSPECTIONS, VerifyError};
use crate::seal::{self, Seal};
use crate::transcripts::Run;
use crate::{Assurance, Bundle, Inputs, Outcome, Step, Verification};
use crate::{answer, conclusions, container, demands, facts, origin, texts, transcripts, version};
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use serde_json::Value;
use tki_evidence::derive;
use tki_evidence::evidence::{Evidence, MatrixRow, SCHEMA};
use tki_evidence::stamp;
use tki_evidence::step_code::StepCode;
use tki_evidence::strict;
use tki_evidence::time::rfc3339;
use tki_evidence::verification::{self, Brought, Moment, decide};

/// What evidence without its artifacts does not prove.
const EVIDENCE_ONLY: &str = "That anything was observed at all: the conversations, the container's \
     description and the other artifacts were not there to be compared (--evidence-only).";

/// Evidence that was read, and what was found on the way there. What is missing
/// is what rests on the artifacts.
#[derive(Clone, Debug)]
pub struct Opened {
    name: String,
    sha256: String,
    seal: Seal,
    checks: Checks,
    /// The evidence; `None` if it is not what was signed, or another version wrote it.
    pub evidence: Option<Evidence>,
}

/// Verifies a bundle. The error is for what is not evidence at all.
pub fn verify(bundle: &Bundle, inputs: &Inputs) -> Result<Verification, VerifyError> {
    Ok(conclude(&open(bundle, inputs)?, &bundle.artifacts, inputs))
}

/// From the envelope to the stamp.
pub fn open(bundle: &Bundle, inputs: &Inputs) -> Result<Opened, VerifyError> {
    let sha256 = stamp::sha256_hex(&bundle.evidence);
    let mut checks = Checks::new(inputs.policy());
    answer::clock(&mut checks, inputs);
    let seal = seal::check(&mut checks, bundle, &sha256, inputs)?;
    let evidence = if seal.broken {
        None
    } else {
        document(&mut checks, &bundle.name, &bundle.evidence)?
    };
    Ok(Opened {
        name: bundle.name.clone(),
        sha256,
        seal,
        checks,
        evidence,
    })
}

/// From the artifacts to the decision.
pub fn conclude(opened: &Opened, source: &Source, inputs: &Inputs) -> Verification {
    let mut checks = opened.checks.clone();
    let Some(evidence) = &opened.evidence else {
        return finding(opened, checks, Assurance::SelfReported, Vec::new(), inputs);
    };
    let loaded = beside(&mut checks, evidence, source, inputs);
    let run = transcript(&mut checks, evidence, loaded.as_ref());
    let nonce = run.as_ref().map(Run::nonce);
    answer::request(&mut checks, evidence, nonce, inputs);
    answer::times(&mut checks, evidence, inputs);
    origin::image(&mut checks, evidence, inputs);
    origin::seccomp(&mut checks, evidence, inputs);
    let deadline = container::container(&mut checks, evidence, loaded.as_ref());
    origin::sandbox(&mut checks, evidence, deadline);
    texts::check(&mut checks, evidence);
    facts::witnesses(&mut checks, evidence);
    facts::outside(&mut checks, evidence);
    facts::inventory(&mut checks, evidence);
    facts::probe_set(&mut checks, evidence);
    facts::derived(&mut checks, evidence);
    facts::verdicts(&mut checks, evidence);
    seal::statement(&mut checks, &opened.seal, evidence);
    conclusions::controls(&mut checks, evidence, loaded.as_ref().zip(run));
    let rows = conclusions::matrix(&mut checks, evidence, inputs);
    conclusions::venue(&mut checks, evidence, inputs);
    demands::policy(&mut checks, evidence, inputs);
    let assurance = demands::assurance(&mut checks, inputs);
    finding(opened, checks, assurance, rows, inputs)
}

fn finding(
    opened: &Opened,
    checks: Checks,
    assurance: Assurance,
    matrix: Vec<MatrixRow>,
    inputs: &Inputs,
) -> Verification {
    let evidence = opened.evidence.as_ref();
    let sha256 = |pair: Option<&String>| pair.cloned();
    let mut not_proven = match evidence {
        // What follows was found to be what is said.
        Some(evidence) if checks.all_ok(&[StepCode::Derived]) => evidence.not_proven.clone(),
        Some(evidence) => derive::not_proven(evidence),
        None => vec!["Anything: the evidence was not read.".to_owned()],
    };
    if assurance > Assurance::SelfReported {
        let who = opened.seal.signers.iter();
        let who: Vec<String> = who
            .map(|s| format!("{} ({})", s.principals, s.key))
            .collect();
        let after = match assurance {
            Assurance::SignedFresh => ", after the request was written",
            _ => "",
        };
        not_proven.insert(
            0,
            format!(
                "That what was signed is true: {} states these observations{after}; root on the \
                 venue could forge them.",
                who.join(" and ")
            ),
        );
    }
    if checks.evidence_only {
        not_proven.insert(0, EVIDENCE_ONLY.to_owned());
    }
    if inputs.clock.given {
        not_proven.push(format!(
            "That any of this holds now: it was verified as of {}.",
            rfc3339(inputs.clock.now)
        ));
    }
    Verification {
        schema: verification::SCHEMA,
        bundle: opened.name.clone(),
        evidence_file_sha256: opened.sha256.clone(),
        run_id: evidence.map_or_else(String::new, |evidence| evidence.run_id.clone()),
        image_digest: evidence.map_or_else(String::new, |evidence| evidence.image_digest.clone()),
        decision: decide(&checks.steps),
        assurance,
        signers: opened.seal.signers.clone(),
        verified: Moment {
            time: rfc3339(inputs.clock.now),
            given: inputs.clock.given,
        },
        inputs: Brought {
            request: sha256(inputs.request.as_ref().map(|(_, sha256)| sha256)),
            policy: sha256(inputs.policy.as_ref().map(|(_, sha256)| sha256)),
            matrix: Some(inputs.matrix_sha256()),
            allowed_signers: sha256(inputs.allowed_signers.as_ref().map(|(_, sha256)| sha256)),
        },
        steps: checks.steps,
        matrix,
        weaker: checks.weaker,
        evidence_only: checks.evidence_only,
        not_proven,
    }
}

/// A step in which evidence contradicts itself, if there is one. A leak or an
/// unapproved venue is no contradiction.
pub fn contradiction(verification: &Verification) -> Option<&Step> {
    let consistency = [
        StepCode::Form,
        StepCode::Stamp,
        StepCode::Artifacts,
        StepCode::Transcript,
        StepCode::Time,
        StepCode::Container,
        StepCode::Derived,
        StepCode::Controls,
    ];
    verification
        .steps
        .iter()
        .find(|step| consistency.contains(&step.code) && step.outcome == Outcome::False)
}

/// A step that is false although the run came to an attestation. Where it did not, what
/// contradicts it is one more finding.
pub fn false_attestation(verification: &Verification) -> Option<&Step> {
    let steps = verification.steps.iter();
    let attested = |step: &Step| step.code == StepCode::Status && step.outcome == Outcome::Ok;
    let mut found = steps.clone().filter(|step| step.outcome == Outcome::False);
    steps.clone().any(attested).then(|| found.next())?
}

/// Strict parse: what is not evidence v1 is refused with its place. Gives the
/// evidence and the stamp that belongs to its text.
pub fn read(name: &str, bytes: &[u8]) -> Result<(Evidence, String), VerifyError> {
    let malformed = |source| VerifyError::Evidence {
        bundle: name.to_owned(),
        source,
    };
    let strict = |error| malformed(EvidenceError::Strict(error));
    let (stamp, canonical) = stamp::read(bytes).map_err(strict)?;
    // The canonical form says the same in fewer bytes.
    match strict::typed::<Evidence>(canonical.text().as_bytes()) {
        Ok(evidence) if evidence.schema == SCHEMA => Ok((evidence, stamp)),
        // Another version is not to be told that it lacks a field of this one, and
        // what is wrong is wrong at a place in the file.
        _ => {
            let value = strict::typed(bytes).map_err(strict)?;
            check_version(&value).map_err(malformed)?;
            let evidence = strict::typed(bytes).map_err(strict)?;
            Ok((evidence, stamp))
        }
    }
}

/// Strict parse, and the stamp over it; `None` if another version wrote it, whose
/// fields may mean something else.
fn document(
    checks: &mut Checks,
    name: &str,
    bytes: &[u8],
) -> Result<Option<Evidence>, VerifyError> {
    let form = "strict JSON of evidence v1";
    let (evidence, found) = match read(name, bytes) {
        Ok(read) => read,
        Err(malformed) => {
            let tool = version::of_text(bytes).ok_or(malformed)?;
            checks.skip(StepCode::Form, "another version wrote it");
            version::check(checks, &tool);
            return Ok(None);
        }
    };
    checks.add(StepCode::Form, Outcome::Ok, form, SCHEMA, "schema", "");
    if !version::check(checks, &version::Writer::of(&evidence.tool)) {
        return Ok(None);
    }
    let said = &evidence.evidence_sha256;
    checks.add(
        StepCode::Stamp,
        truth(found == *said),
        found,
        said,
        "evidence_sha256",
        "the file was changed after it was written: ask for the original",
    );
    Ok(Some(evidence))
}

/// A later version may mean other things by the same names.
fn check_version(value: &Value) -> Result<(), EvidenceError> {
    let Value::Object(map) = value else {
        return Err(EvidenceError::Object);
    };
    match map.get("schema") {
        Some(Value::String(schema)) if *schema == SCHEMA => Ok(()),
        Some(Value::String(schema)) if INSPECTIONS.contains(&schema.as_str()) => {
            Err(EvidenceError::Inspection)
        }
        Some(Value::String(schema)) => Err(EvidenceError::Schema(schema.clone())),
        _ => Err(EvidenceError::NoSchema),
    }
}

/// The artifacts, if every one of them is there and good.
fn beside(
    checks: &mut Checks,
    evidence: &Evidence,
    source: &Source,
    inputs: &Inputs,
) -> Option<Loaded> {
    let (outcome, got, loaded) = match artifacts::check(evidence, source) {
        Checked::Good(loaded) => (Outcome::Ok, format!("{} files", loaded.len()), Some(loaded)),
        Checked::Absent if inputs.evidence_only() => {
            checks.evidence_only = true;
            (Outcome::NotChecked, "none is there".into(), None)
        }
        Checked::Absent => (Outcome::Blocked, "none is there".into(), None),
        Checked::Bad(why) => (Outcome::False, why.to_string(), None),
    };
    checks.add(
        StepCode::Artifacts,
        outcome,
        "exactly the files that the run wrote, byte for byte",
        got,
        "artifacts",
        "put the artifact directory beside the evidence, or settle for less with \
         --evidence-only",
    );
    loaded
}

/// The conversation itself must say what the evidence says that it said; gives
/// it.
fn transcript<'a>(
    checks: &mut Checks,
    evidence: &'a Evidence,
    loaded: Option<&'a Loaded>,
) -> Option<Run<'a>> {
    let (outcome, got, run) = match loaded {
        None => (Outcome::NotChecked, "no artifacts".to_owned(), None),
        Some(loaded) => match transcripts::compare_run(evidence, loaded) {
            Ok(run) => {
                let count = run.observations();
                (Outcome::Ok, format!("{count} observations"), Some(run))
            }
            Err(why) => (Outcome::False, why.to_string(), None),
        },
    };
    checks.add(
        StepCode::Transcript,
        outcome,
        "the same observations and kernel texts as in the recorded conversation",
        got,
        "probes, raw",
        "put the artifact directory beside the evidence",
    );
    run
}
