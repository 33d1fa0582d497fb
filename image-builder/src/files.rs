//! Reading files below a directory without ever following a symbolic link.
//!
//! Every step of a path is opened relative to the directory before it, with
//! `O_NOFOLLOW`, so that neither a link nor a rename can lead outside.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

/// What a name in a directory is.
#[derive(Debug)]
pub(crate) enum Child {
    /// A regular file, opened, and whether its owner may execute it.
    File(File, bool),
    /// A directory, opened.
    Directory(OwnedFd),
    /// A symbolic link with its target, not followed.
    Symlink(Vec<u8>),
    /// A device, socket or pipe, not opened.
    Special,
}

/// Opens the directory that paths start from. The path itself is the user's
/// choice and may contain symbolic links.
pub(crate) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Looks at one name in a directory.
pub(crate) fn child(directory: &OwnedFd, name: &str) -> io::Result<Child> {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    match kind {
        FileType::RegularFile | FileType::Directory => {}
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
            return Ok(Child::Symlink(target.into_bytes()));
        }
        _ => return Ok(Child::Special),
    }
    // The name may have been replaced since; these flags make opening whatever
    // it is now harmless, and the second look at it decides.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&opened)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Child::File(opened.into(), stat.st_mode & 0o100 != 0)),
        FileType::Directory => Ok(Child::Directory(opened)),
        _ => Ok(Child::Special),
    }
}

/// The names in a directory, sorted; at most `limit`, else `None`.
pub(crate) fn names(directory: &OwnedFd, limit: usize) -> io::Result<Option<Vec<Vec<u8>>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() == limit {
            return Ok(None);
        }
        names.push(name.to_owned());
    }
    names.sort();
    Ok(Some(names))
}

/// The whole content of a file, or `None` if it is longer than `limit`.
pub(crate) fn read_bounded(file: File, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut data = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut data)?;
    Ok((data.len() as u64 <= limit).then_some(data))
}
