//! Evidence → decision. No engine, no network, no write, no clock. [`step`] is
//! what a check came to, [`pipeline`] the checks in their order, [`artifacts`]
//! the files beside the evidence.

pub mod artifacts;
pub mod pipeline;
pub mod step;

pub use pipeline::{Inputs, verify};
pub use step::{Decision, Finding, Outcome, Step};
