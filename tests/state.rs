//! What runs remember: that an engine refuses the exec gate is found out once.

use crate::common::proxy::{Proxy, Reaction, Request};
use crate::common::{
    NOBODY, Said, evidence_in, names_in, passed_over, read_json, run, shared_engine, tool, verify,
    whole_engine,
};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use tki_evidence::remembered;

/// A directory for state, and the engine behind a proxy that counts.
struct Place {
    folder: tempfile::TempDir,
    proxy: Proxy,
}

impl Place {
    fn new() -> Self {
        Self::behind(Proxy::plain())
    }

    fn behind(proxy: Proxy) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, proxy }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn file(&self) -> PathBuf {
        self.state().join("tki-attest/gate.json")
    }

    fn tool(&self, arguments: &[&str]) -> Command {
        let mut command = tool();
        command.env("XDG_STATE_HOME", self.state()).args(arguments);
        command
    }

    /// A run; tells what it said, its evidence, and how many containers were created.
    fn attest(&self, arguments: &[&str]) -> (Said, PathBuf, usize) {
        let out = tempfile::tempdir_in(self.folder.path()).unwrap().keep();
        let before = self.proxy.count(Request::is_create);
        let mut command = self.tool(&["run", "--venue", "vps", "--controls", "none"]);
        command.args(["--engine", "docker", "--host", &self.proxy.host()]);
        let said = run(command.args(arguments).arg("--out").arg(&out));
        (said, out, self.proxy.count(Request::is_create) - before)
    }

    /// A run that writes evidence: the gate's reason, and how many containers were created.
    /// What else happens on the engine meanwhile is nothing to these tests.
    #[track_caller]
    fn reason(&self, arguments: &[&str]) -> (String, usize) {
        let (_, out, created) = self.attest(arguments);
        let evidence = read_json(&evidence_in(&out));
        let reason = evidence["sandbox"]["gate"]["reason"].as_str().unwrap();
        (reason.to_owned(), created)
    }

    /// The first run, after which the refusal is remembered. An engine that takes the gate
    /// has nothing to remember.
    #[track_caller]
    fn refused() -> Option<Self> {
        let place = Self::new();
        let (reason, created) = place.reason(&[]);
        if created == 1 {
            assert!(!place.state().exists());
            passed_over(&format!("this Docker takes the gate: {reason}"));
            return None;
        }
        assert_eq!(created, 2);
        assert!(reason.starts_with("the engine does not take it: "));
        Some(place)
    }

    /// Changes what is remembered.
    fn edit(&self, change: impl Fn(&mut Value)) {
        let mut value = read_json(&self.file());
        change(&mut value);
        fs::write(self.file(), value.to_string()).unwrap();
    }

    fn gate_column(&self, arguments: &[&str]) -> String {
        let mut command = self.tool(&["engines", "--format", "json", "--host"]);
        let said = run(command.arg(self.proxy.host()).args(arguments));
        said.succeeded();
        let rows: Value = serde_json::from_str(&said.stdout).unwrap();
        rows[0]["gate"].as_str().unwrap().to_owned()
    }
}

#[test]
fn the_second_run_does_not_try_and_its_evidence_says_so() {
    let _engine = shared_engine();
    let Some(place) = Place::refused() else {
        return;
    };
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&place.file()), 0o600);
    assert_eq!(mode(place.file().parent().unwrap()), 0o700);
    let before = fs::read(place.file()).unwrap();

    let (said, out, created) = place.attest(&[]);
    said.succeeded();
    assert_eq!((created, said.stderr.as_str()), (1, ""));
    let path = evidence_in(&out);
    let evidence = read_json(&path);
    let gate = &evidence["sandbox"]["gate"];
    assert_eq!(
        (&gate["active"], &gate["allowed"]),
        (&false.into(), &0.into())
    );
    let (words, _) = remembered::parse(gate["reason"].as_str().unwrap()).unwrap();
    assert!(words.contains("listenerPath"), "{gate}");
    let probes = evidence["probes"].as_array().unwrap();
    let exec = probes.iter().find(|probe| probe["probe_id"] == "PR-EXEC-1");
    assert_eq!(exec.unwrap()["enforced_by"], "inspector");
    verify(&path, &["--require-artifacts"]).succeeded();

    // Who requires the gate has it tried, and who wants none does not hear of it.
    let (said, _, created) = place.attest(&["--gate", "require"]);
    said.failed(3, "gate.unavailable");
    assert_eq!(created, 1);
    assert!(!said.stderr.contains("remembered"), "{said:?}");
    let off = place.reason(&["--gate", "off"]);
    assert_eq!(off, ("no gate was asked for".into(), 1));
    assert_eq!(fs::read(place.file()).unwrap(), before);
}

#[test]
fn another_engine_is_tried() {
    let _engine = shared_engine();
    let Some(place) = Place::refused() else {
        return;
    };
    for part in ["engine_version", "oci_runtime", "id", "tool_version"] {
        place.edit(|value| value["refused"][0]["by"][part] = "another".into());
        let (reason, created) = place.reason(&[]);
        assert_eq!(created, 2, "{part}: {reason}");
        // The other one stays remembered, beside this one.
        let refused = read_json(&place.file())["refused"].clone();
        assert_eq!(refused.as_array().unwrap().len(), 2, "{refused}");
        place.edit(|value| drop(value["refused"].as_array_mut().unwrap().remove(0)));
    }
    assert_eq!(place.reason(&[]).1, 1);
    // The same engine at another address may be another one.
    let place = Place {
        proxy: Proxy::plain(),
        ..place
    };
    assert_eq!(place.reason(&[]).1, 2);
}

