//! Probes that can fail: every control flips exactly its set on the real engine,
//! every weakened profile makes a probe fail, and the evidence of it all is
//! recomputed from the controls' own conversations.

use crate::common::{
    attest, evidence_in, read_json, run, shared_engine, tool, verify, whole_engine,
};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tki_evidence::controls::CONTROLS;

fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().unwrap();
    items
        .iter()
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_control_flips_its_set_under_both_profiles() {
    let _engine = whole_engine();
    for profile in ["deny-by-default", "targeted-deny"] {
        let out = tempfile::tempdir().unwrap();
        // No --controls: on an approved venue they are the default.
        let mut command = tool();
        command.args([
            "run",
            "--venue",
            "vps",
            "--timeout",
            "300",
            "--seccomp",
            profile,
        ]);
        let said = run(command.arg("--out").arg(out.path()));
        said.succeeded();
        let path = evidence_in(out.path());
        let evidence = read_json(&path);
        let controls = evidence["controls"].as_array().unwrap();
        assert_eq!(controls.len(), CONTROLS.len());
        assert_eq!(evidence["summary"]["passed"], 52);
        for (result, control) in controls.iter().zip(CONTROLS) {
            assert_eq!(result["control"], control.name);
            let flipped = strings(&result["flipped"]);
            let unproven = strings(&result["unproven"]);
            assert!(
                control.flips(&flipped, &unproven),
                "{}: {flipped:?} {unproven:?}",
                control.name
            );
            assert_eq!(result["holds"], true, "{result}");
        }
        // Every probe was made to fail, or the catalogue says why it was not.
        for probe in evidence["probes"].as_array().unwrap() {
            let id = probe["probe_id"].as_str().unwrap();
            let spec = tki_evidence::catalogue::find(id).unwrap();
            let calibrated = !probe["calibrated_by"].as_array().unwrap().is_empty();
            let kernel_dependent = id.starts_with("XP-ABI-");
            assert!(
                calibrated || spec.uncalibrated.is_some() || kernel_dependent,
                "{id}"
            );
            assert_eq!(calibrated, probe["layers"] != 0, "{id}");
        }
        let said = verify(&path, &["--require-artifacts"]);
        said.succeeded();
        assert!(said.stdout.contains("each flips its set"), "{said:?}");
        a_changed_control_is_refused(&path, &evidence);
    }
}

/// Controls that were left out, or whose result was changed, are noticed even
/// under a new stamp.
fn a_changed_control_is_refused(path: &Path, evidence: &Value) {
    let refused = |change: &dyn Fn(&mut Value), wanted: &str| {
        let mut edited = evidence.clone();
        change(&mut edited);
        let edited_path = path.with_file_name("edited.json");
        crate::verify::restamp(&mut edited);
        fs::write(&edited_path, edited.to_string()).unwrap();
        let said = verify(&edited_path, &[]);
        assert!([1, 3].contains(&said.status), "{wanted}: {said:?}");
        fs::remove_file(&edited_path).unwrap();
    };
    refused(
        &|e| drop(e["controls"].as_array_mut().unwrap().pop()),
        "one is gone",
    );
    refused(
        &|e| e["controls"][0]["flipped"] = json!([]),
        "nothing flipped",
    );
    refused(
        &|e| e["controls"][0]["must_flip"] = json!([]),
        "nothing must flip",
    );
    refused(
        &|e| e["controls"][1]["artifact_path"] = e["controls"][0]["artifact_path"].clone(),
        "another control's conversation",
    );
}

