//! What another user may do to a directory, and what must not come of it.

use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};

/// A user who is neither root nor the one who runs the tests.
const OTHER_USER: u32 = 48_713;

fn open(path: &Path) -> Folder {
    Folder::open(path).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// The owner of the directory exchanges the staging directory for one that is full of
/// links. Everything still goes where it was begun, and nothing through a link.
#[test]
fn a_staging_directory_that_was_exchanged_leads_nowhere_else() {
    let place = tempfile::tempdir().unwrap();
    let victim = place.path().join("victim");
    fs::write(&victim, "whole").unwrap();
    let out = place.path().join("out");
    fs::create_dir(&out).unwrap();
    let folder = open(&out);
    let stage = Stage::new(&folder, ".stage-").unwrap();
    let moved = place.path().join("moved");
    fs::rename(out.join(&stage.name), &moved).unwrap();
    let bait = out.join(&stage.name);
    fs::create_dir(&bait).unwrap();
    symlink(&victim, bait.join("file")).unwrap();
    symlink(place.path(), bait.join("room")).unwrap();

    drop(stage.folder().write("file", b"ours", 0o644).unwrap());
    let room = stage.folder().make("room").unwrap();
    drop(room.write("inner", b"ours", 0o644).unwrap());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "whole");
    assert!(!place.path().join("inner").exists());
    assert_eq!(fs::read_to_string(moved.join("file")).unwrap(), "ours");
    drop(stage);
    // What was ours is gone, what the other one has put there is still there.
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 0);
    assert!(bait.join("file").is_symlink());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "whole");
}

#[test]
fn no_name_that_is_there_is_written_through() {
    let place = tempfile::tempdir().unwrap();
    let victim = place.path().join("victim");
    fs::write(&victim, "whole").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&victim, place.path().join("link")).unwrap();
    symlink("/", place.path().join("folder")).unwrap();
    let folder = open(place.path());
    for name in ["link", "victim"] {
        let error = folder.write(name, b"ours", 0o666).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }
    assert!(folder.read("link", 10).is_err());
    assert!(folder.enter("folder").is_err());
    assert!(folder.make("folder").is_err());
    assert_eq!(folder.read("victim", 5).unwrap().unwrap(), b"whole");
    assert!(folder.read("victim", 4).is_err());
    assert_eq!(folder.read("nothing", 4).unwrap(), None);
    for name in ["", ".", "..", "a/b", "/etc"] {
        assert!(folder.write(name, b"", 0o644).is_err(), "{name}");
        assert!(folder.enter(name).is_err() && folder.remove_all(name).is_err());
    }
    assert_eq!(mode(&victim), 0o600);
    folder.remove_all("folder").unwrap();
    folder.remove_all("link").unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "whole");
}

/// Not even opening a pipe may wait for a writer who never comes.
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let folder = open(place.path());
    let kind = FileType::Fifo;
    rustix::fs::mknodat(&folder, "pipe", kind, Mode::from(0o666), 0).unwrap();
    let error = folder.read("pipe", 10).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

#[test]
fn modes_are_what_was_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let folder = open(place.path());
    drop(folder.write("set-id", b"x", 0o4444).unwrap());
    drop(folder.write("open", b"x", 0o666).unwrap());
    drop(folder.bind("socket", 0o600).unwrap());
    drop(folder.make("own").unwrap());
    let found = ["set-id", "open", "socket", "own"].map(|name| mode(&place.path().join(name)));
    assert_eq!(found, [0o4444, 0o666, 0o600, 0o700]);
}

#[test]
fn links_of_others_lead_nowhere() {
    if !rustix::process::geteuid().is_root() {
        let _ = writeln!(io::stderr(), "skipped: {}: not root", module_path!());
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let real = place.path().join("real");
    fs::create_dir(&real).unwrap();
    let link = place.path().join("link");
    symlink("real", &link).unwrap();
    symlink("link", place.path().join("twice")).unwrap();
    for way in ["link", "twice", "link/../link", "real/."] {
        assert!(open(&place.path().join(way)).is(&open(&real)), "{way}");
    }
    Folder::open_or_make(&place.path().join("link/new/er")).unwrap();
    assert!(real.join("new/er").is_dir());
    lchown(&link, Some(OTHER_USER), None).unwrap();
    for way in ["link", "twice", "link/new"] {
        let error = Folder::open_or_make(&place.path().join(way)).unwrap_err();
        assert!(error.to_string().contains("user 48713"), "{way}: {error}");
    }
    symlink("round", place.path().join("round")).unwrap();
    assert!(Folder::open(&place.path().join("round")).is_err());
    fs::write(place.path().join("file"), "").unwrap();
    let error = Folder::open(&place.path().join("file")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
}

#[test]
fn a_directory_is_exchanged_for_the_one_that_was_looked_at() {
    let place = tempfile::tempdir().unwrap();
    let folder = open(place.path());
    let stage = Stage::new(&folder, ".stage-").unwrap();
    let old = folder.make("name").unwrap();
    let other = folder.make("other").unwrap();
    drop(other.write("mine", b"whole", 0o644).unwrap());
    drop(stage.folder().make("new").unwrap());
    let error = stage.folder().exchange("new", &folder, "other", &old);
    assert!(error.is_err());
    assert_eq!(other.read("mine", 10).unwrap().unwrap(), b"whole");
    assert!(folder.enter("other").unwrap().is(&other));
    stage
        .folder()
        .exchange("new", &folder, "name", &old)
        .unwrap();
    assert!(!folder.enter("name").unwrap().is(&old));
    drop(stage);
    let names = folder.names().unwrap();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(fs::metadata(place.path().join("name")).unwrap().nlink(), 2);
}

#[test]
fn a_name_that_is_taken_stays() {
    let place = tempfile::tempdir().unwrap();
    let folder = open(place.path());
    drop(folder.write("old", b"old", 0o644).unwrap());
    drop(folder.write("new", b"new", 0o644).unwrap());
    let error = folder.rename_new("new", &folder, "old").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(folder.read("old", 3).unwrap().unwrap(), b"old");
    folder.rename_over("new", &folder, "old").unwrap();
    assert_eq!(folder.read("old", 3).unwrap().unwrap(), b"new");
}
