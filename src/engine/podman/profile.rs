//! The seccomp profile as a file: Podman takes a path, not a text.

use crate::attest::scratch;
use crate::engine::error::EngineError;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tki_evidence::stamp::sha256_hex;

/// A profile in a directory of its own; gone when dropped.
#[derive(Debug)]
pub struct ProfileFile {
    folder: PathBuf,
    path: PathBuf,
    sha256: String,
    _lock: fs::File,
}

impl ProfileFile {
    /// Writes `text` into a new directory, where only this user can change it
    /// and Podman can read it, whoever it runs as.
    pub fn write(folder: &Path, text: &str) -> Result<Self, EngineError> {
        Self::write_into(folder.to_owned(), text).map_err(|error| {
            let _ = fs::remove_dir_all(folder);
            EngineError::Unusable {
                engine: "podman",
                reason: format!("cannot write a profile into {}: {error}", folder.display()),
                next: "make room or give the right to write there, then run again".into(),
            }
        })
    }

    fn write_into(folder: PathBuf, text: &str) -> std::io::Result<Self> {
        use rustix::fs::{FlockOperation, Mode, flock, mkdir};
        // Traversable, because Podman may not be root; nothing else.
        mkdir(&folder, Mode::from_raw_mode(0o711))?;
        let lock = fs::File::create(folder.join(scratch::LOCK))?;
        let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        let path = folder.join("seccomp.json");
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444))?;
        Ok(Self {
            folder,
            path,
            sha256: sha256_hex(text.as_bytes()),
            _lock: lock,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes that stand in the file now, if they are those that were
    /// written.
    pub fn read_again(&self) -> Result<Vec<u8>, EngineError> {
        let bytes = fs::read(&self.path).unwrap_or_default();
        let found = sha256_hex(&bytes);
        if found == self.sha256 {
            return Ok(bytes);
        }
        Err(EngineError::ProfileChanged {
            path: self.path.display().to_string(),
            wanted: self.sha256.clone(),
            found,
        })
    }
}

impl Drop for ProfileFile {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_noticed_and_all_goes_in_the_end() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("profile");
        let file = ProfileFile::write(&folder, "{}").unwrap();
        assert_eq!(file.read_again().unwrap(), b"{}");
        fs::remove_file(file.path()).unwrap();
        assert!(file.read_again().is_err());
        fs::write(file.path(), "{ }").unwrap();
        let error = file.read_again().unwrap_err();
        assert!(error.to_string().contains(&sha256_hex(b"{ }")), "{error}");
        drop(file);
        assert!(!folder.exists());
    }
}
