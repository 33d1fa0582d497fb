//! A verifier's own signed statement on what a verification came to.

use crate::clock::{self, rfc3339};
use crate::trust::agent::PATIENCE;
use crate::trust::dsse::Envelope;
use crate::trust::error::TrustError;
use crate::trust::keys::Key;
use crate::verify::{Decision, Verification};
use std::path::Path;
use std::time::Instant;
use tki_evidence::stamp::sha256_hex;
use tki_evidence::statement::{self, PAYLOAD_TYPE};

/// The line of an envelope with it, as in-toto's simple verification result. `path` is where
/// the verification was written, in these bytes.
pub fn signed(
    key: &Key,
    path: &Path,
    bytes: &[u8],
    verification: &Verification,
) -> Result<Vec<u8>, TrustError> {
    let name = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    };
    let evidence = name(Path::new(&verification.bundle));
    let own = (name(path), sha256_hex(bytes));
    let mut subjects = vec![
        (
            evidence.as_str(),
            verification.evidence_file_sha256.as_str(),
        ),
        (own.0.as_str(), own.1.as_str()),
    ];
    if !verification.image_digest.is_empty() {
        subjects.push(("tki-inspector", &verification.image_digest));
    }
    let statement = statement::of_verification(
        &subjects,
        concat!(
            "https://example.invalid/tki-attest/",
            env!("CARGO_PKG_VERSION")
        ),
        &rfc3339(clock::now()),
        properties(verification),
    );
    let payload = serde_json::to_vec(&statement).map_err(TrustError::Statement)?;
    let mut envelope = Envelope {
        payload,
        payload_type: PAYLOAD_TYPE.into(),
        signatures: Vec::new(),
    };
    key.sign(&mut envelope, Instant::now() + PATIENCE)?;
    Ok(envelope.to_line())
}

/// Properties that hold, which is all that such a result lists: a bundle that was not
/// accepted gets none. What was accepted only under a condition gets another name,
/// so that it is not taken for the whole.
fn properties(verification: &Verification) -> Vec<String> {
    if verification.decision != Decision::B4PrimeAccepted {
        return Vec::new();
    }
    let mut accepted = "TKI_ATTEST_B4_PRIME_ACCEPTED".to_owned();
    if !verification.weaker.is_empty() {
        accepted += "_BY_WEAKER_POLICY";
    }
    if verification.evidence_only {
        accepted += "_BY_EVIDENCE_ONLY";
    }
    if verification.verified.given {
        accepted += "_AS_OF_GIVEN_TIME";
    }
    let assurance = verification.assurance.name().to_uppercase();
    let assurance = assurance.replace('-', "_");
    vec![accepted, format!("TKI_ATTEST_ASSURANCE_{assurance}")]
}
