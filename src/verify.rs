//! What the verifier's answers are to this tool. [`tki_verify`] decides; a decision becomes an
//! exit code here, and an error a [`Failure`]. [`brought`] reads what a verifier brings along,
//! [`own`] is the verification of what this tool is about to write, [`error`] what is wrong with
//! either.

use crate::exit::Exit;
use crate::failure::Failure;
use tki_verify::disk::BundleError;

pub mod brought;
pub mod error;
pub mod own;

pub use tki_verify::{
    Assurance, Bundle, Decision, ImageDigests, Inputs, Known, Outcome, Step, StepCode,
    Verification, VerifyError, artifacts, checks, inputs, many, pipeline, verify,
};

/// What one bundle came to.
pub type Verified = Result<Verification, Failure>;

/// The exit code that goes with a decision.
pub fn exit(decision: Decision) -> Exit {
    match decision {
        Decision::B4PrimeAccepted => Exit::Done,
        Decision::B4PrimeRejected => Exit::Disproved,
        Decision::B4PrimeBlocked => Exit::Blocked,
    }
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Self {
        Self::usage(error.code(), error.to_string(), error.next())
    }
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        match error {
            BundleError::Nothing { .. } => {
                Self::blocked(error.code(), error.to_string(), error.next())
            }
            BundleError::Panicked { .. } | BundleError::Worker => {
                Self::internal(error.code(), error.to_string())
            }
            error => Self::usage(error.code(), error.to_string(), error.next()),
        }
    }
}

/// The exit code of the worst: disproved is worse than unreadable, and that
/// than not proven. A bug outweighs everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worst(Option<Exit>);

impl Worst {
    /// Takes one result into account.
    pub fn add(&mut self, result: &Verified) {
        let exit = match result {
            Ok(verification) => exit(verification.decision),
            Err(failure) => failure.exit,
        };
        if self.0.is_none_or(|worst| rank(exit) > rank(worst)) {
            self.0 = Some(exit);
        }
    }

    /// Not a single result was taken into account.
    pub fn is_nothing(self) -> bool {
        self.0.is_none()
    }

    /// The exit code; without a single result nothing is proven.
    pub fn exit(self) -> Exit {
        self.0.unwrap_or(Exit::Blocked)
    }
}

fn rank(exit: Exit) -> u8 {
    match exit {
        Exit::Done => 0,
        // What only an inspection ends with proves nothing.
        Exit::Blocked | Exit::Triage | Exit::Inadequate => 1,
        Exit::Usage => 2,
        Exit::Disproved => 3,
        Exit::Internal => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_decides_and_nothing_is_not_done() {
        assert_eq!(Worst::default().exit(), Exit::Blocked);
        let failed = |exit| Err(Failure::new(exit, "x", "x", "x"));
        let mut worst = Worst::default();
        for (next, wanted) in [
            (Exit::Done, Exit::Done),
            (Exit::Blocked, Exit::Blocked),
            (Exit::Usage, Exit::Usage),
            (Exit::Done, Exit::Usage),
            (Exit::Disproved, Exit::Disproved),
            (Exit::Blocked, Exit::Disproved),
        ] {
            worst.add(&failed(next));
            assert_eq!(worst.exit(), wanted);
        }
    }

    #[test]
    fn evidence_is_read_by_the_version_that_writes_it() {
        let own = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        assert_eq!(tki_verify::version::OWN, own);
    }
}
