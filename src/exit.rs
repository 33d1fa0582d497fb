//! Exit codes: a documented interface, the same for every command.

/// How a command ended. The numbers are part of the contract with scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Done. For `run`: every required probe passed. For `verify`: B4′ accepted.
    Done = 0,
    /// Disproved: a boundary leaked, or the evidence is false.
    Disproved = 1,
    /// Usage error or unreadable input.
    Usage = 2,
    /// BLOCKED: not proven. No engine, unapproved venue, probe not reached, interrupted.
    Blocked = 3,
    /// An internal error, which is a bug.
    Internal = 4,
    /// An inspection was written, and every claim is adequate. It is never 0: nothing may go on
    /// because of it.
    Triage = 10,
    /// An inspection was written, and at least one claim is not adequate.
    Inadequate = 11,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(exit as u8)
    }
}
