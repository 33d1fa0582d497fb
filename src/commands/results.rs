//! What `verify` writes when it is asked to: binding, verification, signature.

use crate::cli::VerifyArgs;
use crate::commands::error::CommandError;
use crate::failure::Failure;
use crate::files::write_new;
use crate::report::binding as report;
use crate::trust::keys::Key;
use crate::trust::{envelope_file, statement};
use crate::verify::pipeline::Opened;
use crate::verify::{Inputs, Verification};
use std::path::{Path, PathBuf};
use tki_evidence::binding;

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
        let mut text = serde_json::to_vec_pretty(verification).map_err(CommandError::from)?;
        text.push(b'\n');
        let path = save(&path, &text)?;
        if let Some(key) = key {
            let envelope = statement::signed(key, &path, &text, verification)?;
            save(&envelope_file::beside(&path), &envelope)?;
        }
    }
    Ok(())
}

fn save(path: &Path, bytes: &[u8]) -> Result<PathBuf, CommandError> {
    let path = write_new(path, bytes).map_err(|source| CommandError::Result {
        path: path.to_owned(),
        source,
    })?;
    eprintln!("wrote {}", path.display());
    Ok(path)
}

fn write_binding(
    stem: &Path,
    opened: &Opened,
    verification: &Verification,
    inputs: &Inputs,
) -> Result<(), CommandError> {
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
    let mut json = serde_json::to_vec_pretty(&bound)?;
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
