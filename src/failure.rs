//! What a command says when it cannot go on: what happened, to which file or
//! engine, and what to do next. Every stage has its own error type; each turns
//! into a [`Failure`] at the edge, where the exit code is decided.

use crate::exit::Exit;

/// A failure ready to be shown to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The process's exit code.
    pub exit: Exit,
    /// A stable, lower-case code such as `engine.unreachable`.
    pub code: &'static str,
    /// What happened and where.
    pub message: String,
    /// The exact next action.
    pub next: String,
}

impl Failure {
    /// Bad usage or unreadable input (exit 2).
    pub fn usage(code: &'static str, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::Usage, code, message, next)
    }

    /// Not proven (exit 3).
    pub fn blocked(
        code: &'static str,
        message: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self::new(Exit::Blocked, code, message, next)
    }

    /// A bug in this tool (exit 4).
    pub fn internal(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(
            Exit::Internal,
            code,
            message,
            "this is a bug in tki-attest: please report it with the command line",
        )
    }

    /// A failure with an explicit exit code.
    pub fn new(
        exit: Exit,
        code: &'static str,
        message: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
            next: next.into(),
        }
    }
}
