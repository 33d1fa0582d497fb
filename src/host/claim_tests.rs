//! Whose directories are taken for ours, and where.

use super::*;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, lchown};

/// A user who is neither root nor the sandbox's.
pub const OTHER_USER: u32 = 48_713;

/// A directory that everybody can enter, as /run is.
pub fn open_place() -> (tempfile::TempDir, Folder) {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = Folder::open(place.path()).unwrap();
    (place, folder)
}

/// Without root there is no other user to try it as.
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        let _ = writeln!(io::stderr(), "skipped: {}: not root", module_path!());
    }
    root
}

#[test]
fn what_others_have_put_there_is_theirs() {
    if !is_root() {
        return;
    }
    let (place, parent) = open_place();
    let make = |name: &str| {
        let folder = parent.make(name).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from(0o666));
        rustix::fs::mknodat(&folder, LOCK, kind, mode, 0).unwrap();
    };
    // Opening a pipe would wait for ever.
    make("tki-attest-pipe");
    make("tki-attest-foreign");
    let foreign = place.path().join("tki-attest-foreign");
    lchown(&foreign, Some(OTHER_USER), None).unwrap();
    std::os::unix::fs::symlink(&foreign, place.path().join("tki-attest-link")).unwrap();
    let abandoned = |name: &str| is_abandoned(&parent, name.as_ref());
    assert!(abandoned("tki-attest-pipe").is_err());
    for name in ["tki-attest-foreign", "tki-attest-link", "tki-attest-none"] {
        assert!(!abandoned(name).unwrap(), "{name}");
    }
    // One of ours: while it is held, and after.
    let path = place.path().join("tki-attest-ours");
    let claim = claim(&path).unwrap();
    assert!(!abandoned("tki-attest-ours").unwrap());
    // As if its process had ended: another lock that nobody holds.
    fs::remove_file(path.join(LOCK)).unwrap();
    drop(claim.folder.create(LOCK, 0o600).unwrap());
    assert!(abandoned("tki-attest-ours").unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(!abandoned("tki-attest-ours").unwrap());
}

#[test]
fn a_place_in_which_others_rename_is_none() {
    let (place, parent) = open_place();
    for (mode, safe) in [
        (0o700, true),
        (0o755, true),
        (0o1777, true),
        (0o777, false),
        (0o775, false),
    ] {
        fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(is_safe(&parent.stat().unwrap()), safe, "{mode:o}");
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
    if is_root() {
        lchown(place.path(), Some(OTHER_USER), None).unwrap();
        assert!(!is_safe(&parent.stat().unwrap()));
    }
}

#[test]
fn only_what_lies_in_its_place_is_removed() {
    let (place, _) = open_place();
    let elsewhere = place.path().join("tki-attest-elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    assert!(remove(&elsewhere).is_err());
    assert!(remove(Path::new("/")).is_err());
    assert!(elsewhere.exists());
}
