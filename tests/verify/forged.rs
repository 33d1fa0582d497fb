//! A container, a conversation, times and names that no run has. Every forgery comes
//! with the digests, the derived fields and the stamp that go with it.

use super::controls::forgery;
use super::copy;
use crate::common::bundle::write_restamped;
use crate::common::forgery::{set, with_container};
use crate::common::{read_json, verify};
use serde_json::{Value, json};
use std::fs;

#[test]
fn what_docker_says_of_another_container_is_noticed() {
    let label = "/Config/Labels/dev.tki.attest";
    for (pointer, to, wanted) in [
        (
            "/HostConfig/Privileged".into(),
            json!(true),
            "privileged is true, not false",
        ),
        (
            "/HostConfig/NetworkMode".into(),
            json!("host"),
            "network is",
        ),
        ("/HostConfig/PidMode".into(), json!("host"), "pid is"),
        (
            "/HostConfig/CapAdd".into(),
            json!(["SYS_ADMIN"]),
            "cap_add is",
        ),
        (
            "/HostConfig/SecurityOpt".into(),
            json!(["seccomp=unconfined"]),
            "no_new_privileges is",
        ),
        (
            "/HostConfig/GroupAdd".into(),
            json!(["docker"]),
            "security_options is",
        ),
        (
            "/HostConfig/Mounts/0/Source".into(),
            json!("/"),
            "security_options is",
        ),
        (
            "/Mounts/0/Propagation".into(),
            json!("rshared"),
            "security_options is",
        ),
        (
            "/HostConfig/MaskedPaths".into(),
            json!([]),
            "system_paths_masked is",
        ),
        (
            "/HostConfig/Runtime".into(),
            json!("kata"),
            "its OCI runtime is",
        ),
        ("/Mounts".into(), json!([]), "binds is"),
        ("/Config/User".into(), json!("0:0"), "user is"),
        ("/Config/Hostname".into(), json!("other"), "hostname is"),
        ("/Name".into(), json!("/postgres"), "its name is"),
        ("/Image".into(), json!("sha256:00"), "its image is"),
        (
            "/Path".into(),
            json!("/bin/sh"),
            "its program is not the prober",
        ),
        (
            "/Args".into(),
            json!(["probe", "x"]),
            "its program is not the prober",
        ),
        (format!("{label}.run"), json!("x"), "dev.tki.attest.run is"),
        (
            format!("{label}.role"),
            json!("control"),
            "dev.tki.attest.role is",
        ),
        (
            format!("{label}.deadline"),
            json!("1"),
            "dev.tki.attest.deadline is",
        ),
        (
            format!("{label}.deadline"),
            json!("99999999999"),
            "dev.tki.attest.deadline is",
        ),
        (
            format!("{label}.deadline"),
            json!("never"),
            "dev.tki.attest.deadline is",
        ),
    ] {
        let forged = with_container(forgery(), |container| set(container, &pointer, to));
        forged.refused_by("EV-CONTAINER", 1, wanted);
    }
}

#[test]
fn a_description_that_says_two_things_is_none() {
    let mut forged = forgery();
    let text = fs::read_to_string(forged.file("container.json")).unwrap();
    let twice = text.replace(
        "\"Privileged\": false",
        "\"Privileged\": true, \"Privileged\": false",
    );
    assert_ne!(text, twice);
    forged.write_file("container.json", twice.as_bytes());
    forged.refused_by("EV-CONTAINER", 1, "twice");
    for bytes in [&b""[..], b"[]", b"{}", b"\xff", b"null"] {
        let mut forged = forgery();
        forged.write_file("container.json", bytes);
        forged.refused_by("EV-CONTAINER", 1, "");
    }
}

/// Another engine's name over the same facts.
#[test]
fn an_engine_that_is_called_another_is_noticed() {
    for engine in ["podman", "embedded", "bwrap", "lxc", ""] {
        let mut forged = forgery();
        forged.value["runtime"]["engine"] = engine.into();
        forged.derive();
        write_restamped(&forged.path, forged.value);
        let said = verify(&forged.path, &[]);
        assert_eq!(said.status, 1, "{engine}: {said:?}");
        let lines = said.stdout.lines();
        let mut steps = lines.filter(|line| line.starts_with("FALSE       EV-CONTAINER"));
        assert!(steps.next().is_some(), "{engine}: {said:?}");
    }
}

