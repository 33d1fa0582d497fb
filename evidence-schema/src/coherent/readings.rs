//! What probes read, against the mount table and against each other.

use super::{Found, mounted_at, seen, shown};
use crate::catalogue;
use crate::errno;
use crate::evidence::{Evidence, ProbeResult};
use crate::facts::Mount;
use crate::observation::{Observation, Phase, State};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// No probe asks about more paths.
const MOST_PATHS: usize = 32;

pub fn check(found: &mut Found, evidence: &Evidence, mounts: &[Mount]) {
    let mut known = BTreeSet::new();
    for probe in &evidence.probes {
        order(found, probe);
        for seen in &probe.observations {
            form(found, seen);
        }
        // A probe that is named again is refused elsewhere; here it would cost a look
        // through all mounts each time.
        if !known.insert(probe.probe_id.as_str()) {
            continue;
        }
        for seen in probe.observations.iter().take(MOST_PATHS) {
            match probe.probe_id.as_str() {
                "XP-FS-MASKED" | "XP-FS-PROC-RO" => hidden(found, seen, mounts),
                "XP-FS-DEVICES" => listed(found, seen, &[]),
                "XP-FS-FILES" => listed(found, seen, catalogue::IMAGE_FILES),
                "XP-FS-REALPROC" => covered(found, seen, mounts),
                _ => {}
            }
        }
    }
    devices(found, evidence, mounts);
    written(found, evidence);
    steps(found, evidence);
}

/// As many observations as a probe has operations come in their order.
fn order(found: &mut Found, probe: &ProbeResult) {
    let Some(spec) = catalogue::find(&probe.probe_id) else {
        return;
    };
    let phases = spec.phases.iter();
    let wanted = phases.flat_map(|phase| spec.operations.iter().map(move |op| (*phase, op.id)));
    let seen = probe.observations.iter();
    let seen = seen.map(|seen| (seen.phase, seen.operation.as_str()));
    let whole = spec.phases.len() * spec.operations.len() == probe.observations.len();
    found.must(!whole || seen.eq(wanted), "probes.observations", || {
        format!("{}: not in the order in which they are made", spec.id)
    });
}

/// What a call returned fits how it ended, and errno and signal have names that the
/// prober gives.
fn form(found: &mut Found, seen: &Observation) {
    let Observation {
        phase: _,
        operation: _,
        state,
        step,
        returned,
        errno,
        signal,
        value,
    } = seen;
    let good = match (state, returned, errno, signal, value) {
        (State::Denied, Some(-1), Some(_), None, None) => true,
        (State::Denied, None, None, Some(_), None) => step.is_none(),
        (State::Allowed, Some(-1), Some(_), None, None) => step.is_none(),
        (State::Allowed, Some(0..), None, None, None) => step.is_none(),
        (State::Allowed, None, None, None, _) => step.is_none(),
        (State::NotReached | State::Error, ..) => true,
        _ => false,
    };
    let errno_is_known = errno.as_deref().is_none_or(errno::is_errno);
    let signal_is_known = signal.as_deref().is_none_or(errno::is_signal);
    found.must(
        good && errno_is_known && signal_is_known,
        "probes.observations",
        || format!("{}: no call ends like that", shown(&seen.operation)),
    );
}

/// A path in parentheses.
fn path_of(operation: &str) -> Option<&str> {
    operation.split_once('(')?.1.strip_suffix(')')
}

/// What is masked or frozen is so by a mount, and what is not there has none.
fn hidden(found: &mut Found, seen: &Observation, mounts: &[Mount]) {
    let (Some(path), Some(value)) = (path_of(&seen.operation), seen.value.as_deref()) else {
        return;
    };
    let mount = mounts.iter().find(|mount| mount.mount_point == path);
    let read_only = |point| mounted_at(mounts, point).is_some_and(Mount::is_read_only);
    let good = match value {
        "absent" => mount.is_none(),
        "null" => mount.is_some(),
        "ro" => read_only(path) || read_only("/proc") || read_only("/"),
        _ => true,
    };
    found.must(good, "probes.observations, raw.mountinfo", || {
        format!("{path} is said to be {}", shown(value))
    });
}

/// A text that was opened without crossing a mount has none over it.
fn covered(found: &mut Found, seen: &Observation, mounts: &[Mount]) {
    let entries = seen.value.as_deref().unwrap_or_default().split(' ');
    let opened = entries.filter_map(|entry| entry.strip_suffix("=ok"));
    let opened: BTreeSet<String> = opened.map(|text| format!("/proc/{text}")).collect();
    for mount in mounts {
        let good = !opened.contains(mount.mount_point.as_ref());
        found.must(good, "probes.observations, raw.mountinfo", || {
            format!("{} is a mount, and no other", shown(&mount.mount_point))
        });
    }
}

/// A list that is sorted, names nothing twice, and has all of these.
fn listed(found: &mut Found, seen: &Observation, all: &[&str]) {
    let Some(value) = seen.value.as_deref() else {
        return;
    };
    let names: Vec<&str> = value.split(',').collect();
    let sorted = names.windows(2).all(|pair| pair[0] < pair[1]);
    let whole = all.iter().all(|name| names.contains(name));
    found.must(sorted && whole, "probes.observations", || {
        format!("{}: {}", seen.operation, shown(value))
    });
}

