//! Artifacts on disk: opened by descriptors, never through a link and without waiting.

use crate::artifacts::ArtifactError;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use tki_files::read_at_most;

/// The largest artifact that is read.
const MAX_ARTIFACT: u64 = 16 * 1024 * 1024;

/// Reads artifacts; directories that were opened stay open.
pub(crate) struct Reader<'a> {
    folder: &'a Path,
    base: Option<OwnedFd>,
    below: Option<(String, OwnedFd)>,
}

impl<'a> Reader<'a> {
    /// Nothing is opened yet.
    pub(crate) fn new(folder: &'a Path) -> Self {
        Self {
            folder,
            base: None,
            below: None,
        }
    }

    /// The bytes of a file in a directory below this one, `None` if there is none.
    pub(crate) fn read(
        &mut self,
        directory: &str,
        name: &str,
    ) -> Result<Option<Vec<u8>>, ArtifactError> {
        let base = match self.base.take() {
            Some(base) => base,
            None => File::open(self.folder)?.into(),
        };
        let base = self.base.insert(base);
        let below = match self.below.take() {
            Some((known, below)) if known == directory => below,
            _ => match open(base, directory, OFlags::DIRECTORY)? {
                Some(below) => below,
                None => return Ok(None),
            },
        };
        let (_, below) = self.below.insert((directory.to_owned(), below));
        let Some(file) = open(below, name, OFlags::empty())? else {
            return Ok(None);
        };
        let file = File::from(file);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(ArtifactError::Irregular);
        }
        Ok(Some(read_at_most(&file, metadata.len(), MAX_ARTIFACT)?))
    }
}

/// Opens for reading, never through a link and without waiting; `None` if
/// there is nothing of that name.
fn open(at: &OwnedFd, name: &str, flags: OFlags) -> io::Result<Option<OwnedFd>> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match openat(at, name, flags, Mode::empty()) {
        Ok(file) => Ok(Some(file)),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
