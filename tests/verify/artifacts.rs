//! The files beside the evidence.

use super::copy;
use crate::common::bundle::write_restamped;
use crate::common::{Said, names_in, need, read_json, run, tool, verify};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Rejected because of its artifacts, and nothing else is wrong.
#[track_caller]
fn rejected(path: &Path, wanted: &str) -> Said {
    let said = verify(path, &[]);
    assert_eq!(said.status, 1, "{said:?}");
    let wrong: Vec<&str> = said
        .stdout
        .lines()
        .filter(|l| l.starts_with("FALSE"))
        .collect();
    assert!(
        wrong.len() == 1 && wrong[0].contains("EV-ARTIFACTS") && wrong[0].contains(wanted),
        "{wanted}: {said:?}"
    );
    said
}

#[test]
fn every_artifact_is_compared_byte_for_byte() {
    let (_folder, path) = copy();
    let files = path.with_extension("");
    let names = names_in(&files);
    assert_eq!(names.len(), 8, "{names:?}");
    for name in &names {
        let file = files.join(name);
        let original = fs::read(&file).unwrap();
        let mut changed = original.clone();
        let middle = changed.len() / 2;
        match changed.get_mut(middle) {
            Some(byte) => *byte ^= 1,
            None => changed.push(b'x'),
        }
        fs::write(&file, &changed).unwrap();
        rejected(&path, name);
        fs::remove_file(&file).unwrap();
        rejected(&path, name);
        fs::write(&file, [&original[..], b"\n"].concat()).unwrap();
        rejected(&path, name);
        fs::write(&file, original).unwrap();
    }
    verify(&path, &["--require-artifacts"]).succeeded();
}

/// What a verifier settles for is said with the decision, in every form.
#[test]
fn a_bundle_without_artifacts_is_blocked_unless_evidence_alone_is_enough() {
    let (folder, path) = copy();
    fs::remove_dir_all(path.with_extension("")).unwrap();
    for flags in [&[][..], &["--require-artifacts"]] {
        let said = verify(&path, flags);
        assert_eq!(said.status, 3, "{said:?}");
        assert!(said.stdout.contains("BLOCKED     EV-ARTIFACTS"), "{said:?}");
    }
    let said = verify(&path, &["--evidence-only"]);
    said.succeeded();
    assert!(said.stdout.contains("not checked EV-ARTIFACTS"), "{said:?}");
    for (format, wanted) in [
        ("text", "EVIDENCE ONLY: ITS ARTIFACTS WERE NOT THERE"),
        ("text", "  - That anything was observed at all"),
        ("json", "\"evidence_only\": true"),
        ("markdown", "**Evidence only: its artifacts were not there"),
        ("junit", "<property name=\"evidence only\""),
    ] {
        let said = verify(&path, &["--evidence-only", "--format", format]);
        said.succeeded();
        assert!(said.stdout.contains(wanted), "{wanted}: {said:?}");
    }
    let both = verify(&path, &["--evidence-only", "--require-artifacts"]);
    assert_eq!(both.status, 2, "{both:?}");
    let policy = folder.path().join("policy.toml");
    let text = "schema = \"tki-attest/policy/v1\"\nrequire_artifacts = true\n";
    fs::write(&policy, text).unwrap();
    let policy = policy.to_str().unwrap();
    let said = verify(&path, &["--evidence-only", "--policy", policy]);
    assert_eq!(said.status, 3, "{said:?}");
    let mut gate = tool();
    gate.arg("gate").arg(&path);
    assert_eq!(run(gate.args(["--", "true"])).status, 3);
    let mut gate = tool();
    gate.arg("gate").arg(&path).arg("--evidence-only");
    let said = run(gate.args(["--", "true"]));
    said.succeeded();
    assert!(said.stderr.contains("EVIDENCE ONLY"), "{said:?}");
}

