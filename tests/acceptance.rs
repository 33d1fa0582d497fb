//! The acceptance tests of the sandbox itself, #24 to #37, in one run of now: each looks at its
//! own operations, as the kernel answered them, and not at the verdict that follows.

use crate::common::acceptance::proof;
use crate::common::{attest, evidence_in, read_json, shared_engine};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The evidence of a run on this machine.
fn evidence() -> &'static Value {
    static EVIDENCE: OnceLock<Value> = OnceLock::new();
    EVIDENCE.get_or_init(|| {
        let _engine = shared_engine();
        let out = tempfile::tempdir().unwrap();
        // What else happens on the engine meanwhile changes its inventory and no answer.
        attest(out.path(), &["--venue", "dev", "-q"]);
        read_json(&evidence_in(out.path()))
    })
}

/// What was observed of a probe: the phase, the operation and the whole.
fn observed(probe: &str) -> Vec<(&'static str, &'static str, &'static Value)> {
    let probes = evidence()["probes"].as_array().unwrap();
    let found = probes.iter().find(|one| one["probe_id"] == probe).unwrap();
    let all = found["observations"].as_array().unwrap().iter();
    let text = |one: &'static Value, key: &str| one[key].as_str().unwrap();
    let all = all.map(|one| (text(one, "phase"), text(one, "operation"), one));
    all.collect()
}

/// Every one of these operations was denied in both phases, with one of these errnos; says
/// which errnos those were.
#[track_caller]
fn denied(probe: &str, operations: &[&str], errnos: &[&str]) -> String {
    let mut seen = BTreeSet::new();
    for operation in operations {
        for phase in ["engine", "locked"] {
            let all = observed(probe).into_iter();
            let mut own = all.filter(|one| one.0 == phase && one.1 == *operation);
            let (_, _, found) = own.next().unwrap_or_else(|| panic!("{phase} {operation}"));
            let errno = found["errno"].as_str().unwrap_or_default();
            assert_eq!(found["state"], "denied", "{phase} {operation}: {found}");
            assert!(errnos.contains(&errno), "{phase} {operation}: {found}");
            assert!(own.next().is_none(), "{phase} {operation}: twice");
            seen.insert(errno);
        }
    }
    seen.into_iter().collect::<Vec<&str>>().join(", ")
}

/// The operations of a probe that begin so.
fn operations(probe: &str, begin: &str) -> Vec<&'static str> {
    let all = observed(probe).into_iter();
    let own = all.filter(|one| one.0 == "engine" && one.1.starts_with(begin));
    own.map(|one| one.1).collect()
}

/// What an operation gave in each phase.
fn values(probe: &str, operation: &str) -> Vec<&'static Value> {
    let all = observed(probe).into_iter();
    let own = all.filter(|one| one.1 == operation);
    let values: Vec<&Value> = own.map(|one| &one.2["value"]).collect();
    assert!(!values.is_empty(), "{operation}");
    values
}

const SOCKETS: &[&str] = &["EPERM", "EACCES", "EAFNOSUPPORT"];

#[test]
fn m24_internet_sockets_are_denied() {
    let tried = operations("PR-NET-1", "socket(AF_INET");
    assert_eq!(tried.len(), 4, "{tried:?}");
    let errnos = denied("PR-NET-1", &tried, SOCKETS);
    proof(24, format!("{errnos} for {}", tried.join(", ")));
}

#[test]
fn m25_no_route_leads_out() {
    let tried = operations("PR-NET-2", "connect(");
    assert_eq!(tried.len(), 2, "{tried:?}");
    let errnos = denied("PR-NET-2", &tried, &["EPERM", "ENETUNREACH"]);
    let devices = evidence()["raw"]["proc_net_dev"].as_str().unwrap();
    let names: Vec<&str> = devices
        .lines()
        .skip(2)
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(
        names.iter().map(|name| name.trim()).collect::<Vec<&str>>(),
        ["lo"]
    );
    proof(25, format!("{errnos}; the only interface is lo"));
}

