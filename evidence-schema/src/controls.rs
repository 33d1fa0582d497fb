//! Controls: for each boundary a container in which exactly that boundary is
//! relaxed, and the probes that must fail there, no more and no fewer. A probe
//! that never fails proves nothing; these are the runs in which they do.
//!
//! No control opens a way out: nothing is sent, no real engine socket is shown,
//! no namespace of the host is joined, nothing is privileged, and the number of
//! processes is always limited.

/// What a control changes about the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relaxation {
    /// No seccomp profile.
    SeccompOff,
    /// A pair of virtual interfaces that lead to each other, with an address.
    Interface,
    /// The root file system is writable.
    RootfsWritable,
    /// /in is writable.
    InWritable,
    /// /out is read-only.
    OutReadOnly,
    /// A variable in the environment.
    EnvCanary,
    /// A socket called docker.sock in /in, which nobody serves.
    DecoySocket,
    /// An empty directory of the host at /host.
    ExtraBind,
    /// The launcher's own executable at its own path.
    CanaryBind,
    /// A capability in the bounding set.
    Capability,
    /// The no-new-privileges bit is not set.
    NewPrivileges,
    /// The targeted-deny profile, whichever the run uses. Without
    /// no-new-privileges an engine loads the filter while it still has to
    /// change its user, which an allow-list made for the inspector forbids.
    TargetedDeny,
    /// The user is root, without capabilities.
    RootUser,
    /// /tmp without noexec.
    ExecTmpfs,
    /// A file with the set-user-id bit in /in.
    SuidDecoy,
    /// Another host name.
    Hostname,
    /// Paths of /proc and /sys are neither masked nor frozen.
    SystemPaths,
    /// The null device under another name.
    Device,
    /// Four times as many processes.
    PidsLimit,
    /// Four times as much memory.
    MemoryLimit,
    /// A file system behind /out four times as large.
    OutSize,
    /// A /tmp four times as large.
    TmpSize,
    /// Four times as many open files.
    NofileLimit,
    /// A CPU quota beyond what two processes use.
    CpuQuota,
    /// The inspector does not stack its own filter.
    LockOff,
}

/// A control.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Its stable name.
    pub name: &'static str,
    /// What is relaxed, for a reader.
    pub relaxed: &'static str,
    /// The layers that this takes away.
    pub layers: &'static [&'static str],
    /// The same for the launcher.
    pub relaxations: &'static [Relaxation],
    /// Heavy probes that are run all the same.
    pub heavy: &'static [&'static str],
    /// Probes that must fail, sorted.
    pub must_flip: &'static [&'static str],
    /// Probes that fail too where the kernel has what they try: not every
    /// kernel has a second table of system calls.
    pub may_flip: &'static [&'static str],
}

/// What has no filter in front of it fails without the filter.
const WITHOUT_SECCOMP: &[&str] = &[
    "PR-EXEC-1",
    "PR-NET-1",
    "PR-PTRACE-1",
    "PR-SOCK-1",
    "XP-ABI-SWEEP",
    "XP-ADMIN",
    "XP-HANDLES",
    "XP-ID-SECCOMP",
    "XP-KEYRING",
    "XP-MOUNT-API",
    "XP-NS-MAKE",
    "XP-PERSONALITY",
    "XP-PROCESSES",
    "XP-PROGRAMS",
    "XP-TTY",
    "XP-URING",
];

/// The same where there is also somewhere to go.
const WITHOUT_SECCOMP_AND_NETWORK: &[&str] = &[
    "PR-EXEC-1",
    "PR-NET-1",
    "PR-NET-2",
    "PR-PTRACE-1",
    "PR-SOCK-1",
    "XP-ABI-SWEEP",
    "XP-ADMIN",
    "XP-HANDLES",
    "XP-ID-SECCOMP",
    "XP-KEYRING",
    "XP-MOUNT-API",
    "XP-NS-MAKE",
    "XP-PERSONALITY",
    "XP-PROCESSES",
    "XP-PROGRAMS",
    "XP-TTY",
    "XP-URING",
];

