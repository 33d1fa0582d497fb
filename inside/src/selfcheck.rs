//! The self-check (requirement R13): is this the sandbox at all? It reads
//! nothing but /proc and the image's marker, and comes before everything else.

use crate::{io, sys};
use alloc::vec::Vec;
use tki_evidence::facts;

/// An invariant of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// Its stable name.
    pub name: &'static str,
    /// What it means, for a person.
    pub meaning: &'static str,
    /// Without it this is not a container of ours, and nothing is tried. The
    /// others may be missing if the launcher says that it knows.
    pub structural: bool,
}

const fn invariant(name: &'static str, structural: bool, meaning: &'static str) -> Invariant {
    Invariant {
        name,
        meaning,
        structural,
    }
}

const SANDBOX_IMAGE: Invariant = invariant(
    "sandbox-image",
    true,
    "the root file system is the tki-inspector image",
);
/// What a control that joins a neighbour's namespace has to do without.
pub const PID_1: Invariant = invariant(
    "pid-1",
    true,
    "the prober is process 1 of its own namespace",
);
const IN_MOUNT: Invariant = invariant("in-mount", true, "/in is a mount of its own");
const OUT_MOUNT: Invariant = invariant("out-mount", true, "/out is a mount of its own");
const IN_READ_ONLY: Invariant = invariant("in-read-only", false, "/in is mounted read-only");
const ROOTFS_READ_ONLY: Invariant = invariant(
    "rootfs-read-only",
    false,
    "the root file system is read-only",
);
const NETWORK_NONE: Invariant =
    invariant("network-none", false, "the network namespace has only lo");
const NON_ROOT: Invariant = invariant("non-root", false, "the user is not root");
const NO_CAPABILITIES: Invariant = invariant(
    "no-capabilities",
    false,
    "all five capability sets are empty",
);
const NO_NEW_PRIVS: Invariant = invariant("no-new-privs", false, "no-new-privileges is set");
const SECCOMP_FILTER: Invariant = invariant("seccomp-filter", false, "a seccomp filter is loaded");

/// Every invariant that does not hold here. What cannot be read does not hold.
pub fn missing() -> Vec<Invariant> {
    let mut missing = Vec::new();
    let mut require = |invariant: Invariant, holds: bool| {
        if !holds {
            missing.push(invariant);
        }
    };
    require(
        SANDBOX_IMAGE,
        io::read_text(c"/tki-sandbox").is_ok_and(|text| text.starts_with("tki-attest sandbox")),
    );
    require(PID_1, sys::getpid() == 1);

    let table = io::read_text(c"/proc/self/mountinfo").unwrap_or_default();
    let mounts = facts::mounts(&table).unwrap_or_default();
    let at = |point: &str| mounts.iter().rev().find(|mount| mount.mount_point == point);
    let read_only = |point: &str| at(point).is_some_and(facts::Mount::is_read_only);
    require(IN_MOUNT, at("/in").is_some());
    require(OUT_MOUNT, at("/out").is_some());
    require(IN_READ_ONLY, read_only("/in"));
    require(ROOTFS_READ_ONLY, read_only("/"));

    let devices = io::read_text(c"/proc/net/dev").unwrap_or_default();
    require(NETWORK_NONE, facts::interfaces(&devices) == ["lo"]);

    let status = io::read_text(c"/proc/self/status").unwrap_or_default();
    let field = |name: &str| facts::status_field(&status, name);
    require(
        NON_ROOT,
        field("Uid").is_some_and(|ids| ids.split_whitespace().all(|id| id != "0")),
    );
    require(
        NO_CAPABILITIES,
        facts::CAPABILITY_SETS
            .iter()
            .all(|set| field(set).is_some_and(|bits| bits.bytes().all(|bit| bit == b'0'))),
    );
    require(NO_NEW_PRIVS, field("NoNewPrivs") == Some("1"));
    require(SECCOMP_FILTER, field("Seccomp") == Some("2"));
    missing
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_runner_is_not_the_sandbox() {
        let missing = super::missing();
        assert!(missing.contains(&super::SANDBOX_IMAGE));
        assert!(missing.contains(&super::IN_MOUNT));
        assert!(missing.iter().any(|invariant| invariant.structural));
    }
}
