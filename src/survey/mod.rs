//! What can run the sandbox here, and what can write where. Nothing is taken
//! from configuration: each surface and each route is probed with an actual,
//! harmless call, and what came back is kept, cut and made printable.
//!
//! [`inventory`] asks everything side by side and reaches the verdict;
//! [`engine_api`] is what Docker and Podman are asked; [`docker`], [`podman`],
//! [`local`], [`ssh`], [`host`] and [`ci`] are one surface each. [`routes`] are
//! write channels that a file names. [`http`] and [`program`] are the means: a
//! client for peers that may be no engine, and a bounded child. [`redact`] takes secrets out
//! of what came back. [`error`] and [`mistake`] are what can end a survey.

pub mod call;
pub mod ci;
pub mod conditions;
pub mod docker;
pub mod engine_api;
pub mod error;
pub mod host;
pub mod http;
pub mod inventory;
pub mod local;
pub mod mistake;
pub mod podman;
pub mod program;
pub mod redact;
pub mod routes;
pub mod ssh;
pub mod surface;
pub mod told;
