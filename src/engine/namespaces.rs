//! Namespaces of the tool's own.

use std::io::{Error, Result};

/// Moves this thread, and with some flags this process, which must then have one
/// thread only, into new namespaces.
pub fn unshare(flags: libc::c_int) -> Result<()> {
    // SAFETY: no flag of a namespace touches memory or descriptors, and the kernel
    // refuses those that other threads would have to follow.
    match unsafe { libc::unshare(flags) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}
