//! The self-check P1, before anything below /in or /out is opened: is this the sandbox that was
//! attested? Everything is structural here. What is missing is named, and nothing is read.

use alloc::string::String;
use alloc::vec::Vec;
use tki_evidence::catalogue::ALLOWED_ENV;
use tki_evidence::{facts, judge};
use tki_inside::selfcheck::{self, Invariant};
use tki_inside::sys::Errno;
use tki_inside::{call, io, narrow};

/// The system calls that are only tried, with arguments that no kernel takes.
mod nr {
    pub const SOCKET: usize = 41;
    pub const CONNECT: usize = 42;
    pub const EXECVE: usize = 59;
    pub const PTRACE: usize = 101;
}

const fn invariant(name: &'static str, meaning: &'static str) -> Invariant {
    Invariant {
        name,
        meaning,
        structural: true,
    }
}

const TWO_BINDS: Invariant = invariant(
    "two-binds",
    "/in and /out are the only mounts that are not the engine's",
);
const MOUNT_FLAGS: Invariant = invariant("mount-flags", "each mount has the flags of its place");
const NO_ROUTE: Invariant = invariant("no-route", "there is no way to any network");
const ENVIRONMENT: Invariant = invariant(
    "environment",
    "no variable is set but those of every container",
);
const SOCKET_DENIED: Invariant = invariant("socket-denied", "socket is denied with EPERM");
const CONNECT_DENIED: Invariant = invariant("connect-denied", "connect is denied with EPERM");
const PTRACE_DENIED: Invariant = invariant("ptrace-denied", "ptrace is denied with EPERM");
const LOCK: Invariant = invariant("lock", "the inspector's own filter can be stacked");
const EXECVE_DENIED: Invariant =
    invariant("execve-denied", "execve is denied with EPERM, by the lock");

/// A filter answers before the kernel looks at arguments, all of which are impossible here. A
/// macro, so that each number stands at a call of its own.
macro_rules! is_denied {
    ($number:expr) => {
        call!($number, NONE, NONE, NONE, NONE, NONE, NONE) == Err(Errno::EPERM)
    };
}

/// No descriptor, no address and no process.
const NONE: usize = usize::MAX;

/// Everything that does not hold here; if nothing is missing, the lock is on afterwards.
pub fn missing(environment: &[&[u8]]) -> Vec<Invariant> {
    let mut missing = selfcheck::missing();
    let mut require = |invariant: Invariant, holds: bool| {
        if !holds {
            missing.push(invariant);
        }
    };
    let table = io::read_text(c"/proc/self/mountinfo").unwrap_or_default();
    let mounts = facts::mounts(&table).unwrap_or_default();
    require(
        TWO_BINDS,
        !mounts.is_empty() && judge::mount_table(&mounts).is_empty(),
    );
    require(
        MOUNT_FLAGS,
        !mounts.is_empty() && judge::mount_flags(&mounts).is_empty(),
    );
    require(NO_ROUTE, has_no_route());
    require(ENVIRONMENT, is_scrubbed(environment));
    require(SOCKET_DENIED, is_denied!(nr::SOCKET));
    require(CONNECT_DENIED, is_denied!(nr::CONNECT));
    require(PTRACE_DENIED, is_denied!(nr::PTRACE));
    if !missing.is_empty() {
        return missing;
    }
    match narrow::stack() {
        Err(_) => missing.push(LOCK),
        // The path is no address of this process: a kernel that gets as far answers EFAULT.
        Ok(_) if !is_denied!(nr::EXECVE) => missing.push(EXECVE_DENIED),
        Ok(_) => {}
    }
    missing
}

fn has_no_route() -> bool {
    let Ok(ipv4) = io::read_text(c"/proc/net/route") else {
        return false;
    };
    let ipv6 = match io::read_text(c"/proc/net/ipv6_route") {
        Ok(text) => text,
        // A kernel without IPv6 has no such table.
        Err(Errno::ENOENT) => String::new(),
        Err(_) => return false,
    };
    let ipv6 = facts::ipv6_routes(&ipv6);
    facts::ipv4_routes(&ipv4).is_empty() && ipv6.iter().all(|device| *device == "lo")
}

fn is_scrubbed(environment: &[&[u8]]) -> bool {
    environment.iter().all(|variable| {
        let key = variable
            .split(|byte| *byte == b'=')
            .next()
            .unwrap_or_default();
        ALLOWED_ENV.iter().any(|allowed| allowed.as_bytes() == key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_runner_is_not_the_sandbox() {
        let names: Vec<&str> = missing(&[b"AWS_SECRET=x"])
            .iter()
            .map(|one| one.name)
            .collect();
        for name in [
            "sandbox-image",
            "in-mount",
            "out-mount",
            "environment",
            "socket-denied",
        ] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
    }

    #[test]
    fn only_variables_of_every_container_may_be_set() {
        assert!(is_scrubbed(&[b"PATH=/", b"HOME=/", b"container=podman"]));
        assert!(is_scrubbed(&[]));
        for bad in [&b"TOKEN=x"[..], b"PATHX=/", b"LD_PRELOAD=/x", b""] {
            assert!(!is_scrubbed(&[bad]), "{bad:?}");
        }
    }
}
