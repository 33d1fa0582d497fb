//! Why there is no decision: what was given is not evidence, or its envelope is none.

use crate::dsse::EnvelopeError;
use alloc::string::{String, ToString};
use tki_evidence::evidence::SCHEMA;
use tki_evidence::strict::StrictError;
use tki_text::printable;

/// What `tki-attest inspect` writes: the report, its binding to the matrix, and what is said of
/// the sandbox beside it.
pub const INSPECTIONS: [&str; 3] = [
    "tki-attest/inspection/v1",
    "tki-attest/inspection-binding/v1",
    "tki-attest/inspection-stamp/v1",
];

/// What such a report is not.
pub const NOT_AN_INPUT: &str = "nothing takes one as an input: it is triage for people, shows \
                                nothing that was run, and lets nothing go on";

/// What to do instead.
pub const NO_INSPECTION: &str = "give the evidence bundle that `tki-attest run` wrote, or the file \
                                 that this argument is for; read the report yourself";

/// The text is one of [`INSPECTIONS`].
pub fn is_inspection(bytes: &[u8]) -> bool {
    // They say so in their first line or two.
    let start = &bytes[..bytes.len().min(256)];
    let names = |schema: &str| start.windows(schema.len()).any(|s| s == schema.as_bytes());
    if !INSPECTIONS.into_iter().any(names) {
        return false;
    }
    let value = serde_json::from_slice::<serde_json::Value>(bytes);
    let schema = value.as_ref().ok().and_then(|value| value.get("schema"));
    let schema = schema.and_then(serde_json::Value::as_str);
    schema.is_some_and(|schema| INSPECTIONS.contains(&schema))
}

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
    /// What an inspection came to, which nothing takes as an input.
    #[error("this is the report of an inspection, and {NOT_AN_INPUT}")]
    Inspection,
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
            Self::Evidence {
                source: EvidenceError::Inspection,
                ..
            } => "inspection.no-input",
            Self::Evidence { .. } => "evidence.malformed",
        }
    }

    /// What to do about it.
    pub fn next(&self) -> &'static str {
        match self {
            Self::Envelope { .. } => "ask for the file again, as `tki-attest sign` wrote it",
            Self::Statement { .. } => "ask for the bundle again, as it was signed",
            Self::Evidence {
                source: EvidenceError::Inspection,
                ..
            } => NO_INSPECTION,
            Self::Evidence { .. } => "ask for the file again, as `tki-attest run` wrote it",
        }
    }
}
