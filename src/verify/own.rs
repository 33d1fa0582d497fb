//! This tool's own verification of new evidence, before it has a name.

use crate::verify::artifacts::Source;
use crate::verify::error::OwnError;
use crate::verify::pipeline::{contradiction, false_attestation};
use crate::verify::{Bundle, Inputs, Step, StepCode, brought, verify};
use std::path::Path;

/// Evidence that our own verifier calls false is never written.
pub fn self_verify(bytes: &[u8], folder: &Path) -> Result<(), OwnError> {
    let inputs = Inputs {
        clock: brought::now(),
        ..Inputs::default()
    };
    let bundle = Bundle {
        name: "the new evidence".into(),
        evidence: bytes.to_vec(),
        envelope: None,
        artifacts: Source::Folder(folder.to_owned()),
    };
    let verification = verify(&bundle, &inputs)?;
    let contradicted = |step: &Step| Err(OwnError::Contradicted(Box::new(step.clone())));
    // A leak is a true finding; a stamp or a verdict that does not follow is
    // our own mistake.
    match contradiction(&verification) {
        None => match false_attestation(&verification) {
            None => Ok(()),
            Some(step) => contradicted(step),
        },
        // Settings and conversation are what was recorded: what differs is the engine's
        // or the prober's own word.
        Some(step) if [StepCode::Container, StepCode::Transcript].contains(&step.code) => {
            contradicted(step)
        }
        Some(step) => Err(OwnError::Mistaken(Box::new(step.clone()))),
    }
}