/// Nothing is said of artifacts that are there, whatever was settled for.
#[test]
fn artifacts_that_are_there_are_compared_in_any_case() {
    let (_folder, path) = copy();
    let said = verify(&path, &["--evidence-only"]);
    said.succeeded();
    assert!(!said.stdout.contains("EVIDENCE ONLY"), "{said:?}");
    let file = path.with_extension("").join("mountinfo.txt");
    fs::write(file, "").unwrap();
    assert_eq!(verify(&path, &["--evidence-only"]).status, 1);
}

/// Exactly the files that a run writes: nobody leaves one out, adds one, or puts them
/// elsewhere.
#[test]
fn the_list_of_artifacts_is_exact() {
    type Change = fn(&mut Vec<Value>);
    let changes: [(&str, Change); 6] = [
        ("is not among the artifacts", |list| {
            list.retain(|a| !a["path"].as_str().unwrap().ends_with("/container.json"));
        }),
        ("is not among the artifacts", |list| {
            list.retain(|a| a["path"].as_str().unwrap().ends_with("/transcript.ndjson"));
        }),
        ("a file that no run writes", |list| {
            let mut another = list[0].clone();
            let path = another["path"].as_str().unwrap();
            another["path"] = path.replace("container", "another").into();
            list.insert(0, another);
        }),
        ("a file that no run writes", |list| {
            let mut proof = list[0].clone();
            let path = proof["path"].as_str().unwrap();
            proof["path"] = path
                .replace("container.json", "venue-proof-hardware")
                .into();
            list.push(proof);
        }),
        ("not in order", |list| list.swap(0, 1)),
        ("not in the run's directory", |list| {
            for artifact in list {
                let path = artifact["path"].as_str().unwrap();
                artifact["path"] = path.replace("-vps-", "-ci-").into();
            }
        }),
    ];
    for (wanted, change) in changes {
        let (_folder, path) = copy();
        let mut value = read_json(&path);
        change(value["artifacts"].as_array_mut().unwrap());
        write_restamped(&path, value);
        rejected(&path, wanted);
        let said = verify(&path, &["--evidence-only"]);
        assert_eq!(said.status, 1, "{wanted}: {said:?}");
    }
}

#[test]
fn artifacts_are_not_looked_for_through_links_or_in_strange_files() {
    let (folder, path) = copy();
    let files = path.with_extension("");
    let aside = folder.path().join("aside");
    let file = files.join("mountinfo.txt");
    fs::rename(&file, &aside).unwrap();
    symlink(&aside, &file).unwrap();
    rejected(&path, "mountinfo.txt");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    rejected(&path, "mountinfo.txt");
    fs::remove_dir(&file).unwrap();
    // Nobody writes into this pipe: a reader waits for ever.
    let said = need("coreutils", Command::new("mkfifo").arg(&file));
    assert_eq!(said.status, 0, "{said:?}");
    rejected(&path, "mountinfo.txt");
    fs::remove_file(&file).unwrap();
    fs::rename(&aside, &file).unwrap();
    verify(&path, &["--require-artifacts"]).succeeded();

    fs::rename(&files, &aside).unwrap();
    symlink(&aside, &files).unwrap();
    rejected(&path, "sandbox-attestation-evidence");
}

/// The path is the evidence's word: it may not lead anywhere else.
#[test]
fn a_path_that_leads_elsewhere_is_refused_and_not_opened() {
    let (folder, path) = copy();
    let value = read_json(&path);
    let secret = folder.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
    for wrong in [
        format!("{stem}/../secret"),
        format!(
            "../{}/secret",
            folder.path().file_name().unwrap().to_str().unwrap()
        ),
        secret.to_str().unwrap().to_owned(),
        "secret".into(),
        format!("{stem}/./mountinfo.txt"),
        format!("{stem}//mountinfo.txt"),
        format!("{stem}/.mountinfo.txt"),
        format!("{stem}/mount\u{1b}[31minfo.txt"),
        String::new(),
    ] {
        let mut edited = value.clone();
        edited["artifacts"][0]["path"] = wrong.clone().into();
        write_restamped(&path, edited);
        let said = rejected(&path, "not a plain path one level down");
        assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
    }
}
