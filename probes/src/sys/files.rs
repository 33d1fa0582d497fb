//! Files and directories that a probe makes, changes and removes.

use super::{O_RDONLY, Result, at, nr, text};
use core::ffi::CStr;
use tki_inside::call;

/// Makes a directory.
pub fn mkdir(path: &CStr, mode: usize) -> Result {
    let (folder, path) = at(path);
    call!(nr::MKDIRAT, folder, path, mode)
}

/// Removes a file.
pub fn unlink(path: &CStr) -> Result {
    let (folder, path) = at(path);
    call!(nr::UNLINKAT, folder, path, 0)
}

/// Removes an empty directory.
pub fn rmdir(path: &CStr) -> Result {
    const AT_REMOVEDIR: usize = 0x200;
    let (folder, path) = at(path);
    call!(nr::UNLINKAT, folder, path, AT_REMOVEDIR)
}

/// Makes a symlink.
pub fn symlink(target: &CStr, path: &CStr) -> Result {
    let (folder, path) = at(path);
    call!(nr::SYMLINKAT, text(target), folder, path)
}

/// Changes a file's mode.
pub fn chmod(path: &CStr, mode: usize) -> Result {
    let (folder, path) = at(path);
    call!(nr::FCHMODAT, folder, path, mode)
}

/// Changes a file's length.
pub fn truncate(path: &CStr, length: usize) -> Result {
    call!(nr::TRUNCATE, text(path), length)
}

/// The kind of a file system that `fstatfs` gives for proc.
pub const PROC: u64 = 0x9fa0;

/// The kind of the file system that an open file is on.
pub fn file_system(fd: i32) -> Result<u64> {
    // struct statfs of x86-64 has 120 bytes and begins with the kind.
    let mut found = [0u64; 15];
    call!(nr::FSTATFS, fd as usize, found.as_mut_ptr() as usize)?;
    Ok(found[0])
}

/// Opens a file below a directory for reading, without leaving that, crossing a mount or
/// following a link of the kernel's own.
pub fn open_beneath(folder: i32, path: &CStr) -> Result<i32> {
    const NO_XDEV: u64 = 1;
    const NO_MAGICLINKS: u64 = 2;
    const BENEATH: u64 = 8;
    // struct open_how: flags, mode, how names are resolved.
    let how = [O_RDONLY as u64, 0, NO_XDEV | NO_MAGICLINKS | BENEATH];
    let opened = call!(
        nr::OPENAT2,
        folder as usize,
        text(path),
        how.as_ptr() as usize,
        core::mem::size_of_val(&how)
    );
    opened.map(|fd| fd as i32)
}

/// Makes a second name for a file.
pub fn link(path: &CStr, other: &CStr) -> Result {
    let ((folder, path), (to, other)) = (at(path), at(other));
    call!(nr::LINKAT, folder, path, to, other, 0)
}

/// Makes a pipe with a name.
pub fn mkfifo(path: &CStr) -> Result {
    const S_IFIFO: usize = 0o010000;
    let (folder, path) = at(path);
    call!(nr::MKNODAT, folder, path, S_IFIFO | 0o600, 0)
}

/// Makes a node for the null device.
pub fn mknod_null(path: &CStr) -> Result {
    const S_IFCHR: usize = 0o020000;
    const NULL_DEVICE: usize = 1 << 8 | 3;
    let (folder, path) = at(path);
    call!(nr::MKNODAT, folder, path, S_IFCHR | 0o600, NULL_DEVICE)
}

/// Makes a socket's node, which nobody listens at.
pub fn mknod_socket(path: &CStr) -> Result {
    const S_IFSOCK: usize = 0o140000;
    let (folder, path) = at(path);
    call!(nr::MKNODAT, folder, path, S_IFSOCK | 0o600, 0)
}
