//! Where signatures lie: `<stem>.intoto.jsonl` beside the evidence.

use crate::failure::Failure;
use crate::trust::dsse::{Envelope, EnvelopeError, MAX_ENVELOPE};
use crate::trust::keys::Key;
use std::path::{Path, PathBuf};
use tki_evidence::evidence::Evidence;
use tki_evidence::statement::{self, PAYLOAD_TYPE};

/// The file's name for an evidence file: `a.json` → `a.intoto.jsonl`.
pub fn beside(evidence: &Path) -> PathBuf {
    evidence.with_extension("intoto.jsonl")
}

/// An envelope over evidence that nobody has signed yet.
pub fn unsigned(name: &str, bytes: &[u8], evidence: &Evidence) -> Result<Envelope, Failure> {
    let statement = statement::of_evidence(name, bytes, evidence);
    let payload = serde_json::to_vec(&statement)
        .map_err(|error| Failure::internal("statement", error.to_string()))?;
    Ok(Envelope {
        payload,
        payload_type: PAYLOAD_TYPE.into(),
        signatures: Vec::new(),
    })
}

/// The envelope of new evidence, signed.
pub fn signed(
    name: &str,
    bytes: &[u8],
    evidence: &Evidence,
    key: &Key,
) -> Result<Vec<u8>, Failure> {
    let mut envelope = unsigned(name, bytes, evidence)?;
    key.sign(&mut envelope)?;
    Ok(envelope.to_line())
}

/// Reads the envelope beside an evidence file, if there is one.
pub fn read(evidence: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let path = beside(evidence);
    match crate::files::read_beside(&path, MAX_ENVELOPE) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::usage(
            "envelope.unreadable",
            format!("{}: {error}", path.display()),
            "give an envelope that can be read, as `tki-attest sign` wrote it",
        )),
    }
}

/// What an unreadable envelope is said to be.
pub fn malformed(name: &str, error: &EnvelopeError) -> Failure {
    Failure::usage(
        "envelope.malformed",
        format!("the envelope of {name}: {error}"),
        "ask for the file again, as `tki-attest sign` wrote it",
    )
}
