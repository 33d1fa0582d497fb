//! A bundle on disk: the evidence file, and what lies beside it.

use crate::Bundle;
use crate::artifacts::Source;
use crate::dsse::MAX_ENVELOPE;
use crate::error::VerifyError;
use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use std::io;
use std::path::{Path, PathBuf};
use tki_evidence::strict::MAX_BYTES;
use tki_files::{folder_of, read_beside, read_bounded};

/// Why a bundle on disk came to no decision.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// An evidence file could not be read.
    #[error("{}: {source}", path.display())]
    Evidence {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The envelope beside it could not be read.
    #[error("{}: {source}", path.display())]
    Envelope {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory could not be read.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory without evidence: nothing would be verified.
    #[error("{}: there is no evidence in it", path.display())]
    Nothing {
        /// The directory.
        path: PathBuf,
    },
    /// A file that lies beside evidence and plainly is another document.
    #[error("{}: not verified, because it is {name} ({schema})", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What it is.
        name: &'static str,
        /// Its schema.
        schema: &'static str,
    },
    /// It was read, and is not what it should be.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// Verifying it panicked, which is a bug.
    #[error("{}", path.display())]
    Panicked {
        /// The file.
        path: PathBuf,
    },
    /// A thread that verified panicked outside of that, which is a bug.
    #[error("a worker panicked")]
    Worker,
}

impl BundleError {
    /// A stable code such as `evidence.unreadable`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Evidence { .. } | Self::Folder { .. } => "evidence.unreadable",
            Self::Envelope { .. } => "envelope.unreadable",
            Self::Nothing { .. } => "evidence.none",
            Self::Other { .. } => "evidence.other",
            Self::Verify(error) => error.code(),
            Self::Panicked { .. } => "verify.panic",
            Self::Worker => "verify.many",
        }
    }

    /// What to do about it.
    pub fn next(&self) -> &'static str {
        match self {
            Self::Evidence { .. } => "give a file that can be read",
            Self::Envelope { .. } => {
                "give an envelope that can be read, as `tki-attest sign` wrote it"
            }
            Self::Folder { .. } => "give a directory that can be read",
            Self::Nothing { .. } => "give a directory that holds evidence files (*.json)",
            Self::Other { .. } => {
                "nothing, if you expected that; evidence says that it is evidence"
            }
            Self::Verify(error) => error.next(),
            Self::Panicked { .. } | Self::Worker => "report it: this is a bug",
        }
    }
}

/// The envelope's name for an evidence file: `a.json` → `a.intoto.jsonl`.
pub fn envelope_beside(evidence: &Path) -> PathBuf {
    evidence.with_extension("intoto.jsonl")
}

/// Reads the envelope beside an evidence file, if there is one.
pub fn read_envelope(evidence: &Path) -> Result<Option<Vec<u8>>, BundleError> {
    let path = envelope_beside(evidence);
    match read_beside(&path, MAX_ENVELOPE) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BundleError::Envelope { path, source }),
    }
}

impl Bundle {
    /// Reads a bundle from disk; the artifacts are read later.
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        let evidence =
            read_bounded(path, MAX_BYTES as u64).map_err(|source| BundleError::Evidence {
                path: path.to_owned(),
                source,
            })?;
        Ok(Self {
            name: path.to_string_lossy().into_owned(),
            evidence,
            envelope: read_envelope(path)?,
            artifacts: Source::Folder(folder_of(path).to_owned()),
        })
    }
}
