//! Executing a second program, from every place it could come from.
//!
//! A probe that executes itself without a marker is a fork bomb. Everything
//! executed here is told to do nothing but end with a status of its own.

use super::{Context, Operation, in_child};
use crate::outcome::Outcome;
use crate::sys::{self, Ended, Errno, O_CREAT, O_EXCL, O_WRONLY};
use alloc::format;
use core::ffi::CStr;
use tki_evidence::catalogue::IMAGE_PROGRAMS;
use tki_inside::{EXEC_MARKER_STATUS, io};

/// PR-EXEC-1.
pub const PROGRAMS: &[Operation] = &[
    ("execve(/bin/sh)", |_| shell(by_path)),
    ("execveat(/bin/sh)", |_| shell(by_path_at)),
    ("execve(itself)", |_| programs(by_path)),
    ("execveat(itself)", |_| programs(by_path_at)),
    ("execve(file in /out)", |_| dropped(OUT, by_path)),
    ("execveat(file in /out)", |_| dropped(OUT, by_path_at)),
    ("execve(file in /tmp)", |_| dropped(TMP, by_path)),
    ("execveat(file in /tmp)", |_| dropped(TMP, by_path_at)),
    ("execve(memfd)", memory_by_path),
    ("execveat(memfd)", memory_by_descriptor),
];

const OUT: &CStr = c"/out/tki-probe-program";
const TMP: &CStr = c"/tmp/tki-probe-program";

/// A program that is data only until a process manages to execute it.
const SCRIPT: &[u8] = b"#!/tki-prober exec-marker\n";

type Exec = fn(&CStr, &[&CStr]) -> Errno;

fn by_path(path: &CStr, arguments: &[&CStr]) -> Errno {
    sys::execve(path, arguments)
}

fn by_path_at(path: &CStr, arguments: &[&CStr]) -> Errno {
    sys::execveat(None, path, arguments)
}

fn shell(exec: Exec) -> Outcome {
    execute(|| exec(c"/bin/sh", &[c"sh", c"-c", c"exit 200"]))
}

/// Every program of the image, this one among them. They all know what the marker means.
fn programs(exec: Exec) -> Outcome {
    let mut outcome = Outcome::error("the image has no program");
    for path in IMAGE_PROGRAMS {
        outcome = match io::c_path(path) {
            Ok(path) => execute(|| exec(&path, &[&path, c"exec-marker"])),
            Err(errno) => Outcome::not_reached("path", errno),
        };
        if !outcome.is_denied() {
            break;
        }
    }
    outcome
}

fn dropped(path: &CStr, exec: Exec) -> Outcome {
    match sys::open(path, O_WRONLY | O_CREAT | O_EXCL, 0o755) {
        Err(errno) => return Outcome::not_reached("open", errno),
        Ok(fd) => {
            let written = io::write_all(fd, SCRIPT);
            sys::close(fd);
            if let Err(errno) = written {
                let _ = sys::unlink(path);
                return Outcome::not_reached("write", errno);
            }
        }
    }
    let outcome = execute(|| exec(path, &[path]));
    let _ = sys::unlink(path);
    outcome
}

fn memory_by_path(_: &Context) -> Outcome {
    with_memfd(|fd| match io::c_path(&format!("/proc/self/fd/{fd}")) {
        Ok(path) => sys::execve(&path, &[&path]),
        Err(errno) => errno,
    })
}

fn memory_by_descriptor(_: &Context) -> Outcome {
    with_memfd(|fd| sys::execveat(Some(fd), c"", &[c"tki"]))
}

/// Without a memfd there is nothing to execute: its refusal is the proof.
fn with_memfd(exec: impl Fn(i32) -> Errno) -> Outcome {
    let fd = match sys::memfd_create(c"tki-probe") {
        Err(errno) => return Outcome::denied_at("memfd_create", errno),
        Ok(fd) => fd,
    };
    let outcome = match io::write_all(fd, SCRIPT) {
        Err(errno) => Outcome::not_reached("write", errno),
        Ok(()) => execute(|| exec(fd)),
    };
    sys::close(fd);
    outcome
}

/// Executes in a forked copy. A failed exec returns and its errno becomes the
/// copy's status; a successful one ends with the marker's.
fn execute(exec: impl Fn() -> Errno) -> Outcome {
    match in_child(|| exec().0) {
        Ok(Ended::Exit(EXEC_MARKER_STATUS)) => Outcome::attempt(Ok(0), &[]),
        Ok(Ended::Exit(errno @ 1..=133)) => Outcome::attempt(Err::<i64, _>(Errno(errno)), &[]),
        Ok(Ended::Exit(status)) => Outcome::error(format!("ended with status {status}")),
        Ok(Ended::Signal(number)) => Outcome::signal(number),
        Err(errno) => Outcome::not_reached("fork", errno),
    }
}
