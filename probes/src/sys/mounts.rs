//! Mounting, with arguments that cannot work.

use super::{Result, nr, text};
use core::ffi::CStr;
use tki_inside::call;

/// Tries to mount a file system type that does not exist: it can only fail,
/// and the errno says whether permission or the type was missing. It is a kind of a type
/// that has no kinds: for a name that the kernel does not know at all it would look for a
/// module, with a program of the host's.
pub fn mount_impossible(target: &CStr) -> Result {
    call!(
        nr::MOUNT,
        text(c"tki"),
        text(target),
        text(c"proc.tki"),
        0,
        0
    )
}

/// Tries to unmount with two flags that exclude each other, which is found out after the
/// permission was checked: it can only fail. The second alone would mark the mount, and
/// the next one who gives it would unmount.
pub fn umount_impossible(target: &CStr) -> Result {
    const MNT_DETACH: usize = 2;
    const MNT_EXPIRE: usize = 4;
    call!(nr::UMOUNT2, text(target), MNT_DETACH | MNT_EXPIRE)
}
