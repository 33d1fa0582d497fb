//! Directories held by descriptor.
//!
//! Root writes into directories that other users own: `--out` may be one. Its owner
//! can exchange every name in it at any moment, so a path that was checked is another
//! path when it is used. A [`Folder`] is opened once; from then on everything is done
//! relative to its descriptor, new names are made exclusively, no symbolic link is
//! followed, and modes and owners are set on descriptors and do not depend on the umask.

use super::read::{must_be_regular, read_regular};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixListener;
use std::path::{Component, Path, PathBuf};

/// The most symbolic links on the way to a directory, as the kernel has it.
const MOST_LINKS: u32 = 40;

/// How directories are opened for everything that is done in them.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A directory held by descriptor.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    /// How it was called when it was opened, for messages and for engines.
    path: PathBuf,
}

impl Folder {
    /// Opens a directory that the user named. Symbolic links on the way are followed
    /// only if they belong to root or to this user: others must not lead us elsewhere.
    pub fn open(path: &Path) -> io::Result<Self> {
        walk(path, false)
    }

    /// The same; what is missing of it is made.
    pub fn open_or_make(path: &Path) -> io::Result<Self> {
        walk(path, true)
    }

    /// Where it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path that leads here for as long as this value lives, whatever becomes of the
    /// directory's name. For this process alone.
    pub fn alias(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.descriptor.as_raw_fd()).into()
    }

    /// What the kernel knows about it.
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.descriptor)?)
    }

    /// What the kernel knows about a name in it; `None` if there is none.
    pub fn look(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Stat>> {
        let name = plain(name.as_ref())?;
        match rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The names in it.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// Opens a directory in it.
    pub fn enter(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = plain(name.as_ref())?;
        let opened = rustix::fs::openat(&self.descriptor, name, FOLDER, Mode::empty());
        Ok(Self {
            descriptor: opened.map_err(|error| named(error, "a directory"))?,
            path: self.path.join(name),
        })
    }

    /// Makes a directory in it that is this user's alone, whatever the umask is. The
    /// owner of this one may have put another in its place before it was opened; that
    /// one is refused unless it is just as new.
    pub fn make(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = plain(name.as_ref())?;
        rustix::fs::mkdirat(&self.descriptor, name, Mode::RWXU)?;
        let made = self.enter(name)?;
        let found = made.stat()?;
        if found.st_uid != rustix::process::geteuid().as_raw()
            || found.st_mode & 0o077 != 0
            || !made.names()?.is_empty()
        {
            let why = format!(
                "{} belongs to another user or was exchanged as it was made",
                made.path.display()
            );
            return Err(io::Error::other(why));
        }
        made.set_mode(0o700)?;
        Ok(made)
    }

    /// Makes a directory of its own for what is not finished, under a name that nobody
    /// can know before. Gives its name, too.
    pub fn make_unnamed(&self, prefix: &str) -> io::Result<(OsString, Self)> {
        let name: OsString = format!("{prefix}{}", random_name()?).into();
        let made = self.make(&name)?;
        Ok((name, made))
    }

    /// Sets the directory's own mode.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(&self.descriptor, Mode::from(mode))?)
    }

    /// Makes a file in it, to write to.
    pub fn create(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<File> {
        let name = plain(name.as_ref())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::fchmod(&file, Mode::from(mode))?;
        Ok(file.into())
    }

    /// Makes a file with this content. Gives it open, to be synced.
    pub fn write(&self, name: impl AsRef<OsStr>, bytes: &[u8], mode: u32) -> io::Result<File> {
        let mut file = self.create(name, 0o600)?;
        file.write_all(bytes)?;
        // Last: writing takes set-id bits away.
        rustix::fs::fchmod(&file, Mode::from(mode))?;
        Ok(file)
    }

    /// Opens a regular file to read it; never through a link, and without waiting for
    /// anybody. `None` if there is nothing of that name.
    pub fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<Option<File>> {
        let name = plain(name.as_ref())?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file: File = match rustix::fs::openat(&self.descriptor, name, flags, Mode::empty()) {
            Ok(file) => file.into(),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(named(error, "a regular file")),
        };
        must_be_regular(&file)?;
        Ok(Some(file))
    }

    /// Reads a regular file of at most `most` bytes. `None` if there is nothing of that
    /// name.
    pub fn read(&self, name: impl AsRef<OsStr>, most: u64) -> io::Result<Option<Vec<u8>>> {
        let file = self.open_file(name)?;
        file.map(|file| read_regular(&file, most)).transpose()
    }

    /// Binds a socket in it. Only in a directory that others cannot change: a socket's
    /// mode can be set by its name alone.
    pub fn bind(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<UnixListener> {
        let name = plain(name.as_ref())?;
        let listener = UnixListener::bind(self.alias().join(name))?;
        rustix::fs::chmodat(&self.descriptor, name, Mode::from(mode), AtFlags::empty())?;
        Ok(listener)
    }

    /// Gives a name in it to another directory; what is there stays, and is an error.
    pub fn rename_new(
        &self,
        name: impl AsRef<OsStr>,
        to: &Self,
        new: impl AsRef<OsStr>,
    ) -> io::Result<()> {
        let (name, new) = (plain(name.as_ref())?, plain(new.as_ref())?);
        let renamed = rustix::fs::renameat_with(
            &self.descriptor,
            name,
            &to.descriptor,
            new,
            RenameFlags::NOREPLACE,
        );
        match renamed {
            // Some file systems cannot. A second name for a file replaces nothing, either,
            // and a directory can only take the place of an empty one.
            Err(Errno::INVAL | Errno::NOSYS) => {
                if self.look(name)?.is_some_and(|found| is_folder(&found)) {
                    return self.rename_over(name, to, new);
                }
                let flags = AtFlags::empty();
                rustix::fs::linkat(&self.descriptor, name, &to.descriptor, new, flags)?;
                self.remove_file(name)
            }
            other => Ok(other?),
        }
    }

    /// The same; a file of that name is replaced.
    pub fn rename_over(
        &self,
        name: impl AsRef<OsStr>,
        to: &Self,
        new: impl AsRef<OsStr>,
    ) -> io::Result<()> {
        let (name, new) = (plain(name.as_ref())?, plain(new.as_ref())?);
        Ok(rustix::fs::renameat(
            &self.descriptor,
            name,
            &to.descriptor,
            new,
        )?)
    }

    /// Exchanges a directory here with one in `to` that is held as `old`. If another one
    /// had come to that name, it is put back, and that is an error.
    pub fn exchange(
        &self,
        name: impl AsRef<OsStr>,
        to: &Self,
        new: impl AsRef<OsStr>,
        old: &Self,
    ) -> io::Result<()> {
        let (name, new) = (plain(name.as_ref())?, plain(new.as_ref())?);
        let exchange = || {
            let flags = RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(&self.descriptor, name, &to.descriptor, new, flags)
        };
        match exchange() {
            // File systems that cannot get two renames.
            Err(Errno::INVAL | Errno::NOSYS) => {
                to.rename_over(new, self, ASIDE)?;
                let moved = match self.enter(ASIDE) {
                    Ok(found) if found.is(old) => self.rename_over(name, to, new),
                    _ => Err(exchanged(to, new)),
                };
                // Putting the old one back is the best that is left to do.
                return moved.inspect_err(|_| drop(self.rename_new(ASIDE, to, new)));
            }
            other => other?,
        }
        if self.enter(name).is_ok_and(|found| found.is(old)) {
            return Ok(());
        }
        exchange()?;
        Err(exchanged(to, new))
    }

    /// It is the same directory.
    pub fn is(&self, other: &Self) -> bool {
        match (self.stat(), other.stat()) {
            (Ok(one), Ok(two)) => (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino),
            _ => false,
        }
    }

    /// Removes a name that is no directory.
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = plain(name.as_ref())?;
        Ok(rustix::fs::unlinkat(
            &self.descriptor,
            name,
            AtFlags::empty(),
        )?)
    }

    /// Removes an empty directory in it.
    pub fn remove_folder(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = plain(name.as_ref())?;
        Ok(rustix::fs::unlinkat(
            &self.descriptor,
            name,
            AtFlags::REMOVEDIR,
        )?)
    }

    /// Removes a name with everything below it, and nothing that a link points to.
    pub fn remove_all(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        let name = plain(name.as_ref())?;
        match self.look(name)? {
            None => Ok(()),
            Some(found) if is_folder(&found) => {
                self.enter(name)?.clear()?;
                self.remove_folder(name)
            }
            Some(_) => self.remove_file(name),
        }
    }

    /// Removes everything in it. The standard library does so by descriptors as well,
    /// once it has been led here.
    pub fn clear(&self) -> io::Result<()> {
        for name in self.names()? {
            let found = self.look(&name)?;
            match found {
                Some(found) if is_folder(&found) => {
                    std::fs::remove_dir_all(self.alias().join(&name))?;
                }
                Some(_) => self.remove_file(&name)?,
                None => {}
            }
        }
        Ok(())
    }

    /// Waits until the directory itself is on its device.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.descriptor)?)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A directory for what is not finished: everything in it is removed when dropped.
#[derive(Debug)]
pub struct Stage<'a> {
    parent: &'a Folder,
    name: OsString,
    folder: Folder,
}

impl<'a> Stage<'a> {
    /// Makes one in `parent`, hidden, and for this user alone.
    pub fn new(parent: &'a Folder, prefix: &str) -> io::Result<Self> {
        let (name, folder) = parent.make_unnamed(prefix)?;
        Ok(Self {
            parent,
            name,
            folder,
        })
    }

    /// The directory.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        let _ = self.folder.clear();
        // If its name is another's by now, that one is not empty or not ours to keep.
        if self
            .parent
            .enter(&self.name)
            .is_ok_and(|found| found.is(&self.folder))
        {
            let _ = self.parent.remove_folder(&self.name);
        }
    }
}