/// Every control.
pub const CONTROLS: &[Control] = &[
    Control {
        name: "seccomp",
        relaxed: "no seccomp profile",
        layers: &["seccomp"],
        relaxations: &[Relaxation::SeccompOff],
        heavy: &[],
        must_flip: WITHOUT_SECCOMP,
        may_flip: &["XP-ABI-I386", "XP-ABI-X32"],
    },
    Control {
        name: "seccomp-network",
        relaxed: "no seccomp profile, and two virtual interfaces that lead to each other",
        layers: &["seccomp", "namespace"],
        relaxations: &[Relaxation::SeccompOff, Relaxation::Interface],
        heavy: &[],
        must_flip: WITHOUT_SECCOMP_AND_NETWORK,
        may_flip: &["XP-ABI-I386", "XP-ABI-X32"],
    },
    Control {
        name: "network",
        relaxed: "two virtual interfaces that lead to each other",
        layers: &["namespace"],
        relaxations: &[Relaxation::Interface],
        heavy: &[],
        must_flip: &["PR-NET-2"],
        may_flip: &[],
    },
    Control {
        name: "rootfs",
        relaxed: "a writable root file system",
        layers: &["mount"],
        relaxations: &[Relaxation::RootfsWritable],
        heavy: &[],
        must_flip: &["PR-FS-ESC-1", "PR-FS-ESC-2", "PR-MOUNT-1"],
        may_flip: &[],
    },
    Control {
        name: "input",
        relaxed: "a writable /in",
        layers: &["mount"],
        relaxations: &[Relaxation::InWritable],
        heavy: &[],
        must_flip: &["PR-FS-RO-IN", "PR-MOUNT-1", "XP-FS-REOPEN"],
        may_flip: &[],
    },
    Control {
        name: "output",
        relaxed: "a read-only /out",
        layers: &["mount"],
        relaxations: &[Relaxation::OutReadOnly],
        heavy: &[],
        must_flip: &[
            "PR-EXEC-1",
            "PR-FS-ESC-2",
            "PR-FS-OUT-OK",
            "PR-MOUNT-1",
            "XP-FS-FLAGS",
            "XP-MEM-EXEC",
        ],
        may_flip: &[],
    },
    Control {
        name: "environment",
        relaxed: "a canary in the environment",
        layers: &["environment"],
        relaxations: &[Relaxation::EnvCanary],
        heavy: &[],
        must_flip: &["PR-ENV-1"],
        may_flip: &[],
    },
    Control {
        name: "engine-socket",
        relaxed: "a decoy docker.sock in /in, which nobody serves",
        layers: &["mount"],
        relaxations: &[Relaxation::DecoySocket],
        heavy: &[],
        must_flip: &["PR-SOCK-DOCKER"],
        may_flip: &[],
    },
    Control {
        name: "extra-bind",
        relaxed: "an empty directory of the host at /host",
        layers: &["mount"],
        relaxations: &[Relaxation::ExtraBind],
        heavy: &[],
        must_flip: &["PR-MOUNT-1"],
        may_flip: &[],
    },
    Control {
        name: "host-file",
        relaxed: "a file of the host at its own path",
        layers: &["mount"],
        relaxations: &[Relaxation::CanaryBind],
        heavy: &[],
        must_flip: &["PR-MOUNT-1", "XP-FS-CANARY", "XP-FS-FILES"],
        may_flip: &[],
    },
    Control {
        name: "capability",
        relaxed: "a capability in the bounding set",
        layers: &["capability"],
        relaxations: &[Relaxation::Capability],
        heavy: &[],
        must_flip: &["PR-EXEC-1", "XP-ID-CAPS"],
        may_flip: &[],
    },
    Control {
        name: "new-privileges",
        relaxed: "no-new-privileges is off (with the targeted-deny profile)",
        layers: &["privilege"],
        relaxations: &[Relaxation::NewPrivileges, Relaxation::TargetedDeny],
        heavy: &[],
        must_flip: &["PR-EXEC-1", "XP-ID-NNP"],
        may_flip: &[],
    },
    Control {
        name: "root-user",
        relaxed: "the user is root, without capabilities",
        layers: &["identity"],
        relaxations: &[Relaxation::RootUser],
        heavy: &[],
        must_flip: &["XP-ID-USER"],
        may_flip: &[],
    },
    Control {
        name: "exec-tmpfs",
        relaxed: "a /tmp without noexec",
        layers: &["mount"],
        relaxations: &[Relaxation::ExecTmpfs],
        heavy: &[],
        must_flip: &["XP-FS-FLAGS", "XP-MEM-EXEC"],
        may_flip: &[],
    },
    Control {
        name: "suid-file",
        relaxed: "a file with the set-user-id bit in /in",
        layers: &["mount"],
        relaxations: &[Relaxation::SuidDecoy],
        heavy: &[],
        must_flip: &["XP-ID-SUID"],
        may_flip: &[],
    },
    Control {
        name: "hostname",
        relaxed: "another host name",
        layers: &["namespace"],
        relaxations: &[Relaxation::Hostname],
        heavy: &[],
        must_flip: &["XP-NS-HOSTNAME"],
        may_flip: &[],
    },
    Control {
        name: "system-paths",
        relaxed: "paths of /proc and /sys neither masked nor frozen",
        layers: &["mount"],
        relaxations: &[Relaxation::SystemPaths],
        heavy: &[],
        must_flip: &["XP-FS-MASKED", "XP-FS-PROC-RO"],
        may_flip: &[],
    },
    Control {
        name: "device",
        relaxed: "the null device under another name",
        layers: &["device"],
        relaxations: &[Relaxation::Device],
        heavy: &[],
        must_flip: &["XP-FS-DEVICES"],
        may_flip: &[],
    },
    Control {
        name: "limits",
        relaxed: "four times as many processes, files and bytes, and no CPU quota to speak of",
        layers: &["limit"],
        relaxations: &[
            Relaxation::PidsLimit,
            Relaxation::MemoryLimit,
            Relaxation::OutSize,
            Relaxation::TmpSize,
            Relaxation::NofileLimit,
            Relaxation::CpuQuota,
        ],
        heavy: &[
            "XP-LIM-CPU",
            "XP-LIM-MEMORY",
            "XP-LIM-NOFILE",
            "XP-LIM-OUT",
            "XP-LIM-PIDS",
            "XP-LIM-TMP",
        ],
        must_flip: &[
            "XP-LIM-CPU",
            "XP-LIM-MEMORY",
            "XP-LIM-NOFILE",
            "XP-LIM-OUT",
            "XP-LIM-PIDS",
            "XP-LIM-TMP",
        ],
        may_flip: &[],
    },
    Control {
        name: "lock",
        relaxed: "the inspector does not stack its own filter",
        layers: &["lock"],
        relaxations: &[Relaxation::LockOff],
        heavy: &[],
        must_flip: &["PR-EXEC-1"],
        may_flip: &[],
    },
];

