//! What goes wrong in a command itself, before, between and after its stages.

use crate::exit::Exit;
use crate::failure::Failure;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use tki_evidence::request::RequestError;

/// What a command cannot do.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Standard output takes no more.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    /// A value has no form as JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Evidence that was read strictly cannot be read as a value.
    #[error("{0}")]
    Evidence(#[source] serde_json::Error),
    /// A manual page.
    #[error("{0}")]
    Page(#[source] io::Error),
    /// Signals and the time cannot be watched.
    #[error("{0}")]
    Watch(#[source] io::Error),
    /// A result of `verify` cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Result {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What `--out` names cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Out {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Results about one bundle, and several bundles.
    #[error("--binding, --verification and --attest are about one bundle")]
    Several,
    /// No file was evidence.
    #[error("nothing was verified: none of these files is evidence")]
    Nothing,
    /// A request that could not be read back.
    #[error("{0}")]
    Request(#[source] RequestError),
    /// `gate` with a time of the user's.
    #[error(
        "--verify-time is for audits: a command runs now, and what was good at another time may \
         be stale"
    )]
    GateTime,
    /// `gate` without a command.
    #[error("there is no command")]
    NoCommand,
    /// The command of `gate`.
    #[error("accepted, but {} cannot be run: {source}", .program.to_string_lossy())]
    Command {
        /// The program.
        program: OsString,
        /// Why not.
        source: io::Error,
    },
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        let message = error.to_string();
        let (exit, code, next) = match error {
            CommandError::Json(_) => return Self::internal("json", message),
            CommandError::Evidence(_) => return Self::internal("evidence.read", message),
            CommandError::Page(_) => return Self::internal("man", message),
            CommandError::Watch(_) => return Self::internal("survey.watch", message),
            CommandError::Output(_) => (Exit::Usage, "stdout", "give it room or a reader"),
            CommandError::Result { .. } => (
                Exit::Usage,
                "out.unwritable",
                "give a path that can be written to",
            ),
            CommandError::Out { .. } => (
                Exit::Usage,
                "out.unwritable",
                "give an --out that can be written to",
            ),
            CommandError::Several => (
                Exit::Usage,
                "verify.several",
                "name exactly one evidence file",
            ),
            CommandError::Nothing => (
                Exit::Blocked,
                "evidence.none",
                "give a directory that holds evidence files (*.json)",
            ),
            CommandError::Request(_) => (Exit::Usage, "request.malformed", "give a time after now"),
            CommandError::GateTime => (
                Exit::Usage,
                "gate.verify-time",
                "leave it out; `tki-attest verify --verify-time` looks back and runs nothing",
            ),
            CommandError::NoCommand => (Exit::Usage, "gate.command", "name one after --"),
            CommandError::Command { .. } => (
                Exit::Usage,
                "gate.command",
                "name a program that can be executed after --",
            ),
        };
        Self::new(exit, code, message, next)
    }
}
