//! A container, a conversation, times and names that no run has. Every forgery comes
//! with the digests, the derived fields and the stamp that go with it.

use super::controls::Forgery;
use super::{copy, write_restamped};
use crate::common::{attest, evidence_in, read_json, root, run, shared_engine, tool, verify};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The container's description, edited and listed again.
fn with_container(mut forged: Forgery, change: impl FnOnce(&mut Value)) -> Forgery {
    let mut described = read_json(&forged.file("container.json"));
    change(&mut described);
    let text = serde_json::to_vec_pretty(&described).unwrap();
    forged.write_file("container.json", &text);
    forged
}

fn set(value: &mut Value, pointer: &str, to: Value) {
    let (above, last) = pointer.rsplit_once('/').unwrap();
    value.pointer_mut(above).unwrap()[last] = to;
}

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
            "its program is not the inspector",
        ),
        (
            "/Args".into(),
            json!(["probe", "x"]),
            "its program is not the inspector",
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
        let forged = with_container(Forgery::new(), |container| set(container, &pointer, to));
        forged.refused_by("EV-CONTAINER", 1, wanted);
    }
}

#[test]
fn a_description_that_says_two_things_is_none() {
    let mut forged = Forgery::new();
    let text = fs::read_to_string(forged.file("container.json")).unwrap();
    let twice = text.replace(
        "\"Privileged\": false",
        "\"Privileged\": true, \"Privileged\": false",
    );
    assert_ne!(text, twice);
    forged.write_file("container.json", twice.as_bytes());
    forged.refused_by("EV-CONTAINER", 1, "twice");
    for bytes in [&b""[..], b"[]", b"{}", b"\xff", b"null"] {
        let mut forged = Forgery::new();
        forged.write_file("container.json", bytes);
        forged.refused_by("EV-CONTAINER", 1, "");
    }
}

