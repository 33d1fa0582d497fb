//! The keeper: this tool, executed again as a process of its own that makes one
//! container, waits for its end and takes everything away. It is single-threaded
//! because making a container forks; it has a mount namespace of its own, so
//! that what it mounts goes when it goes; and it ends the container as soon as
//! the tool is gone.

mod bwrap;
mod common;
mod embedded;
mod error;
mod life;

pub use life::{ARGUMENT, clean_after, main};
