//! Who listens on a unix socket. A user who may write in its directory can listen there
//! in the server's place, so a password goes only to a process whose user may have it.

use rustix::process::getuid;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory's bits for others who may write, and the one that keeps them from
/// renaming what is not theirs.
const GROUP_MAY_WRITE: u32 = 0o020;
const OTHERS_MAY_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Why a password is not sent to a socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A directory cannot be looked at.
    #[error("{}: {source}", .path.display())]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A user listens who may not have it.
    #[error(
        "the password was not sent: user {listener} listens in {}, and {because}", .folder.display()
    )]
    Stranger {
        /// The user.
        listener: u32,
        /// Where.
        folder: PathBuf,
        /// Why that user may not.
        because: Ownership,
    },
}

/// Whose a directory is, if that is not the user who listens in it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Ownership {
    /// Another user's.
    #[error("the directory is user {0}'s")]
    Of(u32),
    /// Nobody's: everybody can make a socket there.
    #[error("everybody may write there")]
    Everybody,
    /// Nobody's: others could have replaced it.
    #[error("others may write in {}", .0.display())]
    Others(PathBuf),
    /// Unknown.
    #[error("{path}: {why}", path = .path.display())]
    Unknown {
        /// A directory above it.
        path: PathBuf,
        /// Why it cannot be looked at.
        why: Arc<io::Error>,
    },
}

/// The directory of a server's socket.
#[derive(Debug)]
pub struct SocketFolder {
    /// Where it really is, whatever links lead there.
    pub path: PathBuf,
    /// The user who was given the directory.
    owner: Result<u32, Ownership>,
}

impl SocketFolder {
    /// Looks at the directory and at those above it.
    pub fn open(path: &Path) -> Result<Self, SocketError> {
        let real = fs::canonicalize(path).map_err(|source| SocketError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let owner = owner_of(&real, getuid().as_raw());
        Ok(Self { path: real, owner })
    }

    /// Whether the user of the process that listens may have the password: root and
    /// the tool's own user, who could read it anyway, and the server's user.
    ///
    /// The kernel says who listens, so nobody else can be taken for one of these.
    pub fn may_have_a_password(&self, listener: u32) -> Result<(), SocketError> {
        if listener == 0 || listener == getuid().as_raw() {
            return Ok(());
        }
        let because = match &self.owner {
            Ok(owner) if *owner == listener => return Ok(()),
            Ok(owner) => Ownership::Of(*owner),
            Err(why) => why.clone(),
        };
        Err(SocketError::Stranger {
            listener,
            folder: self.path.clone(),
            because,
        })
    }
}

/// The user to whom root, or the tool's own user, gave this directory. A directory
/// that anybody could have made, or can write in, is nobody's.
fn owner_of(folder: &Path, own: u32) -> Result<u32, Ownership> {
    let look = |path: &Path| {
        let found = fs::symlink_metadata(path);
        found.map_err(|error| Ownership::Unknown {
            path: path.to_owned(),
            why: Arc::new(error),
        })
    };
    let found = look(folder)?;
    // Another member of its group can listen there too, but not as the owner.
    if found.mode() & OTHERS_MAY_WRITE != 0 {
        return Err(Ownership::Everybody);
    }
    let trusted = |found: &Metadata| found.uid() == 0 || found.uid() == own;
    let writable = |found: &Metadata| found.mode() & (GROUP_MAY_WRITE | OTHERS_MAY_WRITE) != 0;
    let mut below_trusted = trusted(&found);
    for folder in folder.ancestors().skip(1) {
        let above = look(folder)?;
        // Where others may write, the sticky bit protects entries of trusted users.
        let protected = above.mode() & STICKY != 0 && below_trusted;
        if !trusted(&above) || (writable(&above) && !protected) {
            return Err(Ownership::Others(folder.to_owned()));
        }
        below_trusted = true;
    }
    Ok(found.uid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Directories of root and of others need root to be made.
    #[test]
    fn a_directory_belongs_to_whom_it_was_given() {
        assert!(getuid().is_root(), "run the tests as root");
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, owner: u32, mode: u32| {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            std::os::unix::fs::chown(&path, Some(owner), Some(owner)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        // As Debian makes /run/postgresql.
        let given = make("given", 1234, 0o2775);
        let opened = SocketFolder::open(&given).unwrap();
        for good in [0, 1234] {
            opened.may_have_a_password(good).unwrap();
        }
        let why = opened.may_have_a_password(1235).unwrap_err().to_string();
        assert!(
            why.contains("user 1235 listens") && why.contains("user 1234's"),
            "{why}"
        );

        let open = make("open", 1234, 0o777);
        let opened = SocketFolder::open(&open).unwrap();
        let why = opened.may_have_a_password(1234).unwrap_err().to_string();
        assert!(why.contains("everybody may write there"), "{why}");
        // The owner of the directory above could have made or replaced it.
        let theirs = make("theirs", 1235, 0o755);
        make("theirs/inner", 1234, 0o755);
        // Anybody could have made it there, sticky bit or not.
        let sticky = make("sticky", 0, 0o1777);
        make("sticky/inner", 1234, 0o755);
        for path in [theirs, sticky] {
            let opened = SocketFolder::open(&path.join("inner")).unwrap();
            let why = opened.may_have_a_password(1234).unwrap_err().to_string();
            assert!(why.contains("others may write in"), "{why}");
        }
    }
}
