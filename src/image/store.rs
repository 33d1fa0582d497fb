//! Putting an image on disk, all of it or nothing.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use tempfile::{Builder, TempDir};

use super::archive::Image;
use super::error::ImageError;

/// Everything that a layout written by this or another tool has at its root.
const LAYOUT_NAMES: [&str; 3] = ["blobs", "index.json", "oci-layout"];

impl Image {
    /// Writes an OCI layout. An OCI layout that is there already is replaced,
    /// an empty directory is filled, anything else is left alone.
    pub fn write_layout(&self, dir: &Path) -> Result<(), ImageError> {
        let failed = |error: io::Error| ImageError::write(dir, error);
        let replace = check_replaceable(dir)?;
        let parent = parent(dir);
        let staging = Builder::new()
            .prefix(".tki-layout-")
            .tempdir_in(&parent)
            .map_err(failed)?;
        let fresh = staging.path().join("new");
        self.write_files(&fresh).map_err(failed)?;
        if replace {
            exchange(&fresh, dir, &staging).map_err(failed)?;
        } else {
            fs::rename(&fresh, dir).map_err(failed)?;
        }
        sync_directory(&parent).map_err(failed)
    }

    /// Writes the archive that engines load.
    pub fn write_archive(&self, path: &Path) -> Result<(), ImageError> {
        let failed = |error: io::Error| ImageError::write(path, error);
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            let (path, why) = (path.to_owned(), "it is not a regular file".to_owned());
            return Err(ImageError::Occupied { path, why });
        }
        let parent = parent(path);
        let mut file = Builder::new()
            .prefix(".tki-archive-")
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(&parent)
            .map_err(failed)?;
        file.write_all(&self.archive()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        sync_directory(&parent).map_err(failed)
    }

    fn write_files(&self, dir: &Path) -> io::Result<()> {
        let blobs = dir.join("blobs/sha256");
        fs::create_dir_all(&blobs)?;
        for (path, data) in self.files() {
            let mut file = File::create_new(dir.join(path))?;
            file.write_all(data)?;
            file.sync_all()?;
        }
        sync_directory(&blobs)?;
        sync_directory(&dir.join("blobs"))?;
        sync_directory(dir)
    }
}

/// Whether there is a layout to replace. An error if there is something else.
fn check_replaceable(dir: &Path) -> Result<bool, ImageError> {
    let occupied = |why: &str| {
        let (path, why) = (dir.to_owned(), why.to_owned());
        Err(ImageError::Occupied { path, why })
    };
    let found = match fs::symlink_metadata(dir) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(ImageError::write(dir, error)),
    };
    if !found.is_dir() {
        return occupied("it is not a directory");
    }
    let mut marked = false;
    let mut empty = true;
    for entry in fs::read_dir(dir).map_err(|error| ImageError::read(dir, error))? {
        let name = entry
            .map_err(|error| ImageError::read(dir, error))?
            .file_name();
        empty = false;
        marked |= name == "oci-layout";
        if !LAYOUT_NAMES.iter().any(|known| name == *known) {
            return occupied("it holds files that are not part of an OCI layout");
        }
    }
    match (empty, marked) {
        (true, _) => Ok(false),
        (false, true) => Ok(true),
        (false, false) => occupied("it is not empty and not an OCI layout"),
    }
}

/// Swaps the new layout for the old one, which goes away with the staging
/// directory. File systems that cannot swap get two renames.
fn exchange(fresh: &Path, dir: &Path, staging: &TempDir) -> io::Result<()> {
    if rustix::fs::renameat_with(CWD, fresh, CWD, dir, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    let old = staging.path().join("old");
    fs::rename(dir, &old)?;
    fs::rename(fresh, dir).inspect_err(|_| {
        // Putting the old layout back is the best that is left to do.
        let _ = fs::rename(&old, dir);
    })
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
