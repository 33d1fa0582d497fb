//! What lies in `tests/golden/` is what this build would record.

use crate::common::bundle::write_restamped;
use crate::common::{evidence_in, names_in, read_json, root, run, tool};
use crate::golden::{is_current, unpacked};
use serde_json::{Value, json};
use std::fs;

const NAMES: [&str; 3] = ["plain", "other", "full"];

#[test]
fn every_recording_is_current_and_as_small_as_it_should_be() {
    for name in NAMES {
        let folder = unpacked(name);
        let evidence = evidence_in(&folder.path().join("out"));
        if let Err(why) = is_current(&evidence) {
            panic!("tests/golden/{name}.tar.gz is stale: {why}: `make golden`");
        }
        let packed = root().join("tests/golden").join(format!("{name}.tar.gz"));
        assert!(fs::metadata(packed).unwrap().len() < 400_000, "{name}");
        assert_eq!(names_in(folder.path()), ["out", "request.json", "signers"]);
    }
}

/// The signature that was recorded, by the list that was recorded, over the request.
#[test]
fn every_recording_is_accepted_as_it_was_signed() {
    for name in NAMES {
        let folder = unpacked(name);
        let mut verify = tool();
        verify
            .arg("verify")
            .arg(evidence_in(&folder.path().join("out")));
        verify
            .arg("--allowed-signers")
            .arg(folder.path().join("signers"));
        verify
            .arg("--request")
            .arg(folder.path().join("request.json"));
        verify.args(["--require-assurance", "signed-fresh", "--require-artifacts"]);
        let said = run(&mut verify);
        assert_eq!(said.status, 0, "{name}: `make golden`: {said:?}");
    }
}

/// No key, no name of a user or a machine, and no path but the system's own.
#[test]
fn a_recording_holds_nothing_private() {
    for name in NAMES {
        let folder = unpacked(name);
        let mut pending = vec![folder.path().to_owned()];
        while let Some(path) = pending.pop() {
            for entry in fs::read_dir(&path).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    pending.push(entry.path());
                    continue;
                }
                let bytes = fs::read(entry.path()).unwrap();
                let text = String::from_utf8_lossy(&bytes);
                for word in ["PRIVATE KEY", "/home/", root().to_str().unwrap()] {
                    assert!(!text.contains(word), "{}: {word}", entry.path().display());
                }
            }
        }
    }
}

/// Each way in which a recording can be behind the code is found and told.
#[test]
fn a_stale_recording_is_named() {
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit); 4] = [
        ("its image is", |value| {
            value["image_digest"] = format!("sha256:{}", "0".repeat(64)).into();
        }),
        ("its schema is", |value| {
            value["schema"] = "tki-attest/evidence/v0".into();
        }),
        ("its version is", |value| {
            value["tool"]["version"] = "0.0.1".into();
        }),
        ("EV-DERIVED", |value| {
            value["probes"][0]["reasons"] = json!(["another rule"]);
        }),
    ];
    for (wanted, edit) in edits {
        let folder = unpacked("plain");
        let path = evidence_in(&folder.path().join("out"));
        assert_eq!(is_current(&path), Ok(()));
        let mut value = read_json(&path);
        edit(&mut value);
        write_restamped(&path, value);
        let why = is_current(&path).unwrap_err();
        assert!(why.contains(wanted), "{wanted}: {why}");
    }
}
