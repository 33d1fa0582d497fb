//! What is verified: the evidence file's bytes, the envelope's, and where the
//! artifacts are. Each file is read once; what was checked is what is used.

use crate::failure::Failure;
use crate::files::{folder_of, read_bounded};
use crate::trust::envelope_file;
use crate::verify::artifacts::Source;
use std::path::Path;
use tki_evidence::strict::MAX_BYTES;

/// A bundle as it was handed over.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The evidence file's name, for people.
    pub name: String,
    /// The evidence file's bytes.
    pub evidence: Vec<u8>,
    /// The envelope's bytes, if there is one.
    pub envelope: Option<Vec<u8>>,
    /// Where the artifacts are.
    pub artifacts: Source,
}

impl Bundle {
    /// Reads a bundle from disk; the artifacts are read later.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let evidence = read_bounded(path, MAX_BYTES as u64).map_err(|error| {
            Failure::usage(
                "evidence.unreadable",
                format!("{}: {error}", path.display()),
                "give a file that can be read",
            )
        })?;
        Ok(Self {
            name: path.to_string_lossy().into_owned(),
            evidence,
            envelope: envelope_file::read(path)?,
            artifacts: Source::Folder(folder_of(path).to_owned()),
        })
    }
}
