//! Writing files whole: a file has its name once it is complete and on its device.

use super::folder::{Folder, random_name};
use rustix::fs::Mode;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tki_files::folder_of;

/// Results are for others to read, whatever the umask is.
pub const READABLE: u32 = 0o644;
/// Directories of results likewise.
pub const OPEN: u32 = 0o755;

/// Replaces a file in one step: a reader sees the old one or the new one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (folder, name) = place_of(path)?;
    replace_in(&folder, &name, bytes)
}

/// The same for a file in a directory that is held.
pub fn replace_in(folder: &Folder, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    Fresh::write(folder, bytes, READABLE)?.replace(name)
}

/// The same for a file that is nobody else's to read.
pub fn replace_private(folder: &Folder, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    Fresh::write(folder, bytes, 0o600)?.replace(name)
}

/// Writes a new file in one step under the first free name: `a.json`, then
/// `a-2.json` and so on. Gives the path.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let (folder, _) = place_of(path)?;
    let mut fresh = Fresh::write(&folder, bytes, READABLE)?;
    for number in 1..10_000 {
        let free = numbered(path, number);
        match fresh.give_name(free.file_name().unwrap_or_default()) {
            Ok(()) => return Ok(free),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("every name is taken"))
}

/// Writes a new file in one step; an error if there is one of that name.
pub fn write_new_exactly(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (folder, name) = place_of(path)?;
    Fresh::write(&folder, bytes, READABLE)?.give_name(&name)
}

/// The directory that a path is in, held, and the name in it.
fn place_of(path: &Path) -> io::Result<(Folder, OsString)> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    Ok((Folder::open(folder_of(path))?, name.to_owned()))
}

/// How the name of a file begins that is not finished.
const UNFINISHED: &str = ".tki-attest-";

/// The name is that of a file which was not finished: it stays where the tool is killed
/// while it writes.
pub fn is_unfinished(name: &OsStr) -> bool {
    let rest = name.to_str().and_then(|name| name.strip_prefix(UNFINISHED));
    rest.is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// A file that is whole and on its device, and has no name of its own yet. Removed when
/// dropped before it has got one.
struct Fresh<'a> {
    folder: &'a Folder,
    temporary: Option<OsString>,
}

impl<'a> Fresh<'a> {
    fn write(folder: &'a Folder, bytes: &[u8], mode: u32) -> io::Result<Self> {
        let temporary: OsString = format!("{UNFINISHED}{}", random_name()?).into();
        let file = folder.create(&temporary, 0o600)?;
        let fresh = Self {
            folder,
            temporary: Some(temporary),
        };
        io::Write::write_all(&mut &file, bytes)?;
        rustix::fs::fchmod(&file, Mode::from(mode))?;
        file.sync_all()?;
        Ok(fresh)
    }

    fn give_name(&mut self, name: &OsStr) -> io::Result<()> {
        if let Some(temporary) = &self.temporary {
            self.folder.rename_new(temporary, self.folder, name)?;
            self.temporary = None;
        }
        self.folder.sync()
    }

    fn replace(mut self, name: &OsStr) -> io::Result<()> {
        if let Some(temporary) = &self.temporary {
            self.folder.rename_over(temporary, self.folder, name)?;
            self.temporary = None;
        }
        self.folder.sync()
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = self.folder.remove_file(temporary);
        }
    }
}

/// Waits until files are on their device. A few at a time: file systems commit what
/// waits together.
pub fn sync_all(files: &[File]) -> io::Result<()> {
    const AT_ONCE: usize = 8;
    for some in files.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let syncing: Vec<_> = some
                .iter()
                .map(|file| scope.spawn(move || file.sync_all()))
                .collect();
            syncing.into_iter().try_for_each(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("syncing panicked")))
            })
        })?;
    }
    Ok(())
}

/// `a.json` → `a-2.json`; the first keeps its name.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut name = format!("{stem}-{number}");
    if let Some(extension) = path.extension() {
        name += &format!(".{}", extension.to_string_lossy());
    }
    path.with_file_name(name)
}
