//! Writing where nothing may be written, and where it must be possible.

use super::{Context, Operation};
use crate::outcome::Outcome;
use crate::sys::{self, Errno, O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_WRONLY, Result, Stat};
use core::ffi::CStr;

/// A file that the launcher puts into /in for these probes.
const INPUT: &CStr = c"/in/tki-probe-target";
const NEW_INPUT: &CStr = c"/in/tki-probe-new";

/// PR-FS-RO-IN.
pub const READ_ONLY_INPUT: &[Operation] = &[
    ("create(/in)", |_| attempt_create(NEW_INPUT)),
    ("append(/in)", |_| attempt_append(INPUT)),
    ("truncate(/in)", |_| {
        as_it_is(|input| sys::truncate(INPUT, input.size))
    }),
    // As a directory, which it is not: that is looked at after the permission.
    ("unlink(/in)", |_| {
        Outcome::attempt(sys::rmdir(INPUT), &[Errno::ENOTDIR])
    }),
    ("chmod(/in)", |_| {
        as_it_is(|input| sys::chmod(INPUT, (input.mode & 0o7777) as usize))
    }),
];

/// PR-FS-ESC-1.
pub const DOT_DOT: &[Operation] = &[
    ("create(/out/../escape)", |_| {
        attempt_create(c"/out/../escape/tki-probe")
    }),
    ("create(/out/./../../../escape)", |_| {
        attempt_create(c"/out/./../../../escape/tki-probe")
    }),
    ("mkdir(/out/../escape)", |_| {
        const PATH: &CStr = c"/out/../escape/tki-probe-dir";
        let result = sys::mkdir(PATH, 0o700);
        if result.is_ok() {
            let _ = sys::rmdir(PATH);
        }
        Outcome::attempt(result, &[])
    }),
    ("append(/out/../escape/README)", |_| {
        attempt_append(c"/out/../escape/README")
    }),
];

/// PR-FS-ESC-2.
pub const SYMLINKS: &[Operation] = &[
    ("create(absolute symlink)", |_| {
        through_link(c"/escape/tki-probe", attempt_create)
    }),
    ("create(relative symlink)", |_| {
        through_link(c"../escape/tki-probe", attempt_create)
    }),
    ("append(absolute symlink)", |_| {
        through_link(c"/escape/README", attempt_append)
    }),
    ("append(relative symlink)", |_| {
        through_link(c"../escape/README", attempt_append)
    }),
];

/// PR-FS-OUT-OK.
pub const OUTPUT: &[Operation] = &[
    ("write(/out)", |_| finish(write_output())),
    ("fsync(/out)", |_| finish(sync_output())),
    ("read(/out)", read_output),
    ("unlink(/out)", |_| finish(sys::unlink(OUTPUT_FILE))),
];

const OUTPUT_FILE: &CStr = c"/out/tki-probe-output";
const CONTENT: &[u8] = b"tki-attest writes here and nowhere else\n";

/// Changes the file in /in into what it is already.
fn as_it_is(change: impl Fn(Stat) -> Result) -> Outcome {
    match sys::stat(INPUT) {
        Ok(input) => Outcome::attempt(change(input), &[]),
        Err(errno) => Outcome::not_reached("stat", errno),
    }
}

/// Creates a file; removes it again should that work.
fn attempt_create(path: &CStr) -> Outcome {
    let result = sys::open(path, O_WRONLY | O_CREAT, 0o600);
    if let Ok(fd) = result {
        sys::close(fd);
        let _ = sys::unlink(path);
    }
    Outcome::attempt(result, &[])
}

/// Opens a file for appending and writes nothing: the permission is the proof.
fn attempt_append(path: &CStr) -> Outcome {
    let result = sys::open(path, O_WRONLY | O_APPEND, 0);
    if let Ok(fd) = result {
        sys::close(fd);
    }
    Outcome::attempt(result, &[])
}

fn through_link(target: &CStr, attempt: fn(&CStr) -> Outcome) -> Outcome {
    const LINK: &CStr = c"/out/tki-probe-link";
    if let Err(errno) = sys::symlink(target, LINK) {
        return Outcome::not_reached("symlink", errno);
    }
    let outcome = attempt(LINK);
    // Creating follows the link and removing does not: should it have worked,
    // the file is removed by its own name.
    if !outcome.is_denied() {
        let _ = sys::unlink(c"/escape/tki-probe");
    }
    let _ = sys::unlink(LINK);
    outcome
}

/// For calls that must succeed.
fn finish(result: Result) -> Outcome {
    Outcome::attempt(result, &[])
}

fn write_output() -> Result {
    let fd = sys::open(OUTPUT_FILE, O_WRONLY | O_CREAT | O_EXCL, 0o600)?;
    let result = sys::write(fd, CONTENT);
    sys::close(fd);
    result
}

fn sync_output() -> Result {
    let fd = sys::open(OUTPUT_FILE, O_WRONLY, 0)?;
    let result = sys::fsync(fd);
    sys::close(fd);
    result
}

fn read_output(_: &Context) -> Outcome {
    let mut buffer = [0; 2 * CONTENT.len()];
    let result = sys::open(OUTPUT_FILE, O_RDONLY, 0).and_then(|fd| {
        let result = sys::read(fd, &mut buffer);
        sys::close(fd);
        result
    });
    match result {
        Ok(count) if &buffer[..count] != CONTENT => {
            Outcome::error("what was read back is not what was written")
        }
        result => finish(result),
    }
}