/// Every field of the run's challenge, greeting and end.
#[test]
fn a_conversation_that_no_run_has_is_noticed() {
    for (line, pointer, to, wanted) in [
        (
            1,
            "/challenge/protocol",
            json!(2),
            "the challenge's protocol",
        ),
        (
            1,
            "/challenge/phases",
            json!(["engine"]),
            "the challenge's phases",
        ),
        (
            1,
            "/challenge/phases",
            json!(["locked", "engine"]),
            "the challenge's phases",
        ),
        (
            1,
            "/challenge/probe_deadline_ms",
            json!(1),
            "probe_deadline_ms",
        ),
        (
            1,
            "/challenge/overall_deadline_ms",
            json!(0),
            "overall_deadline_ms",
        ),
        (
            1,
            "/challenge/overall_deadline_ms",
            json!(600_001),
            "overall_deadline_ms",
        ),
        (1, "/challenge/env_canary", json!(""), "env_canary"),
        (1, "/challenge/env_canary", json!("PATH"), "env_canary"),
        (1, "/challenge/host_canary", json!(""), "host_canary"),
        (1, "/challenge/host_canary", json!("/a/../b"), "host_canary"),
        (1, "/challenge/limits/pids", json!(1), "another limit, pids"),
        (
            1,
            "/challenge/limits/memory_bytes",
            json!(1),
            "another limit, memory_bytes",
        ),
        (
            1,
            "/challenge/limits/tmp_bytes",
            json!(1),
            "another limit, tmp_bytes",
        ),
        (
            1,
            "/challenge/limits/nofile",
            json!(1),
            "another limit, nofile",
        ),
        (
            1,
            "/challenge/limits/cpu_period_us",
            json!(1),
            "another limit, cpu_period_us",
        ),
        (
            1,
            "/challenge/limits/cpu_quota_us",
            json!(1),
            "another limit, cpu_quota_us",
        ),
        (
            1,
            "/challenge/limits/out_bytes",
            json!(1),
            "another limit, out_bytes",
        ),
        (
            1,
            "/challenge/limits/out_bytes",
            json!(0),
            "another limit, out_files",
        ),
        (
            1,
            "/challenge/limits/out_files",
            json!(1),
            "another size of /out",
        ),
        (
            1,
            "/challenge/limits/tmp_files",
            json!(1),
            "another limit, tmp_files",
        ),
        (
            1,
            "/challenge/limits/out_bytes",
            json!(1 << 30),
            "another size of /out",
        ),
        (
            1,
            "/challenge/accept_missing",
            json!(["non-root"]),
            "let off other invariants",
        ),
        (
            0,
            "/hello/version",
            json!("0.1.0"),
            "another version than the tool",
        ),
        (
            0,
            "/hello/missing",
            json!(["non-root"]),
            "let off other invariants",
        ),
    ] {
        let mut forged = forgery();
        let mut lines = forged.lines("transcript.ndjson");
        set(&mut lines[line], pointer, to);
        forged.write("transcript.ndjson", &lines);
        forged.refused_by("EV-TRANSCRIPT", 1, wanted);
    }
    for (elapsed, wanted) in [
        (0, "no time"),
        (9_000_000_000_000_000_u64, "longer than the run"),
    ] {
        let mut forged = forgery();
        let mut lines = forged.lines("transcript.ndjson");
        lines.last_mut().unwrap()["done"]["elapsed_us"] = elapsed.into();
        forged.write("transcript.ndjson", &lines);
        forged.refused_by("EV-TRANSCRIPT", 1, wanted);
    }
}

/// A forger who denies everything says so twice, and is still shown wrong by the texts.
#[test]
fn a_prober_misses_what_its_texts_show_to_be_missing() {
    let missing = json!([
        "in-read-only",
        "rootfs-read-only",
        "network-none",
        "non-root"
    ]);
    for file in [
        "transcript.ndjson",
        "control-lock.ndjson",
        "control-input.ndjson",
    ] {
        let mut forged = forgery();
        let mut lines = forged.lines(file);
        lines[0]["hello"]["missing"] = missing.clone();
        lines[1]["challenge"]["accept_missing"] = missing.clone();
        forged.write(file, &lines);
        let code = match file {
            "transcript.ndjson" => "EV-TRANSCRIPT",
            _ => "EV-CONTROLS",
        };
        forged.refused_by(code, 1, "misses other invariants than its texts show");
    }
}

#[test]
fn a_control_of_another_host_is_noticed() {
    let file = "control-lock.ndjson";
    let mut forged = forgery();
    let mut lines = forged.lines(file);
    let version = lines
        .iter_mut()
        .find(|line| line["raw"]["name"] == "proc_version");
    version.unwrap()["raw"]["text"] = "Linux version 4.4.0 (x@y)\n".into();
    forged.write(file, &lines);
    forged.refused_by("EV-CONTROLS", 1, "lock: it ran on another kernel");
    for (line, pointer, to, wanted) in [
        (
            0,
            "/hello/version",
            json!("9.9.9"),
            "lock: the prober is of another version",
        ),
        (
            1,
            "/challenge/protocol",
            json!(7),
            "lock: the challenge's protocol",
        ),
        (
            1,
            "/challenge/phases",
            json!(["engine"]),
            "lock: the challenge's phases",
        ),
        (
            1,
            "/challenge/overall_deadline_ms",
            json!(0),
            "lock: the challenge's overall",
        ),
    ] {
        let mut forged = forgery();
        let mut lines = forged.lines(file);
        set(&mut lines[line], pointer, to);
        forged.write(file, &lines);
        forged.refused_by("EV-CONTROLS", 1, wanted);
    }
}

