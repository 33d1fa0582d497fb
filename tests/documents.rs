//! The documentation against the code: codes, steps and numbers that it names are those
//! that there are.

/// Failure codes, in both directions.
mod codes;
/// Commands that are shown.
mod commands;
/// Numbers of probes, operations, controls and calls.
mod counts;
/// Crates that are there in two versions.
mod dependencies;
/// Tables of the inspector: rules, status words, acceptance tests.
mod inspector;
