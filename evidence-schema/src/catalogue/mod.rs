//! The probes: what each does, what must come back, and why it is asked.
//!
//! The catalogue is the one place where operations are named. The prober
//! implements exactly these ids and the judge accepts exactly these ids, so an
//! operation that is missing from either side can never become a PASS. The
//! [`canonical`] probes are fixed; the [`extended`] ones (`XP-…`) widen them.

pub mod canonical;
pub mod extended;
pub mod floor;

pub use canonical::CANONICAL;
pub use extended::EXTENDED;

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
    /// The phases that it is run in.
    pub phases: &'static [Phase],
    /// The phases in which every operation must meet its expectation. What the
    /// other phase gave is recorded all the same.
    pub required_phases: &'static [Phase],
    /// It takes long or uses up a limit: controls that are not about it leave
    /// it out, and so does a run without controls.
    pub heavy: bool,
    /// Why no control can make it fail without privilege or risk, if none can.
    pub uncalibrated: Option<&'static str>,
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
    /// A refusal with one of these errnos or signals. Where `EPERM` is among
    /// them a `SIGSYS` counts too: it is the same filter with a harsher action.
    Denied(&'static [&'static str]),
    /// Success.
    Allowed,
    /// A reading that satisfies a rule.
    Fact(FactRule),
    /// Whatever it is: recorded, never judged.
    Recorded,
}

/// A rule about a reading. Where evidence keeps the kernel's own text the judge
/// applies the rule to that text, and also requires that the prober's
/// reading in each phase agrees with it.
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
    /// Every mount carries the flags that its place needs, and none is shared
    /// with the host.
    MountFlags,
    /// No socket file anywhere.
    NoSocketFile,
    /// The reading is exactly this.
    Is(&'static str),
    /// The reading is one of these.
    OneOf(&'static [&'static str]),
    /// A field of `/proc/self/status` is exactly this.
    Status(&'static str, &'static str),
    /// No user id, group id or supplementary group is root's.
    NotRoot,
    /// A namespace that is neither the first one of the kernel nor the host's.
    FreshNamespace,
    /// Regular files outside /in and /out are those of the image and of the
    /// engine.
    ImageFiles,
    /// Entries below /dev are those that every container has.
    Devices,
    /// Nodes below /dev have the numbers that their names stand for.
    DeviceNumbers,
    /// So many numbers from 0 on, as `number=answer`, each answer a refusal of a socket.
    Refused(usize),
    /// Descriptors 0, 1 and 2, each a pipe or the null device.
    Descriptors,
    /// No call of [`floor::DENIED`] and none that the profile denies got
    /// through to the kernel.
    Sweep,
    /// A core dump starts no program: the kernel writes to none, or the limit of its size is
    /// the one at which the kernel starts none.
    CoreDumps,
    /// Each of [`TEXTS`] was opened below /proc without crossing a mount, as `path=answer`.
    RealTexts,
    /// The label of a security module is the one that the engine says it gave.
    Label,
}

/// Files below /proc that evidence rests on.
pub const TEXTS: &[&str] = &[
    "self/mountinfo",
    "net/dev",
    "net/route",
    "net/ipv6_route",
    "self/status",
    "self/limits",
    "self/cgroup",
    "version",
    "self/attr/current",
    "net/unix",
    "sysvipc/shm",
    "sysvipc/sem",
    "sysvipc/msg",
    "sys/kernel/hostname",
    "sys/kernel/core_pattern",
    "sys/kernel/random/boot_id",
];

/// The one of them that a control covers. An empty file in its place says that there is
/// nothing, which is what its probe wants to hear.
pub const COVERED_TEXT: &str = "/proc/sysvipc/msg";

/// Environment variables that may exist inside: names that engines set by
/// themselves and that carry no secret. bubblewrap always sets `PWD`, to the
/// working directory inside.
pub const ALLOWED_ENV: &[&str] = &["PATH", "HOME", "HOSTNAME", "PWD", "TERM", "container"];

/// Files that engines bind into a container by themselves. They may only be
/// mounted read-only.
pub const ENGINE_FILES: &[&str] = &[
    "/etc/hosts",
    "/etc/hostname",
    "/etc/resolv.conf",
    "/run/.containerenv",
];

