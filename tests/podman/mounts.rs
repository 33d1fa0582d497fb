//! A Podman that ends takes away a mount that all others rely on, and then tells them.
//! One that is cut off in between breaks the storage of the next process that mounts. So a run's
//! Podman has mounts of its own, and the run cuts nobody else's off.

use super::ON_PODMAN;
use crate::common::podman::{PodmanService, Storage, whole_podman};
use crate::common::{names_in, need, run, tool};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// What is mounted in a storage, as this process sees it.
fn mounts(storage: &Storage) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let ours = points.filter(|point| Path::new(point).starts_with(&storage.folder));
    ours.map(str::to_owned).collect()
}

/// Lists containers, and is killed when it has unmounted the storage directory and
/// is about to write that down.
fn cut_off(storage: &Storage) -> ExitStatus {
    let mut command = storage.on(Command::new("strace"));
    command.args(["-f", "-o", "/dev/null", "-P"]);
    command.arg(storage.folder.join("storage/storage.lock"));
    command.args(["-e", "trace=pwrite64"]);
    command.args(["-e", "inject=pwrite64:error=EIO:signal=KILL"]);
    command.args(["podman", "--runtime", "runc", "ps"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().unwrap()
}

#[test]
fn podmans_that_are_cut_off_do_no_harm_to_a_run_nor_it_to_them() {
    let _podman = whole_podman();
    need("strace", Command::new("strace").arg("-V"));
    let storage = Storage::new();
    let out = tempfile::tempdir().unwrap();
    let attest = |controls: &str| {
        let mut command = storage.on(tool());
        command.args(["run", "--venue", "dev", "-q", "--controls", controls]);
        command.args(ON_PODMAN).arg("--out").arg(out.path());
        command
    };
    // With the image in the storage.
    run(&mut attest("none")).succeeded();
    assert_eq!(mounts(&storage), [""; 0]);
    let mut tool = attest("safe");
    let here = tempfile::tempdir().unwrap();
    tool.current_dir(here.path());
    let mut tool = tool.stderr(Stdio::piped()).spawn().unwrap();
    let mut killed = 0;
    while tool.try_wait().unwrap().is_none() {
        let ended = cut_off(&storage);
        killed += usize::from(ended.signal() == Some(9));
        // Of the run's containers nothing shows outside.
        let home = storage.folder.join("storage/overlay");
        let seen = mounts(&storage);
        assert!(
            seen.iter().all(|point| Path::new(point) == home),
            "{seen:?}"
        );
        storage.podman(&["ps", "-a"]);
    }
    crate::common::said(tool.wait_with_output().unwrap()).succeeded();
    assert!(killed > 0);
    // One of the controls ran out of memory.
    assert_eq!(names_in(here.path()), [""; 0]);
    let left = storage.podman(&["ps", "-aq", "--external"]);
    assert_eq!(left, "");
    assert_eq!(mounts(&storage), [""; 0]);
}

/// What monitors start among the mounts of others comes to its own end.
#[test]
fn among_mounts_of_others_no_podman_is_cut_off() {
    let _podman = whole_podman();
    let storage = Storage::new();
    let out = tempfile::tempdir().unwrap();
    let log = out.path().join("signals");
    // The service and everything that it starts, monitors and their Podmans as well.
    // The tracer is not their parent, so that the service can be ended as usual.
    let mut podman = storage.on(Command::new("strace"));
    podman.args([
        "-D",
        "-f",
        "-qq",
        "-e",
        "trace=execve",
        "-e",
        "signal=TERM,KILL",
        "-o",
    ]);
    podman.arg(&log).arg("podman");
    let service = PodmanService::start_by(podman, "runc");
    let mut command = storage.on(tool());
    command.args([
        "run", "--venue", "dev", "-q", "--engine", "podman", "--host",
    ]);
    command
        .arg(service.host())
        .arg("--out")
        .arg(out.path().join("reports"));
    run(&mut command).succeeded();
    let seen = fs::read_to_string(log).unwrap();
    assert!(seen.contains("\"cleanup\""), "{seen}");
    assert!(!seen.contains("--- SIG"), "{seen}");
}
