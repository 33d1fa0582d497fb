//! `tki-attest sign`.

use crate::cli::{Common, Format, SignArgs};
use crate::clock;
use crate::commands::{inputs, output};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::files;
use crate::report::text::printable;
use crate::trust::dsse::Envelope;
use crate::trust::envelope_file;
use crate::trust::keys::Key;
use crate::verify::inputs::Clock;
use crate::verify::{Bundle, Inputs, pipeline};
use serde::Serialize;
use std::path::Path;

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
    let path = envelope_file::beside(&args.bundle);
    let mut envelope = unsigned.clone();
    if let Some(bytes) = &bundle.envelope {
        let there = Envelope::parse(bytes)
            .map_err(|error| envelope_file::malformed(&bundle.name, &error))?;
        if (&there.payload, &there.payload_type) != (&unsigned.payload, &unsigned.payload_type) {
            return Err(Failure::new(
                Exit::Disproved,
                "sign.other",
                format!("{}: it is an envelope over something else", path.display()),
                "move it away, or ask for the evidence that it belongs to",
            ));
        }
        envelope = there;
    }
    let key = Key::open(&args.key, args.passphrase.passphrase.as_ref())?;
    let fingerprint = key.fingerprint();
    if envelope
        .signatures
        .iter()
        .any(|signature| signature.keyid == fingerprint)
    {
        return Err(Failure::usage(
            "sign.already",
            format!("{}: {fingerprint} has signed it already", path.display()),
            "sign with another key, or leave it as it is",
        ));
    }
    key.sign(&mut envelope)?;
    let line = envelope.to_line();
    let written = match &bundle.envelope {
        // Adding a signature takes nothing away from what is there.
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
    let signed = Signed {
        envelope: path.to_string_lossy().into_owned(),
        key: fingerprint,
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
    if let Some(step) = pipeline::contradiction(&verification) {
        return Err(Failure::new(
            Exit::Disproved,
            "sign.false",
            format!("{}: {}: {}", bundle.name, step.code, step.got),
            "evidence that contradicts itself is not signed: ask for the original",
        ));
    }
    let evidence = opened.evidence.as_ref().ok_or_else(|| {
        Failure::internal("sign.unread", "evidence without an envelope was not read")
    })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    envelope_file::unsigned(&name, &bundle.evidence, evidence)
}
