//! Harmless anywhere: every probe, as root and with no sandbox at all, inside an emulated
//! machine. Whatever can be listed there is the same before and after; and each of these
//! lists shows a change when there is one.

use crate::common::machine::Machine;
use crate::common::names_in;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tki_attest::image::built_in::PROBER;
use tki_evidence::catalogue::{self, OperationSpec};
use tki_evidence::observation::{Phase, State};
use tki_evidence::wire::{
    Challenge, HostMessage, Limits, PROTOCOL, ProbeObservation, ProberMessage,
};

const MACHINE: &str = include_str!("harmless/machine.sh");
const BATTERY: &str = include_str!("harmless/battery.sh");

/// What the image brings, by its path there.
const IMAGE: &[(&str, &[u8], u32)] = &[
    ("tki-prober", PROBER, 0o555),
    (
        "tki-sandbox",
        include_bytes!("../image/rootfs/tki-sandbox"),
        0o444,
    ),
    (
        "tki-probe-target",
        include_bytes!("../image/rootfs/tki-probe-target"),
        0o666,
    ),
    (
        "escape/README",
        include_bytes!("../image/rootfs/open/escape/README"),
        0o666,
    ),
];

/// What is listed, a file each.
const LISTS: &[&str] = &[
    "accounting",
    "cgroups",
    "clock",
    "contents",
    "files",
    "helpers",
    "ipc",
    "keys",
    "limits",
    "log",
    "modules",
    "mounts",
    "names",
    "namespaces",
    "network",
    "processes",
    "shell",
    "swap",
    "sysctls",
    "terminal",
];

/// Everything that the prober can be asked for. Without the lock the canonical probes
/// are tried twice, with nothing in their way.
fn challenge(lock: bool) -> Challenge {
    Challenge {
        protocol: PROTOCOL,
        nonce: "0".into(),
        probes: catalogue::all().map(|probe| probe.id.into()).collect(),
        phases: vec![Phase::Engine, Phase::Locked],
        probe_deadline_ms: 120_000,
        overall_deadline_ms: 300_000,
        lock,
        env_canary: "TKI_CANARY_0".into(),
        host_canary: "/bin/busybox".into(),
        limits: Limits {
            pids: 32,
            memory_bytes: 24 << 20,
            out_bytes: 1 << 20,
            tmp_bytes: 1 << 20,
            out_files: 64,
            tmp_files: 64,
            nofile: 64,
            cpu_period_us: 100_000,
            cpu_quota_us: 50_000,
        },
        // What is missing there is put in once the prober has said it.
        accept_missing: Vec::new(),
    }
}

/// Each operation in each of its phases was carried out once and told; where no lock was in
/// the way, with nothing in the way.
fn check_conversation(path: &Path, lock: bool) {
    let text = fs::read_to_string(path).unwrap();
    let (mut missing, mut observations, mut done) = (Vec::new(), Vec::new(), None);
    for line in text.lines() {
        match serde_json::from_str(line).unwrap() {
            ProberMessage::Hello(hello) => missing = hello.missing,
            ProberMessage::Observation(one) => observations.push(one),
            ProberMessage::Done(end) => done = Some(end),
            ProberMessage::Refused(refused) => panic!("{refused:?}"),
            _ => {}
        }
    }
    for name in ["non-root", "no-capabilities", "seccomp-filter"] {
        assert!(missing.iter().any(|one| one == name), "{missing:?}");
    }
    let mut wanted = BTreeSet::new();
    for probe in catalogue::all() {
        for phase in probe.phases {
            let of_probe = |op: &OperationSpec| (probe.id, *phase, op.id);
            wanted.extend(probe.operations.iter().map(of_probe));
        }
    }
    let told = observations.iter();
    let told = told.map(|one| (one.probe.as_str(), one.seen.phase, &*one.seen.operation));
    assert_eq!(told.collect::<BTreeSet<_>>(), wanted);
    assert_eq!(observations.len(), wanted.len());
    assert_eq!(done.unwrap().observations as usize, wanted.len());
    let free = |one: &&ProbeObservation| !lock || one.seen.phase == Phase::Engine;
    let free: Vec<_> = observations.iter().filter(free).collect();
    for one in &free {
        let tried = !matches!(one.seen.state, State::NotReached | State::Error);
        assert!(tried, "{one:?}");
    }
    // Only what this kernel does not have.
    let refused = free.iter().filter(|one| one.seen.state == State::Denied);
    assert!(refused.count() * 10 < free.len(), "{text}");
}

#[test]
fn the_battery_changes_nothing_that_lasts_where_nothing_stops_it() {
    let machine = Machine::new();
    machine.take_found("perl");
    machine.take_module("overlay.ko");
    for (name, bytes, mode) in IMAGE {
        machine.write(name, bytes, *mode);
    }
    machine.write("battery", BATTERY.as_bytes(), 0o755);
    let talks = [("locked", true), ("unlocked", false)];
    for (name, lock) in talks {
        let message = HostMessage::Challenge(challenge(lock));
        let line = serde_json::to_string(&message).unwrap() + "\n";
        machine.write(&format!("challenge-{name}"), line.as_bytes(), 0o644);
    }
    let lists = ["before", "after", "changed"];
    let written = [&talks.map(|(name, _)| name)[..], &lists[..]].concat();
    let ended = machine.boot(512, MACHINE, "/record", &written);
    let screen = &ended.screen;
    for (name, lock) in talks {
        assert!(screen.contains(&format!("exit of {name}: 0")), "{screen}");
        check_conversation(&ended.written.join(name), lock);
    }
    let [before, after, changed] = lists.map(|name| ended.written.join(name));
    assert_eq!(names_in(&before), LISTS);
    let mut differ = Vec::new();
    for name in LISTS {
        let read = |folder: &Path| fs::read_to_string(folder.join(name)).unwrap();
        let (before, after, changed) = (read(&before), read(&after), read(&changed));
        if before != after {
            let difference = similar::TextDiff::from_lines(&before, &after);
            differ.push(format!("{name}:\n{}", difference.unified_diff()));
        }
        assert_ne!(after, changed, "{name} shows no change: {screen}");
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
