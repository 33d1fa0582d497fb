//! Reading bounded and writing whole.

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Reads a file of at most `most` bytes.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read(path, most, OFlags::empty())
}

/// Reads a file of at most `most` bytes that nobody named: never through a link.
pub fn read_beside(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    match read(path, most, OFlags::NOFOLLOW) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            Err(io::Error::other("it is a symbolic link"))
        }
        other => other,
    }
}

fn read(path: &Path, most: u64, flags: OFlags) -> io::Result<Vec<u8>> {
    // Not even opening may wait for somebody else, as it does for a pipe.
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file: File = rustix::fs::open(path, flags, Mode::empty())?.into();
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    read_at_most(&file, metadata.len(), most)
}

/// Reads a file to its end, in one piece if it has the length that it is said to
/// have.
pub fn read_at_most(file: &File, length: u64, most: u64) -> io::Result<Vec<u8>> {
    let expected = usize::try_from(length.min(most)).map_err(io::Error::other)?;
    // One byte more than expected, so that the end shows without a longer buffer.
    let mut bytes = Vec::with_capacity(expected + 1);
    loop {
        match rustix::io::read(file, spare_capacity(&mut bytes)) {
            Ok(0) => return Ok(bytes),
            Ok(_) if bytes.len() as u64 > most => {
                return Err(io::Error::other(format!("it has more than {most} bytes")));
            }
            Ok(_) => bytes.reserve(1),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Writes a new file and waits until it is on its device.
pub fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Replaces a file in one step: a reader sees the old one or the new one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder_of(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    // Temporary files are their owner's alone; this one is for others to read.
    file.as_file()
        .set_permissions(std::fs::Permissions::from_mode(0o644))?;
    file.persist(path)?;
    Ok(())
}

/// Waits until every file in a directory is on its device. A few at a time:
/// file systems commit what waits together.
pub fn sync_all_below(folder: &Path) -> io::Result<()> {
    const AT_ONCE: usize = 8;
    let entries = std::fs::read_dir(folder)?;
    let paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    for some in paths.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let syncing: Vec<_> = some
                .iter()
                .map(|path| scope.spawn(move || File::open(path)?.sync_all()))
                .collect();
            syncing.into_iter().try_for_each(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("syncing panicked")))
            })
        })?;
    }
    File::open(folder)?.sync_all()
}

/// Writes a new file in one step under the first free name: `a.json`, then
/// `a-2.json` and so on. Gives the path.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut file = tempfile::NamedTempFile::new_in(folder_of(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.as_file()
        .set_permissions(std::fs::Permissions::from_mode(0o644))?;
    for number in 1..10_000 {
        let free = numbered(path, number);
        match file.persist_noclobber(&free) {
            Ok(_) => {
                File::open(folder_of(path)).and_then(|folder| folder.sync_all())?;
                return Ok(free);
            }
            Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => {
                file = refused.file;
            }
            Err(refused) => return Err(refused.error),
        }
    }
    Err(io::Error::other("every name is taken"))
}

/// Writes a new file in one step; an error if there is one of that name.
pub fn write_new_exactly(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder_of(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.as_file()
        .set_permissions(std::fs::Permissions::from_mode(0o644))?;
    file.persist_noclobber(path)?;
    File::open(folder_of(path))?.sync_all()
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

/// The directory that a path is in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
