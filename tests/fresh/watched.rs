//! `verify` opens no socket and writes nothing.

use super::bases::plain;
use crate::common::bundle::copy_of;
use crate::common::{isolated, need};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// As nobody, in an empty network namespace, and watched.
#[test]
fn verify_opens_no_socket_and_writes_nothing() {
    let (folder, path) = copy_of(&plain().path);
    let binary = folder.path().join("tki-attest");
    fs::copy(env!("CARGO_BIN_EXE_tki-attest"), &binary).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let log = folder.path().join("strace.log");
    let mut watched = isolated(Path::new("unshare"));
    watched.args([
        "-n",
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ]);
    watched.args([
        "strace",
        "-f",
        "-qq",
        "-e",
        "trace=%network,%file,write,writev,pwrite64,ftruncate,fchmod,fchown",
        "-o",
    ]);
    watched
        .arg(&log)
        .arg(&binary)
        .arg("verify")
        .arg(&path)
        .arg("--require-artifacts");
    let said = need("util-linux and strace", &mut watched);
    said.succeeded();
    assert!(said.stdout.contains("B4_PRIME_ACCEPTED"), "{said:?}");
    let log = fs::read_to_string(&log).unwrap();
    assert!(log.contains("evidence-vps"), "strace saw nothing: {log}");
    // Finding a program and asking for names and states.
    let harmless = [
        "execve",
        "access",
        "faccessat2",
        "readlink",
        "readlinkat",
        "stat",
        "fstat",
        "lstat",
        "newfstatat",
        "statx",
        "statfs",
        "getcwd",
    ];
    for line in log.lines() {
        let call = line
            .split_once(' ')
            .map_or(line, |(_, call)| call.trim_start());
        let (name, rest) = call.split_once('(').unwrap_or((call, ""));
        let fine = match name {
            "open" | "openat" => ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"]
                .iter()
                .all(|flag| !rest.contains(flag)),
            "write" | "writev" => rest.starts_with("1, "),
            name => harmless.contains(&name) || call.starts_with(['+', '-']),
        };
        assert!(fine, "{line}");
    }
}
