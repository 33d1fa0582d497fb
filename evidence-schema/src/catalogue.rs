//! The probes: what each does, what must come back, and why it is asked.
//!
//! The catalogue is the one place where operations are named. The inspector
//! implements exactly these ids and the judge accepts exactly these ids, so an
//! operation that is missing from either side can never become a PASS.

use crate::observation::Phase;

/// A probe of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct ProbeSpec {
    /// The probe's stable id.
    pub id: &'static str,
    /// The requirements of the minimum sandbox that it proves.
    pub requirements: &'static [&'static str],
    /// What it does, for a reader.
    pub operation: &'static str,
    /// What must come back, for a reader.
    pub expected: &'static str,
    /// Why it is asked, in a line.
    pub reason: &'static str,
    /// The phases in which every operation must meet its expectation. What the
    /// other phase gave is recorded all the same.
    pub required_phases: &'static [Phase],
    /// Its operations.
    pub operations: &'static [OperationSpec],
}

/// One operation of a probe.
#[derive(Clone, Copy, Debug)]
pub struct OperationSpec {
    /// The operation's stable id within the probe.
    pub id: &'static str,
    /// What must come back.
    pub expect: Expect,
}

/// What must come back from an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// A refusal with one of these errnos. Where `EPERM` is among them a
    /// `SIGSYS` counts too: it is the same filter with a harsher action.
    Denied(&'static [&'static str]),
    /// Success.
    Allowed,
    /// A reading that satisfies a rule about raw facts.
    Fact(FactRule),
}

/// A rule about a kernel text. The judge applies it to the text itself and
/// also requires that the inspector's reading in each phase agrees with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactRule {
    /// `/proc/net/dev` names `lo` and nothing else.
    OnlyLoopback,
    /// `/proc/net/route` has no entry.
    NoIpv4Route,
    /// `/proc/net/ipv6_route` has no entry but the kernel's own on `lo`.
    NoIpv6Route,
    /// The environment's keys are within [`ALLOWED_ENV`].
    EnvKeys,
    /// The canary variable of the challenge is absent.
    CanaryAbsent,
    /// The mount table holds exactly the two binds and what an engine needs.
    MountTable,
    /// No socket file anywhere.
    NoSocketFile,
}

/// Environment variables that may exist inside: names that engines set by
/// themselves and that carry no secret.
pub const ALLOWED_ENV: &[&str] = &["PATH", "HOME", "HOSTNAME", "TERM", "container"];

/// Files that engines bind into a container by themselves. They may only be
/// mounted read-only.
pub const ENGINE_FILES: &[&str] = &[
    "/etc/hosts",
    "/etc/hostname",
    "/etc/resolv.conf",
    "/run/.containerenv",
];

const BOTH: &[Phase] = &[Phase::Engine, Phase::Locked];
const LOCKED: &[Phase] = &[Phase::Locked];

const NO_SOCKET: Expect = Expect::Denied(&["EPERM", "EACCES", "EAFNOSUPPORT"]);
const NO_ROUTE: Expect = Expect::Denied(&["EPERM", "EACCES", "EAFNOSUPPORT", "ENETUNREACH"]);
const READ_ONLY: Expect = Expect::Denied(&["EROFS"]);
const NOT_WRITABLE: Expect = Expect::Denied(&["EROFS", "EACCES"]);
const NOT_PERMITTED: Expect = Expect::Denied(&["EPERM"]);
const NOT_THERE: Expect = Expect::Denied(&["ENOENT"]);

const fn op(id: &'static str, expect: Expect) -> OperationSpec {
    OperationSpec { id, expect }
}