#[test]
fn m26_local_and_special_sockets_are_denied() {
    let families = [
        "AF_UNIX",
        "AF_NETLINK",
        "AF_PACKET",
        "AF_VSOCK",
        "AF_ALG",
        "AF_INET",
        "AF_INET6",
    ];
    let tried = operations("PR-SOCK-1", "socket(");
    let is_tried = |family: &&&str| tried.iter().any(|one| one.contains(&format!("({family},")));
    assert_eq!(
        families.iter().filter(is_tried).count(),
        families.len(),
        "{tried:?}"
    );
    let errnos = denied("PR-SOCK-1", &tried, SOCKETS);
    proof(26, format!("{errnos} for {}", tried.join(", ")));
}

/// Not by the ways of #24 to #26 alone: no address family at all gives a socket, and there is no
/// second table of calls to ask through.
#[test]
fn m27_no_process_has_any_way_out() {
    for (probe, begin) in [
        ("XP-ABI-I386", "int 0x80 socketcall"),
        ("XP-URING", "io_uring_setup"),
    ] {
        let tried = operations(probe, begin);
        assert!(!tried.is_empty(), "{probe}");
        let all = observed(probe).into_iter();
        for (_, operation, found) in all.filter(|one| tried.contains(&one.1)) {
            assert_eq!(found["state"], "denied", "{operation}: {found}");
        }
    }
    let probes = evidence()["probes"].as_array().unwrap();
    let ways = [
        "PR-NET-1",
        "PR-NET-2",
        "PR-SOCK-1",
        "XP-FAMILIES",
        "XP-ABI-X32",
    ];
    for way in ways {
        let found = probes.iter().find(|one| one["probe_id"] == way).unwrap();
        assert_eq!(found["verdict"], "PASS", "{way}");
    }
    let rows = evidence()["matrix"].as_array().unwrap();
    let row = rows.iter().find(|row| row["test"] == 27).unwrap();
    assert_eq!(row["result"], "PASS", "{row}");
    proof(
        27,
        "no family of 64, no route, no other table of calls and no ring gives a way out, in one run",
    );
}

#[test]
fn m28_no_secret_is_in_the_environment() {
    let known = ["PATH", "HOME", "HOSTNAME", "TERM", "container"];
    let keys = evidence()["raw"]["env_keyset"].as_array().unwrap();
    let keys: Vec<&str> = keys.iter().map(|key| key.as_str().unwrap()).collect();
    assert!(keys.iter().all(|key| known.contains(key)), "{keys:?}");
    for found in values("PR-ENV-1", "env-canary") {
        assert_eq!(*found, "absent");
    }
    proof(28, format!("{} names: {}", keys.len(), keys.join(" ")));
}

#[test]
fn m29_the_packet_cannot_be_changed() {
    let tried = [
        "create(/in)",
        "append(/in)",
        "truncate(/in)",
        "unlink(/in)",
        "chmod(/in)",
    ];
    let errnos = denied("PR-FS-RO-IN", &tried, &["EROFS"]);
    proof(29, format!("{errnos} for {}", tried.join(", ")));
}

#[test]
fn m30_output_does_not_escape_by_dot_dot() {
    let tried: Vec<&str> = observed("PR-FS-ESC-1")
        .into_iter()
        .map(|one| one.1)
        .collect();
    assert!(tried.iter().all(|one| one.contains("/..")), "{tried:?}");
    let tried: Vec<&str> = BTreeSet::from_iter(tried).into_iter().collect();
    let errnos = denied("PR-FS-ESC-1", &tried, &["EROFS", "EACCES"]);
    proof(30, format!("{errnos} for {}", tried.join(", ")));
}

#[test]
fn m31_output_does_not_escape_by_a_link() {
    let tried = [
        "create(absolute symlink)",
        "create(relative symlink)",
        "append(absolute symlink)",
        "append(relative symlink)",
    ];
    let errnos = denied("PR-FS-ESC-2", &tried, &["EROFS", "EACCES"]);
    proof(31, format!("{errnos} for {}", tried.join(", ")));
}

