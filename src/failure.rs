//! What a command says when it cannot go on: what happened, to which file or
//! engine, and what to do next. Every stage has its own error type; each turns
//! into a [`Failure`] at the edge, where the exit code is decided.

use crate::exit::Exit;
use crate::report::table::Paint;
use std::io::Write;
use tki_text::printable;

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

    /// Says it on standard error.
    pub fn print(&self, paint: Paint) {
        // A message may quote a file's name or content: its lines stay, its
        // escapes do not.
        let harmless = |message: &str| {
            let lines = message.lines().map(|line| printable(line, 4000));
            lines.collect::<Vec<String>>().join("\n")
        };
        let _ = writeln!(
            std::io::stderr(),
            "{} [{}] {}\n  next: {}",
            paint.bad("tki-attest:"),
            self.code,
            harmless(&self.message),
            harmless(&self.next)
        );
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
