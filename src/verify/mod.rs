//! Evidence → decision. No engine, no network, no write, no clock. [`step`] is
//! what a check came to, [`pipeline`] the checks in their order, [`artifacts`]
//! the files beside the evidence, [`transcripts`] the conversations among them.

pub mod artifacts;
pub mod pipeline;
pub mod step;
pub mod transcripts;

pub use pipeline::{Inputs, verify};
pub use step::{Decision, Finding, Outcome, Step};
