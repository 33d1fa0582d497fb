//! Why there is no decision: what was given is not evidence, or its envelope is none.

use crate::dsse::EnvelopeError;
use alloc::string::{String, ToString};
use tki_evidence::evidence::SCHEMA;
use tki_evidence::strict::StrictError;
use tki_text::printable;

/// Why there is no decision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The envelope has not the form of one.
    #[error("the envelope of {bundle}: {source}")]
    Envelope {
        /// The evidence file's name.
        bundle: String,
        /// What is wrong with it.
        source: EnvelopeError,
    },
    /// What was signed is not strict JSON.
    #[error("what was signed for {bundle}: {source}")]
    Statement {
        /// The evidence file's name.
        bundle: String,
        /// What is wrong with it.
        source: StrictError,
    },
    /// The evidence has not the form of evidence.
    #[error("{}: {source}", printable(bundle, 200))]
    Evidence {
        /// The evidence file's name.
        bundle: String,
        /// What is wrong with it.
        source: EvidenceError,
    },
}

/// Why a text is not evidence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// Not strict JSON of this form.
    #[error("{}", printable(&.0.to_string(), 300))]
    Strict(StrictError),
    /// JSON, but not an object.
    #[error("line 1, column 1: not a JSON object")]
    Object,
    /// No word of what it is.
    #[error("there is no `schema`: this is not evidence")]
    NoSchema,
    /// Evidence of another form.
    #[error("schema is {:?}; this tki-attest reads {SCHEMA:?}", printable(.0, 60))]
    Schema(String),
}

impl VerifyError {
    /// A stable code such as `evidence.malformed`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Envelope { .. } => "envelope.malformed",
            Self::Statement { .. } => "statement.malformed",
            Self::Evidence { .. } => "evidence.malformed",
        }
    }

    /// What to do about it.
    pub fn next(&self) -> &'static str {
        match self {
            Self::Envelope { .. } => "ask for the file again, as `tki-attest sign` wrote it",
            Self::Statement { .. } => "ask for the bundle again, as it was signed",
            Self::Evidence { .. } => "ask for the file again, as `tki-attest run` wrote it",
        }
    }
}