/// Whatever is mounted in /dev is there.
fn devices(found: &mut Found, evidence: &Evidence, mounts: &[Mount]) {
    let seen = seen(evidence, "XP-FS-DEVICES", "devices", Phase::Engine);
    let Some(names) = seen.and_then(|seen| seen.value.as_deref()) else {
        return;
    };
    let names: BTreeSet<&str> = names.split(',').collect();
    for mount in mounts {
        let name = mount.mount_point.strip_prefix("/dev/");
        let good = name.is_none_or(|name| name.contains('/') || names.contains(name));
        found.must(good, "probes.observations, raw.mountinfo", || {
            format!("{} is mounted and not there", shown(&mount.mount_point))
        });
    }
}

/// What was written to /out was read back, and nothing else returns a number.
fn written(found: &mut Found, evidence: &Evidence) {
    const LENGTH: i64 = 40;
    for probe in &evidence.probes {
        for seen in probe
            .observations
            .iter()
            .filter(|seen| seen.state == State::Allowed)
        {
            let wanted = match seen.operation.as_str() {
                "write(/out)" | "read(/out)" => LENGTH,
                "fsync(/out)" | "unlink(/out)" => 0,
                operation if operation.starts_with("exec") => 0,
                _ => continue,
            };
            let good = seen.returned == Some(wanted);
            found.must(good || seen.errno.is_some(), "probes.observations", || {
                format!("{} returned {:?}", shown(&seen.operation), seen.returned)
            });
        }
    }
}

/// The probe, the operation, and the other probe with the operation by which its socket was
/// tried alone.
fn connections() -> impl Iterator<Item = (&'static str, &'static str, [&'static str; 2])> {
    let of = |probe: &'static str| {
        let operations = catalogue::find(probe).map_or(&[][..], |spec| spec.operations);
        let names = operations.iter().map(|operation| operation.id);
        names.filter(|name| name.starts_with("connect("))
    };
    let socket = |operation: &str| match operation {
        "connect(abstract canary)" => ["PR-SOCK-1", "socket(AF_UNIX, SOCK_STREAM)"],
        name if name.contains('[') => ["PR-NET-1", "socket(AF_INET6, SOCK_DGRAM)"],
        _ => ["PR-NET-1", "socket(AF_INET, SOCK_DGRAM)"],
    };
    CONNECTING
        .iter()
        .flat_map(move |probe| of(probe).map(move |name| (*probe, name, socket(name))))
}

/// Probes that connect a socket.
const CONNECTING: &[&str] = &["PR-NET-2", "XP-NS-ABSTRACT", "XP-REACH"];

/// Operations that an earlier call decided: that call was denied to other probes, too.
fn steps(found: &mut Found, evidence: &Evidence) {
    for (probe, operation, [other, socket]) in connections() {
        for phase in [Phase::Engine, Phase::Locked] {
            let connect = seen(evidence, probe, operation, phase);
            let socket = seen(evidence, other, socket, phase);
            if let (Some(connect), Some(socket)) = (connect, socket) {
                let decided = (connect.state == State::Denied)
                    .then_some(connect.step.as_deref() == Some("socket"));
                let good = decided.is_none_or(|decided| {
                    decided == (socket.state == State::Denied)
                        && (!decided || connect.errno == socket.errno)
                });
                found.must(good, "probes.observations.step", || {
                    format!("{probe}: {operation} and its socket")
                });
            }
        }
    }
    memory_files(found, evidence);
    let expected = |probe: &str| match probe {
        probe if CONNECTING.contains(&probe) => &["socket"][..],
        "PR-EXEC-1" => &["memfd_create"],
        _ => &[],
    };
    for probe in &evidence.probes {
        let denied = probe
            .observations
            .iter()
            .filter(|seen| seen.state == State::Denied);
        for step in denied.filter_map(|seen| seen.step.as_deref()) {
            let known = catalogue::find(&probe.probe_id).is_none()
                || expected(&probe.probe_id).contains(&step);
            found.must(known, "probes.observations.step", || shown(step));
        }
    }
}

/// A file in memory that the engine denies stays denied after the lock, and the sweep
/// met the same denial.
fn memory_files(found: &mut Found, evidence: &Evidence) {
    let sweep = seen(evidence, "XP-ABI-SWEEP", "sweep", Phase::Engine);
    let sweep = sweep
        .and_then(|seen| seen.value.as_deref())
        .unwrap_or_default();
    let number = crate::syscalls::number("memfd_create").map(|number| format!("{number}="));
    let number = number.unwrap_or_default();
    let answer = sweep
        .split(' ')
        .find_map(|entry| entry.strip_prefix(number.as_str()));
    let denied = matches!(answer, Some("EPERM" | "ENOSYS" | "SIGSYS"));
    for operation in ["execve(memfd)", "execveat(memfd)"] {
        let step = |phase| {
            let seen = seen(evidence, "PR-EXEC-1", operation, phase);
            let seen = seen.filter(|seen| seen.state == State::Denied);
            seen.map(|seen| seen.step.is_some())
        };
        let good = step(Phase::Engine).is_none_or(|by_step| by_step == denied)
            && (step(Phase::Engine) != Some(true) || step(Phase::Locked) != Some(false));
        found.must(good, "PR-EXEC-1, XP-ABI-SWEEP", || {
            format!("{operation}: memfd_create")
        });
    }
}
