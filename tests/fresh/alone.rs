//! `verify` alone: in a network namespace without any interface, on a read-only
//! mount, as nobody, under strace. It opens no socket, writes nothing but its
//! result, and no file outside its arguments.

use super::bases::full;
use crate::common::signed::Copy;
use crate::common::{Mounted, isolated, names_in, need};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Calls that ask for something and change nothing.
const HARMLESS: &[&str] = &[
    "access",
    "arch_prctl",
    "brk",
    "clock_gettime",
    "clone",
    "clone3",
    "close",
    "execve",
    "exit",
    "exit_group",
    "fcntl",
    "fstat",
    "futex",
    "getcwd",
    "getdents64",
    "getpid",
    "getrandom",
    "gettid",
    "ioctl",
    "lseek",
    "lstat",
    "madvise",
    "mmap",
    "mprotect",
    "mremap",
    "munmap",
    "newfstatat",
    "poll",
    "pread64",
    "prlimit64",
    "read",
    "readlink",
    "rseq",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sched_getaffinity",
    "sched_yield",
    "set_robust_list",
    "set_tid_address",
    "sigaltstack",
    "stat",
    "statx",
];

/// Files of the system that the loader and the runtime read.
fn is_systems(path: &str) -> bool {
    [
        "/etc/ld.so.",
        "/lib/",
        "/lib64/",
        "/usr/lib/",
        "/proc/self/",
        "/sys/fs/cgroup/",
    ]
    .iter()
    .any(|start| path.starts_with(start))
}

/// Puts a bundle, its inputs and the tool onto a mount that nobody can write to.
fn sealed(copy: &Copy, mount: &Path) -> Mounted {
    let mounted = Mounted::tmpfs(mount, "size=1g,mode=755");
    let mut cp = Command::new("cp");
    cp.arg("-r")
        .arg(copy.folder.path())
        .arg(mount.join("bundle"));
    assert_eq!(need("coreutils", &mut cp).status, 0);
    let mut chmod = Command::new("chmod");
    chmod.args(["-R", "a+rX"]).arg(mount.join("bundle"));
    assert_eq!(need("coreutils", &mut chmod).status, 0);
    fs::copy(env!("CARGO_BIN_EXE_tki-attest"), mount.join("tki-attest")).unwrap();
    let mut remount = Command::new("mount");
    remount.args(["-o", "remount,ro"]).arg(mount);
    assert_eq!(need("mount", &mut remount).status, 0);
    mounted
}

#[test]
fn verify_touches_nothing_but_its_arguments() {
    let copy = full().copy();
    let name = copy.path.file_name().unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let mount = folder.path().join("sealed");
    let _mounted = sealed(&copy, &mount);
    let bundle = mount.join("bundle");
    for (case, target) in [("one", bundle.join(&name)), ("many", bundle.clone())] {
        let log = folder.path().join(format!("strace-{case}.log"));
        let mut watched = isolated(Path::new("unshare"));
        // What runs the tests names directories of its own for the loader.
        watched.env_remove("LD_LIBRARY_PATH");
        watched.args([
            "--net",
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
        ]);
        watched
            .args(["--no-new-privs", "strace", "-f", "-qq", "-o"])
            .arg(&log);
        watched
            .arg(mount.join("tki-attest"))
            .arg("verify")
            .arg(&target);
        watched.arg("--allowed-signers").arg(bundle.join("signers"));
        watched.arg("--request").arg(bundle.join("request"));
        watched.args(["--require-artifacts", "--require-assurance", "signed-fresh"]);
        let said = need("util-linux and strace", watched.current_dir("/"));
        said.succeeded();
        assert!(said.stdout.contains("B4_PRIME_ACCEPTED"), "{said:?}");
        let text = fs::read_to_string(&log).unwrap();
        let opened = check(&text, mount.to_str().unwrap());
        // Evidence, envelope, request, signers and 28 artifacts at least.
        assert!(opened >= 32, "{opened} files: strace saw too little");
    }
    assert_eq!(names_in(&mount), ["bundle", "tki-attest"]);
}

/// Looks at every call; gives the number of files opened below the mount.
fn check(log: &str, mount: &str) -> usize {
    let mut opened = 0;
    for line in log.lines() {
        let call = line
            .split_once(' ')
            .map_or(line, |(_, call)| call.trim_start());
        if call.starts_with(['+', '-', '<']) {
            continue;
        }
        let (name, rest) = call.split_once('(').unwrap_or((call, ""));
        match name {
            "open" | "openat" => {
                for flag in ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"] {
                    assert!(!rest.contains(flag), "{line}");
                }
                let path = rest.split('"').nth(1).unwrap_or_default();
                // A relative path is relative to a directory that was opened.
                let below = !path.starts_with('/') && !rest.starts_with("AT_FDCWD");
                let ours = below && !path.contains('/') || path.starts_with(mount);
                assert!(ours || is_systems(path), "{line}");
                opened += usize::from(ours && !rest.contains("= -1"));
            }
            "write" | "writev" => assert!(rest.starts_with("1, "), "{line}"),
            name => assert!(HARMLESS.contains(&name), "{line}"),
        }
    }
    opened
}
