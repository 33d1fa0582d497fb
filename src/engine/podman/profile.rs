//! The seccomp profile as a file: Podman takes a path, not a text.

use crate::engine::error::EngineError;
use crate::host::claim::{Claim, claim};
use std::path::{Path, PathBuf};
use tki_evidence::stamp::sha256_hex;

/// What the profile is called in its directory.
const NAME: &str = "seccomp.json";

/// A profile in a directory of its own; gone when dropped.
#[derive(Debug)]
pub struct ProfileFile {
    claim: Claim,
    path: PathBuf,
    text: String,
}

impl ProfileFile {
    /// Writes `text` into a new directory, which only this user can enter: Podman runs
    /// as the same one.
    pub fn write(folder: &Path, text: &str) -> Result<Self, EngineError> {
        let written = claim(folder).and_then(|claim| {
            claim.folder().write(NAME, text.as_bytes(), 0o444)?;
            Ok(claim)
        });
        let claim = written.map_err(|error| EngineError::Unusable {
            engine: "podman",
            reason: format!("cannot write a profile into {}: {error}", folder.display()),
            next: "make room or give the right to write there, then run again".into(),
        })?;
        Ok(Self {
            claim,
            path: folder.join(NAME),
            text: text.to_owned(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes that stand in the file now, if they are those that were
    /// written.
    pub fn read_again(&self) -> Result<Vec<u8>, EngineError> {
        // One byte more would be another file already.
        let read = self.claim.folder().read(NAME, self.text.len() as u64);
        let bytes = read.ok().flatten().unwrap_or_default();
        if bytes == self.text.as_bytes() {
            return Ok(bytes);
        }
        Err(EngineError::ProfileChanged {
            path: self.path.display().to_string(),
            wanted: sha256_hex(self.text.as_bytes()),
            found: sha256_hex(&bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_changed_file_is_noticed_and_all_goes_in_the_end() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("profile");
        let file = ProfileFile::write(&folder, "{}").unwrap();
        assert_eq!(file.read_again().unwrap(), b"{}");
        fs::remove_file(file.path()).unwrap();
        assert!(file.read_again().is_err());
        fs::write(file.path(), "[]").unwrap();
        let error = file.read_again().unwrap_err();
        assert!(error.to_string().contains(&sha256_hex(b"[]")), "{error}");
        drop(file);
        assert!(!folder.exists());
    }
}
