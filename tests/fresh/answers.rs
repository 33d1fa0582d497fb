//! Requests that a run does not answer.

use crate::common::signed::{ask, keys};
use crate::common::{attest, names_in, read_json, shared_engine};
use std::fs;

#[test]
fn a_run_that_could_not_be_accepted_is_not_begun() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("request.json");
    let out = folder.path().join("out");
    let run = |venue: &str, more: &[&str]| {
        let request = ["--request", path.to_str().unwrap()];
        attest(&out, &[&["--venue", venue], &request[..], more].concat())
    };
    ask(&path, &["--venue", "ci"]).succeeded();
    run("vps", &[]).failed(3, "request.other");
    run("ci", &["--seccomp", "targeted-deny"]).failed(3, "request.other");
    let mut stale = read_json(&path);
    stale["issued"] = "2020-01-01T00:00:00Z".into();
    stale["not_after"] = "2020-01-02T00:00:00Z".into();
    fs::write(&path, stale.to_string()).unwrap();
    run("ci", &[]).failed(3, "request.stale");
    fs::write(&path, "{}").unwrap();
    run("ci", &[]).failed(2, "request.malformed");
    fs::remove_file(&path).unwrap();
    run("ci", &[]).failed(2, "request.unreadable");
    let key = keys().private("none");
    run("ci", &["--sign", key.to_str().unwrap()]).failed(2, "key.unreadable");
    assert!(!out.exists() || names_in(&out).is_empty());
}
