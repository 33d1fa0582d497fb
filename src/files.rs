//! Reading bounded and writing whole.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Reads a file of at most `most` bytes.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Not even opening may wait for somebody else, as it does for a pipe.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file: File = rustix::fs::open(path, flags, Mode::empty())?.into();
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// Replaces a file in one step: a reader sees the old one or the new one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
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
