//! What is wrong with what a verifier brings along, and with new evidence.

use crate::failure::Failure;
use crate::image::ImageError;
use crate::sandbox::error::SandboxError;
use crate::verify::{Step, VerifyError};
use std::io;
use std::path::PathBuf;
use tki_evidence::matrix::MatrixError;
use tki_evidence::policy::PolicyError;
use tki_evidence::request::RequestError;
use tki_verify::error::{NO_INSPECTION, NOT_AN_INPUT};
use tki_verify::signers::ListError;

/// A file that a verifier brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A seccomp profile.
    Seccomp,
    /// A matrix.
    Matrix,
    /// A request.
    Request,
    /// A list of those who may sign.
    Signers,
    /// A policy.
    Policy,
}

/// What is wrong with what a verifier brings along.
#[derive(Debug, thiserror::Error)]
pub enum BroughtError {
    /// The image, or the one that this tool carries.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A profile that this tool carries.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A file cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// What it should hold.
        input: Input,
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The report of an inspection.
    #[error("{}: it is the report of an inspection, and {NOT_AN_INPUT}", .path.display())]
    Inspection {
        /// The file.
        path: PathBuf,
    },
    /// A matrix of another form.
    #[error("{}: {error}", .path.display())]
    Matrix {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: MatrixError,
    },
    /// A request of another form.
    #[error("{}: {error}", .path.display())]
    Request {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: RequestError,
    },
    /// A list of another form.
    #[error("{}: {error}", .path.display())]
    Signers {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: ListError,
    },
    /// A policy that is no text.
    #[error("{}: it is not text", .path.display())]
    BinaryPolicy {
        /// The file.
        path: PathBuf,
    },
    /// A policy of another form.
    #[error("{}: {error}", .path.display())]
    PolicyForm {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: Box<toml::de::Error>,
    },
    /// A policy that means nothing.
    #[error("{}: {error}", .path.display())]
    Policy {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: PolicyError,
    },
    /// A policy below the built-in bar, which nobody has allowed.
    #[error(
        "{}: it asks for less than the built-in bar: {}",
        .path.display(),
        .weaknesses.join("; ")
    )]
    Weaker {
        /// The file.
        path: PathBuf,
        /// What it lets pass.
        weaknesses: Vec<String>,
    },
}

impl From<BroughtError> for Failure {
    fn from(error: BroughtError) -> Self {
        let what = error.to_string();
        match error {
            BroughtError::Image(error) => error.into(),
            BroughtError::Sandbox(error) => error.into(),
            BroughtError::Unreadable { input, .. } => {
                let code = match input {
                    Input::Seccomp => "seccomp.unreadable",
                    Input::Matrix => "matrix.unreadable",
                    Input::Request => "request.unreadable",
                    Input::Signers => "signers.unreadable",
                    Input::Policy => "policy.unreadable",
                };
                Failure::usage(code, what, "give a file that can be read")
            }
            BroughtError::Inspection { .. } => {
                Failure::usage("inspection.no-input", what, NO_INSPECTION)
            }
            BroughtError::Matrix { .. } => Failure::usage(
                "matrix.malformed",
                what,
                "evidence-schema/matrix.v1.schema.json describes the form",
            ),
            BroughtError::Request { .. } => Failure::usage(
                "request.malformed",
                what,
                "give the file as `tki-attest request` wrote it",
            ),
            BroughtError::Signers { .. } => Failure::usage(
                "signers.malformed",
                what,
                "write lines as in ssh-keygen(1), ALLOWED SIGNERS: principal, options, \
                 ssh-ed25519 key",
            ),
            BroughtError::BinaryPolicy { .. }
            | BroughtError::PolicyForm { .. }
            | BroughtError::Policy { .. } => Failure::usage(
                "policy.malformed",
                what,
                "docs/policy.md explains every field",
            ),
            BroughtError::Weaker { .. } => Failure::usage(
                "policy.weaker",
                what,
                "take that out, or say --allow-weaker; the decision will repeat it",
            ),
        }
    }
}

/// Why new evidence is not written.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// It is not even evidence.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// Somebody else's word contradicts it.
    #[error("{}: {}", .0.code, .0.got)]
    Contradicted(Box<Step>),
    /// It does not follow from what was recorded.
    #[error("{}: expected {}, got {}", .0.code, .0.expected, .0.got)]
    Mistaken(Box<Step>),
}

impl From<OwnError> for Failure {
    fn from(error: OwnError) -> Self {
        let what = error.to_string();
        match error {
            OwnError::Verify(error) => error.into(),
            OwnError::Contradicted(_) => Failure::blocked(
                "run.contradicted",
                what,
                "the engine, the prober or the kernel contradicts this run: use an engine and an \
                 image that you trust, then run again",
            ),
            OwnError::Mistaken(_) => Failure::internal("run.self-verify", what),
        }
    }
}
