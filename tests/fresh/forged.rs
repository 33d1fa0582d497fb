//! What engines other than Docker write down of a container, and profiles of one's own.

use crate::common::bundle::write_restamped;
use crate::common::forgery::{Forgery, set, with_container};
use crate::common::{attest, evidence_in, read_json, root, run, shared_engine, tool, verify};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// What the local engines and Podman write down is read back in the same way.
#[test]
fn what_other_engines_say_of_another_container_is_noticed() {
    type Edit = (&'static str, Value, &'static str);
    let local: Vec<Edit> = vec![
        (
            "/kernel/status",
            json!("NoNewPrivs:\t0\n"),
            "no_new_privileges is",
        ),
        ("/kernel/limits", json!(""), "ulimits is"),
        ("/kernel/output", json!(["pipe:[1]", "/x"]), "log_driver is"),
        ("/kernel/groups/pids", json!("max"), "pids_limit is"),
        ("/made/seccomp", json!("unconfined"), "seccomp is"),
        ("/name", json!("postgres"), "its name is"),
        ("/image", json!("sha256:00"), "its image is"),
        ("/labels/dev.tki.attest.role", json!("control"), "role is"),
        ("/more", json!(1), "no description"),
    ];
    let podman: Vec<Edit> = vec![
        (
            "/inspect/HostConfig/Privileged",
            json!(true),
            "privileged is",
        ),
        ("/inspect/Name", json!("postgres"), "its name is"),
        ("/inspect/OCIRuntime", json!("kata"), "its OCI runtime is"),
        (
            "/oci_config/process/noNewPrivileges",
            json!(false),
            "no_new_privileges is",
        ),
        ("/oci_config/linux/namespaces", json!([]), "network is"),
        ("/oci_config/linux/seccomp", json!(null), "seccomp is"),
        (
            "/oci_config/process/args",
            json!(["/bin/sh"]),
            "its program is",
        ),
        ("/profile", json!(null), "seccomp is"),
    ];
    let _engine = shared_engine();
    for (engine, edits) in [("embedded", &local), ("bwrap", &local), ("podman", &podman)] {
        let out = tempfile::tempdir().unwrap();
        attest(out.path(), &["--venue", "vps", "--engine", engine]).succeeded();
        let path = evidence_in(out.path());
        verify(&path, &[]).succeeded();
        for (pointer, to, wanted) in edits {
            let forged = with_container(Forgery::of(&path), |container| {
                set(container, pointer, to.clone());
            });
            forged.refused_by("EV-CONTAINER", 1, wanted);
        }
    }
}

fn lines_of(path: &Path, flags: &[&str], code: &str) -> (i32, String) {
    let said = verify(path, flags);
    let step = said.stdout.lines().find(|line| line.contains(code));
    (said.status, step.unwrap_or_default().to_owned())
}

/// A profile counts if it is built in or if the verifier names it.
#[test]
fn a_profile_that_nobody_names_is_blocked() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.json");
    let text = fs::read_to_string(root().join("seccomp/deny-by-default.json")).unwrap();
    fs::write(&own, format!("{text}\n")).unwrap();
    let own = own.to_str().unwrap();
    let request = folder.path().join("request.json");
    let request = request.to_str().unwrap();
    let mut asking = tool();
    asking.args([
        "request",
        "--venue",
        "vps",
        "--seccomp",
        own,
        "--out",
        request,
    ]);
    run(&mut asking).succeeded();
    let flags = ["--venue", "vps", "--seccomp", own, "--request", request];
    attest(folder.path(), &flags).succeeded();
    let is_evidence = |name: &String| name.starts_with("sandbox-") && name.ends_with(".json");
    let mut names = crate::common::names_in(folder.path()).into_iter();
    let path = folder.path().join(names.find(is_evidence).unwrap());

    let (status, step) = lines_of(&path, &[], "EV-SECCOMP");
    assert!(status == 3 && step.starts_with("BLOCKED "), "{step}");
    let policy = folder.path().join("policy.toml");
    let sha256 = read_json(&path)["seccomp_sha256"].clone();
    let text = format!("schema = \"tki-attest/policy/v1\"\nseccomp_sha256 = [{sha256}]\n");
    fs::write(&policy, text).unwrap();
    let policy = policy.to_str().unwrap();
    for flags in [
        ["--seccomp", own],
        ["--policy", policy],
        ["--request", request],
    ] {
        verify(&path, &flags).succeeded();
    }
    let text = "schema = \"tki-attest/policy/v1\"\nseccomp_sha256 = [\"x\"]\n";
    fs::write(policy, text).unwrap();
    verify(&path, &["--policy", policy]).failed(2, "policy.malformed");

    // A name is no profile, whatever the verifier names.
    let mut value = read_json(&path);
    value["seccomp_profile"] = "deny-by-default".into();
    write_restamped(&path, value);
    for flags in [&[][..], &["--seccomp", own]] {
        let (status, step) = lines_of(&path, flags, "EV-SECCOMP");
        assert!(status == 1 && step.starts_with("FALSE "), "{step}");
    }
}