/// The mark that Docker leaves in a container's root directory.
pub const ENGINE_MARK: &str = "/.dockerenv";

/// The image's own regular files outside /in and /out, in every container of it.
pub const IMAGE_FILES: &[&str] = &[
    "/escape/README",
    "/tki-inspector",
    "/tki-prober",
    "/tki-sandbox",
];

/// Those of them that can be executed.
pub const IMAGE_PROGRAMS: &[&str] = &["/tki-inspector", "/tki-prober"];

/// What may be found below /dev. Runtimes link `core` or `kcore` to /proc/kcore,
/// where the kernel has it and they mask it.
pub const DEVICES: &[&str] = &[
    "console", "core", "fd", "full", "kcore", "mqueue", "null", "ptmx", "pts", "random", "shm",
    "stderr", "stdin", "stdout", "tty", "urandom", "zero",
];

/// The host name inside.
pub const HOSTNAME: &str = "sandbox";

const BOTH: &[Phase] = &[Phase::Engine, Phase::Locked];
const LOCKED: &[Phase] = &[Phase::Locked];
const ENGINE: &[Phase] = &[Phase::Engine];

const NO_SOCKET: Expect = Expect::Denied(&["EPERM", "EACCES", "EAFNOSUPPORT"]);
const NO_ROUTE: Expect = Expect::Denied(&["EPERM", "EACCES", "EAFNOSUPPORT", "ENETUNREACH"]);
/// Without an address to send from the kernel does not come as far as a route.
const NO_ROUTE_V6: Expect = Expect::Denied(&[
    "EPERM",
    "EACCES",
    "EAFNOSUPPORT",
    "ENETUNREACH",
    "EADDRNOTAVAIL",
]);
const READ_ONLY: Expect = Expect::Denied(&["EROFS"]);
const NOT_WRITABLE: Expect = Expect::Denied(&["EROFS", "EACCES"]);
const NOT_PERMITTED: Expect = Expect::Denied(&["EPERM"]);
const NOT_THERE: Expect = Expect::Denied(&["ENOENT"]);
/// Runtimes answer ENOSYS for calls newer than any that an allow-list names;
/// a kernel without the call answers the same.
const NO_CALL: Expect = Expect::Denied(&["EPERM", "ENOSYS"]);

const fn op(id: &'static str, expect: Expect) -> OperationSpec {
    OperationSpec { id, expect }
}

/// Probes that a run must hold, in their order: all of them where controls were
/// run as well. Without controls the heavy ones are left out, and the evidence
/// says that the limits are not proven.
pub fn required(with_controls: bool) -> impl Iterator<Item = &'static ProbeSpec> + Clone {
    all().filter(move |probe| with_controls || !probe.heavy)
}

/// Every probe, the canonical ones first.
pub fn all() -> impl Iterator<Item = &'static ProbeSpec> + Clone {
    CANONICAL.iter().chain(EXTENDED)
}

/// The probe with this id.
pub fn find(id: &str) -> Option<&'static ProbeSpec> {
    all().find(|probe| probe.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn the_twelve_are_there_and_every_id_is_unique() {
        let ids: BTreeSet<_> = all().map(|probe| probe.id).collect();
        assert_eq!(ids.len(), all().count());
        assert_eq!(CANONICAL.len(), 12);
        assert!(CANONICAL.iter().all(|probe| probe.id.starts_with("PR-")));
        assert!(EXTENDED.iter().all(|probe| probe.id.starts_with("XP-")));
    }

    #[test]
    fn operations_are_unique_and_every_probe_judges_something() {
        for probe in all() {
            let ids: BTreeSet<_> = probe.operations.iter().map(|op| op.id).collect();
            assert_eq!(ids.len(), probe.operations.len(), "{}", probe.id);
            assert!(!probe.required_phases.is_empty(), "{}", probe.id);
            assert!(
                probe
                    .required_phases
                    .iter()
                    .all(|p| probe.phases.contains(p)),
                "{}",
                probe.id
            );
            let judged = |op: &&OperationSpec| op.expect != Expect::Recorded;
            assert!(
                probe.operations.iter().any(|op| judged(&op)),
                "{}",
                probe.id
            );
        }
    }
}