#[test]
fn without_state_nothing_is_read_or_written() {
    let _engine = shared_engine();
    let Some(place) = Place::refused() else {
        return;
    };
    let before = fs::read(place.file()).unwrap();
    let (reason, created) = place.reason(&["--no-state"]);
    assert_eq!(created, 2, "{reason}");
    let told = place.gate_column(&["--no-state"]);
    assert_eq!(told, "if its runtime takes it (--try-gate tells)");
    assert_eq!(fs::read(place.file()).unwrap(), before);
    fs::remove_dir_all(place.state()).unwrap();
    place.reason(&["--no-state"]);
    place.gate_column(&["--no-state", "--try-gate"]);
    assert!(!place.state().exists());
}

#[test]
fn engines_tells_what_is_remembered_and_tries_again() {
    let _engine = shared_engine();
    let Some(place) = Place::refused() else {
        return;
    };
    place.edit(|value| value["refused"][0]["at"] = "2026-06-08T23:54:56Z".into());
    let told = place.gate_column(&[]);
    assert_eq!(told, "no (remembered since 2026-06-08; --try-gate tries)");
    let before = place.proxy.count(Request::is_create);
    let told = place.gate_column(&["--try-gate"]);
    assert!(
        told.starts_with("no: the engine does not take it"),
        "{told}"
    );
    assert_eq!(place.proxy.count(Request::is_create) - before, 2);
    let refused = read_json(&place.file())["refused"].clone();
    assert_eq!(refused.as_array().unwrap().len(), 1);
    assert_ne!(refused[0]["at"], "2026-06-08T23:54:56Z");
}

/// What was wrong with one container may be right with the next.
#[test]
fn a_start_that_fails_for_another_reason_is_not_remembered() {
    let _engine = shared_engine();
    let failed = AtomicBool::new(false);
    let place = Place::behind(Proxy::with(move |request| {
        match request.is_start() && !failed.swap(true, Ordering::SeqCst) {
            true => Reaction::Answer(500, r#"{"message":"no space left on device"}"#),
            false => Reaction::Pass,
        }
    }));
    let (reason, created) = place.reason(&[]);
    assert_eq!(created, 2);
    assert!(reason.ends_with("no space left on device"), "{reason}");
    assert!(!place.state().exists());
}

#[test]
fn what_another_user_could_have_written_is_ignored() {
    let _engine = shared_engine();
    let Some(place) = Place::refused() else {
        return;
    };
    let ignored = |why: &str| {
        let (said, out, created) = place.attest(&[]);
        assert_eq!(created, 2, "{said:?}");
        let note = format!("gate.json is ignored: {why}");
        assert!(said.stderr.contains(&note), "{said:?}");
        evidence_in(&out);
    };
    chown(place.file(), Some(NOBODY), None).unwrap();
    ignored("it belongs to user");
    // The directory is ours, so the file could be replaced.
    assert_eq!(place.reason(&[]).1, 1);
    fs::set_permissions(place.file(), fs::Permissions::from_mode(0o622)).unwrap();
    ignored("it is writable by others");
    fs::write(place.file(), "{}").unwrap();
    ignored("line 1, column 2: missing field");

    let folder = place.file().parent().unwrap().to_owned();
    fs::remove_file(place.file()).unwrap();
    chown(&folder, Some(NOBODY), None).unwrap();
    let (said, _, created) = place.attest(&[]);
    assert_eq!(created, 2);
    assert!(said.stderr.contains("is not remembered: "), "{said:?}");
    assert_eq!(names_in(&folder), [""; 0]);
}

#[test]
fn clean_removes_what_is_remembered_and_nothing_else() {
    let _engine = whole_engine();
    let Some(place) = Place::refused() else {
        return;
    };
    let clean = |arguments: &[&str]| {
        let said = run(place
            .tool(&["clean", "--engine", "embedded"])
            .args(arguments));
        said.succeeded();
        said.stdout
    };
    let (file, shown) = (place.file(), place.file().display().to_string());
    let foreign = file.with_file_name("notes");
    fs::write(&foreign, "foreign").unwrap();
    let planned = clean(&["--dry-run"]);
    assert!(planned.contains(&format!("would remove  state {shown}")));
    assert!(file.exists());
    chown(&file, Some(NOBODY), None).unwrap();
    let kept = clean(&[]);
    assert!(
        kept.contains(&format!("kept (not ours) state {shown}: it belongs")),
        "{kept}"
    );
    chown(&file, Some(0), None).unwrap();
    let removed = clean(&[]);
    assert!(
        removed.contains(&format!("removed       state {shown}")),
        "{removed}"
    );
    assert_eq!(names_in(file.parent().unwrap()), ["notes"]);
    assert!(!clean(&[]).contains("state"));

    fs::remove_file(&foreign).unwrap();
    assert_eq!(place.reason(&[]).1, 2);
    clean(&[]);
    assert_eq!(names_in(&place.state()), [""; 0]);
}