/// Another engine's name over the same facts.
#[test]
fn an_engine_that_is_called_another_is_noticed() {
    for engine in ["podman", "embedded", "bwrap", "lxc", ""] {
        let mut forged = Forgery::new();
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

/// What the local engines and Podman write down is read back in the same way.
#[test]
fn what_other_engines_say_of_another_container_is_noticed() {
    type Edit = (&'static str, Value, &'static str);
    let local: Vec<Edit> = vec![
        (
            "/kernel/status",
            json!("NoNewPrivs:\t0\n"),
            "no_new_privileges is",
        ),
        ("/kernel/limits", json!(""), "ulimits is"),
        ("/kernel/output", json!(["pipe:[1]", "/x"]), "log_driver is"),
        ("/kernel/groups/pids", json!("max"), "pids_limit is"),
        ("/made/seccomp", json!("unconfined"), "seccomp is"),
        ("/name", json!("postgres"), "its name is"),
        ("/image", json!("sha256:00"), "its image is"),
        ("/labels/dev.tki.attest.role", json!("control"), "role is"),
        ("/more", json!(1), "no description"),
    ];
    let podman: Vec<Edit> = vec![
        (
            "/inspect/HostConfig/Privileged",
            json!(true),
            "privileged is",
        ),
        ("/inspect/Name", json!("postgres"), "its name is"),
        ("/inspect/OCIRuntime", json!("kata"), "its OCI runtime is"),
        (
            "/oci_config/process/noNewPrivileges",
            json!(false),
            "no_new_privileges is",
        ),
        ("/oci_config/linux/namespaces", json!([]), "network is"),
        ("/oci_config/linux/seccomp", json!(null), "seccomp is"),
        (
            "/oci_config/process/args",
            json!(["/bin/sh"]),
            "its program is",
        ),
        ("/profile", json!(null), "seccomp is"),
    ];
    let _engine = shared_engine();
    for (engine, edits) in [("embedded", &local), ("bwrap", &local), ("podman", &podman)] {
        let out = tempfile::tempdir().unwrap();
        attest(out.path(), &["--venue", "vps", "--engine", engine]).succeeded();
        let path = evidence_in(out.path());
        verify(&path, &[]).succeeded();
        for (pointer, to, wanted) in edits {
            let forged = with_container(Forgery::of(&path), |container| {
                set(container, pointer, to.clone());
            });
            forged.refused_by("EV-CONTAINER", 1, wanted);
        }
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
        let mut forged = Forgery::new();
        let mut lines = forged.lines("transcript.ndjson");
        set(&mut lines[line], pointer, to);
        forged.write("transcript.ndjson", &lines);
        forged.refused_by("EV-TRANSCRIPT", 1, wanted);
    }
    for (elapsed, wanted) in [
        (0, "no time"),
        (9_000_000_000_000_000_u64, "longer than the run"),
    ] {
        let mut forged = Forgery::new();
        let mut lines = forged.lines("transcript.ndjson");
        lines.last_mut().unwrap()["done"]["elapsed_us"] = elapsed.into();
        forged.write("transcript.ndjson", &lines);
        forged.refused_by("EV-TRANSCRIPT", 1, wanted);
    }
}

/// Whoever misses everything says so twice, and is still shown wrong by the texts.
#[test]
fn an_inspector_misses_what_its_texts_show_to_be_missing() {
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
        let mut forged = Forgery::new();
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
    let mut forged = Forgery::new();
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
            "lock: the inspector is of another version",
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
        let mut forged = Forgery::new();
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
        let mut forged = Forgery::new();
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

fn lines_of(path: &Path, flags: &[&str], code: &str) -> (i32, String) {
    let said = verify(path, flags);
    let step = said.stdout.lines().find(|line| line.contains(code));
    (said.status, step.unwrap_or_default().to_owned())
}

/// A profile counts if it is built in or if the verifier names it.
#[test]
fn a_profile_that_nobody_names_is_blocked() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.json");
    let text = fs::read_to_string(root().join("seccomp/deny-by-default.json")).unwrap();
    fs::write(&own, format!("{text}\n")).unwrap();
    let own = own.to_str().unwrap();
    let request = folder.path().join("request.json");
    let request = request.to_str().unwrap();
    let mut asking = tool();
    asking.args([
        "request",
        "--venue",
        "vps",
        "--seccomp",
        own,
        "--out",
        request,
    ]);
    run(&mut asking).succeeded();
    let flags = ["--venue", "vps", "--seccomp", own, "--request", request];
    attest(folder.path(), &flags).succeeded();
    let is_evidence = |name: &String| name.starts_with("sandbox-") && name.ends_with(".json");
    let mut names = crate::common::names_in(folder.path()).into_iter();
    let path = folder.path().join(names.find(is_evidence).unwrap());

    let (status, step) = lines_of(&path, &[], "EV-SECCOMP");
    assert!(status == 3 && step.starts_with("BLOCKED "), "{step}");
    let policy = folder.path().join("policy.toml");
    let sha256 = read_json(&path)["seccomp_sha256"].clone();
    let text = format!("schema = \"tki-attest/policy/v1\"\nseccomp_sha256 = [{sha256}]\n");
    fs::write(&policy, text).unwrap();
    let policy = policy.to_str().unwrap();
    for flags in [
        ["--seccomp", own],
        ["--policy", policy],
        ["--request", request],
    ] {
        verify(&path, &flags).succeeded();
    }
    let text = "schema = \"tki-attest/policy/v1\"\nseccomp_sha256 = [\"x\"]\n";
    fs::write(policy, text).unwrap();
    verify(&path, &["--policy", policy]).failed(2, "policy.malformed");

    // A name is no profile, whatever the verifier names.
    let mut value = read_json(&path);
    value["seccomp_profile"] = "deny-by-default".into();
    write_restamped(&path, value);
    for flags in [&[][..], &["--seccomp", own]] {
        let (status, step) = lines_of(&path, flags, "EV-SECCOMP");
        assert!(status == 1 && step.starts_with("FALSE "), "{step}");
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
