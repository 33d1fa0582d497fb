//! Everything that can go wrong in a run, and what to do then.

use crate::attest::whereabouts::Elsewhere;
use crate::engine::EngineError;
use crate::executable::UnreadableTool;
use crate::failure::Failure;
use crate::host::error::HostError;
use crate::host::unseen::Unseen;
use crate::launch::error::LaunchError;
use crate::random::RandomError;
use std::io;
use std::path::PathBuf;
use tki_evidence::strict::StrictError;
use tki_evidence::transcript::TranscriptError;

/// Everything that can go wrong in a run.
#[derive(Debug, thiserror::Error)]
pub enum AttestError {
    /// The engine fails.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The thread that connects panicked.
    #[error("connecting panicked")]
    ConnectingPanicked,
    /// There is no engine that has an address.
    #[error("no engine was asked")]
    NotAsked,
    /// A container does not come to its end.
    #[error(transparent)]
    Launch(LaunchError),
    /// This host does not play its part.
    #[error(transparent)]
    Host(#[from] HostError),
    /// There are no random names and nonces.
    #[error(transparent)]
    Random(#[from] RandomError),
    /// This executable has no digest.
    #[error(transparent)]
    Tool(#[from] UnreadableTool),
    /// The engine knows the image neither by the one digest nor by the other.
    #[error("the engine loaded the image but knows neither {config} nor {manifest}")]
    ImageNotHeld {
        /// Of the config.
        config: String,
        /// Of the manifest.
        manifest: String,
    },
    /// The exec gate is required, and there is none.
    #[error("there is no exec gate: {without}")]
    NoGate {
        /// Why.
        without: String,
    },
    /// A launch without a gate was refused for the gate.
    #[error("refused without being asked")]
    GateRefused,
    /// What a control needs on this host cannot be made.
    #[error("cannot prepare control {name}: {error}")]
    Unprepared {
        /// The container's name.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// The profile's denials cannot carry marks.
    #[error("the profile cannot be marked")]
    Unmarkable,
    /// The challenge cannot be written.
    #[error(transparent)]
    Challenge(serde_json::Error),
    /// The conversation has an end that is not in it.
    #[error("the end was heard but is not there")]
    NoEnd,
    /// What the container says is not the prober's language.
    #[error("the container does not speak as the prober does: {0}")]
    Misspoken(#[from] TranscriptError),
    /// What the prober says of itself is not true.
    #[error("the container does not speak as the prober does: {0}")]
    Untrue(&'static str),
    /// A control gets no interface.
    #[error("cannot put an interface into the control's network namespace: {0}")]
    Interface(#[from] NoInterface),
    /// A thread with controls panicked.
    #[error("a worker panicked")]
    ControlsPanicked,
    /// A control fails.
    #[error("control {name}: {error}")]
    Control {
        /// Its name.
        name: &'static str,
        /// Why.
        error: Box<AttestError>,
    },
    /// The scout fails.
    #[error("the scout, which finds out about the kernel: {0}")]
    Scout(Box<AttestError>),
    /// The neighbour fails.
    #[error("the neighbour of the controls: {0}")]
    Neighbour(Box<AttestError>),
    /// The neighbour's thread panicked.
    #[error("the neighbour panicked")]
    NeighbourPanicked,
    /// Something needs a neighbour that is not there. What is wrong with the neighbour is
    /// told in its place.
    #[error("there is no neighbour")]
    NoNeighbour,
    /// The output directory cannot be written to.
    #[error("cannot write evidence into {}: {error}", .folder.display())]
    Unwritable {
        /// The directory.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The output directory has a bundle under every name.
    #[error("{}: every name for today is taken", .folder.display())]
    Full {
        /// The directory.
        folder: PathBuf,
    },
    /// The evidence has no stamp.
    #[error(transparent)]
    Stamp(StrictError),
}

/// Why a control's container gets no interface.
#[derive(Debug, thiserror::Error)]
pub enum NoInterface {
    /// Its process id may be another process's here.
    #[error("{0}, which may be another machine")]
    Elsewhere(Elsewhere),
    /// Its first process is not found.
    #[error(transparent)]
    Unseen(#[from] Unseen),
    /// The kernel refuses.
    #[error(transparent)]
    Kernel(#[from] io::Error),
}

impl From<LaunchError> for AttestError {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Engine(error) => Self::Engine(error),
            error => Self::Launch(error),
        }
    }
}

impl AttestError {
    /// The engine is gone, in whichever container that was seen.
    pub fn has_lost_engine(&self) -> bool {
        matches!(
            self.root(),
            Self::Engine(
                EngineError::Vanished { .. }
                    | EngineError::Ssh { .. }
                    | EngineError::Tls { .. }
                    | EngineError::Unreachable { .. }
            )
        )
    }

    /// A container ended early: a part of the engine may have been killed.
    pub fn has_ended_early(&self) -> bool {
        matches!(self.root(), Self::Launch(LaunchError::EndedEarly { .. }))
    }

    /// The same without the container that it happened to.
    pub fn root(&self) -> &Self {
        match self {
            Self::Control { error, .. } | Self::Scout(error) | Self::Neighbour(error) => {
                error.root()
            }
            error => error,
        }
    }

    /// The engine refused the container for its volumes: another maker may do.
    pub fn is_about_volumes(&self) -> bool {
        matches!(self, Self::Launch(LaunchError::NoVolumes(_)))
    }
}

impl From<AttestError> for Failure {
    fn from(error: AttestError) -> Self {
        const NOT_OURS: &str =
            "nothing it said counts; build the image from this tki-attest and run again";
        let what = error.to_string();
        match error {
            AttestError::Engine(error) => error.into(),
            AttestError::ConnectingPanicked => Failure::internal("engine.connect", what),
            AttestError::NotAsked => Failure::internal("engines.none", what),
            AttestError::Launch(error) => error.into(),
            AttestError::Host(error) => error.into(),
            AttestError::Random(error) => error.into(),
            AttestError::Tool(error) => error.into(),
            AttestError::ImageNotHeld { .. } => Failure::blocked(
                "image.not-held",
                what,
                "look at the engine's log; an image under another digest is not used",
            ),
            AttestError::NoGate { .. } => Failure::blocked(
                "gate.unavailable",
                what,
                "use an engine that has one (`tki-attest engines` lists them), or --gate auto",
            ),
            AttestError::GateRefused => Failure::internal("gate", what),
            AttestError::Unprepared { .. } => Failure::blocked(
                "control.unprepared",
                what,
                "run again, or with --controls none",
            ),
            AttestError::Unmarkable => Failure::internal("control.marks", what),
            AttestError::Challenge(_) => Failure::internal("challenge", what),
            AttestError::NoEnd => Failure::internal("transcript", what),
            AttestError::Misspoken(TranscriptError::Refused(_)) => {
                Failure::blocked("inspector.refused", what, NOT_OURS)
            }
            AttestError::Misspoken(_) | AttestError::Untrue(_) => {
                Failure::blocked("inspector.garbled", what, NOT_OURS)
            }
            AttestError::Interface(_) => Failure::blocked(
                "control.network",
                what,
                "run as root on the engine's own host, or with --controls none",
            ),
            AttestError::ControlsPanicked => Failure::internal("controls", what),
            AttestError::Control { error, .. }
            | AttestError::Scout(error)
            | AttestError::Neighbour(error) => Failure {
                message: what,
                ..Failure::from(*error)
            },
            AttestError::NeighbourPanicked => Failure::internal("neighbour", what),
            AttestError::NoNeighbour => Failure::internal("neighbour.missing", what),
            AttestError::Unwritable { .. } => Failure::usage(
                "out.unwritable",
                what,
                "give an --out directory that can be written to and has room",
            ),
            AttestError::Full { .. } => Failure::usage("out.full", what, "give another --out"),
            AttestError::Stamp(_) => Failure::internal("evidence.stamp", what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Cause;

    fn of_control(error: impl Into<AttestError>) -> AttestError {
        AttestError::Control {
            name: "hostname",
            error: Box::new(error.into()),
        }
    }

    #[test]
    fn a_control_is_named_and_fails_as_what_happened_in_it() {
        let error = of_control(EngineError::Interrupted {
            signal: "SIGINT",
            request: "waiting".into(),
        });
        let failure = Failure::from(error);
        assert_eq!(
            (failure.exit as u8, failure.code, failure.cause),
            (3, "run.interrupted", Cause::Interrupted)
        );
        let wanted = "control hostname: interrupted by SIGINT during waiting";
        assert_eq!(failure.message, wanted);
    }

    #[test]
    fn what_may_be_left_is_known_wherever_it_happened() {
        let lost = LaunchError::Engine(EngineError::Vanished {
            host: "x".into(),
            request: "waiting".into(),
            reason: "gone".into(),
        });
        let early = LaunchError::EndedEarly {
            status: None,
            when: "before it said anything",
            complaint: String::new(),
        };
        let (lost, early) = (of_control(lost), of_control(early));
        assert!(lost.has_lost_engine() && !lost.has_ended_early());
        assert!(early.has_ended_early() && !early.has_lost_engine());
    }
}
