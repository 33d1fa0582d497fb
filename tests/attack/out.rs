//! Root writes into a directory whose owner exchanges the staging directory as soon
//! as it appears. It is the tests' own user who does so: the rights are the same.

use super::{beside, exchange};
use crate::common::{attest, names_in, run, tool};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// How often each is tried: the race was lost in 5 of 6 runs, and in 4 of 4.
const TIMES: usize = 4;

fn today() -> String {
    run(std::process::Command::new("date").args(["-u", "+%F"]))
        .stdout
        .trim()
        .to_owned()
}

/// What stands in place of every artifact: a link to a file that is not theirs.
fn bait(place: &Path, victim: &Path) {
    let stem = format!("sandbox-attestation-evidence-dev-{}", today());
    let artifacts = place.join("1").join(&stem);
    fs::create_dir_all(&artifacts).unwrap();
    for name in [
        "mountinfo.txt",
        "env_keyset.txt",
        "proc_net_dev.txt",
        "proc_self_status.txt",
        "proc_self_status_locked.txt",
        "seccomp.json",
        "container.json",
        "transcript.ndjson",
    ] {
        symlink(victim, artifacts.join(name)).unwrap();
    }
    symlink(victim, place.join("1/evidence.json")).unwrap();
}

#[test]
fn evidence_is_written_over_nothing() {
    for _ in 0..TIMES {
        let place = tempfile::tempdir().unwrap();
        let victim = place.path().join("victim");
        fs::write(&victim, "whole").unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
        let out = place.path().join("out");
        fs::create_dir(&out).unwrap();
        let links = place.path().join("links");
        bait(&links, &victim);
        let said = beside(
            || exchange(&out, ".tki-attest-", &links),
            || attest(&out, &["--venue", "dev", "--engine", "embedded"]),
        );
        assert_eq!(fs::read_to_string(&victim).unwrap(), "whole", "{said:?}");
        let mode = fs::metadata(&victim).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "{said:?}");
        // The owner can spoil the run, and nothing else.
        assert!([0, 2].contains(&said.status), "{said:?}");
    }
}

#[test]
fn a_layout_is_written_nowhere_else() {
    for _ in 0..TIMES {
        let place = tempfile::tempdir().unwrap();
        let closed = place.path().join("closed");
        fs::create_dir(&closed).unwrap();
        let out = place.path().join("out");
        fs::create_dir(&out).unwrap();
        let links = place.path().join("links");
        fs::create_dir(&links).unwrap();
        symlink(&closed, links.join("new")).unwrap();
        let said = beside(
            || exchange(&out, ".tki-layout-", &links),
            || run(tool().args(["build", "--layout"]).arg(out.join("image"))),
        );
        assert_eq!(names_in(&closed), Vec::<String>::new(), "{said:?}");
        assert!([0, 2].contains(&said.status), "{said:?}");
    }
}

/// No race is needed where the name is known before.
#[test]
fn a_packet_follows_no_link_and_replaces_nothing_foreign() {
    let place = tempfile::tempdir().unwrap();
    let shared = place.path().join("shared");
    let private = place.path().join("private");
    for folder in [&shared, &private] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(private.join("SHA256SUMS"), "mine").unwrap();
    let out = shared.join("packet.md");
    let packet = || {
        let mut command = tool();
        command.args(["packet", "--for", "operator", "--out"]);
        run(command.arg(&out))
    };
    let files = shared.join("packet.files");
    symlink(&private, &files).unwrap();
    packet().failed(2, "packet.unwritable");
    assert_eq!(names_in(&private), ["SHA256SUMS"]);
    assert_eq!(
        fs::read_to_string(private.join("SHA256SUMS")).unwrap(),
        "mine"
    );
    assert!(!out.exists());
    // A directory of the same name that no packet made.
    fs::remove_file(&files).unwrap();
    fs::create_dir(&files).unwrap();
    fs::write(files.join("seccomp.json"), "mine").unwrap();
    packet().failed(2, "packet.unwritable");
    assert_eq!(names_in(&files), ["seccomp.json"]);
    assert_eq!(
        fs::read_to_string(files.join("seccomp.json")).unwrap(),
        "mine"
    );
    // One of another user's.
    fs::remove_file(files.join("seccomp.json")).unwrap();
    std::os::unix::fs::chown(&files, Some(crate::common::NOBODY), None).unwrap();
    packet().failed(2, "packet.unwritable");
    std::os::unix::fs::chown(&files, Some(0), None).unwrap();
    packet().succeeded();
    packet().succeeded();
    // What was put beside it stays when the packet is written again.
    fs::write(files.join("transcript-docker.ndjson"), "returned").unwrap();
    packet().succeeded();
    assert!(files.join("transcript-docker.ndjson").exists());
}

/// A pipe in the place of the packet would be waited for, for ever.
#[test]
fn a_packet_waits_for_no_pipe() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("packet.md");
    let made = run(std::process::Command::new("mkfifo").arg(&out));
    made.succeeded();
    let mut command = crate::common::isolated(Path::new("timeout"));
    command
        .args(["--kill-after=5", "60"])
        .arg(env!("CARGO_BIN_EXE_tki-attest"))
        .args(["packet", "--for", "operator", "--out"])
        .arg(&out);
    run(&mut command).failed(2, "packet.exists");
    assert_eq!(names_in(place.path()), ["packet.md"]);
}

/// Whatever the umask is, nobody else can change what was written. It is for others to
/// read, too, unless the umask keeps them out of the directory.
#[test]
fn modes_do_not_depend_on_the_umask() {
    for umask in ["000", "077"] {
        let out = tempfile::tempdir().unwrap();
        let binary = env!("CARGO_BIN_EXE_tki-attest");
        let line = format!(
            "umask {umask}; {binary} run --venue dev --engine embedded --out reports && \
             {binary} build --layout image --archive image.tar && \
             {binary} packet --for operator --out packet.md && \
             {binary} request --venue vps --out request.json && {binary} man --out man"
        );
        let mut sh = crate::common::isolated(Path::new("sh"));
        run(sh.args(["-c", &line]).current_dir(out.path())).succeeded();
        let listed = run(std::process::Command::new("find")
            .args([".", "-mindepth", "1", "-printf", "%y %m %p\\n"])
            .current_dir(out.path()));
        for line in listed.stdout.lines() {
            let wanted = match (line.starts_with('d'), umask) {
                (false, _) => &["f 644 "][..],
                (true, "000") => &["d 755 "],
                (true, _) => &["d 755 ", "d 700 "],
            };
            let fits = wanted.iter().any(|wanted| line.starts_with(wanted));
            assert!(fits, "umask {umask}: {line}");
        }
        assert!(listed.stdout.lines().count() > 20, "{}", listed.stdout);
    }
}
