//! The operations of the catalogue, one file per family. Each family is a table
//! from operation id to function, so that a test can hold the tables against
//! the catalogue without running anything.

use crate::outcome::Outcome;
use crate::sys::{self, Ended};
use crate::walk::{self, Found};
use alloc::string::String;
use core::cell::OnceCell;
use tki_evidence::catalogue::ProbeSpec;
use tki_evidence::wire::Limits;

pub mod abi;
pub mod environment;
pub mod exec;
pub mod files;
pub mod identity;
pub mod kernel;
pub mod limits;
pub mod memory;
pub mod mounts;
pub mod namespaces;
pub mod network;
pub mod sockets;
pub mod system;
pub mod trace;

/// What an operation may know.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The name of the environment variable that must not be visible.
    pub env_canary: String,
    /// The path of a file that only the host has.
    pub host_canary: String,
    /// Limits to run into.
    pub limits: Limits,
    /// The prober's descriptors, before it opened any.
    pub descriptors: String,
    /// The tree that the sandbox shows, once one of the child's operations has needed it.
    pub tree: OnceCell<Found>,
}

impl Context {
    /// The tree that the sandbox shows. Operations of one child share what the first of them
    /// found: a probe takes away what it has made.
    pub fn tree(&self) -> &Found {
        self.tree.get_or_init(walk::search)
    }
}

/// Does something in a copy of this process; the result is its exit status.
pub fn in_child(attempt: impl FnOnce() -> i32) -> sys::Result<Ended> {
    match sys::fork()? {
        None => sys::exit(attempt()),
        Some(pid) => sys::wait(pid),
    }
}

/// An operation and its id.
pub type Operation = (&'static str, fn(&Context) -> Outcome);

/// The probe that leaves no memory to the other processes of the container.
pub const USES_UP_MEMORY: &str = "XP-LIM-MEMORY";

/// Whether a probe needs a process that no other probe has: it runs into a limit, or changes
/// its process if it succeeds.
pub fn has_own_child(probe: &ProbeSpec) -> bool {
    probe.heavy || CHANGE_THEIR_PROCESS.contains(&probe.id)
}

/// The probes that may change their own process. XP-CORE lowers its limit. The arguments of
/// XP-NS-MAKE cannot work on Linux, but gVisor's `unshare` ignores the bit that makes it fail:
/// the process is then in a user namespace of its own and has every capability there.
const CHANGE_THEIR_PROCESS: [&str; 2] = ["XP-NS-MAKE", "XP-CORE"];

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
    ("XP-URING", kernel::URING),
    ("XP-PROGRAMS", kernel::PROGRAMS),
    ("XP-KEYRING", kernel::KEYRING),
    ("XP-ADMIN", kernel::ADMIN),
    ("XP-HANDLES", kernel::HANDLES),
    ("XP-PAGE-CACHE", kernel::PAGE_CACHE),
    ("XP-FAMILIES", network::FAMILIES),
    ("XP-PROCESSES", kernel::PROCESSES),
    ("XP-PERSONALITY", kernel::PERSONALITY),
    ("XP-TTY", kernel::TTY),
    ("XP-MOUNT-API", kernel::MOUNT_API),
    ("XP-NS-MAKE", kernel::NAMESPACES),
    ("XP-ABI-I386", abi::I386),
    ("XP-ABI-X32", abi::X32),
    ("XP-ABI-SWEEP", abi::SWEEP),
    ("XP-ID-USER", identity::USER),
    ("XP-ID-CAPS", identity::CAPABILITIES),
    ("XP-ID-NNP", identity::NO_NEW_PRIVS),
    ("XP-ID-SECCOMP", identity::SECCOMP),
    ("XP-ID-THREADS", identity::THREADS),
    ("XP-ID-SUID", identity::SUID),
    ("XP-ID-LSM", identity::LABEL),
    ("XP-NS-FRESH", namespaces::FRESH),
    ("XP-NS-PID", namespaces::PROCESSES),
    ("XP-NS-HOSTNAME", namespaces::HOSTNAME),
    ("XP-NS-IPC", namespaces::IPC),
    ("XP-NS-ABSTRACT", namespaces::ABSTRACT),
    ("XP-NS-SIGNAL", namespaces::SIGNAL),
    ("XP-REACH", network::REACH),
    ("XP-FS-FLAGS", system::FLAGS),
    ("XP-FS-MASKED", system::MASKED),
    ("XP-FS-PROC-RO", system::FROZEN),
    ("XP-FS-CGROUP", system::CGROUP),
    ("XP-FS-DEVICES", system::DEVICES),
    ("XP-FS-REOPEN", system::REOPEN),
    ("XP-FS-CWD", system::WORKING_DIRECTORY),
    ("XP-FS-REALPROC", system::REAL_PROC),
    ("XP-FS-SPECIAL", system::SPECIAL),
    ("XP-FS-CANARY", system::CANARY),
    ("XP-FS-FILES", system::FILES),
    ("XP-FD", system::DESCRIPTORS),
    ("XP-MEM-EXEC", memory::MAPPED_CODE),
    ("XP-CORE", limits::CORE),
    ("XP-LIM-PIDS", limits::PIDS),
    (USES_UP_MEMORY, limits::MEMORY),
    ("XP-LIM-OUT", limits::OUT),
    ("XP-LIM-TMP", limits::TMP),
    ("XP-LIM-INODES", limits::INODES),
    ("XP-LIM-NOFILE", limits::NOFILE),
    ("XP-LIM-CPU", limits::CPU),
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
    use tki_evidence::catalogue::all;

    #[test]
    fn tables_and_catalogue_name_the_same_operations() {
        assert_eq!(TABLES.len(), all().count());
        for probe in all() {
            let (_, table) = TABLES.iter().find(|(id, _)| *id == probe.id).unwrap();
            let ours: Vec<&str> = table.iter().map(|(id, _)| *id).collect();
            let theirs: Vec<&str> = probe.operations.iter().map(|op| op.id).collect();
            assert_eq!(ours, theirs, "{}", probe.id);
        }
    }
}
