//! Which engines are here, all of them side by side, and a host that has none.

use crate::common::podman::whole_podman;
use crate::common::{evidence_in, need, read_json, required, run, tool, verify, whole_engine};
use serde_json::Value;
use std::fs;
use std::process::Command;

const ALL: [&str; 4] = ["docker", "podman", "embedded", "bwrap"];

#[test]
fn engines_lists_what_is_here_and_finds_the_gate_by_trying() {
    let _locks = (whole_engine(), whole_podman());
    let said = run(tool().args(["engines", "--try-gate", "--format", "json"]));
    said.succeeded();
    let rows: Value = serde_json::from_str(&said.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|r| r["engine"].as_str().unwrap()).collect();
    assert_eq!(names, ALL);
    for row in rows {
        assert_eq!(row["usable"], true, "{row}");
        assert_ne!(row["version"], "", "{row}");
        let gate = row["gate"].as_str().unwrap();
        // Docker may pass `listenerPath` on or not; what it says is repeated.
        assert!(gate == "yes" || gate.starts_with("no: the engine does not take it"));
        if row["engine"] != "docker" {
            assert_eq!(gate, "yes", "{row}");
        }
    }
    let said = run(tool().arg("engines"));
    said.succeeded();
    assert!(said.stdout.starts_with("ENGINE    USABLE"), "{said:?}");
    assert!(said.stdout.contains("gives up: the control new-privileges"));
}

#[test]
fn every_engine_side_by_side() {
    let _locks = (whole_engine(), whole_podman());
    let out = tempfile::tempdir().unwrap();
    let said = run(tool()
        .args([
            "run",
            "--engine",
            "all",
            "--venue",
            "vps",
            "--controls",
            "none",
        ])
        .args(["--timeout", "300", "--out"])
        .arg(out.path()));
    said.succeeded();
    let heading = said.stdout.lines().next().unwrap();
    let columns: Vec<&str> = heading.split_whitespace().collect();
    assert_eq!(columns, [&["PROBE"], &ALL[..]].concat());
    let passes = |line: &&str| line.split_whitespace().skip(1).eq(["PASS"; 4]);
    assert_eq!(
        said.stdout.lines().filter(passes).count() as u64,
        required(false),
        "{said:?}"
    );
    let mut engines: Vec<String> = fs::read_dir(out.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .map(|path| {
            verify(&path, &["--require-artifacts"]).succeeded();
            read_json(&path)["runtime"]["engine"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    engines.sort();
    assert_eq!(engines, ["bwrap", "docker", "embedded", "podman"]);
}

/// No socket, no programs: the engine that is built in is enough.
#[test]
fn a_host_without_any_engine_attests_with_the_one_that_is_built_in() {
    let out = tempfile::tempdir().unwrap();
    let empty = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs none /run && PATH={} exec {} run --venue dev --out {}",
        empty.path().display(),
        env!("CARGO_BIN_EXE_tki-attest"),
        out.path().display()
    );
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", &script])
        .env_remove("DOCKER_HOST")
        .env_remove("CONTAINER_HOST")
        .env_remove("XDG_RUNTIME_DIR");
    let said = need("util-linux", &mut command);
    said.succeeded();
    let evidence = read_json(&evidence_in(out.path()));
    assert_eq!(evidence["runtime"]["engine"], "embedded");
    assert_eq!(evidence["status"], "SANDBOX_ATTESTED");
}

#[test]
fn commands_that_need_one_engine_refuse_all() {
    let said = run(tool().args(["clean", "--engine", "all"]));
    said.failed(3, "engine.unusable");
}

#[test]
fn a_gate_that_is_required_and_cannot_be_had_blocks() {
    let _engine = whole_engine();
    let out = tempfile::tempdir().unwrap();
    let said = run(tool()
        .args([
            "run", "--venue", "dev", "--engine", "docker", "--gate", "require", "--out",
        ])
        .arg(out.path()));
    // An engine that passes `listenerPath` on makes this a run like any other.
    if said.status == 0 {
        let evidence = read_json(&evidence_in(out.path()));
        assert_eq!(evidence["sandbox"]["gate"]["active"], true);
    } else {
        said.failed(3, "gate.unavailable");
        assert!(said.stderr.contains("listenerPath"), "{said:?}");
        assert_eq!(crate::common::names_in(out.path()), [""; 0]);
    }
}
