//! Namespaces of the tool's own.

use std::io::{Error, Result};

/// Moves this thread into new namespaces, by their flags. A few take the whole process
/// along, which must then have one thread only.
pub fn unshare(flags: libc::c_int) -> Result<()> {
    // SAFETY: flags of namespaces touch neither memory nor descriptors, and the kernel
    // refuses those that other threads would have to follow.
    match unsafe { libc::unshare(flags) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}