#[test]
fn m32_the_output_channel_works() {
    for operation in ["write(/out)", "fsync(/out)", "read(/out)", "unlink(/out)"] {
        let all = observed("PR-FS-OUT-OK").into_iter();
        let own: Vec<&Value> = all
            .filter(|one| one.1 == operation)
            .map(|one| one.2)
            .collect();
        assert_eq!(own.len(), 2, "{operation}");
        assert!(
            own.iter().all(|one| one["state"] == "allowed"),
            "{operation}: {own:?}"
        );
    }
    proof(
        32,
        "write, fsync, read and unlink in /out succeed in both phases",
    );
}

#[test]
fn m33_no_second_program_is_executed() {
    let all = observed("PR-EXEC-1").into_iter();
    let locked: Vec<(&str, &Value)> = all
        .filter(|one| one.0 == "locked")
        .map(|one| (one.1, one.2))
        .collect();
    assert!(locked.len() >= 10, "{locked:?}");
    for (operation, found) in &locked {
        assert_eq!(found["state"], "denied", "{operation}: {found}");
        assert_eq!(found["errno"], "EPERM", "{operation}: {found}");
    }
    let status = evidence()["raw"]["proc_self_status"].as_str().unwrap();
    for line in [
        "NoNewPrivs:\t1",
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000",
    ] {
        assert!(status.contains(line), "{line}");
    }
    proof(
        33,
        format!(
            "EPERM for {} calls under the lock; no capability, no new privileges",
            locked.len()
        ),
    );
}

#[test]
fn m34_no_host_file_is_readable() {
    let tried = operations("PR-MOUNT-1", "open(");
    assert!(
        tried.contains(&"open(/etc/shadow)") && tried.len() >= 5,
        "{tried:?}"
    );
    let errnos = denied("PR-MOUNT-1", &tried, &["ENOENT", "EACCES"]);
    let table = evidence()["raw"]["mountinfo"].as_str().unwrap();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    // What every container has: the root, the kernel's own, names for the network, and /tmp.
    let usual = ["/proc", "/sys", "/dev", "/tmp", "/etc"];
    let is_usual = |point: &str| {
        let below = |base: &&str| point == *base || point.starts_with(&format!("{base}/"));
        point == "/" || usual.iter().any(below)
    };
    let ours: BTreeSet<&str> = points.filter(|point| !is_usual(point)).collect();
    assert_eq!(ours, BTreeSet::from(["/in", "/out"]));
    proof(
        34,
        format!(
            "{errnos} for {}; the binds are /in and /out",
            tried.join(", ")
        ),
    );
}

#[test]
fn m35_no_engine_socket_is_reachable() {
    let tried = operations("PR-SOCK-DOCKER", "stat(");
    for engine in ["docker", "podman", "containerd", "crio"] {
        assert!(tried.iter().any(|one| one.contains(engine)), "{engine}");
    }
    let errnos = denied("PR-SOCK-DOCKER", &tried, &["ENOENT", "EACCES"]);
    let walked = values("PR-SOCK-DOCKER", "walk-for-sockets");
    assert!(
        !walked
            .iter()
            .any(|found| found.to_string().contains(".sock")),
        "{walked:?}"
    );
    proof(
        35,
        format!("{errnos} for {} paths; none found by walking", tried.len()),
    );
}

#[test]
fn m36_the_mount_table_cannot_be_changed() {
    let errnos = denied("PR-MOUNT-1", &["mount(2)", "umount2(/out)"], &["EPERM"]);
    let tables: BTreeSet<String> = values("PR-MOUNT-1", "mount-table")
        .iter()
        .map(|table| table.to_string())
        .collect();
    assert_eq!(
        tables.len(),
        1,
        "the table changed between the phases: {tables:?}"
    );
    proof(
        36,
        format!("{errnos} for mount and umount2; the table is the same afterwards"),
    );
}

#[test]
fn m37_no_process_is_traced_or_read() {
    let tried = [
        "ptrace(PTRACE_TRACEME)",
        "ptrace(PTRACE_ATTACH)",
        "process_vm_readv",
    ];
    let errnos = denied("PR-PTRACE-1", &tried, &["EPERM"]);
    proof(37, format!("{errnos} for {}", tried.join(", ")));
}
