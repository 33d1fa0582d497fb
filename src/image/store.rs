//! Putting an image on disk, all of it or nothing.

use crate::files::{self, Folder, Stage, folder_of, is_folder};
use crate::image::Image;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Everything that a layout written by this or another tool has at its root.
const LAYOUT_NAMES: [&str; 3] = ["blobs", "index.json", "oci-layout"];

/// What the new layout is called until it has its name.
const FRESH: &str = "new";

/// Why an image is not on disk.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory that is there already could not be read.
    #[error("cannot read {}: {source}", shown(path))]
    Read {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file or directory could not be written.
    #[error("cannot write {}: {source}", shown(path))]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something that is not ours stands where the output should go.
    #[error("will not replace {}: {why}", shown(path))]
    Occupied {
        /// The file or directory.
        path: PathBuf,
        /// What is there.
        why: &'static str,
    },
}

impl StoreError {
    fn read(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Read { path, source }
    }

    pub(super) fn write(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Write { path, source }
    }

    fn occupied(path: &Path, why: &'static str) -> Self {
        let path = path.to_owned();
        Self::Occupied { path, why }
    }

    /// The stable code that scripts may match.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "image.read",
            Self::Write { .. } => "image.write",
            Self::Occupied { .. } => "image.occupied",
        }
    }

    /// The next action.
    pub fn next(&self) -> &'static str {
        match self {
            Self::Read { .. } => "check the path and its permissions",
            Self::Write { .. } => "check the directory's permissions and free space",
            Self::Occupied { .. } => "move it away or choose another path",
        }
    }
}

fn shown(path: &Path) -> String {
    tki_text::printable(&path.to_string_lossy(), 80)
}

/// Writes an OCI layout. An OCI layout that is there already is replaced,
/// an empty directory is filled, anything else is left alone.
pub fn write_layout(image: &Image, dir: &Path) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::write(dir, error);
    let name = dir
        .file_name()
        .ok_or_else(|| failed(io::Error::other("it has no name of its own")))?;
    let parent = Folder::open(folder_of(dir)).map_err(failed)?;
    let there = match parent.look(name).map_err(failed)? {
        None => None,
        Some(found) if is_folder(&found) => {
            let there = parent.enter(name).map_err(failed)?;
            check_replaceable(&there, dir)?;
            Some(there)
        }
        Some(_) => return Err(StoreError::occupied(dir, "it is not a directory")),
    };
    let staging = Stage::new(&parent, ".tki-layout-").map_err(failed)?;
    let fresh = staging.folder();
    write_files(image, fresh).map_err(failed)?;
    let placed = match &there {
        // The old one goes away with the staging directory.
        Some(old) => fresh.exchange(FRESH, &parent, name, old),
        None => fresh.rename_new(FRESH, &parent, name),
    };
    placed.map_err(failed)?;
    parent.sync().map_err(failed)
}

/// Writes the archive that engines load.
pub fn write_archive(image: &Image, path: &Path) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::write(path, error);
    if std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(StoreError::occupied(path, "it is not a regular file"));
    }
    files::replace(path, &image.archive()).map_err(failed)
}

/// Writes everything below a new directory in `staging`.
fn write_files(image: &Image, staging: &Folder) -> io::Result<()> {
    let root = staging.make(FRESH)?;
    let blobs = root.make("blobs")?;
    let digests = blobs.make("sha256")?;
    for (path, data) in image.files() {
        let (folder, name) = match path.rsplit_once('/') {
            None => (&root, path.as_str()),
            Some(("blobs/sha256", name)) => (&digests, name),
            Some(_) => return Err(io::Error::other(format!("no place for {path}"))),
        };
        let mut file = folder.create(name, files::READABLE)?;
        file.write_all(data)?;
        file.sync_all()?;
    }
    for folder in [&digests, &blobs, &root] {
        folder.set_mode(files::OPEN)?;
        folder.sync()?;
    }
    Ok(())
}

/// An error unless this is a layout, or empty.
fn check_replaceable(there: &Folder, dir: &Path) -> Result<(), StoreError> {
    let unreadable = |error: io::Error| StoreError::read(dir, error);
    let names = there.names().map_err(unreadable)?;
    for name in &names {
        if !LAYOUT_NAMES.iter().any(|known| name == *known) {
            let why = "it holds files that are not part of an OCI layout";
            return Err(StoreError::occupied(dir, why));
        }
    }
    if !names.is_empty() && !names.iter().any(|name| name == "oci-layout") {
        return Err(StoreError::occupied(
            dir,
            "it is not empty and not an OCI layout",
        ));
    }
    Ok(())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
