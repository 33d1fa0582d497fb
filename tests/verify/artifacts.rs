//! The files beside the evidence.

use super::{copy, write_restamped};
use crate::common::{Said, names_in, need, read_json, verify};
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

#[test]
fn a_bundle_without_artifacts_is_enough_unless_they_are_required() {
    let (_folder, path) = copy();
    fs::remove_dir_all(path.with_extension("")).unwrap();
    let said = verify(&path, &[]);
    said.succeeded();
    assert!(said.stdout.contains("not checked EV-ARTIFACTS"), "{said:?}");
    let said = verify(&path, &["--require-artifacts"]);
    assert_eq!(said.status, 3, "{said:?}");
    assert!(said.stdout.contains("BLOCKED     EV-ARTIFACTS"), "{said:?}");
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
    // Nobody writes into this pipe: whoever reads it waits for ever.
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
