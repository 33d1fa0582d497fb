//! Who gets to the host's side of /in and /out.

use super::*;
use crate::host::claim::tests::{OTHER_USER, is_root, open_place};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Tells whether another user can do this to a path.
fn another_user_can(what: &[&str], path: &Path) -> bool {
    let mut command = Command::new(what[0]);
    command.args(&what[1..]).arg(path);
    command.stderr(Stdio::null()).stdout(Stdio::null());
    let done = command.uid(OTHER_USER).gid(OTHER_USER).status().unwrap();
    done.success()
}

#[test]
fn nobody_else_reaches_what_is_open() {
    if !is_root() {
        return;
    }
    let (_place, parent) = open_place();
    let claim = Claim::make(parent, "tki-attest-x", None).unwrap();
    let input = fill(claim.folder(), "58713:58713").unwrap();
    let base = claim.folder().path().to_owned();
    let target = base.join("in/tki-probe-target");
    let modes = [&base, input.path(), &base.join("out"), &target].map(|path| {
        let found = fs::symlink_metadata(path).unwrap();
        (found.mode() & 0o7777, found.uid())
    });
    let sandbox = 58_713;
    assert_eq!(
        modes,
        [
            (0o700, 0),
            (0o777, sandbox),
            (0o777, sandbox),
            (0o666, sandbox)
        ]
    );
    for (what, path) in [
        (&["ls"][..], &base),
        (&["stat"], &target),
        (&["cat"], &target),
        (&["rm", "-f"], &target),
        (&["touch"], &base.join("in/more")),
        (&["ln", "-s", "/etc/shadow"], &base.join("in/link")),
        (&["rmdir"], &base.join("out")),
    ] {
        assert!(!another_user_can(what, path) && target.exists(), "{what:?}");
    }
    drop(claim);
    assert!(!base.exists());
}

/// /in takes nothing of the size of /out, and both are gone together.
#[test]
fn what_is_read_has_room_of_its_own() {
    if !is_root() {
        return;
    }
    let (_place, parent) = open_place();
    let size = |bytes| Memory { bytes, files: 64 };
    let cover = |base: &Path| mount_tmpfs(base, size(64 << 10));
    let mut claim = Claim::make(parent, "tki-attest-x", Some(&cover)).unwrap();
    assert!(claim.is_mounted());
    let base = claim.folder().path().to_owned();
    let input = make_room(claim.folder(), "58713:58713", true, size(1 << 20)).unwrap();
    drop(input.write("large", &[b'x'; 512 << 10], 0o644).unwrap());
    fs::write(base.join("out/report"), [b'x'; 56 << 10]).unwrap();
    let full = fs::write(base.join("out/more"), [b'x'; 64 << 10]).unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    drop(input);
    claim.remove();
    assert!(!base.exists());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&base.display().to_string()));
}
