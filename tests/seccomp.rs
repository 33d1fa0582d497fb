//! Seccomp profiles on real engines: the smallest one that does, and what a weak one
//! lets through.

use crate::common::podman::shared_podman;
use crate::common::{attest, evidence_in, read_json, root, run, shared_engine, tool, verify};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tki_evidence::catalogue::floor;
use tki_evidence::{DENY_BY_DEFAULT, TARGETED_DENY};

/// The checked-in allow-list is what `derive` finds plus the margin that its own
/// rules name: nothing in it is a guess.
#[test]
fn deny_by_default_is_what_derive_finds_and_its_margin() {
    let _engine = shared_engine();
    let said = run(tool().args([
        "seccomp",
        "derive",
        "-q",
        "--timeout",
        "10",
        "--format",
        "json",
    ]));
    said.succeeded();
    let found: Value = serde_json::from_str(&said.stdout).unwrap();
    let list = |name: &str| -> BTreeSet<String> {
        let items = found[name].as_array().unwrap().iter();
        items
            .map(|item| item.as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(list("superfluous"), BTreeSet::new());
    let profile: Value = serde_json::from_str(tki_evidence::DENY_BY_DEFAULT).unwrap();
    let allowed: BTreeSet<String> = profile["syscalls"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|rule| rule["names"].as_array().unwrap())
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(&list("needed") | &list("margin"), allowed);
}

/// Where a profile says nothing about any call it may leave the key out. Both forms let
/// everything through, which the probes find on a real engine.
#[test]
fn a_profile_without_rules_is_the_same_with_and_without_the_key() {
    let _locks = (shared_engine(), shared_podman());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("open.json");
    for engine in ["docker", "podman"] {
        let found = ["", r#","syscalls":[]"#].map(|rules| {
            fs::write(
                &file,
                format!(r#"{{"defaultAction":"SCMP_ACT_ALLOW"{rules}}}"#),
            )
            .unwrap();
            let out = tempfile::tempdir_in(folder.path()).unwrap();
            let file = file.to_str().unwrap();
            let said = attest(
                out.path(),
                &["--venue", "dev", "--engine", engine, "--seccomp", file],
            );
            assert_eq!(said.status, 1, "{engine} {rules}: {said:?}");
            let evidence = read_json(&evidence_in(out.path()));
            assert_eq!(evidence["runtime"]["engine"], engine);
            let probes = evidence["probes"].as_array().unwrap().iter();
            let verdicts = probes.map(|probe| (probe["id"].clone(), probe["verdict"].clone()));
            verdicts.collect::<Vec<(Value, Value)>>()
        });
        assert_eq!(found[0], found[1], "{engine}");
        assert!(!found[0].is_empty());
    }
}

/// Both local engines, and those that need a service.
const ENGINES: [&str; 4] = ["docker", "podman", "embedded", "bwrap"];

/// The strict profile with more rules in front of its own.
fn opened(folder: &Path, rules: Vec<Value>) -> PathBuf {
    let mut profile: Value = serde_json::from_str(DENY_BY_DEFAULT).unwrap();
    let own = profile["syscalls"].as_array_mut().unwrap();
    own.splice(0..0, rules);
    let file = folder.join("opened.json");
    fs::write(&file, profile.to_string()).unwrap();
    file
}

fn allowed(name: &str, argument: Value) -> Value {
    json!({"names": [name], "action": "SCMP_ACT_ALLOW", "args": [argument]})
}

/// The reasons of the probe that sweeps all calls.
fn sweep_of(evidence: &Value) -> (String, String) {
    let probes = evidence["probes"].as_array().unwrap().iter();
    let mut sweep = probes.filter(|probe| probe["probe_id"] == "XP-ABI-SWEEP");
    let sweep = sweep.next().unwrap();
    (
        sweep["verdict"].as_str().unwrap().into(),
        sweep["reasons"].to_string(),
    )
}

/// A profile that lets a call through for other arguments than the probe's: nothing that is
/// tried succeeds, and the sandbox is none all the same.
#[test]
fn a_call_that_is_let_through_for_some_arguments_is_a_leak() {
    let _locks = (shared_engine(), shared_podman());
    let folder = tempfile::tempdir().unwrap();
    let equal =
        |index: u32, value: u64| json!({"index": index, "value": value, "op": "SCMP_CMP_EQ"});
    // SOCK_STREAM without flags, CLONE_NEWUSER with CLONE_NEWNET, and odd values.
    let rules = [
        ("socket", equal(1, 1)),
        ("unshare", equal(0, 0x5000_0000)),
        ("mount", equal(3, 4096)),
        ("bpf", equal(0, 5)),
        ("io_uring_setup", equal(0, 7)),
    ];
    for (number, (name, argument)) in rules.into_iter().enumerate() {
        let file = opened(folder.path(), vec![allowed(name, argument)]);
        let out = tempfile::tempdir_in(folder.path()).unwrap();
        let engine = ENGINES[number % ENGINES.len()];
        let file = file.to_str().unwrap();
        let arguments = ["--venue", "vps", "--engine", engine, "--controls", "none"];
        let said = attest(out.path(), &[&arguments[..], &["--seccomp", file]].concat());
        assert_eq!(said.status, 1, "{engine} {name}: {said:?}");
        let path = evidence_in(out.path());
        let evidence = read_json(&path);
        assert_eq!(evidence["status"], "SANDBOX_ATTESTATION_FAILED");
        let (verdict, reasons) = sweep_of(&evidence);
        assert_eq!(verdict, "FAIL");
        assert!(reasons.contains(&format!("{name} (depends)")), "{reasons}");
        // All other probes were taken in.
        let probes = evidence["probes"].as_array().unwrap().iter();
        let failed: Vec<&Value> = probes.filter(|probe| probe["verdict"] != "PASS").collect();
        assert_eq!(failed.len(), 1, "{engine} {name}: {failed:?}");
        let said = verify(&path, &["--seccomp", file]);
        assert_eq!(said.status, 1, "{said:?}");
        assert!(
            said.stdout.contains(&format!("{name} (depends)")),
            "{said:?}"
        );
    }
}

/// Calls of the floor that the kernel itself denies: it answers as the filter would.
#[test]
fn what_the_kernel_denies_by_itself_is_not_taken_for_the_filters_denial() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let all = json!({"names": floor::DENIED, "action": "SCMP_ACT_ALLOW"});
    let file = opened(folder.path(), vec![all]);
    let out = tempfile::tempdir_in(folder.path()).unwrap();
    let file = file.to_str().unwrap();
    let arguments = ["--venue", "dev", "--controls", "none", "--seccomp", file];
    assert_eq!(attest(out.path(), &arguments).status, 1);
    let evidence = read_json(&evidence_in(out.path()));
    let mut probes = evidence["probes"].as_array().unwrap().iter();
    let sweep = probes
        .find(|probe| probe["probe_id"] == "XP-ABI-SWEEP")
        .unwrap();
    let swept = sweep["observations"][0]["value"].as_str().unwrap();
    let by_kernel: Vec<&str> = floor::DENIED
        .iter()
        .copied()
        .filter(|name| {
            let number = tki_evidence::syscalls::number(name).unwrap();
            swept
                .split(' ')
                .any(|entry| entry == format!("{number}=EPERM"))
        })
        .collect();
    assert!(by_kernel.len() > 10, "{by_kernel:?}");
    for name in by_kernel {
        let file = opened(
            folder.path(),
            vec![json!({"names": [name], "action": "SCMP_ACT_ALLOW"})],
        );
        let out = tempfile::tempdir_in(folder.path()).unwrap();
        let file = file.to_str().unwrap();
        let arguments = [
            "--venue",
            "vps",
            "--engine",
            "embedded",
            "--controls",
            "none",
        ];
        let said = attest(out.path(), &[&arguments[..], &["--seccomp", file]].concat());
        assert_eq!(said.status, 1, "{name}: {said:?}");
        let (_, reasons) = sweep_of(&read_json(&evidence_in(out.path())));
        assert!(reasons.contains(&format!("{name} (allowed)")), "{reasons}");
    }
}

/// On every engine each denial of the profile's is shown to be the filter's.
#[test]
fn the_mark_says_which_layer_denied_each_call() {
    let _locks = (shared_engine(), shared_podman());
    let folder = tempfile::tempdir().unwrap();
    for (number, engine) in ENGINES.into_iter().enumerate() {
        let (name, text) = match number % 2 {
            0 => ("targeted-deny", TARGETED_DENY),
            _ => ("deny-by-default", DENY_BY_DEFAULT),
        };
        let out = tempfile::tempdir_in(folder.path()).unwrap();
        let arguments = ["--venue", "vps", "--engine", engine, "--seccomp", name];
        let arguments = [&arguments[..], &["--controls", "safe"]].concat();
        attest(out.path(), &arguments).succeeded();
        let path = evidence_in(out.path());
        verify(&path, &[]).succeeded();
        let evidence = read_json(&path);
        let list = |layer: &str| -> BTreeSet<&str> {
            let names = evidence["syscalls"][layer].as_array().unwrap().iter();
            names.map(|name| name.as_str().unwrap()).collect()
        };
        let filter = list("filter");
        for name in floor::DENIED {
            assert!(filter.contains(name), "{engine}: {name}");
        }
        let rules = tki_evidence::seccomp::Rules::parse(text.as_bytes()).unwrap();
        use tki_evidence::seccomp::About;
        for name in &filter {
            assert_ne!(rules.about(name), About::Allowed, "{engine}: {name}");
        }
        for name in &list("reached") | &list("kernel") {
            let denied = rules.about(name) == About::Denied;
            assert!(
                !denied || floor::UNFILTERED.contains(&name),
                "{engine}: {name}"
            );
        }
        assert!(list("reached").contains("write"), "{engine}");
        let marks = path.with_extension("").join("control-marks.ndjson");
        assert!(fs::read_to_string(marks).unwrap().contains("ERRNO_1009"));
    }
}

/// A filter that lets execve through only for the engine's own pointers looks like a gate.
#[test]
fn without_a_gate_the_launcher_enforces_nothing() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let mut profile: Value = serde_json::from_str(DENY_BY_DEFAULT).unwrap();
    let rules = profile["syscalls"].as_array_mut().unwrap();
    let exec = rules
        .iter_mut()
        .find(|rule| rule["names"] == json!(["execve"]));
    exec.unwrap()["args"] = json!([{"index": 0, "value": 1u64 << 32, "op": "SCMP_CMP_GT"}]);
    let file = folder.path().join("pointers.json");
    fs::write(&file, profile.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let policy = folder.path().join("policy.toml");
    fs::write(
        &policy,
        "schema = \"tki-attest/policy/v1\"\ngate = \"launcher\"\n",
    )
    .unwrap();
    for engine in ["docker", "embedded"] {
        let out = tempfile::tempdir_in(folder.path()).unwrap();
        let arguments = ["--venue", "vps", "--engine", engine, "--controls", "none"];
        let more = ["--gate", "off", "--seccomp", file];
        attest(out.path(), &[&arguments[..], &more].concat()).succeeded();
        let path = evidence_in(out.path());
        let evidence = read_json(&path);
        let mut probes = evidence["probes"].as_array().unwrap().iter();
        let exec = probes
            .find(|probe| probe["probe_id"] == "PR-EXEC-1")
            .unwrap();
        let engine_phase = exec["observations"].as_array().unwrap().iter();
        let engine_phase = engine_phase.filter(|seen| seen["phase"] == "engine");
        let errnos: BTreeSet<&str> = engine_phase
            .map(|seen| seen["errno"].as_str().unwrap())
            .collect();
        assert_eq!(errnos, BTreeSet::from(["EPERM"]), "{engine}");
        assert_eq!(exec["enforced_by"], "inspector", "{engine}");
        let policy = ["--policy", policy.to_str().unwrap(), "--seccomp", file];
        let said = verify(&path, &policy);
        assert_eq!(said.status, 3, "{said:?}");
    }
}

/// Profiles as engines ship them are read, run, and found wanting; nothing about their form
/// is refused.
#[test]
fn shipped_profiles_are_read_and_judged() {
    let _locks = (shared_engine(), shared_podman());
    let folder = tempfile::tempdir().unwrap();
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let shipped = [
        (target.join("profiles/docker.json"), "docker"),
        (target.join("profiles/docker.json"), "embedded"),
        (target.join("profiles/docker-old-format.json"), "docker"),
        (target.join("profiles/docker-old-format.json"), "embedded"),
        (
            PathBuf::from("/usr/share/containers/seccomp.json"),
            "podman",
        ),
        (PathBuf::from("/usr/share/containers/seccomp.json"), "bwrap"),
    ];
    for (file, engine) in shipped {
        if !file.exists() {
            crate::common::lacking(&format!("{}: `make test` puts it there", file.display()));
            continue;
        }
        let file = file.to_str().unwrap();
        let said = run(tool().args(["seccomp", "lint", "--format", "json", file]));
        assert_eq!(said.status, 1, "{said:?}");
        run(tool().args(["seccomp", "explain", file])).succeeded();
        let out = tempfile::tempdir_in(folder.path()).unwrap();
        let arguments = ["--venue", "dev", "--engine", engine, "--controls", "none"];
        let said = attest(out.path(), &[&arguments[..], &["--seccomp", file]].concat());
        assert_eq!(said.status, 1, "{file} {engine}: {said:?}");
        let (verdict, reasons) = sweep_of(&read_json(&evidence_in(out.path())));
        assert_eq!(verdict, "FAIL", "{file} {engine}");
        // Opened by capabilities that this sandbox does not have.
        assert!(reasons.contains("socket"), "{reasons}");
        assert!(
            !reasons.contains(" acct") && !reasons.contains("init_module"),
            "{reasons}"
        );
    }
}
