//! The acceptance tests of L3, L4 and L5 that need no engine, one function for each
//! (docs/acceptance.md), and the registry: rows of the table and functions name each other.

/// What a claim's evidence comes to.
mod adequacy;
/// Text that would act.
mod hostile;
/// What a packet is.
mod packet;
/// What the process may do.
mod process;
/// Where items are from.
mod provenance;
/// Rows and functions.
mod registry;
/// What a report says, and what it does not.
mod report;
