//! Files that cannot be read or written.

use crate::common::proxy::Proxy;
use crate::common::traces::{Before, nothing_left, nothing_written};
use crate::common::{
    Mounted, attest, evidence_in, names_in, read_json, shared_engine, verify, whole_engine,
};
use std::fs;
use std::path::Path;

/// What is wrong with a file is said before the engine is even asked.
#[test]
fn an_unusable_seccomp_profile_is_refused_before_anything_is_launched() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let allow =
        |rules: &str| format!("{{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{rules}]}}");
    let deny =
        |rules: &str| format!("{{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{rules}]}}");
    let cases = [
        (
            "malformed",
            "{\n  \"defaultAction\": oops\n}".into(),
            "line 2, column 20",
        ),
        (
            "malformed",
            "{\"defaultAction\":\"SCMP_ACT_ALLOW\"".into(),
            "line 1, column 33",
        ),
        (
            "malformed",
            "{\n\"defaultAction\":\"SCMP_ACT_MAYBE\"}".into(),
            "line 2, column 32",
        ),
        ("malformed", String::new(), "line 1, column 1"),
        ("malformed", "\u{1b}[31m".into(), "line 1, column 1"),
        (
            "denies-execve",
            allow("{\"names\":[\"read\",\"execve\"],\"action\":\"SCMP_ACT_ERRNO\"}"),
            "denies execve",
        ),
        (
            "denies-execve",
            deny("{\"names\":[\"read\",\"execveat\"],\"action\":\"SCMP_ACT_ALLOW\"}"),
            "does not allow execve",
        ),
    ];
    let proxy = Proxy::plain();
    for (code, text, wanted) in cases {
        let file = folder.path().join("profile.json");
        fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let said = attest(
            &out,
            &["--venue", "vps", "--seccomp", file, "--host", &proxy.host()],
        );
        said.failed(2, &format!("seccomp.{code}"));
        assert!(said.stderr.contains(wanted), "{wanted}: {said:?}");
        assert!(said.stderr.contains("profile.json"), "{said:?}");
        nothing_written(&out);
    }
    for path in [&folder.path().join("none"), folder.path()] {
        let path = path.to_str().unwrap();
        let said = attest(
            &out,
            &["--venue", "vps", "--seccomp", path, "--host", &proxy.host()],
        );
        said.failed(2, "seccomp.unreadable");
        assert!(said.stderr.contains(path), "{said:?}");
        nothing_written(&out);
    }
    assert_eq!(proxy.log(), []);
}

#[test]
fn an_unusable_profile_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let file = folder.path().join("p.toml");
    for (text, wanted) in [
        ("[limits]\npids = \n", "line 2, column 8"),
        ("[limits]\n\nnetwork = \"host\"\n", "line 3, column 1"),
        ("privileged = true\n", "line 1, column 1"),
        ("[limits]\npids = 0\n", "limits.pids is 0"),
        ("[limits]\nmemory_bytes = 99999999999999999999\n", "line 2"),
    ] {
        fs::write(&file, text).unwrap();
        let said = attest(
            &out,
            &["--venue", "vps", "--profile", file.to_str().unwrap()],
        );
        said.failed(2, "profile.unreadable");
        assert!(said.stderr.contains(wanted), "{wanted}: {said:?}");
        nothing_written(&out);
    }
    fs::write(&file, b"\xff\xfe").unwrap();
    let said = attest(
        &out,
        &["--venue", "vps", "--profile", file.to_str().unwrap()],
    );
    said.failed(2, "profile.unreadable");
}

#[test]
fn an_output_directory_that_cannot_be_written_is_found_before_the_launch() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let read_only = folder.path().join("read-only");
    let _mounted = Mounted::tmpfs(&read_only, "ro,size=64k");
    let proxy = Proxy::plain();
    for out in [
        &file.join("out"),
        &file,
        &read_only,
        Path::new("/proc/tki-attest"),
    ] {
        let said = attest(out, &["--venue", "vps", "--host", &proxy.host()]);
        said.failed(2, "out.unwritable");
        assert!(said.stderr.contains(out.to_str().unwrap()), "{said:?}");
    }
    assert_eq!(proxy.log(), []);
    assert_eq!(names_in(&read_only), [""; 0]);
}

#[test]
fn a_full_output_directory_keeps_nothing_half_written() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    // No room for the evidence; no room for its artifacts; no inodes for them.
    for (name, options) in [
        ("a", "size=64k"),
        ("b", "size=4k"),
        ("c", "size=1m,nr_inodes=5"),
    ] {
        let out = folder.path().join(name);
        let _mounted = Mounted::tmpfs(&out, options);
        let proxy = Proxy::plain();
        let said = attest(&out, &["--venue", "vps", "--host", &proxy.host()]);
        said.failed(2, "out.unwritable");
        nothing_written(&out);
        nothing_left(&proxy);
    }
}

/// The sandbox's own /out is full from the start: the probe that must be able
/// to write there cannot, and that is never a PASS.
#[test]
fn a_full_out_inside_the_sandbox_is_never_a_pass() {
    let _engine = whole_engine();
    let before = Before::look();
    let folder = tempfile::tempdir().unwrap();
    let (profile, out) = (folder.path().join("p.toml"), folder.path().join("out"));
    fs::write(&profile, "[limits]\nout_bytes = 4096\n").unwrap();
    // Where the host's directory holds /in as well, that fills it.
    let arguments = ["--venue", "vps", "--profile", profile.to_str().unwrap()];
    let said = attest(&out, &[&arguments[..], &["--engine", "embedded"]].concat());
    assert_eq!(said.status, 1, "{said:?}");
    let path = evidence_in(&out);
    let evidence = read_json(&path);
    let probes = evidence["probes"].as_array().unwrap();
    let probe = probes
        .iter()
        .find(|probe| probe["probe_id"] == "PR-FS-OUT-OK")
        .unwrap();
    assert_eq!(probe["verdict"], "FAIL", "{probe}");
    assert!(
        probe["errno_or_exit"].as_str().unwrap().contains("ENOSPC"),
        "{probe}"
    );
    assert_eq!(verify(&path, &[]).status, 1);
    before.nothing_new();
}
