//! Engines without a daemon: libcontainer inside this tool (`embedded`) and
//! bubblewrap (`bwrap`). Both make their container in a [`keeper`], a process of
//! its own that leaves nothing behind.

mod binds;
mod bubble;
mod cgroup;
mod engine;
mod facts;
pub mod filter;
mod job;
pub mod keeper;
mod keepers;
mod kernel;
mod limits;
mod loopback;
mod moves;
mod oci;
mod orphans;
pub mod own;
mod remains;
mod reserve;
mod rootfs;
mod session;
mod state;
mod wire;

pub use filter::compiled as compiled_filter;
pub use job::Maker;
pub use remains::Remains;
pub use state::LocalEngine;
