//! What is needed when a part of an engine was killed: the one door to it, for engines with a
//! daemon. (One without a daemon has keepers of ours; `engine::local` knows them.)
//!
//! [`docker`] and [`podman`] find what that engine no longer lists and end it; [`ours`] tells
//! from an engine's description whether a container is ours, [`groups`] takes away a
//! container's control groups, [`monitors`] watches Podman's processes to their end, and
//! [`run`] removes what the run of a tool that was killed has left. Everything else is private:
//! the file that describes a container to its runtime, Docker's shims and mounts, the runtimes'
//! own state. Nothing here is taken for ours by its name alone, and a process is held by a
//! pidfd before anything is read of it.

mod bundle;
pub mod docker;
pub mod groups;
pub mod monitors;
mod mounts;
pub mod ours;
pub mod podman;
pub mod run;
mod runtimes;
mod shims;
