//! Code without exec: mapping what was written.

use super::Operation;
use crate::io;
use crate::outcome::Outcome;
use crate::sys::{self, Mapping, O_CREAT, O_EXCL, O_RDONLY, O_WRONLY, PROT_EXEC, PROT_WRITE};
use core::ffi::CStr;

/// XP-MEM-EXEC.
pub const MAPPED_CODE: &[Operation] = &[
    ("mmap(PROT_EXEC of a file in /out)", |_| {
        map_file(c"/out/tki-probe-code")
    }),
    ("mmap(PROT_EXEC of a file in /tmp)", |_| {
        map_file(c"/tmp/tki-probe-code")
    }),
    // The inspector needs no such memory, but many a program does: recorded.
    ("mmap(RWX)", |_| {
        Outcome::attempt(
            Mapping::new(None, 4096, PROT_WRITE | PROT_EXEC).map(|_| 0),
            &[],
        )
    }),
];

fn map_file(path: &CStr) -> Outcome {
    match sys::open(path, O_WRONLY | O_CREAT | O_EXCL, 0o700) {
        Err(errno) => return Outcome::not_reached("open", errno),
        Ok(fd) => {
            let _ = io::write_all(fd, b"\xc3");
            sys::close(fd);
        }
    }
    let outcome = match sys::open(path, O_RDONLY, 0) {
        Err(errno) => Outcome::not_reached("open", errno),
        Ok(fd) => {
            let mapped = Mapping::new(Some(fd), 4096, PROT_EXEC);
            sys::close(fd);
            Outcome::attempt(mapped.map(|_| 0), &[])
        }
    };
    let _ = sys::unlink(path);
    outcome
}