impl Control {
    /// The probe must or may fail in it.
    pub fn concerns(&self, probe: &str) -> bool {
        self.must_flip.contains(&probe) || self.may_flip.contains(&probe)
    }

    /// These probes failed, sorted: all that must, and none besides those that
    /// may.
    pub fn holds(&self, flipped: &[impl AsRef<str>]) -> bool {
        let must = |name: &str| self.must_flip.contains(&name);
        let may = |name: &str| self.may_flip.contains(&name);
        let required = flipped.iter().filter(|name| must(name.as_ref())).count();
        required == self.must_flip.len()
            && flipped
                .iter()
                .all(|name| must(name.as_ref()) || may(name.as_ref()))
    }

    /// The profile that stands in this control, if not the run's own.
    pub fn profile(&self) -> Option<&'static str> {
        if self.relaxations.contains(&Relaxation::SeccompOff) {
            Some("")
        } else if self.relaxations.contains(&Relaxation::TargetedDeny) {
            Some(crate::TARGETED_DENY)
        } else {
            None
        }
    }
}

/// The control with this name.
pub fn find(name: &str) -> Option<&'static Control> {
    CONTROLS.iter().find(|control| control.name == name)
}

/// Probes that a control runs: all but the heavy ones that it is not about.
pub fn probes(control: &Control) -> impl Iterator<Item = &'static str> {
    crate::catalogue::all()
        .filter(|probe| !probe.heavy || control.heavy.contains(&probe.id))
        .map(|probe| probe.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use alloc::vec::Vec;

    #[test]
    fn every_probe_is_flipped_by_a_control_or_says_why_not() {
        for probe in catalogue::all() {
            let flipped = CONTROLS.iter().any(|control| control.concerns(probe.id));
            assert_ne!(flipped, probe.uncalibrated.is_some(), "{}", probe.id);
        }
    }

    #[test]
    fn controls_name_probes_that_they_run() {
        for control in CONTROLS {
            let run: Vec<&str> = probes(control).collect();
            assert!(control.must_flip.is_sorted(), "{}", control.name);
            for probe in control.must_flip {
                assert!(run.contains(probe), "{}: {probe}", control.name);
            }
        }
    }
}
