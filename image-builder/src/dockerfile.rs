//! Reading a Dockerfile, from memory or from disk.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::ImageError;
use crate::reader::{MAX_BYTES, Reader};
use crate::recipe::Recipe;

impl Recipe {
    /// Reads a Dockerfile's bytes; `file` is the name that errors will show.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, ImageError> {
        Ok(Reader::new(file, bytes)?.recipe()?)
    }

    /// Reads a Dockerfile from disk, never more of it than is allowed.
    pub fn read(path: &Path) -> Result<Self, ImageError> {
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes))
            .map_err(|error| ImageError::read(path, error))?;
        Self::parse(&path.to_string_lossy(), &bytes)
    }
}

#[cfg(test)]
#[path = "dockerfile_tests.rs"]
mod tests;