/// Where a directory waits whose name another one is to get.
const ASIDE: &str = "aside";

fn exchanged(folder: &Folder, name: &OsStr) -> io::Error {
    let path = folder.path.join(name);
    io::Error::other(format!("{} was exchanged meanwhile", path.display()))
}

/// A name, and no path: it cannot lead out of the directory.
fn plain(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        let why = format!("{} is no plain name", name.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(name)
}

/// What a refused link is called by the kernel depends on what was wanted.
fn named(error: Errno, wanted: &str) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other(format!("it is a symbolic link, not {wanted}")),
        other => other.into(),
    }
}

/// What was found is a directory.
pub fn is_folder(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}

/// What was found is a regular file.
pub fn is_regular(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
}

/// A name that nobody can guess.
pub(super) fn random_name() -> io::Result<String> {
    let mut bytes = [0u8; 8];
    // The kernel gives so few at once, or none.
    let flags = rustix::rand::GetRandomFlags::empty();
    match rustix::rand::getrandom(&mut bytes, flags)? {
        8 => Ok(format!("{:016x}", u64::from_ne_bytes(bytes))),
        _ => Err(io::ErrorKind::Interrupted.into()),
    }
}

/// Goes to a directory step by step.
fn walk(path: &Path, make: bool) -> io::Result<Folder> {
    let start = |absolute: bool| {
        let place = if absolute { "/" } else { "." };
        rustix::fs::open(place, OFlags::PATH | FOLDER, Mode::empty())
    };
    let mut at = start(path.is_absolute())?;
    let mut ahead = steps(path);
    let mut links = 0;
    while let Some(step) = ahead.pop() {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let next = match rustix::fs::openat(&at, &step, flags, Mode::empty()) {
            Err(Errno::NOENT) if make => {
                match rustix::fs::mkdirat(&at, &step, Mode::from(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                rustix::fs::openat(&at, &step, flags | OFlags::DIRECTORY, Mode::empty())?
            }
            other => other?,
        };
        let found = rustix::fs::fstat(&next)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => at = next,
            FileType::Symlink => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                if !is_trusted(found.st_uid) {
                    return Err(foreign_link(&step, found.st_uid));
                }
                let target = rustix::fs::readlinkat(&next, "", Vec::new())?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    at = start(true)?;
                }
                ahead.extend(steps(&target));
            }
            _ => return Err(Errno::NOTDIR.into()),
        }
    }
    Ok(Folder {
        descriptor: rustix::fs::openat(&at, ".", FOLDER, Mode::empty())?,
        path: path.to_owned(),
    })
}

/// The steps of a path, the last one first.
fn steps(path: &Path) -> Vec<OsString> {
    let steps = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    let mut steps: Vec<OsString> = steps.collect();
    steps.reverse();
    steps
}

/// This user, or root: in a user namespace root of the host has another number, by
/// which the root directory is known.
pub fn is_trusted(uid: u32) -> bool {
    uid == 0
        || uid == rustix::process::geteuid().as_raw()
        || rustix::fs::statat(CWD, "/", AtFlags::empty()).is_ok_and(|root| root.st_uid == uid)
}

fn foreign_link(step: &OsStr, owner: u32) -> io::Error {
    io::Error::other(format!(
        "`{}` on the way is a symbolic link of user {owner}, which is not followed: give the path \
         that it stands for",
        step.display()
    ))
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