/// The twelve canonical probes, in their canonical order.
pub const CANONICAL: &[ProbeSpec] = &[
    ProbeSpec {
        id: "PR-NET-1",
        requirements: &["R1"],
        operation: "socket(AF_INET/AF_INET6, STREAM and DGRAM)",
        expected: "denied EPERM, EACCES or EAFNOSUPPORT",
        reason: "without an internet socket nothing can leave by the network",
        required_phases: BOTH,
        operations: &[
            op("socket(AF_INET, SOCK_STREAM)", NO_SOCKET),
            op("socket(AF_INET, SOCK_DGRAM)", NO_SOCKET),
            op("socket(AF_INET6, SOCK_STREAM)", NO_SOCKET),
            op("socket(AF_INET6, SOCK_DGRAM)", NO_SOCKET),
        ],
    },
    ProbeSpec {
        id: "PR-NET-2",
        requirements: &["R1", "R2"],
        operation: "UDP connect() to 192.0.2.1:53 and [2001:db8::1]:53 (a route lookup, nothing \
                    is sent); interfaces; route tables",
        expected: "denied EPERM, ENETUNREACH or socket not creatable; only lo; no routes",
        reason: "even with a socket there is nowhere to go",
        required_phases: BOTH,
        operations: &[
            op("connect(192.0.2.1:53/udp)", NO_ROUTE),
            op("connect([2001:db8::1]:53/udp)", NO_ROUTE),
            op("interfaces", Expect::Fact(FactRule::OnlyLoopback)),
            op("routes-ipv4", Expect::Fact(FactRule::NoIpv4Route)),
            op("routes-ipv6", Expect::Fact(FactRule::NoIpv6Route)),
        ],
    },
    ProbeSpec {
        id: "PR-SOCK-1",
        requirements: &["R1", "R3"],
        operation: "socket() for AF_UNIX, AF_NETLINK, AF_PACKET, AF_VSOCK, AF_ALG and raw IP",
        expected: "denied each, with EPERM, EACCES or EAFNOSUPPORT",
        reason: "a local, hypervisor or crypto socket is a way out as well",
        required_phases: BOTH,
        operations: &[
            op("socket(AF_UNIX, SOCK_STREAM)", NO_SOCKET),
            op("socket(AF_NETLINK, SOCK_RAW)", NO_SOCKET),
            op("socket(AF_PACKET, SOCK_RAW)", NO_SOCKET),
            op("socket(AF_VSOCK, SOCK_STREAM)", NO_SOCKET),
            op("socket(AF_ALG, SOCK_SEQPACKET)", NO_SOCKET),
            op("socket(AF_INET, SOCK_RAW)", NO_SOCKET),
            op("socket(AF_INET6, SOCK_RAW)", NO_SOCKET),
        ],
    },
    ProbeSpec {
        id: "PR-ENV-1",
        requirements: &["R5"],
        operation: "environment keyset (keys only, never values)",
        expected: "a subset of PATH, HOME, HOSTNAME, TERM, container; no canary",
        reason: "a secret in the environment is readable by whatever runs inside",
        required_phases: BOTH,
        operations: &[
            op("env-keyset", Expect::Fact(FactRule::EnvKeys)),
            op("env-canary", Expect::Fact(FactRule::CanaryAbsent)),
        ],
    },
    ProbeSpec {
        id: "PR-FS-RO-IN",
        requirements: &["R7"],
        operation: "create, append, truncate, unlink, chmod in /in",
        expected: "denied EROFS",
        reason: "the packet under inspection must come out as it went in",
        required_phases: BOTH,
        operations: &[
            op("create(/in)", READ_ONLY),
            op("append(/in)", READ_ONLY),
            op("truncate(/in)", READ_ONLY),
            op("unlink(/in)", READ_ONLY),
            op("chmod(/in)", READ_ONLY),
        ],
    },
    ProbeSpec {
        id: "PR-FS-ESC-1",
        requirements: &["R8", "R11"],
        operation: "write through /out/../ to a mode-1777 directory baked into the image",
        expected: "denied EROFS or EACCES",
        reason: "only the read-only root stands between /out and the rest",
        required_phases: BOTH,
        operations: &[
            op("create(/out/../escape)", NOT_WRITABLE),
            op("create(/out/./../../../escape)", NOT_WRITABLE),
            op("mkdir(/out/../escape)", NOT_WRITABLE),
            op("append(/out/../escape/README)", NOT_WRITABLE),
        ],
    },
    ProbeSpec {
        id: "PR-FS-ESC-2",
        requirements: &["R8", "R11"],
        operation: "write through a symlink in /out, absolute and relative",
        expected: "denied EROFS or EACCES",
        reason: "a link in the one writable place must not lead out of it",
        required_phases: BOTH,
        operations: &[
            op("create(absolute symlink)", NOT_WRITABLE),
            op("create(relative symlink)", NOT_WRITABLE),
            op("append(absolute symlink)", NOT_WRITABLE),
            op("append(relative symlink)", NOT_WRITABLE),
        ],
    },
    ProbeSpec {
        id: "PR-FS-OUT-OK",
        requirements: &["R8"],
        operation: "write, fsync, read back, unlink in /out",
        expected: "allowed",
        reason: "a sandbox in which nothing works proves nothing",
        required_phases: BOTH,
        operations: &[
            op("write(/out)", Expect::Allowed),
            op("fsync(/out)", Expect::Allowed),
            op("read(/out)", Expect::Allowed),
            op("unlink(/out)", Expect::Allowed),
        ],
    },
    ProbeSpec {
        id: "PR-EXEC-1",
        requirements: &["R9"],
        operation: "execve and execveat: /bin/sh, itself, a file dropped in /out and in /tmp, a \
                    memfd",
        expected: "denied EPERM in phase locked; what phase engine gave is recorded",
        reason: "no second program, whatever file it would come from",
        required_phases: LOCKED,
        operations: &[
            op("execve(/bin/sh)", NOT_PERMITTED),
            op("execveat(/bin/sh)", NOT_PERMITTED),
            op("execve(itself)", NOT_PERMITTED),
            op("execveat(itself)", NOT_PERMITTED),
            op("execve(file in /out)", NOT_PERMITTED),
            op("execveat(file in /out)", NOT_PERMITTED),
            op("execve(file in /tmp)", NOT_PERMITTED),
            op("execveat(file in /tmp)", NOT_PERMITTED),
            op("execve(memfd)", NOT_PERMITTED),
            op("execveat(memfd)", NOT_PERMITTED),
        ],
    },
    ProbeSpec {
        id: "PR-MOUNT-1",
        requirements: &["R6"],
        operation: "mount table; mount(2), umount2; open of host paths",
        expected: "exactly the binds /in ro and /out rw; denied EPERM; ENOENT",
        reason: "what is not mounted cannot be read",
        required_phases: BOTH,
        operations: &[
            op("mount-table", Expect::Fact(FactRule::MountTable)),
            op("mount(2)", NOT_PERMITTED),
            op("umount2(/out)", NOT_PERMITTED),
            op("open(/etc/shadow)", NOT_THERE),
            op("open(/root)", NOT_THERE),
            op("open(/home)", NOT_THERE),
            op("open(/usr)", NOT_THERE),
            op("open(/var/lib)", NOT_THERE),
            op("open(/boot)", NOT_THERE),
            op("open(/host)", NOT_THERE),
        ],
    },
    ProbeSpec {
        id: "PR-SOCK-DOCKER",
        requirements: &["R6"],
        operation: "docker, podman, containerd and crio sockets, by path and by walking for any \
                    socket",
        expected: "none",
        reason: "an engine socket inside is the host's root account",
        required_phases: BOTH,
        operations: &[
            op("stat(/var/run/docker.sock)", NOT_THERE),
            op("stat(/run/docker.sock)", NOT_THERE),
            op("stat(/run/podman/podman.sock)", NOT_THERE),
            op("stat(/var/run/podman/podman.sock)", NOT_THERE),
            op("stat(/run/containerd/containerd.sock)", NOT_THERE),
            op("stat(/var/run/containerd/containerd.sock)", NOT_THERE),
            op("stat(/run/crio/crio.sock)", NOT_THERE),
            op("stat(/var/run/crio/crio.sock)", NOT_THERE),
            op("walk-for-sockets", Expect::Fact(FactRule::NoSocketFile)),
        ],
    },
    ProbeSpec {
        id: "PR-PTRACE-1",
        requirements: &["R9"],
        operation: "ptrace(TRACEME, ATTACH), process_vm_readv",
        expected: "denied EPERM",
        reason: "one process must not become another's hands",
        required_phases: BOTH,
        operations: &[
            op("ptrace(PTRACE_TRACEME)", NOT_PERMITTED),
            op("ptrace(PTRACE_ATTACH)", NOT_PERMITTED),
            op("process_vm_readv", NOT_PERMITTED),
        ],
    },
];

/// The probe with this id.
pub fn find(id: &str) -> Option<&'static ProbeSpec> {
    CANONICAL.iter().find(|probe| probe.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn the_twelve_are_there_once() {
        let ids: BTreeSet<_> = CANONICAL.iter().map(|probe| probe.id).collect();
        assert_eq!(ids.len(), CANONICAL.len());
        assert_eq!(CANONICAL.len(), 12);
    }

    #[test]
    fn operations_are_unique_within_a_probe() {
        for probe in CANONICAL {
            let ids: BTreeSet<_> = probe.operations.iter().map(|op| op.id).collect();
            assert_eq!(ids.len(), probe.operations.len(), "{}", probe.id);
            assert!(!probe.required_phases.is_empty(), "{}", probe.id);
        }
    }
}
