//! Signing a bundle that is there: evidence that contradicts itself is not signed, and a
//! signature is added to those that others made.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::files;
use crate::trust::agent::PATIENCE;
use crate::trust::dsse::{Envelope, MAX_SIGNATURES, Signature};
use crate::trust::envelope_file;
use crate::trust::keys::Key;
use crate::trust::passphrase::Source;
use crate::verify::{Bundle, Inputs, StepCode, VerifyError, brought, pipeline};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What was signed, and by whom.
#[derive(Debug, Serialize)]
pub struct Signed {
    /// The envelope's file.
    pub envelope: String,
    /// The key's fingerprint.
    pub key: String,
    /// How many signatures the envelope holds now.
    pub signatures: usize,
}

/// Why a bundle is not signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The envelope that is there belongs to other evidence.
    #[error("{}: it is an envelope over something else", .0.display())]
    OtherEvidence(PathBuf),
    /// The key has signed it.
    #[error("{}: {key} has signed it already", .envelope.display())]
    Already {
        /// The envelope.
        envelope: PathBuf,
        /// The key's fingerprint.
        key: String,
    },
    /// No further signature would be read.
    #[error("{}: it holds {MAX_SIGNATURES} signatures, and no more are read", .0.display())]
    Full(PathBuf),
    /// The envelope cannot be written.
    #[error("cannot write {}: {source}", .envelope.display())]
    Unwritable {
        /// The envelope.
        envelope: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The evidence contradicts itself.
    #[error("{bundle}: {step}: {got}")]
    False {
        /// The bundle.
        bundle: String,
        /// The step that finds it.
        step: StepCode,
        /// What it finds.
        got: String,
    },
    /// The evidence cannot be read by this version.
    #[error("{0}: another version of tki-attest wrote it")]
    OtherVersion(String),
}

impl From<SignError> for Failure {
    fn from(error: SignError) -> Self {
        let (exit, code, next) = match &error {
            SignError::OtherEvidence(_) => (
                Exit::Disproved,
                "sign.other",
                "move it away, or ask for the evidence that it belongs to",
            ),
            SignError::Already { .. } => (
                Exit::Usage,
                "sign.already",
                "sign with another key, or leave it as it is",
            ),
            SignError::Full(_) => (
                Exit::Usage,
                "sign.full",
                "move it away and have those sign again who should",
            ),
            SignError::Unwritable { .. } => (
                Exit::Usage,
                "out.unwritable",
                "give the directory room and the right to write",
            ),
            SignError::False { .. } => (
                Exit::Disproved,
                "sign.false",
                "evidence that contradicts itself is not signed: ask for the original",
            ),
            SignError::OtherVersion(_) => (
                Exit::Blocked,
                "sign.version",
                "sign with the version that wrote it, or run again with this one",
            ),
        };
        Failure::new(exit, code, error.to_string(), next)
    }
}

/// Signs evidence that is consistent; adds to signatures that are there.
pub fn sign(evidence: &Path, key: &Path, passphrase: Option<&Source>) -> Result<Signed, Failure> {
    let bundle = Bundle::read(evidence)?;
    let unsigned = check(evidence, &bundle)?;
    // What is wrong with an envelope is said before anybody is asked for a passphrase.
    let there = there(evidence, &bundle.envelope, &unsigned)?;
    let key = Key::open(key, passphrase, PATIENCE)?;
    not_yet_by(&key, &there, evidence)?;
    let mut own = unsigned.clone();
    key.sign(&mut own, Instant::now() + PATIENCE)?;
    let envelope = add(evidence, &unsigned, &key, own.signatures)?;
    Ok(Signed {
        envelope: envelope_file::beside(evidence)
            .to_string_lossy()
            .into_owned(),
        key: key.fingerprint(),
        signatures: envelope.signatures.len(),
    })
}

/// The envelope that is there, if it is over this evidence; else one without
/// signatures.
fn there(
    evidence: &Path,
    bytes: &Option<Vec<u8>>,
    unsigned: &Envelope,
) -> Result<Envelope, Failure> {
    let Some(bytes) = bytes else {
        return Ok(unsigned.clone());
    };
    let there = Envelope::parse(bytes).map_err(|source| VerifyError::Envelope {
        bundle: evidence.to_string_lossy().into_owned(),
        source,
    })?;
    if (&there.payload, &there.payload_type) != (&unsigned.payload, &unsigned.payload_type) {
        return Err(SignError::OtherEvidence(envelope_file::beside(evidence)).into());
    }
    Ok(there)
}

/// A key signs once. What counts is who made a signature, not whose name is on it.
fn not_yet_by(key: &Key, envelope: &Envelope, evidence: &Path) -> Result<(), SignError> {
    let message = envelope.signed_bytes();
    let mut made = envelope
        .signatures
        .iter()
        .map(|s| key.made(&message, &s.sig));
    match made.any(|made| made) {
        false => Ok(()),
        true => Err(SignError::Already {
            envelope: envelope_file::beside(evidence),
            key: key.fingerprint(),
        }),
    }
}

/// Adds a signature to the file as it is now. Another `sign` may have changed it
/// since it was read, and none may change it until it is written.
fn add(
    evidence: &Path,
    unsigned: &Envelope,
    key: &Key,
    own: Vec<Signature>,
) -> Result<Envelope, Failure> {
    let _lock = envelope_file::lock(evidence)?;
    let bytes = envelope_file::read(evidence)?;
    let mut envelope = there(evidence, &bytes, unsigned)?;
    not_yet_by(key, &envelope, evidence)?;
    // The key tells that these are not its signatures, whatever name they bear.
    let name = key.fingerprint();
    envelope.signatures.retain(|other| other.keyid != name);
    envelope.signatures.extend(own);
    let path = envelope_file::beside(evidence);
    if envelope.signatures.len() > MAX_SIGNATURES {
        return Err(SignError::Full(path).into());
    }
    let line = envelope.to_line();
    let written = match bytes {
        Some(_) => files::replace(&path, &line),
        None => files::write_new_exactly(&path, &line),
    };
    written.map_err(|source| SignError::Unwritable {
        envelope: path,
        source,
    })?;
    Ok(envelope)
}

/// Nobody should put a name to evidence that contradicts itself.
fn check(path: &Path, bundle: &Bundle) -> Result<Envelope, Failure> {
    let inputs = Inputs {
        clock: brought::now(),
        known: brought::known()?,
        ..Inputs::default()
    };
    let alone = Bundle {
        envelope: None,
        ..bundle.clone()
    };
    let opened = pipeline::open(&alone, &inputs)?;
    let verification = pipeline::conclude(&opened, &alone.artifacts, &inputs);
    let contradiction = pipeline::contradiction(&verification);
    if let Some(step) = contradiction.or(pipeline::false_attestation(&verification)) {
        let refused = SignError::False {
            bundle: bundle.name.clone(),
            step: step.code,
            got: step.got.clone(),
        };
        return Err(refused.into());
    }
    let evidence = opened.evidence.as_ref();
    let evidence = evidence.ok_or_else(|| SignError::OtherVersion(bundle.name.clone()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(envelope_file::unsigned(&name, &bundle.evidence, evidence)?)
}
