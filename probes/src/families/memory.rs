//! Code without exec: mapping files, above all what was written.

use super::Operation;
use crate::outcome::Outcome;
use crate::sys::{self, Mapping, O_CREAT, O_EXCL, O_RDONLY, O_WRONLY, PROT_EXEC, PROT_WRITE};
use core::ffi::CStr;
use tki_inside::io;

/// XP-MEM-EXEC.
pub const MAPPED_CODE: &[Operation] = &[
    ("mmap(PROT_EXEC of a file in /out)", |_| {
        write_and_map(c"/out/tki-probe-code")
    }),
    ("mmap(PROT_EXEC of a file in /tmp)", |_| {
        write_and_map(c"/tmp/tki-probe-code")
    }),
    // It cannot be mapped at all; that it must not be code is asked first.
    ("mmap(PROT_EXEC of a file in /proc/sys)", |_| {
        map(c"/proc/sys/kernel/ostype")
    }),
    // The prober needs no such memory, but many a program does: recorded.
    ("mmap(RWX)", |_| {
        Outcome::attempt(
            Mapping::new(None, 4096, PROT_WRITE | PROT_EXEC).map(|_| 0),
            &[],
        )
    }),
];

fn write_and_map(path: &CStr) -> Outcome {
    match sys::open(path, O_WRONLY | O_CREAT | O_EXCL, 0o700) {
        Err(errno) => return Outcome::not_reached("open", errno),
        Ok(fd) => {
            let _ = io::write_all(fd, b"\xc3");
            sys::close(fd);
        }
    }
    let outcome = map(path);
    let _ = sys::unlink(path);
    outcome
}

fn map(path: &CStr) -> Outcome {
    match sys::open(path, O_RDONLY, 0) {
        Err(errno) => Outcome::not_reached("open", errno),
        Ok(fd) => {
            let mapped = Mapping::new(Some(fd), 4096, PROT_EXEC);
            sys::close(fd);
            Outcome::attempt(mapped.map(|_| 0), &[])
        }
    }
}
