//! Reading seccomp profiles: what is wrong with one, and what it allows.

use crate::common::{run, tool};
use serde_json::Value;
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
