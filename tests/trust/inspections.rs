//! Nothing takes the report of an inspection as an input, whatever it is given as.

use crate::common::signed::keys;
use crate::common::{names_in, run, tool};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// A report, its binding and a stamp, as far as anybody reads them who does not want them.
fn written(folder: &Path) -> [PathBuf; 3] {
    let documents = [
        ("binding.json", "tki-attest/inspection-binding/v1"),
        ("inspection.json", "tki-attest/inspection/v1"),
        ("stamp.json", "tki-attest/inspection-stamp/v1"),
    ];
    documents.map(|(name, schema)| {
        let path = folder.join(name);
        let text = json!({
            "schema": schema,
            "triage": "TRIAGE_WRITTEN",
            "accepted": true,
            "tool": {"name": "tki-attest", "version": env!("CARGO_PKG_VERSION"), "sha256": ""},
        });
        fs::write(&path, format!("{text:#}\n")).unwrap();
        path
    })
}

#[test]
fn every_command_that_reads_a_bundle_refuses_one_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let touched = folder.path().join("touched");
    for path in written(folder.path()) {
        let path = path.to_str().unwrap();
        let key = keys().private("operator");
        let signing = ["sign", path, "--key", key.to_str().unwrap()];
        let gating = ["gate", path, "--", "touch", touched.to_str().unwrap()];
        let inspecting = [
            "inspect",
            "--packet",
            "/nowhere",
            "--out",
            folder.path().to_str().unwrap(),
            "--venue",
            "vps",
            "--engine",
            "bwrap",
            "--evidence",
            path,
        ];
        for arguments in [
            &["verify", path][..],
            &["verify", path, "--evidence-only"],
            &gating,
            &["diff", path, path],
            &signing,
        ] {
            let said = run(tool().args(arguments));
            said.failed(2, "inspection.no-input");
            let why = "the report of an inspection, and nothing takes one as an input";
            assert!(said.stderr.contains(why), "{said:?}");
            assert_eq!(said.stdout, "", "{said:?}");
        }
        // Where bubblewrap is missing, that is said first.
        let said = run(tool().args(inspecting));
        assert!([2, 3].contains(&said.status), "{said:?}");
    }
    assert!(!touched.exists());
    // Nothing was signed, and nothing else was written.
    let names = ["binding.json", "inspection.json", "stamp.json"];
    assert_eq!(names_in(folder.path()), names);
}

/// A directory of them holds no evidence either.
#[test]
fn in_a_directory_one_counts_as_unreadable() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path());
    let said = run(tool().arg("verify").arg(folder.path()));
    said.failed(2, "inspection.no-input");
}

/// In the place of a policy, a request, a matrix, a profile or a list of signers.
#[test]
fn what_a_verifier_brings_along_is_not_one() {
    let folder = tempfile::tempdir().unwrap();
    let evidence = folder.path().join("evidence.json");
    fs::write(&evidence, "{}").unwrap();
    for path in written(folder.path()) {
        for flag in [
            "--policy",
            "--request",
            "--matrix",
            "--seccomp",
            "--allowed-signers",
        ] {
            let mut command = tool();
            command.arg("verify").arg(&evidence).arg(flag).arg(&path);
            let said = run(&mut command);
            said.failed(2, "inspection.no-input");
        }
        let mut command = tool();
        command.args(["run", "--venue", "dev", "--engine", "bwrap", "--request"]);
        command.arg(&path).arg("--out").arg(folder.path());
        let said = run(&mut command);
        assert!([2, 3].contains(&said.status), "{said:?}");
        for flag in ["--policy", "--request", "--allowed-signers"] {
            let mut command = tool();
            command.args(["inspect", "--packet", "/nowhere", "--venue", "vps", flag]);
            command.arg(&path).arg("--out").arg(folder.path());
            run(&mut command).failed(2, "inspection.no-input");
        }
    }
}
