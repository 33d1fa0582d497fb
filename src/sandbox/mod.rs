//! The sandbox as one value: [`profile`] says what it is, [`settings`] turns it
//! into what an engine is asked for, [`command_line`] into what a person could
//! have typed, [`seccomp`] reads its filter.

pub mod command_line;
pub mod profile;
pub mod seccomp;
pub mod settings;
