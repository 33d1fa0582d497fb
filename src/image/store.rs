//! Putting an image on disk, all of it or nothing.

use std::io::{self, Write};
use std::path::Path;

use super::archive::Image;
use super::error::ImageError;
use crate::files::{self, Folder, Stage, folder_of, is_folder};

/// Everything that a layout written by this or another tool has at its root.
const LAYOUT_NAMES: [&str; 3] = ["blobs", "index.json", "oci-layout"];

/// What the new layout is called until it has its name.
const FRESH: &str = "new";

impl Image {
    /// Writes an OCI layout. An OCI layout that is there already is replaced,
    /// an empty directory is filled, anything else is left alone.
    pub fn write_layout(&self, dir: &Path) -> Result<(), ImageError> {
        let failed = |error: io::Error| ImageError::write(dir, error);
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
            Some(_) => return Err(occupied(dir, "it is not a directory")),
        };
        let staging = Stage::new(&parent, ".tki-layout-").map_err(failed)?;
        let fresh = staging.folder();
        self.write_files(fresh).map_err(failed)?;
        let placed = match &there {
            // The old one goes away with the staging directory.
            Some(old) => fresh.exchange(FRESH, &parent, name, old),
            None => fresh.rename_new(FRESH, &parent, name),
        };
        placed.map_err(failed)?;
        parent.sync().map_err(failed)
    }

    /// Writes the archive that engines load.
    pub fn write_archive(&self, path: &Path) -> Result<(), ImageError> {
        let failed = |error: io::Error| ImageError::write(path, error);
        if std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(occupied(path, "it is not a regular file"));
        }
        files::replace(path, &self.archive()).map_err(failed)
    }

    /// Writes everything below a new directory in `staging`.
    fn write_files(&self, staging: &Folder) -> io::Result<()> {
        let root = staging.make(FRESH)?;
        let blobs = root.make("blobs")?;
        let digests = blobs.make("sha256")?;
        for (path, data) in self.files() {
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
}

fn occupied(path: &Path, why: &str) -> ImageError {
    let (path, why) = (path.to_owned(), why.to_owned());
    ImageError::Occupied { path, why }
}

/// An error unless this is a layout, or empty.
fn check_replaceable(there: &Folder, dir: &Path) -> Result<(), ImageError> {
    let unreadable = |error: io::Error| ImageError::read(dir, error);
    let names = there.names().map_err(unreadable)?;
    for name in &names {
        if !LAYOUT_NAMES.iter().any(|known| name == *known) {
            let why = "it holds files that are not part of an OCI layout";
            return Err(occupied(dir, why));
        }
    }
    if !names.is_empty() && !names.iter().any(|name| name == "oci-layout") {
        return Err(occupied(dir, "it is not empty and not an OCI layout"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
