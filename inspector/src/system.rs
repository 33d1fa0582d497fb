//! Files as the kernel gives them: each directory of a path is opened by itself, no link is
//! followed, and nothing but a regular file is read.

use crate::guard::{FileError, Files, Folder};
use crate::wire::OUT;
use alloc::ffi::CString;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use tki_inside::io::{self, c_path};
use tki_inside::sys::{
    self, Errno, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY,
};

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// The type in a file's mode.
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

/// The most bytes of a report that are read back.
const MOST_REPORT: u64 = 64 << 20;

/// Files below /in and /out.
#[derive(Debug)]
pub struct System {
    buffer: Vec<u8>,
    /// What stands before every path: nothing, but in tests.
    root: &'static str,
}

impl System {
    /// A reader and writer with a buffer of its own.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self {
            buffer: vec![0; PIECE],
            root: "",
        }
    }

    fn below_root(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    fn read_open(
        &mut self,
        fd: i32,
        most: u64,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<u64, FileError> {
        let found = sys::stat_descriptor(fd).map_err(refused)?;
        if found.mode & TYPE != REGULAR {
            return Err(FileError::Irregular);
        }
        let mut total = 0u64;
        loop {
            match sys::read(fd, &mut self.buffer) {
                Ok(0) => return Ok(total),
                Ok(count) => {
                    total += count as u64;
                    if total > most {
                        return Err(FileError::TooLong(most));
                    }
                    each(&self.buffer[..count]);
                }
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(refused(errno)),
            }
        }
    }
}

fn refused(errno: Errno) -> FileError {
    match errno {
        Errno::ENOENT => FileError::Missing,
        // A link, or something else than a directory on the way.
        Errno::ELOOP | Errno::ENOTDIR => FileError::Irregular,
        Errno(number) => FileError::Errno(number),
    }
}

/// A descriptor that is closed when dropped.
struct Open(i32);

impl Drop for Open {
    fn drop(&mut self) {
        sys::close(self.0);
    }
}

fn folder(path: &str) -> Result<Open, FileError> {
    let path = c_path(path).map_err(refused)?;
    let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    sys::open(&path, flags, 0).map(Open).map_err(refused)
}

/// Opens a path one name after the other.
fn open(start: &str, path: &str) -> Result<Open, FileError> {
    let mut here = folder(start)?;
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        let name: CString = c_path(name).map_err(refused)?;
        let flags = match names.peek() {
            Some(_) => O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
            None => O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
        };
        here = Open(sys::open_in(here.0, &name, flags, 0).map_err(refused)?);
    }
    Ok(here)
}

impl Files for System {
    fn read(
        &mut self,
        start: Folder,
        path: &str,
        most: u64,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<u64, FileError> {
        let file = open(&self.below_root(start.path()), path)?;
        self.read_open(file.0, most, each)
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), FileError> {
        let path = format!("{}/{name}", self.below_root(OUT));
        let path = c_path(&path).map_err(refused)?;
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
        let file = Open(sys::open(&path, flags, 0o644).map_err(refused)?);
        io::write_all(file.0, bytes).map_err(refused)?;
        sys::fsync(file.0).map_err(refused)?;
        Ok(())
    }

    fn read_back(&mut self, name: &str) -> Result<Vec<u8>, FileError> {
        let file = open(&self.below_root(OUT), name)?;
        let mut bytes = Vec::new();
        self.read_open(file.0, MOST_REPORT, &mut |piece| {
            bytes.extend_from_slice(piece)
        })?;
        Ok(bytes)
    }
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
