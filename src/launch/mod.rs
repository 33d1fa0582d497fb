//! The half of a container's life that knows no probes: what stands behind /in and /out
//! ([`sides`]), and the container from its launch to its end ([`container`]). [`error`] is what
//! can go wrong.

pub mod container;
pub mod error;
pub mod sides;
