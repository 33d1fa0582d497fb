//! Reading seccomp profiles: what is wrong with one, what it allows, and the
//! smallest one that does.

use crate::common::podman::shared_podman;
use crate::common::{attest, evidence_in, read_json, run, shared_engine, tool};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

#[test]
fn lint_says_what_is_wrong_and_its_exit_code_says_whether() {
    for profile in ["targeted-deny", "deny-by-default"] {
        run(tool().args(["seccomp", "lint", profile])).succeeded();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("open.json");
    fs::write(&file, r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#).unwrap();
    let said = run(tool()
        .args(["seccomp", "lint", "--format", "json"])
        .arg(&file));
    assert_eq!(said.status, 1, "{said:?}");
    let findings: Value = serde_json::from_str(&said.stdout).unwrap();
    let codes: Vec<&str> = findings
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect();
    assert!(
        codes.contains(&"SL-IO-URING") && codes.contains(&"SL-CLONE"),
        "{codes:?}"
    );
    fs::write(&file, "{").unwrap();
    run(tool().args(["seccomp", "lint"]).arg(&file)).failed(2, "seccomp.malformed");
    run(tool().args(["seccomp", "explain", "/no/such/profile"])).failed(2, "seccomp.unreadable");
}

#[test]
fn explain_puts_every_call_into_a_group_with_its_reason() {
    let said = run(tool().args(["seccomp", "explain", "-v", "deny-by-default"]));
    said.succeeded();
    assert!(
        said.stdout.contains("a call that no rule names is denied"),
        "{said:?}"
    );
    assert!(
        said.stdout
            .contains("Lock: the inspector stacks its own filter"),
        "{said:?}"
    );
    assert!(!said.stdout.contains('\u{1b}'));
}

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
