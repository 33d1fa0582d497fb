//! The operations of the catalogue, one file per family. Each family is a table
//! from operation id to function, so that a test can hold the tables against
//! the catalogue without running anything.

use crate::outcome::Outcome;
use alloc::string::String;

pub mod environment;
pub mod exec;
pub mod files;
pub mod mounts;
pub mod network;
pub mod sockets;
pub mod trace;

/// What an operation may know.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The name of the environment variable that must not be visible.
    pub env_canary: String,
}

/// An operation and its id.
pub type Operation = (&'static str, fn(&Context) -> Outcome);

/// The tables, by probe.
pub const TABLES: &[(&str, &[Operation])] = &[
    ("PR-NET-1", network::INTERNET_SOCKETS),
    ("PR-NET-2", network::ROUTES),
    ("PR-SOCK-1", network::OTHER_SOCKETS),
    ("PR-ENV-1", environment::KEYS),
    ("PR-FS-RO-IN", files::READ_ONLY_INPUT),
    ("PR-FS-ESC-1", files::DOT_DOT),
    ("PR-FS-ESC-2", files::SYMLINKS),
    ("PR-FS-OUT-OK", files::OUTPUT),
    ("PR-EXEC-1", exec::PROGRAMS),
    ("PR-MOUNT-1", mounts::MOUNTS),
    ("PR-SOCK-DOCKER", sockets::ENGINE_SOCKETS),
    ("PR-PTRACE-1", trace::TRACING),
];

/// The function for an operation of a probe.
pub fn find(probe: &str, operation: &str) -> Option<fn(&Context) -> Outcome> {
    let (_, table) = TABLES.iter().find(|(id, _)| *id == probe)?;
    let (_, function) = table.iter().find(|(id, _)| *id == operation)?;
    Some(*function)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tki_evidence::catalogue::CANONICAL;

    #[test]
    fn tables_and_catalogue_name_the_same_operations() {
        assert_eq!(TABLES.len(), CANONICAL.len());
        for probe in CANONICAL {
            let (_, table) = TABLES.iter().find(|(id, _)| *id == probe.id).unwrap();
            let ours: Vec<&str> = table.iter().map(|(id, _)| *id).collect();
            let theirs: Vec<&str> = probe.operations.iter().map(|op| op.id).collect();
            assert_eq!(ours, theirs, "{}", probe.id);
        }
    }
}
