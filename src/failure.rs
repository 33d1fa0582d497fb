//! What a command says when it cannot go on: what happened, to which file or
//! engine, and what to do next. Every stage has its own error type; each turns
//! into a [`Failure`] at the edge, where the exit code is decided.

use crate::exit::Exit;

/// What a failure means to a command that could go on with something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// SIGINT or SIGTERM: the user means the whole command.
    Interrupted,
    /// This host cannot have that engine.
    EngineUnusable,
    /// Nobody answers where the engine should be, or not to this user.
    EngineAbsent,
    /// Something else, which only a person can judge.
    #[default]
    Other,
}

/// A failure ready to be shown to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The process's exit code.
    pub exit: Exit,
    /// A stable, lower-case code such as `engine.unreachable`.
    pub code: &'static str,
    /// What it means to a command; the code is for people and scripts.
    pub cause: Cause,
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

    /// The same failure, with a cause that commands know.
    pub fn because(self, cause: Cause) -> Self {
        Self { cause, ..self }
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
            cause: Cause::Other,
            message: message.into(),
            next: next.into(),
        }
    }
}
