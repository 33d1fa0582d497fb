//! `tki-attest sign`.

use crate::cli::{Common, Format, SignArgs};
use crate::clock;
use crate::commands::{inputs, output};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::files;
use crate::trust::agent::PATIENCE;
use crate::trust::dsse::{Envelope, MAX_SIGNATURES, Signature};
use crate::trust::envelope_file;
use crate::trust::keys::Key;
use crate::verify::inputs::Clock;
use crate::verify::{Bundle, Inputs, VerifyError, pipeline};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;
use tki_text::printable;

#[derive(Serialize)]
struct Signed {
    envelope: String,
    key: String,
    signatures: usize,
}

/// Signs evidence that is consistent; adds to signatures that are there.
pub fn execute(args: &SignArgs, common: Common) -> Result<Exit, Failure> {
    let bundle = Bundle::read(&args.bundle)?;
    let unsigned = check(&args.bundle, &bundle)?;
    // What is wrong with an envelope is said before anybody is asked for a passphrase.
    let there = there(&args.bundle, &bundle.envelope, &unsigned)?;
    let key = Key::open(&args.key, args.passphrase.passphrase.as_ref(), PATIENCE)?;
    not_yet_by(&key, &there, &args.bundle)?;
    let mut own = unsigned.clone();
    key.sign(&mut own, Instant::now() + PATIENCE)?;
    let envelope = add(&args.bundle, &unsigned, &key, own.signatures)?;
    let signed = Signed {
        envelope: envelope_file::beside(&args.bundle)
            .to_string_lossy()
            .into_owned(),
        key: key.fingerprint(),
        signatures: envelope.signatures.len(),
    };
    match args.format {
        Format::Json => output::print_json(&signed)?,
        Format::Text if common.quiet => {}
        Format::Text => output::print(&format!(
            "envelope  {}\nkey       {}\nsigners   {}\n",
            printable(&signed.envelope, 300),
            signed.key,
            signed.signatures
        ))?,
    }
    Ok(Exit::Done)
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
        let path = envelope_file::beside(evidence);
        return Err(Failure::new(
            Exit::Disproved,
            "sign.other",
            format!("{}: it is an envelope over something else", path.display()),
            "move it away, or ask for the evidence that it belongs to",
        ));
    }
    Ok(there)
}

/// A key signs once. What counts is who made a signature, not whose name is on it.
fn not_yet_by(key: &Key, envelope: &Envelope, evidence: &Path) -> Result<(), Failure> {
    let message = envelope.signed_bytes();
    let mut made = envelope
        .signatures
        .iter()
        .map(|s| key.made(&message, &s.sig));
    match made.any(|made| made) {
        false => Ok(()),
        true => Err(Failure::usage(
            "sign.already",
            format!(
                "{}: {} has signed it already",
                envelope_file::beside(evidence).display(),
                key.fingerprint()
            ),
            "sign with another key, or leave it as it is",
        )),
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
    // The holder of the key knows that these are not its signatures.
    let name = key.fingerprint();
    envelope.signatures.retain(|other| other.keyid != name);
    envelope.signatures.extend(own);
    let path = envelope_file::beside(evidence);
    if envelope.signatures.len() > MAX_SIGNATURES {
        return Err(Failure::usage(
            "sign.full",
            format!(
                "{}: it holds {MAX_SIGNATURES} signatures, and no more are read",
                path.display()
            ),
            "move it away and have those sign again who should",
        ));
    }
    let line = envelope.to_line();
    let written = match bytes {
        Some(_) => files::replace(&path, &line),
        None => files::write_new_exactly(&path, &line),
    };
    written.map_err(|error| {
        Failure::usage(
            "out.unwritable",
            format!("cannot write {}: {error}", path.display()),
            "give the directory room and the right to write",
        )
    })?;
    Ok(envelope)
}

/// Nobody should put a name to evidence that contradicts itself.
fn check(path: &Path, bundle: &Bundle) -> Result<Envelope, Failure> {
    let inputs = Inputs {
        clock: Clock {
            now: clock::now(),
            given: false,
        },
        known: inputs::known()?,
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
        return Err(Failure::new(
            Exit::Disproved,
            "sign.false",
            format!("{}: {}: {}", bundle.name, step.code, step.got),
            "evidence that contradicts itself is not signed: ask for the original",
        ));
    }
    let evidence = opened.evidence.as_ref().ok_or_else(|| {
        Failure::blocked(
            "sign.version",
            format!("{}: another version of tki-attest wrote it", bundle.name),
            "sign with the version that wrote it, or run again with this one",
        )
    })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(envelope_file::unsigned(&name, &bundle.evidence, evidence)?)
}
