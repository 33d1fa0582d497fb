//! Engines: who makes the container. [`contract`] is what any engine must offer, [`choice`]
//! which one a command uses, [`docker`] the Docker Engine, [`podman`] Podman, [`api`] what
//! these two have in common, [`recover`] what is needed when a part of one was killed,
//! [`local`] those without a daemon. This folder is asynchronous, and
//! shows nothing of that outside: [`driver`] runs one future at a time, under the run's
//! deadline, and gives way to Ctrl-C.

pub mod api;
pub mod choice;
pub mod contract;
pub mod docker;
pub mod driver;
pub mod error;
pub mod filling;
pub mod gate;
pub mod lines;
pub mod local;
pub mod names;
pub mod podman;
pub mod recover;
pub mod support;

pub use contract::{
    Configured, Connect, Ended, Engine, EngineFacts, GateKind, Identity, ImageNames, Launch,
    Leftover, Program, Session, Surroundings,
};
pub use error::EngineError;
