//! A run: [`scratch`] prepares the host's side, [`run`] leads the conversation,
//! [`transcript`] reads what comes back, [`bundle`] writes it down.

pub mod bundle;
pub mod run;
pub mod scratch;
pub mod transcript;
