//! Second programs.

use super::{AT_FDCWD, Errno, Result, nr, text};
use core::ffi::CStr;
use tki_inside::call;

/// A list of at most three strings, as exec wants it.
fn exec_list(arguments: &[&CStr]) -> [usize; 4] {
    let mut list = [0; 4];
    for (slot, argument) in list.iter_mut().zip(arguments.iter().take(3)) {
        *slot = text(argument);
    }
    list
}

/// Replaces this program with another, with an empty environment.
pub fn execve(path: &CStr, arguments: &[&CStr]) -> Errno {
    let (list, nothing) = (exec_list(arguments), [0usize]);
    let result = call!(
        nr::EXECVE,
        text(path),
        list.as_ptr() as usize,
        nothing.as_ptr() as usize
    );
    result.err().unwrap_or(Errno(0))
}

/// The same through a descriptor (`fd`, with an empty path) or a path.
pub fn execveat(fd: Option<i32>, path: &CStr, arguments: &[&CStr]) -> Errno {
    const AT_EMPTY_PATH: usize = 0x1000;
    let (list, nothing) = (exec_list(arguments), [0usize]);
    let result = call!(
        nr::EXECVEAT,
        fd.map_or(AT_FDCWD, |fd| fd as usize),
        text(path),
        list.as_ptr() as usize,
        nothing.as_ptr() as usize,
        if fd.is_some() { AT_EMPTY_PATH } else { 0 }
    );
    result.err().unwrap_or(Errno(0))
}

/// A file that exists only in memory, which survives an exec.
pub fn memfd_create(name: &CStr) -> Result<i32> {
    call!(nr::MEMFD_CREATE, text(name), 0).map(|fd| fd as i32)
}
