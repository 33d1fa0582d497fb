//! Everything that keeps a keeper from making its container.

use crate::engine::local::filter::FilterError;
use libcontainer::error::LibcontainerError;
use std::error::Error;
use std::io;

/// Everything that keeps a keeper from making its container. The tool gets it as a text.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The system refuses a step.
    #[error("{step}: {error}")]
    System {
        /// What was about to be done.
        step: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// libcontainer fails.
    #[error("{step}: {}", chain(.error))]
    Libcontainer {
        /// At what.
        step: &'static str,
        /// Why.
        error: Box<LibcontainerError>,
    },
    /// The profile cannot be compiled.
    #[error("the seccomp profile: {0}")]
    Filter(#[from] FilterError),
    /// The job has another profile than its settings name.
    #[error("the profile is not the one that its digest names")]
    OtherProfile,
    /// The job has no directories to bind.
    #[error("there is no /in")]
    NoInput,
    /// The job's directories are no run's.
    #[error("/in has no parent")]
    NoParent,
    /// What should be waited for has no process id.
    #[error("no process")]
    NoProcess,
    /// libcontainer made a container without a process.
    #[error("the container has no process")]
    NoFirst,
    /// There is no bubblewrap.
    #[error("bwrap is not installed")]
    NoBwrap,
    /// bubblewrap refuses.
    #[error("bwrap ended before it made a container")]
    BwrapEnded,
    /// bubblewrap does not speak as it should.
    #[error("bwrap told no process id")]
    BwrapTold,
}

/// The error of a step that the system refuses.
pub fn at<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> KeeperError {
    move |error| KeeperError::System {
        step,
        error: error.into(),
    }
}

/// The error of a step at which libcontainer fails.
pub fn libcontainer_at(step: &'static str) -> impl Fn(LibcontainerError) -> KeeperError {
    move |error| KeeperError::Libcontainer {
        step,
        error: Box::new(error),
    }
}

/// An error with everything that caused it.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