#[test]
fn the_host_the_engine_and_the_inspector_agree() {
    let _engine = shared_engine();
    let out = tempfile::tempdir().unwrap();
    attest(out.path(), &["--venue", "dev"]);
    let evidence = read_json(&evidence_in(out.path()));
    let witnesses = &evidence["witnesses"];
    assert_eq!(witnesses["outside"]["available"], true);
    let agreement = witnesses["agreement"].as_array().unwrap();
    for wanted in [
        "network",
        "user",
        "seccomp",
        "capabilities",
        "binds",
        "limit.pids",
    ] {
        let row = agreement.iter().find(|row| row["fact"] == wanted);
        let row = row.unwrap_or_else(|| panic!("{wanted} is not among {agreement:?}"));
        assert_eq!(row["agree"], true, "{row}");
        assert!(row["outside"].is_string(), "{row}");
    }
    let fresh = agreement.iter().filter(|row| {
        row["fact"].as_str().unwrap().starts_with("namespace.") && row["inside"] == row["outside"]
    });
    assert!(fresh.count() >= 7, "{agreement:?}");
}

/// Runs with a profile; gives the probes that did not pass.
fn not_passing(profile: &Value) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("profile.json");
    fs::write(&file, profile.to_string()).unwrap();
    let out = folder.path().join("out");
    let said = attest(
        &out,
        &["--venue", "dev", "--seccomp", file.to_str().unwrap()],
    );
    assert_eq!(
        said.status, 1,
        "a weakened profile was not disproved: {said:?}"
    );
    let evidence = read_json(&evidence_in(&out));
    let probes = evidence["probes"].as_array().unwrap();
    probes
        .iter()
        .filter(|probe| probe["verdict"] == "FAIL")
        .map(|probe| probe["probe_id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn targeted_deny_without_any_one_of_its_rules_fails_a_probe() {
    let _engine = shared_engine();
    let whole: Value = serde_json::from_str(tki_evidence::TARGETED_DENY).unwrap();
    for index in 0..whole["syscalls"].as_array().unwrap().len() {
        let mut weaker = whole.clone();
        let gone = weaker["syscalls"].as_array_mut().unwrap().remove(index);
        let failed = not_passing(&weaker);
        assert!(!failed.is_empty(), "nothing failed without {gone}");
    }
}

#[test]
fn deny_by_default_with_one_more_call_fails_a_probe() {
    let _engine = shared_engine();
    let whole: Value = serde_json::from_str(tki_evidence::DENY_BY_DEFAULT).unwrap();
    // One call of each kind that a probe of its own, or the sweep, covers.
    for (call, probe) in [
        ("socket", "PR-NET-1"),
        ("ptrace", "PR-PTRACE-1"),
        ("process_vm_readv", "PR-PTRACE-1"),
        ("io_uring_enter", "XP-URING"),
        ("keyctl", "XP-KEYRING"),
        ("quotactl", "XP-ADMIN"),
        ("name_to_handle_at", "XP-HANDLES"),
        ("kcmp", "XP-PROCESSES"),
        ("personality", "XP-PERSONALITY"),
        ("ioctl", "XP-TTY"),
        ("chroot", "XP-MOUNT-API"),
        ("unshare", "XP-NS-MAKE"),
        ("clone3", "XP-NS-MAKE"),
        ("perf_event_open", "XP-PROGRAMS"),
        ("recvmsg", "XP-ABI-SWEEP"),
        ("mq_open", "XP-ABI-SWEEP"),
    ] {
        let mut weaker = whole.clone();
        let rule = json!({"names": [call], "action": "SCMP_ACT_ALLOW"});
        weaker["syscalls"].as_array_mut().unwrap().push(rule);
        let failed = not_passing(&weaker);
        assert!(failed.iter().any(|id| id == probe), "{call}: {failed:?}");
    }
}

#[test]
fn the_catalogue_names_a_control_or_a_reason_for_each_probe() {
    let said = run(tool().args(["probes", "--format", "json"]));
    said.succeeded();
    let rows: Value = serde_json::from_str(&said.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 52);
    for row in rows {
        let controls = row["controls"].as_array().unwrap();
        assert_ne!(controls.is_empty(), row["uncalibrated"].is_null(), "{row}");
    }
}
