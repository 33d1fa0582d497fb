//! A new key pair on disk, never in the place of one that is there.

use crate::failure::Failure;
use crate::random::random_bytes;
use crate::trust::keys::{self, NewKey};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Why there is no new pair.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// A file of that name is there.
    #[error("cannot write {}: it is there already", .0.display())]
    Taken(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

impl From<PairError> for Failure {
    fn from(error: PairError) -> Self {
        let next = match error {
            PairError::Taken(_) => "give another --out",
            PairError::Unwritable { .. } => "give an --out that can be written to",
        };
        Failure::usage("out.unwritable", error.to_string(), next)
    }
}

/// The files of a pair.
#[derive(Debug)]
pub struct PairFiles<'a> {
    private: &'a Path,
    /// The public key's file.
    pub public: PathBuf,
}

impl<'a> PairFiles<'a> {
    /// The private key's file, and `.pub` for the public one; both must be free.
    pub fn free(private: &'a Path) -> Result<Self, PairError> {
        let mut public = private.as_os_str().to_owned();
        public.push(".pub");
        let public = PathBuf::from(public);
        for path in [private, &public] {
            if path.symlink_metadata().is_ok() {
                return Err(PairError::Taken(path.to_owned()));
            }
        }
        Ok(Self { private, public })
    }

    /// Makes a pair and writes it.
    pub fn make(&self, comment: &str, passphrase: Option<&str>) -> Result<NewKey, Failure> {
        let seed = Zeroizing::new(random_bytes::<32>()?);
        let made = keys::generate(&seed, random_bytes::<16>()?, comment, passphrase)?;
        write(self.private, made.private.as_bytes(), 0o600)?;
        write(&self.public, made.public.as_bytes(), 0o644)?;
        Ok(made)
    }
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), PairError> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(mode);
    let written = options.open(path).and_then(|mut file| {
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.inspect_err(|_| drop(std::fs::remove_file(path)))
    });
    written.map_err(|source| PairError::Unwritable {
        path: path.to_owned(),
        source,
    })
}
