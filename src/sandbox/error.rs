//! Everything that can be wrong with a profile, and what to do then.

use crate::failure::Failure;
use crate::sandbox::limit::LimitsError;
use std::io;
use std::path::PathBuf;
use tki_evidence::strict::StrictError;

/// Everything that can be wrong with a profile.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The file of limits cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file of limits is no text.
    #[error("{}: not UTF-8", .path.display())]
    Binary {
        /// The file.
        path: PathBuf,
    },
    /// The file of limits says something else.
    #[error("{}: {error}", .path.display())]
    Limits {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: LimitsError,
    },
    /// The seccomp profile cannot be read.
    #[error("{}: {error}", .path.display())]
    UnreadableSeccomp {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The seccomp profile has another form.
    #[error("seccomp profile {name}: {error}")]
    Malformed {
        /// The profile.
        name: String,
        /// What is wrong, and where.
        error: StrictError,
    },
    /// The seccomp profile is no text.
    #[error("seccomp profile {name}: not UTF-8")]
    BinarySeccomp {
        /// The profile.
        name: String,
    },
    /// Nothing could be executed under the seccomp profile.
    #[error(
        "seccomp profile {name} {why}, so no container could start: engines load the filter \
         before the last exec of the container's start. A container that fails to start is no \
         proof of anything."
    )]
    DeniesExecve {
        /// The profile.
        name: String,
        /// What it does about execve.
        why: &'static str,
    },
    /// The profile that calls are to be left out of has another form.
    #[error(transparent)]
    MalformedCandidate(StrictError),
    /// The same, and it is not even JSON.
    #[error(transparent)]
    NoJson(serde_json::Error),
    /// There is nothing to leave out.
    #[error("the profile allows by default: there is nothing to leave out")]
    NotAnAllowList,
    /// Nothing can be found out by leaving calls out.
    #[error("not everything passes under the whole profile")]
    DoesNotPass,
}

impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        let what = error.to_string();
        match error {
            SandboxError::Unreadable { .. }
            | SandboxError::Binary { .. }
            | SandboxError::Limits { .. } => Failure::usage(
                "profile.unreadable",
                what,
                "give a TOML file with a [limits] table; docs/sandbox.md shows one",
            ),
            SandboxError::UnreadableSeccomp { .. } => Failure::usage(
                "seccomp.unreadable",
                what,
                "give targeted-deny, deny-by-default or the path of a profile in Docker's JSON \
                 form",
            ),
            SandboxError::Malformed { .. } | SandboxError::BinarySeccomp { .. } => Failure::usage(
                "seccomp.malformed",
                what,
                "correct the profile; seccomp/README.md explains the form",
            ),
            SandboxError::DeniesExecve { .. } => Failure::usage(
                "seccomp.denies-execve",
                what,
                "allow execve in the profile; the prober denies execve and execveat itself, by a \
                 filter of its own, before phase locked",
            ),
            SandboxError::MalformedCandidate(_) | SandboxError::NoJson(_) => Failure::usage(
                "seccomp.malformed",
                what,
                "give an allow-list in Docker's JSON form",
            ),
            SandboxError::NotAnAllowList => Failure::usage(
                "seccomp.not-an-allow-list",
                what,
                "give an allow-list, such as deny-by-default",
            ),
            SandboxError::DoesNotPass => Failure::blocked(
                "seccomp.does-not-pass",
                what,
                "run `tki-attest run --seccomp FILE` and see what fails",
            ),
        }
    }
}