#[test]
fn times_and_ids_that_no_run_has_are_noticed() {
    let (_folder, path) = copy();
    let real = read_json(&path);
    let id = real["run_id"].as_str().unwrap();
    for (field, to, wanted) in [
        (
            "started",
            "1970-01-01T00:00:00Z".to_owned(),
            "there was no evidence then",
        ),
        (
            "started",
            "2026-01-01T00:00:00Z".to_owned(),
            "no run takes that long",
        ),
        (
            "started",
            "2099-01-01T00:00:00Z".to_owned(),
            "it ended before it began",
        ),
        (
            "finished",
            "2032-01-01T00:00:00Z".to_owned(),
            "no run takes that long",
        ),
        ("finished", "yesterday".to_owned(), "a time that is none"),
        ("run_id", String::new(), "the run's id"),
        ("run_id", format!("{id}\u{1b}[2J"), "the run's id"),
        ("run_id", id.replace("2026", "2027"), "the run's id"),
        ("run_id", id.to_uppercase(), "the run's id"),
    ] {
        let mut value = real.clone();
        value[field] = to.clone().into();
        write_restamped(&path, value);
        let said = verify(&path, &[]);
        assert_eq!(said.status, 1, "{to}: {said:?}");
        let lines = said.stdout.lines();
        let mut steps = lines.filter(|line| line.starts_with("FALSE       EV-TIME"));
        let step = steps.next().unwrap_or_else(|| panic!("{to}: {said:?}"));
        assert!(step.contains(wanted), "{to}: {step}");
        assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
    }
}

/// The command line is for people, who would believe it.
#[test]
fn a_command_line_that_does_not_follow_is_noticed() {
    type Change = fn(&mut Vec<Value>);
    let changes: [Change; 4] = [
        |line| line.insert(8, "--privileged".into()),
        |line| drop(line.pop()),
        |line| {
            let label = |word: &&mut Value| word.as_str().unwrap().contains("attest.deadline=");
            *line.iter_mut().find(label).unwrap() = "--label=dev.tki.attest.deadline=1".into();
        },
        |line| {
            let label = |word: &&mut Value| word.as_str().unwrap().contains("attest.deadline=");
            let word = line.iter_mut().find(label).unwrap();
            let (name, number) = word.as_str().unwrap().rsplit_once('=').unwrap();
            let number = number.parse::<u64>().unwrap() - 1;
            *word = format!("{name}={number}").into();
        },
    ];
    for change in changes {
        let mut forged = forgery();
        let line = &mut forged.value["sandbox"]["command_line"];
        change(line.as_array_mut().unwrap());
        forged.refused_by("EV-SANDBOX", 1, "command_line does not follow");
    }
}

/// Evidence is read by the version that wrote it, and another's form is not wrong.
#[test]
fn evidence_of_another_version_is_blocked_and_not_malformed() {
    let (_folder, path) = copy();
    let real = read_json(&path);
    for (version, whole, wanted) in [
        ("0.1.0", true, "SECURITY.md"),
        ("0.1.0", false, "SECURITY.md"),
        ("0.1.7", false, "SECURITY.md"),
        ("0.3.0", true, "0.3.0 wrote it"),
        ("1.0.0", false, "1.0.0 wrote it"),
    ] {
        let mut value = real.clone();
        value["tool"]["version"] = version.into();
        if !whole {
            let declared = value["sandbox"]["declared"].as_object_mut().unwrap();
            declared.remove("security_options").unwrap();
            value["new"] = json!({"field": 1});
        }
        write_restamped(&path, value);
        for flags in [&[][..], &["--evidence-only"]] {
            let said = verify(&path, flags);
            assert_eq!(said.status, 3, "{version}: {said:?}");
            let lines = said.stdout.lines();
            let blocked: Vec<&str> = lines.filter(|l| l.starts_with("BLOCKED ")).collect();
            let [step] = blocked[..] else {
                panic!("{version}: {said:?}")
            };
            let fits = step.contains("EV-VERSION") && step.contains(wanted);
            assert!(fits, "{version}: {step}");
        }
    }
    // What says that it is of this version must have this version's form.
    let mut value = real.clone();
    value["new"] = 1.into();
    write_restamped(&path, value);
    verify(&path, &[]).failed(2, "evidence.malformed");
    for (field, to) in [("name", "other-tool"), ("version", "0.2"), ("version", "")] {
        let mut value = real.clone();
        value["tool"][field] = to.into();
        write_restamped(&path, value);
        assert_eq!(verify(&path, &[]).status, 3, "{field} {to}");
    }
}

/// How long ago is counted from the start, which the end cannot hide.
#[test]
fn the_age_of_a_run_is_that_of_its_start() {
    let (_folder, path) = copy();
    let started = read_json(&path)["started"].as_str().unwrap().to_owned();
    let started = tki_attest::clock::parse_rfc3339(&started).unwrap();
    let later = tki_attest::clock::rfc3339(started + 100);
    let flags = ["--verify-time", later.as_str(), "--max-age"];
    for (age, status) in [("100s", 0), ("99s", 3)] {
        let flags = [&flags[..], &[age]].concat();
        assert_eq!(verify(&path, &flags).status, status, "{age}");
    }
}
