//! Controls: for each boundary a container in which exactly that boundary is
//! relaxed, and the probes that must fail there, no more and no fewer. A probe
//! that never fails proves nothing; these are the runs in which they do.
//!
//! No control opens a way out: nothing is sent, no real engine socket is shown,
//! no namespace of the host is joined, nothing is privileged, and the number of
//! processes is always limited.

use crate::catalogue::ProbeSpec;
use crate::engine_kind::EngineKind;
pub use crate::relaxation::Relaxation;

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
    /// The only probes that are run; empty for all.
    pub only: &'static [&'static str],
    /// Probes that must FAIL, sorted.
    pub must_flip: &'static [&'static str],
    /// Probes that FAIL too where the kernel has what they try: not every
    /// kernel has a second table of system calls.
    pub may_flip: &'static [&'static str],
    /// Probes that cannot be tried in it, or not to the end, and so are
    /// UNPROVEN there. That calibrates nothing.
    pub blinds: &'static [&'static str],
    /// Engines that cannot relax this, each with the reason.
    pub impossible_on: &'static [(EngineKind, &'static str)],
    /// It changes the prober and not the sandbox: it shows that a probe can fail, and
    /// says nothing about layers.
    pub instrument: bool,
}

/// What most controls have in common.
const PLAIN: Control = Control {
    name: "",
    relaxed: "",
    layers: &[],
    relaxations: &[],
    heavy: &[],
    only: &[],
    must_flip: &[],
    may_flip: &[],
    blinds: &[],
    impossible_on: &[],
    instrument: false,
};

/// What has nothing but a filter in front of it fails without the filter.
const WITHOUT_SECCOMP: [&str; 18] = [
    "PR-NET-1",
    "PR-PTRACE-1",
    "PR-SOCK-1",
    "XP-ABI-SWEEP",
    "XP-ADMIN",
    "XP-FAMILIES",
    "XP-FS-SPECIAL",
    "XP-HANDLES",
    "XP-ID-SECCOMP",
    "XP-KEYRING",
    "XP-MOUNT-API",
    "XP-NS-MAKE",
    "XP-PAGE-CACHE",
    "XP-PERSONALITY",
    "XP-PROCESSES",
    "XP-PROGRAMS",
    "XP-TTY",
    "XP-URING",
];

/// The same where there is also somewhere to go.
const WITHOUT_SECCOMP_AND_NETWORK: [&str; 20] = with::<19, 20>(
    with::<18, 19>(WITHOUT_SECCOMP, "PR-NET-2", 1),
    "XP-REACH",
    17,
);

