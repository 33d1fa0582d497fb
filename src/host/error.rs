//! Everything that can go wrong on this host, and what to do then.

use crate::failure::Failure;
use std::io;
use std::path::PathBuf;
use tki_evidence::venue::VenueError;
use tki_text::printable;

/// Everything that can go wrong on this host.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The janitor does not start.
    #[error("cannot start a process that tidies up should this one be killed: {0}")]
    Janitor(#[source] io::Error),
    /// The directory for /in and /out cannot be made.
    #[error("cannot make {name} for /in and /out: {error}")]
    Scratch {
        /// What it would be called.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// A statement about the venue cannot be read.
    #[error("{}: {error}", .path.display())]
    Proof {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A statement about the venue says nothing.
    #[error("{}: it is empty", .path.display())]
    EmptyProof {
        /// The file.
        path: PathBuf,
    },
    /// What is seen of the venue contradicts the claim.
    #[error("--venue {claim} is claimed, but {}", printable(&.signs.join("; "), 400))]
    Implausible {
        /// The claimed venue.
        claim: String,
        /// What contradicts it.
        signs: Vec<String>,
    },
    /// A file of venue rules cannot be read.
    #[error("{}: {error}", .path.display())]
    Rules {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file of venue rules is no text.
    #[error("{}: not UTF-8", .path.display())]
    RulesText {
        /// The file.
        path: PathBuf,
    },
    /// A file of venue rules has another form, or means nothing.
    #[error("{}: {error}", .path.display())]
    MalformedRules {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: VenueError,
    },
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        const RULES: &str = "evidence-schema/src/venues.toml shows the form";
        let what = error.to_string();
        match error {
            HostError::Janitor(_) => Failure::blocked(
                "janitor.start",
                what,
                "give room for another process, then run again",
            ),
            HostError::Scratch { .. } => Failure::blocked(
                "scratch.unusable",
                what,
                "make room or give the right to write there (or set TMPDIR), then run again",
            ),
            HostError::Proof { .. } | HostError::EmptyProof { .. } => Failure::usage(
                "venue.proof",
                what,
                "give a file of at most 64 KiB with what the platform or the hardware signed",
            ),
            HostError::Implausible { .. } => Failure::blocked(
                "venue.implausible",
                what,
                "run with --venue dev for development; run on the VPS or the CI runner for B4′ \
                 evidence",
            ),
            HostError::Rules { .. } | HostError::RulesText { .. } => {
                Failure::usage("venues.unreadable", what, RULES)
            }
            HostError::MalformedRules { .. } => Failure::usage("venues.malformed", what, RULES),
        }
    }
}
