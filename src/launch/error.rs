//! Everything that can go wrong between the launch of a container and its end.

use crate::engine::EngineError;
use crate::failure::Failure;
use crate::host::error::HostError;
use std::io;
use tki_text::printable;

/// Everything that can go wrong between the launch of a container and its end.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The engine fails.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// This host does not let us prepare it.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Neither the engine nor this user can make bounded file systems.
    #[error("the engine makes no volumes ({said}), and {reason}")]
    NoRight {
        /// What the engine said.
        said: String,
        /// What this host said.
        reason: String,
    },
    /// The engine refused the container for its volumes.
    #[error("the engine makes no volumes for /in and /out: {0}")]
    NoVolumes(#[source] EngineError),
    /// The exec gate could not do its work to the end.
    #[error("the exec gate broke and ended the container: {reason}")]
    GateBroken {
        /// Why.
        reason: String,
    },
    /// There is no socket for the listener.
    #[error("cannot make a socket for the exec gate: {0}")]
    GateSocket(#[source] io::Error),
    /// The seccomp profile is not what it was when it was read.
    #[error("the profile cannot be extended")]
    GateProfile,
    /// The container is gone in the middle.
    #[error("the container ended ({}) {when}{}", status_of(*.status), words(.complaint))]
    EndedEarly {
        /// Its exit status, if the engine still knew it.
        status: Option<i64>,
        /// In the middle of what.
        when: &'static str,
        /// What it wrote to standard error.
        complaint: String,
    },
    /// Everything was said, and then the program failed.
    #[error("the container said everything but ended with status {status}")]
    EndedBadly {
        /// Its exit status.
        status: i64,
    },
}

fn status_of(status: Option<i64>) -> String {
    status.map_or("unknown status".into(), |status| format!("status {status}"))
}

fn words(complaint: &str) -> String {
    match complaint {
        "" => String::new(),
        complaint => format!("; it wrote: {}", printable(complaint, 400)),
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        let what = error.to_string();
        match error {
            LaunchError::Engine(error) => error.into(),
            LaunchError::Host(error) => error.into(),
            LaunchError::NoRight { .. } => Failure::blocked(
                "scratch.no-right",
                what,
                "run as root on the engine's own host (`sudo tki-attest run …`), or let the \
                 engine make volumes of its local driver",
            ),
            LaunchError::NoVolumes(_) => Failure::blocked(
                "volumes.refused",
                what,
                "let the engine make volumes of its local driver, or run as root on its host",
            ),
            LaunchError::GateBroken { .. } => Failure::blocked(
                "gate.broken",
                what,
                "the prober tries a few dozen execs; build the image from this tki-attest and \
                 run again",
            ),
            LaunchError::GateSocket(_) => {
                Failure::blocked("gate.socket", what, "run again, or with --gate off")
            }
            LaunchError::GateProfile => Failure::internal("gate.profile", what),
            LaunchError::EndedEarly { .. } => Failure::blocked(
                "container.ended-early",
                what,
                "a container that ends early proves nothing; see whether something on the host \
                 kills containers, then run again",
            ),
            LaunchError::EndedBadly { .. } => Failure::blocked(
                "container.ended-badly",
                what,
                "see whether something on the host kills containers, then run again",
            ),
        }
    }
}