/// A list with one more name at a place.
const fn with<const LESS: usize, const MORE: usize>(
    list: [&'static str; LESS],
    name: &'static str,
    at: usize,
) -> [&'static str; MORE] {
    let mut longer = [name; MORE];
    let mut place = 0;
    while place < LESS {
        longer[if place < at { place } else { place + 1 }] = list[place];
        place += 1;
    }
    longer
}

/// What may flip without the filter. Not every kernel has the older tables of system calls,
/// and where AppArmor is asked about a mount it answers before anybody asks for the
/// capability.
const MAY_WITHOUT_SECCOMP: &[&str] = &["PR-MOUNT-1", "XP-ABI-I386", "XP-ABI-X32"];

/// Where the engine makes volumes, the interfaces are a neighbour's, whose network
/// namespace is joined; there is a unix socket in it.
const MAY_WITHOUT_SECCOMP_AND_NETWORK: &[&str] = &[
    "PR-MOUNT-1",
    "XP-ABI-I386",
    "XP-ABI-X32",
    "XP-NS-ABSTRACT",
    "XP-NS-FRESH",
];

/// Why some controls cannot be run on engines without a daemon.
const NO_NEIGHBOUR: &[(EngineKind, &str)] = &[
    (EngineKind::Embedded, "there is no neighbour to join"),
    (EngineKind::Bwrap, "there is no neighbour to join"),
];

/// Every control.
pub const CONTROLS: &[Control] = &[
    Control {
        name: "seccomp",
        relaxed: "no seccomp profile",
        layers: &["seccomp"],
        relaxations: &[Relaxation::SeccompOff],
        must_flip: &WITHOUT_SECCOMP,
        may_flip: MAY_WITHOUT_SECCOMP,
        ..PLAIN
    },
    Control {
        name: "seccomp-network",
        relaxed: "no seccomp profile, and two virtual interfaces that lead to each other",
        layers: &["seccomp", "namespace"],
        relaxations: &[Relaxation::SeccompOff, Relaxation::Interface],
        must_flip: &WITHOUT_SECCOMP_AND_NETWORK,
        may_flip: MAY_WITHOUT_SECCOMP_AND_NETWORK,
        ..PLAIN
    },
    Control {
        name: "marks",
        relaxed: "nothing: whatever the profile denies, it denies with an errno of its own",
        layers: &[],
        relaxations: &[Relaxation::Marks],
        // Every other probe expects the errno that the profile itself gives.
        only: &["XP-ABI-SWEEP"],
        // An engine that hands no errno on shows nothing; reading the profile decides.
        blinds: &["XP-ABI-SWEEP"],
        ..PLAIN
    },
    Control {
        name: "network",
        relaxed: "two virtual interfaces that lead to each other",
        layers: &["namespace"],
        relaxations: &[Relaxation::Interface],
        must_flip: &["PR-NET-2"],
        may_flip: &["XP-NS-ABSTRACT", "XP-NS-FRESH"],
        ..PLAIN
    },
    Control {
        name: "ipc",
        relaxed: "the IPC namespace of a neighbour, which has shared memory",
        layers: &["namespace"],
        relaxations: &[Relaxation::JoinIpc],
        must_flip: &["XP-NS-FRESH", "XP-NS-IPC"],
        impossible_on: NO_NEIGHBOUR,
        ..PLAIN
    },
    Control {
        name: "processes",
        relaxed: "the process id namespace of a neighbour",
        layers: &["namespace"],
        relaxations: &[Relaxation::JoinPid],
        must_flip: &["XP-NS-FRESH", "XP-NS-PID", "XP-NS-SIGNAL"],
        // Process 1 is the neighbour, whose root directory is closed to others.
        blinds: &["XP-FS-REOPEN"],
        impossible_on: NO_NEIGHBOUR,
        ..PLAIN
    },
    Control {
        name: "working-directory",
        relaxed: "the working directory is /in",
        layers: &["mount"],
        relaxations: &[Relaxation::WorkingDirectory],
        must_flip: &["XP-FS-CWD"],
        ..PLAIN
    },
    Control {
        name: "covered-text",
        relaxed: "an empty file over one text of /proc",
        layers: &["mount"],
        relaxations: &[Relaxation::CoveredText],
        must_flip: &["XP-FS-REALPROC"],
        // Bound by a user who is not root, the null device cannot be opened.
        blinds: &["XP-NS-IPC"],
        ..PLAIN
    },
    Control {
        name: "label",
        relaxed: "the label of the security module is taken away",
        layers: &["lsm"],
        relaxations: &[Relaxation::Unconfined],
        must_flip: &["XP-ID-LSM"],
        // AppArmor answers before anybody asks for the capability.
        may_flip: &["PR-MOUNT-1"],
        impossible_on: &[
            (EngineKind::Embedded, "the engine gives no label"),
            (EngineKind::Bwrap, "bubblewrap gives no label"),
        ],
        ..PLAIN
    },
    Control {
        name: "rootfs",
        relaxed: "a writable root file system",
        layers: &["mount"],
        relaxations: &[Relaxation::RootfsWritable],
        must_flip: &["PR-FS-ESC-1", "PR-FS-ESC-2", "PR-MOUNT-1"],
        ..PLAIN
    },
    Control {
        name: "input",
        relaxed: "a writable /in",
        layers: &["mount"],
        relaxations: &[Relaxation::InWritable],
        must_flip: &["PR-FS-RO-IN", "PR-MOUNT-1", "XP-FS-REOPEN"],
        ..PLAIN
    },
    Control {
        name: "output",
        relaxed: "a read-only /out",
        layers: &["mount"],
        relaxations: &[Relaxation::OutReadOnly],
        must_flip: &["PR-FS-OUT-OK", "PR-MOUNT-1"],
        // No file and no link can be put there; and a bind that the engine makes
        // read-only has its flags set anew, without the host's noexec.
        blinds: &[
            "PR-EXEC-1",
            "PR-FS-ESC-2",
            "XP-FS-FLAGS",
            "XP-FS-SPECIAL",
            "XP-MEM-EXEC",
        ],
        ..PLAIN
    },
    Control {
        name: "environment",
        relaxed: "a canary in the environment",
        layers: &["environment"],
        relaxations: &[Relaxation::EnvCanary],
        must_flip: &["PR-ENV-1"],
        ..PLAIN
    },
    Control {
        name: "engine-socket",
        relaxed: "a decoy docker.sock in /in, which nobody serves",
        layers: &["mount"],
        relaxations: &[Relaxation::DecoySocket],
        must_flip: &["PR-SOCK-DOCKER"],
        ..PLAIN
    },
    Control {
        name: "extra-bind",
        relaxed: "one more directory, at /host",
        layers: &["mount"],
        relaxations: &[Relaxation::ExtraBind],
        must_flip: &["PR-MOUNT-1"],
        ..PLAIN
    },
    Control {
        name: "host-file",
        relaxed: "something at the path of a file of the host",
        layers: &["mount"],
        relaxations: &[Relaxation::CanaryBind],
        must_flip: &["PR-MOUNT-1", "XP-FS-CANARY", "XP-FS-FILES"],
        ..PLAIN
    },
    Control {
        name: "capability",
        relaxed: "a capability in the bounding set",
        layers: &["capability"],
        relaxations: &[Relaxation::Capability],
        must_flip: &["XP-ID-CAPS"],
        ..PLAIN
    },
    Control {
        name: "new-privileges",
        relaxed: "no-new-privileges is off (with the targeted-deny profile)",
        layers: &["privilege"],
        relaxations: &[Relaxation::NewPrivileges, Relaxation::TargetedDeny],
        must_flip: &["XP-ID-NNP"],
        impossible_on: &[
            (
                EngineKind::Embedded,
                "the filter is loaded after the last privilege is gone, which takes this bit",
            ),
            (EngineKind::Bwrap, "bubblewrap always sets the bit"),
        ],
        ..PLAIN
    },
    Control {
        name: "root-user",
        relaxed: "the user is root, without capabilities",
        layers: &["identity"],
        relaxations: &[Relaxation::RootUser],
        must_flip: &["XP-ID-USER"],
        ..PLAIN
    },
    Control {
        name: "exec-tmpfs",
        relaxed: "a /tmp without noexec",
        layers: &["mount"],
        relaxations: &[Relaxation::ExecTmpfs],
        must_flip: &["XP-FS-FLAGS", "XP-MEM-EXEC"],
        ..PLAIN
    },
    Control {
        name: "suid-file",
        relaxed: "a file with the set-user-id bit in /in",
        layers: &["mount"],
        relaxations: &[Relaxation::SuidDecoy],
        must_flip: &["XP-ID-SUID"],
        ..PLAIN
    },
    Control {
        name: "hostname",
        relaxed: "another host name",
        layers: &["namespace"],
        relaxations: &[Relaxation::Hostname],
        must_flip: &["XP-NS-HOSTNAME"],
        ..PLAIN
    },
    Control {
        name: "system-paths",
        relaxed: "paths of /proc and /sys neither masked nor frozen",
        layers: &["mount"],
        relaxations: &[Relaxation::SystemPaths],
        must_flip: &["XP-FS-MASKED", "XP-FS-PROC-RO"],
        ..PLAIN
    },
    Control {
        name: "device",
        relaxed: "the null device under another name",
        layers: &["device"],
        relaxations: &[Relaxation::Device],
        must_flip: &["XP-FS-DEVICES"],
        ..PLAIN
    },
    Control {
        name: "pids",
        relaxed: "four times as many processes",
        layers: &["limit"],
        relaxations: &[Relaxation::PidsLimit],
        heavy: &["XP-LIM-PIDS"],
        must_flip: &["XP-LIM-PIDS"],
        ..PLAIN
    },
    Control {
        name: "memory",
        relaxed: "four times as much memory",
        layers: &["limit"],
        relaxations: &[Relaxation::MemoryLimit],
        heavy: &["XP-LIM-MEMORY"],
        must_flip: &["XP-LIM-MEMORY"],
        ..PLAIN
    },
    Control {
        name: "out-size",
        relaxed: "a file system behind /out four times as large",
        layers: &["limit"],
        relaxations: &[Relaxation::OutSize],
        heavy: &["XP-LIM-OUT"],
        must_flip: &["XP-LIM-OUT"],
        ..PLAIN
    },
    Control {
        name: "tmp-size",
        relaxed: "a /tmp four times as large",
        layers: &["limit"],
        relaxations: &[Relaxation::TmpSize],
        heavy: &["XP-LIM-TMP"],
        must_flip: &["XP-LIM-TMP"],
        ..PLAIN
    },
    Control {
        name: "inodes",
        relaxed: "room for four times as many files in /out and /tmp",
        layers: &["limit"],
        relaxations: &[Relaxation::Inodes],
        heavy: &["XP-LIM-INODES"],
        must_flip: &["XP-LIM-INODES"],
        ..PLAIN
    },
    Control {
        name: "core-size",
        relaxed: "four times the size of a core dump",
        layers: &["limit"],
        relaxations: &[Relaxation::CoreSize],
        must_flip: &["XP-CORE"],
        ..PLAIN
    },
    Control {
        name: "nofile",
        relaxed: "four times as many open files",
        layers: &["limit"],
        relaxations: &[Relaxation::NofileLimit],
        heavy: &["XP-LIM-NOFILE"],
        must_flip: &["XP-LIM-NOFILE"],
        ..PLAIN
    },
    Control {
        name: "cpu",
        relaxed: "four times the CPU quota, more than two processes can use",
        layers: &["limit"],
        relaxations: &[Relaxation::CpuQuota],
        heavy: &["XP-LIM-CPU"],
        must_flip: &["XP-LIM-CPU"],
        ..PLAIN
    },
    Control {
        name: "descriptor",
        relaxed: "one more descriptor, of the null device",
        layers: &["descriptor"],
        relaxations: &[Relaxation::Descriptor],
        must_flip: &["XP-FD"],
        impossible_on: &[
            (
                EngineKind::Docker,
                "the engine passes no further descriptors",
            ),
            (EngineKind::Podman, "its API passes no further descriptors"),
        ],
        ..PLAIN
    },
    Control {
        name: "cgroup",
        relaxed: "the container's own control group, writable and its user's",
        layers: &["mount"],
        relaxations: &[Relaxation::CgroupWritable],
        must_flip: &["XP-FS-CGROUP"],
        impossible_on: &[
            (
                EngineKind::Docker,
                "the engine mounts groups read-only, or needs privilege",
            ),
            (
                EngineKind::Podman,
                "the engine mounts groups read-only, or needs privilege",
            ),
            (
                EngineKind::Bwrap,
                "bubblewrap runs as a user who cannot give a group away",
            ),
        ],
        ..PLAIN
    },
    Control {
        name: "threads",
        relaxed: "nothing: the prober starts a second thread",
        relaxations: &[Relaxation::Thread],
        must_flip: &["XP-ID-THREADS"],
        instrument: true,
        ..PLAIN
    },
    Control {
        name: "lock",
        relaxed: "the prober does not stack its own filter",
        layers: &["lock"],
        relaxations: &[Relaxation::LockOff],
        must_flip: &["PR-EXEC-1"],
        ..PLAIN
    },
];

impl Control {
    /// The probe must or may fail in it.
    pub fn concerns(&self, probe: &str) -> bool {
        self.must_flip.contains(&probe) || self.may_flip.contains(&probe)
    }

    /// These probes came to FAIL and these to UNPROVEN: everything that must
    /// fail did, nothing else besides what may, and nothing is unproven that
    /// could have been tried.
    pub fn flips(&self, failed: &[impl AsRef<str>], unproven: &[impl AsRef<str>]) -> bool {
        let all_that_must = self
            .must_flip
            .iter()
            .all(|must| failed.iter().any(|name| name.as_ref() == *must));
        let only_known = failed.iter().all(|name| self.concerns(name.as_ref()));
        let only_blind = unproven
            .iter()
            .all(|name| self.blinds.contains(&name.as_ref()));
        all_that_must && only_known && only_blind
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

/// Controls that an engine can run at all; of one that is not known, every control.
pub fn of_engine(engine: Option<EngineKind>) -> impl Iterator<Item = &'static Control> {
    let can = move |control: &&Control| {
        let mut impossible = control.impossible_on.iter();
        impossible.all(|(kind, _)| Some(*kind) != engine)
    };
    CONTROLS.iter().filter(can)
}

/// Probes that a control runs: all but the heavy ones that it is not about.
pub fn probes(control: &Control) -> impl Iterator<Item = &'static ProbeSpec> + Clone {
    let is_run = |probe: &&ProbeSpec| match control.only {
        [] => !probe.heavy || control.heavy.contains(&probe.id),
        only => only.contains(&probe.id),
    };
    crate::catalogue::all().filter(is_run)
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
            let run: Vec<&str> = probes(control).map(|probe| probe.id).collect();
            assert!(control.must_flip.is_sorted(), "{}", control.name);
            let lists = [control.must_flip, control.may_flip, control.blinds];
            for probe in lists.concat() {
                assert!(run.contains(&probe), "{}: {probe}", control.name);
                let times = lists.iter().filter(|list| list.contains(&probe)).count();
                assert_eq!(times, 1, "{}: {probe}", control.name);
            }
        }
    }

    /// Each limit has a control of its own, which runs no other heavy probe.
    #[test]
    fn every_heavy_probe_has_a_control_that_flips_it_alone() {
        for probe in catalogue::all().filter(|probe| probe.heavy) {
            let about: Vec<&Control> = CONTROLS
                .iter()
                .filter(|control| control.concerns(probe.id))
                .collect();
            assert_eq!(about.len(), 1, "{}", probe.id);
            assert_eq!(about[0].must_flip, [probe.id]);
            assert_eq!(about[0].heavy, [probe.id]);
            assert_eq!(about[0].relaxations.len(), 1);
        }
    }

    #[test]
    fn only_a_failure_is_a_flip() {
        let none: [&str; 0] = [];
        let output = find("output").unwrap();
        assert!(output.flips(output.must_flip, output.blinds));
        assert!(output.flips(output.must_flip, &none));
        assert!(!output.flips(&["PR-MOUNT-1"], &["PR-FS-OUT-OK"]));
        assert!(!output.flips(&["PR-MOUNT-1", "PR-MOUNT-1"], &none));
        assert!(!output.flips(output.must_flip, &["PR-NET-1"]));
        assert!(!output.flips(&["PR-EXEC-1", "PR-FS-OUT-OK", "PR-MOUNT-1"], &none));
        let seccomp = find("seccomp").unwrap();
        let both = find("seccomp-network").unwrap();
        let more: Vec<_> = both.must_flip.iter().collect();
        let beyond = more.iter().filter(|id| !seccomp.must_flip.contains(id));
        assert_eq!(beyond.collect::<Vec<_>>(), [&&"PR-NET-2", &&"XP-REACH"]);
        assert_eq!(seccomp.must_flip.len() + 2, both.must_flip.len());
        for more in ["XP-ABI-X32", "PR-MOUNT-1"] {
            assert!(seccomp.flips(&[seccomp.must_flip, &[more]].concat(), &none));
        }
        assert!(!seccomp.flips(&seccomp.must_flip[1..], &seccomp.must_flip[..1]));
    }
}
