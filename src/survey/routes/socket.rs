//! Who listens on a unix socket. A user who may write in its directory can listen there
//! in the server's place, so a password goes only to a process whose user may have it.

use rustix::process::getuid;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A directory's bits for others who may write, and the one that keeps them from
/// renaming what is not theirs.
const GROUP_MAY_WRITE: u32 = 0o020;
const OTHERS_MAY_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// The directory of a server's socket.
#[derive(Debug)]
pub struct SocketFolder {
    /// Where it really is, whatever links lead there.
    pub path: PathBuf,
    /// The user who was given the directory.
    owner: Result<u32, String>,
}

impl SocketFolder {
    /// Looks at the directory and at those above it.
    pub fn open(path: &Path) -> Result<Self, String> {
        let explain = |error: std::io::Error| format!("{}: {error}", path.display());
        let real = fs::canonicalize(path).map_err(explain)?;
        let owner = owner_of(&real, getuid().as_raw());
        Ok(Self { path: real, owner })
    }

    /// Whether the user of the process that listens may have the password: root and
    /// the tool's own user, who could read it anyway, and the server's user.
    ///
    /// The kernel says who listens, so nobody else can be taken for one of these.
    pub fn may_have_a_password(&self, listener: u32) -> Result<(), String> {
        if listener == 0 || listener == getuid().as_raw() {
            return Ok(());
        }
        let refused = |why: &str| {
            Err(format!(
                "the password was not sent: user {listener} listens in {}, and {why}",
                self.path.display()
            ))
        };
        match &self.owner {
            Ok(owner) if *owner == listener => Ok(()),
            Ok(owner) => refused(&format!("the directory is user {owner}'s")),
            Err(why) => refused(why),
        }
    }
}

/// The user to whom root, or the tool's own user, gave this directory. A directory
/// that anybody could have made, or can write in, is nobody's.
fn owner_of(folder: &Path, own: u32) -> Result<u32, String> {
    let look = |path: &Path| {
        let found = fs::symlink_metadata(path);
        found.map_err(|error| format!("{}: {error}", path.display()))
    };
    let found = look(folder)?;
    // Another member of its group can listen there too, but not as the owner.
    if found.mode() & OTHERS_MAY_WRITE != 0 {
        return Err("everybody may write there".into());
    }
    let trusted = |found: &Metadata| found.uid() == 0 || found.uid() == own;
    let writable = |found: &Metadata| found.mode() & (GROUP_MAY_WRITE | OTHERS_MAY_WRITE) != 0;
    let mut below_trusted = trusted(&found);
    for folder in folder.ancestors().skip(1) {
        let above = look(folder)?;
        // Where others may write, the sticky bit protects entries of trusted users.
        let protected = above.mode() & STICKY != 0 && below_trusted;
        if !trusted(&above) || (writable(&above) && !protected) {
            return Err(format!("others may write in {}", folder.display()));
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
            assert_eq!(opened.may_have_a_password(good), Ok(()), "{good}");
        }
        let why = opened.may_have_a_password(1235).unwrap_err();
        assert!(
            why.contains("user 1235 listens") && why.contains("user 1234's"),
            "{why}"
        );

        let open = make("open", 1234, 0o777);
        let opened = SocketFolder::open(&open).unwrap();
        let why = opened.may_have_a_password(1234).unwrap_err();
        assert!(why.contains("everybody may write there"), "{why}");
        // The owner of the directory above could have made or replaced it.
        let theirs = make("theirs", 1235, 0o755);
        make("theirs/inner", 1234, 0o755);
        // Anybody could have made it there, sticky bit or not.
        let sticky = make("sticky", 0, 0o1777);
        make("sticky/inner", 1234, 0o755);
        for path in [theirs, sticky] {
            let opened = SocketFolder::open(&path.join("inner")).unwrap();
            let why = opened.may_have_a_password(1234).unwrap_err();
            assert!(why.contains("others may write in"), "{why}");
        }
    }
}
