//! Files and lines on top of the system calls.

use crate::sys::{self, Errno, Result};
use alloc::ffi::CString;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::CStr;

/// The most that is read from one kernel text.
const MAX_TEXT: usize = 128 * 1024;

/// A path for the kernel. A path with a NUL in it does not exist.
pub fn c_path(path: &str) -> Result<CString> {
    CString::new(path).map_err(|_| Errno::ENOENT)
}

/// A kernel text as a whole, or as much as is reasonable of it.
pub fn read_text(path: &CStr) -> Result<String> {
    let fd = sys::open(path, sys::O_RDONLY, 0)?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let result = loop {
        match sys::read(fd, &mut buffer) {
            Ok(0) => break Ok(()),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(Errno::EINTR) => {}
            Err(errno) => break Err(errno),
        }
        if bytes.len() > MAX_TEXT {
            break Err(Errno::EINVAL);
        }
    };
    sys::close(fd);
    result.map(|()| String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes everything, or as much as can be written.
pub fn write_all(fd: i32, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match sys::write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Writes a text to a descriptor; there is nobody to tell if that fails.
pub fn print(fd: i32, text: &str) {
    let _ = write_all(fd, text.as_bytes());
}

/// Calls `visit` with the name and type of each entry of a directory.
pub fn each_entry(fd: i32, mut visit: impl FnMut(&str, u8)) -> Result<()> {
    let mut buffer = [0u8; 8192];
    loop {
        let count = sys::getdents(fd, &mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..count];
        // struct linux_dirent64: inode, offset, length (u16), type, name.
        while rest.len() > 19 {
            let length = usize::from(u16::from_ne_bytes([rest[16], rest[17]]));
            let Some(entry) = rest.get(..length).filter(|_| length > 19) else {
                return Err(Errno::EINVAL);
            };
            let name = CStr::from_bytes_until_nul(&entry[19..]).map_err(|_| Errno::EINVAL)?;
            let name = String::from_utf8_lossy(name.to_bytes());
            if name != "." && name != ".." {
                visit(&name, entry[18]);
            }
            rest = &rest[length..];
        }
    }
}

/// A kernel text without its last newline, or why it cannot be read.
pub fn read_line(path: &CStr) -> Result<String> {
    read_text(path).map(|text| text.trim_end().into())
}

/// Where a symlink leads.
pub fn read_link(path: &str) -> Result<String> {
    let mut buffer = [0; 512];
    let count = sys::readlink(&c_path(path)?, &mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..count]).into_owned())
}

/// The names in a directory, sorted.
pub fn list(path: &CStr) -> Result<Vec<String>> {
    let fd = sys::open(path, sys::O_RDONLY | sys::O_DIRECTORY, 0)?;
    let mut names = Vec::new();
    let listed = each_entry(fd, |name, _| names.push(name.into()));
    sys::close(fd);
    names.sort();
    listed.map(|()| names)
}

/// The start of a kernel text that may be long.
pub fn read_start(path: &CStr) -> Result<String> {
    let fd = sys::open(path, sys::O_RDONLY, 0)?;
    let mut buffer = [0; 256];
    let result = sys::read(fd, &mut buffer);
    sys::close(fd);
    result.map(|count| String::from_utf8_lossy(&buffer[..count]).into_owned())
}
