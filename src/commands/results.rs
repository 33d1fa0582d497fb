//! What `verify` writes when it is asked to: binding, verification, signature.

use crate::cli::VerifyArgs;
use crate::clock::{self, rfc3339};
use crate::failure::Failure;
use crate::files::write_new;
use crate::report::binding as report;
use crate::trust::agent::PATIENCE;
use crate::trust::dsse::Envelope;
use crate::trust::envelope_file;
use crate::trust::keys::Key;
use crate::verify::pipeline::Opened;
use crate::verify::{Decision, Inputs, Verification};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tki_evidence::binding;
use tki_evidence::stamp::sha256_hex;
use tki_evidence::statement::{self, PAYLOAD_TYPE};

/// Writes what the arguments ask for.
pub fn write(
    args: &VerifyArgs,
    key: Option<&Key>,
    opened: &Opened,
    verification: &Verification,
    inputs: &Inputs,
) -> Result<(), Failure> {
    if let Some(stem) = &args.binding {
        write_binding(stem, opened, verification, inputs)?;
    }
    let default = key.map(|_| PathBuf::from("verification.json"));
    if let Some(path) = args.verification.clone().or(default) {
        let mut text = serde_json::to_vec_pretty(verification)
            .map_err(|error| Failure::internal("json", error.to_string()))?;
        text.push(b'\n');
        let path = save(&path, &text)?;
        if let Some(key) = key {
            attest(key, &path, &text, verification)?;
        }
    }
    Ok(())
}

fn save(path: &Path, bytes: &[u8]) -> Result<PathBuf, Failure> {
    let path = write_new(path, bytes).map_err(|error| {
        Failure::usage(
            "out.unwritable",
            format!("cannot write {}: {error}", path.display()),
            "give a path that can be written to",
        )
    })?;
    eprintln!("wrote {}", path.display());
    Ok(path)
}

fn write_binding(
    stem: &Path,
    opened: &Opened,
    verification: &Verification,
    inputs: &Inputs,
) -> Result<(), Failure> {
    let Some(evidence) = &opened.evidence else {
        // The decision stands; what was not read cannot be bound.
        eprintln!("no binding was written: the evidence was not read");
        return Ok(());
    };
    let bound = binding::bind(
        inputs.matrix(),
        &inputs.matrix_sha256(),
        evidence,
        &verification.evidence_file_sha256,
        verification.decision,
    );
    let mut json = serde_json::to_vec_pretty(&bound)
        .map_err(|error| Failure::internal("json", error.to_string()))?;
    json.push(b'\n');
    let with = |extension: &str| {
        let mut name = stem.as_os_str().to_owned();
        name.push(extension);
        PathBuf::from(name)
    };
    save(&with(".json"), &json)?;
    save(&with(".md"), report::markdown(&bound).as_bytes())?;
    Ok(())
}

/// Properties that hold, which is all that such a result lists: a verifier who was not
/// accepted gets none. What was accepted only under a condition gets another name,
/// so that nobody takes it for the whole.
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

/// The verifier's own signature, as in-toto's simple verification result.
fn attest(
    key: &Key,
    path: &Path,
    bytes: &[u8],
    verification: &Verification,
) -> Result<(), Failure> {
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
    let payload = serde_json::to_vec(&statement)
        .map_err(|error| Failure::internal("statement", error.to_string()))?;
    let mut envelope = Envelope {
        payload,
        payload_type: PAYLOAD_TYPE.into(),
        signatures: Vec::new(),
    };
    key.sign(&mut envelope, Instant::now() + PATIENCE)?;
    save(&envelope_file::beside(path), &envelope.to_line())?;
    Ok(())
}
