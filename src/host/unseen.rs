//! Why the host could not look at a container.

use std::io;

/// Why the host could not look at a container. Evidence repeats it.
#[derive(Debug, thiserror::Error)]
pub enum Unseen {
    /// The engine keeps the first process to itself.
    #[error("the engine does not tell the container's process id")]
    Unnamed,
    /// There is no such process, or it is another program.
    #[error("the container's process is not one of this host's")]
    NotHere,
    /// It is in another control group.
    #[error("process {0} is in no control group of the container's")]
    OtherGroup(i32),
    /// It has not the /in of this run.
    #[error(transparent)]
    OtherInput(io::Error),
    /// The kernel does not show one of its files.
    #[error("{name}: {error}")]
    Unreadable {
        /// The file, or the field that is made from several.
        name: &'static str,
        /// Why.
        error: io::Error,
    },
    /// One of its files is no text.
    #[error("{0}: not text")]
    NotText(&'static str),
    /// What was read may be another process's.
    #[error("the container's process ended while it was looked at")]
    Ended,
    /// The same of the process that runs a kernel.
    #[error("the process that runs the container's kernel ended meanwhile")]
    KernelEnded,
}
