//! What users of the host can do while root attests: see names, and race for them.

use super::beside;
use crate::common::private_engine::PrivateEngine;
use crate::common::user::OtherUser;
use crate::common::{NOBODY, attest, run, shared_engine, tool, whole_engine};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Takes the place of files in every scratch directory that it can enter, again and
/// again, and says so. It ends by itself.
const RACER: &str = r#"
import os, sys, time
victim, log = sys.argv[1:]
end = time.time() + 60
while time.time() < end:
    for name in os.listdir("/run"):
        if not name.startswith("tki-attest-"):
            continue
        for inner in ("in/tki-probe-target", "in/suid-decoy"):
            path = "/run/" + name + "/" + inner
            try:
                os.unlink(path)
            except OSError:
                pass
            try:
                os.symlink(victim, path)
                open(log, "a").write(path + "\n")
            except OSError:
                pass
    if os.path.exists(log + ".end"):
        break
"#;

/// A user without rights cannot get at the host's side of /in, and so not have root open
/// a file of its own to everybody.
#[test]
fn a_racing_user_gets_nothing_of_roots() {
    let _engine = shared_engine();
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let victim = place.path().join("victim");
    fs::write(&victim, "whole").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
    let theirs = place.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
    let log = theirs.join("log");
    let mut racer = Command::new("python3");
    racer.args(["-c", RACER]).arg(&victim).arg(&log);
    let mut racer = racer.uid(NOBODY).gid(NOBODY).spawn().unwrap();
    for engine in ["docker", "embedded"] {
        let out = tempfile::tempdir().unwrap();
        let arguments = ["--venue", "dev", "--engine", engine, "--controls", "safe"];
        attest(out.path(), &arguments).succeeded();
    }
    fs::write(theirs.join("log.end"), "").unwrap();
    racer.wait().unwrap();
    assert!(
        !log.exists(),
        "taken: {}",
        fs::read_to_string(&log).unwrap()
    );
    assert_eq!(fs::read_to_string(&victim).unwrap(), "whole");
    let mode = fs::metadata(&victim).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
}

/// What is root in the container may be another user on the host: the runtime still gets
/// to a directory that only root can enter.
#[test]
fn an_engine_whose_root_is_another_user_attests() {
    let _engine = whole_engine();
    let user = OtherUser::new();
    let engine = PrivateEngine::start_remapped(user.name());
    let security = engine.docker(&["info", "--format", "{{.SecurityOptions}}"]);
    assert!(security.contains("name=userns"), "{security}");
    let out = tempfile::tempdir().unwrap();
    let arguments = ["--venue", "dev", "--host", &engine.host()];
    attest(out.path(), &arguments).succeeded();
}

/// The same for the packet's scripts, which make directories of their own below /tmp.
#[test]
fn the_packets_scripts_leave_no_window() {
    let _engine = whole_engine();
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("packet.md");
    let mut command = tool();
    command.args(["packet", "--for", "operator", "--out"]);
    run(command.arg(&out)).succeeded();
    let text = fs::read_to_string(&out).unwrap();
    let scripts: Vec<&str> = text
        .split("```bash\n")
        .skip(1)
        .map(|rest| rest.split_once("\n```").unwrap().0)
        .collect();
    assert_eq!(scripts.len(), 3);
    let seen = std::sync::Mutex::new(Vec::new());
    // Everything below /tmp that another user could enter and write in.
    let look = || {
        for entry in fs::read_dir("/tmp").into_iter().flatten().flatten() {
            let input = entry.path().join("in/tki-probe-target");
            let mode = |path: &Path| fs::metadata(path).map(|found| found.permissions().mode());
            if let (Ok(base), Ok(_)) = (mode(&entry.path()), mode(&input))
                && base & 0o077 != 0
            {
                seen.lock().unwrap().push(entry.path());
            }
        }
    };
    for script in scripts {
        let mut bash = crate::common::isolated(Path::new("bash"));
        bash.args(["-c", script])
            .current_dir(place.path().join("packet.files"));
        let said = beside(look, || run(&mut bash));
        said.succeeded();
    }
    assert_eq!(*seen.lock().unwrap(), Vec::<std::path::PathBuf>::new());
}

/// Programs are not taken from the working directory, whatever the search path says.
#[test]
fn a_search_path_with_a_dot_executes_nothing_that_lies_here() {
    let _engine = shared_engine();
    let place = tempfile::tempdir().unwrap();
    let marker = place.path().join("marker");
    for name in ["bwrap", "podman", "runc", "crun", "conmon", "docker", "ssh"] {
        let path = place.path().join(name);
        let text = format!("#!/bin/sh\necho {name} >> {}\nexit 1\n", marker.display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let given = std::env::var("PATH").unwrap();
    for path in [format!(".:{given}"), format!(":{given}")] {
        for arguments in [&["engines"][..], &["survey", "--read-only"], &["clean"]] {
            let mut command = tool();
            command.args(arguments).env("PATH", &path);
            let said = run(command.current_dir(place.path()));
            let executed = fs::read_to_string(&marker);
            assert!(executed.is_err(), "{arguments:?}: {executed:?} {said:?}");
        }
    }
}

/// Another user's pipe below /tmp is not opened by `clean`, and what cannot be removed is
/// not said to be.
#[test]
fn clean_waits_for_nobody_and_says_what_it_did() {
    let theirs = Path::new("/tmp").join(format!("tki-attest-pipe-{}", std::process::id()));
    fs::create_dir(&theirs).unwrap();
    let lock = theirs.join(".tki-attest-run");
    run(Command::new("mkfifo").arg(&lock)).succeeded();
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = crate::common::isolated(Path::new("timeout"));
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = place.path().join("tki-attest");
    fs::copy(env!("CARGO_BIN_EXE_tki-attest"), &binary).unwrap();
    command.args(["--kill-after=5", "60"]).arg(&binary);
    command.args(["clean", "--engine", "bwrap"]);
    command.env_remove("XDG_RUNTIME_DIR").env_remove("TMPDIR");
    let said = run(command.uid(NOBODY).gid(NOBODY));
    let is_there = lock.exists();
    fs::remove_dir_all(&theirs).unwrap();
    said.succeeded();
    assert!(is_there);
    assert!(!said.stdout.contains("tki-attest-pipe"), "{said:?}");
}
