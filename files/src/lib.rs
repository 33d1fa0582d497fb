//! Reading files that others may have made: bounded, only regular ones, and never waiting for
//! the writer of a pipe.

#![forbid(unsafe_code)]

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Reads a file of at most `most` bytes.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read(path, most, OFlags::empty())
}

/// Reads at most `most` bytes of a file whose path the user did not give; refuses
/// symbolic links.
pub fn read_beside(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    match read(path, most, OFlags::NOFOLLOW) {
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            Err(io::Error::other("it is a symbolic link"))
        }
        other => other,
    }
}

/// Reads a file of at most `most` bytes; gives its owner too. Asking for the owner by the path
/// would tell that of another file, if another process exchanges them.
pub fn read_owned(path: &Path, most: u64) -> io::Result<(Vec<u8>, u32)> {
    let file = open(path, OFlags::empty())?;
    let metadata = must_be_regular(&file)?;
    let bytes = read_at_most(&file, metadata.len(), most)?;
    Ok((bytes, metadata.uid()))
}

fn read(path: &Path, most: u64, flags: OFlags) -> io::Result<Vec<u8>> {
    read_regular(&open(path, flags)?, most)
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    // Not even opening may wait for another process, as it does for a pipe.
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Reads a file that must be a regular one.
pub fn read_regular(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let metadata = must_be_regular(file)?;
    read_at_most(file, metadata.len(), most)
}

/// What a file is, if it is a regular one.
pub fn must_be_regular(file: &File) -> io::Result<Metadata> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(metadata)
}

/// Reads a file to its end, in one piece if it has the length that it is said to
/// have.
pub fn read_at_most(file: &File, length: u64, most: u64) -> io::Result<Vec<u8>> {
    let expected = usize::try_from(length.min(most)).map_err(io::Error::other)?;
    // One byte more than expected, so that the end shows without a longer buffer.
    let mut bytes = Vec::with_capacity(expected + 1);
    loop {
        match rustix::io::read(file, spare_capacity(&mut bytes)) {
            Ok(0) => return Ok(bytes),
            Ok(_) if bytes.len() as u64 > most => {
                return Err(io::Error::other(format!("it has more than {most} bytes")));
            }
            Ok(_) => bytes.reserve(1),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The directory that a path is in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
