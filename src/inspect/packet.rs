//! A packet on disk: its own file is read, its items are opened and measured.

use crate::files::{Folder, is_folder};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tki_evidence::stamp::sha256_hex;
use tki_inspector::caps::{self, MOST_USED, Need};
use tki_inspector::packet::{self, FILE, Item};

/// The most bytes of all items together: on an engine without a daemon they come to lie in this
/// host's memory.
pub const MOST_BYTES: u64 = 1 << 30;

/// A packet whose form is right and whose items have the sizes that it says. Whether they have its
/// digests is for the inspector to find.
#[derive(Debug)]
pub struct Packet {
    /// Its directory, held.
    folder: Arc<Folder>,
    /// What its own file says.
    pub says: packet::Packet,
    /// That file.
    pub bytes: Vec<u8>,
    /// SHA-256 (hex) of it.
    pub sha256: String,
}

impl Packet {
    /// Reads the packet's own file, and opens every item once.
    pub fn open(path: &Path) -> Result<Self, PacketError> {
        let place = path.join(FILE);
        let unreadable = |path: PathBuf| move |error| PacketError::Unreadable { path, error };
        let folder = Folder::open(path).map_err(unreadable(path.to_owned()))?;
        let bytes = folder.read(FILE, packet::MAX_BYTES as u64);
        let bytes = bytes.map_err(unreadable(place.clone()))?;
        let bytes = bytes.ok_or_else(|| PacketError::None(path.to_owned()))?;
        let says = packet::Packet::parse(&bytes)
            .map_err(|error| PacketError::Form { path: place, error })?;
        let all: u64 = says
            .items
            .iter()
            .map(|item| item.size.min(MOST_BYTES + 1))
            .sum();
        if all > MOST_BYTES {
            return Err(PacketError::TooMuch(path.to_owned()));
        }
        for (number, item) in says.items.iter().enumerate() {
            let wrong = |why| PacketError::Item {
                number,
                path: path.join(&item.path),
                why,
            };
            let size = open(&folder, item).and_then(|file| Ok(file.metadata()?.len()));
            let size = size.map_err(|error| wrong(ItemError::Unreadable(error)))?;
            if size != item.size {
                let said = item.size;
                return Err(wrong(ItemError::Size { size, said }));
            }
        }
        Ok(Self {
            folder: Arc::new(folder),
            sha256: sha256_hex(&bytes),
            says,
            bytes,
        })
    }

    /// What it takes, which no sandbox may have to give beyond what the inspector can use.
    pub fn need(&self) -> Result<Need, PacketError> {
        let need = caps::need(&self.says, self.bytes.len() as u64);
        match need.memory_bytes <= MOST_USED {
            true => Ok(need),
            false => Err(PacketError::Memory {
                path: self.folder.path().to_owned(),
                need: need.memory_bytes,
            }),
        }
    }

    /// The same directory, for somebody who opens items later.
    pub fn folder(&self) -> Arc<Folder> {
        Arc::clone(&self.folder)
    }
}

/// What is wrong with a packet on disk.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// The directory, or its own file, cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is none.
    #[error("{}: there is no {FILE} in it", .0.display())]
    None(PathBuf),
    /// Its own file is not one.
    #[error("{}: {error}", .path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: packet::PacketError,
    },
    /// Its items are too large together.
    #[error("{}: its items have more than {MOST_BYTES} bytes together", .0.display())]
    TooMuch(PathBuf),
    /// It takes more memory than the inspector ever uses.
    #[error(
        "{}: it takes up to {need} bytes of memory, and the inspector uses {MOST_USED} at the most",
        .path.display()
    )]
    Memory {
        /// The directory.
        path: PathBuf,
        /// What it takes.
        need: u64,
    },
    /// An item is not there as the packet says.
    #[error("items[{number}]: {}: {why}", .path.display())]
    Item {
        /// Its place in the list, from 0.
        number: usize,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: ItemError,
    },
}

/// What is wrong with an item, as far as the launcher looks.
#[derive(Debug, thiserror::Error)]
pub enum ItemError {
    /// It is missing, no regular file, a link, or nobody's to read.
    #[error(transparent)]
    Unreadable(io::Error),
    /// It has another size.
    #[error("it has {size} bytes, and the packet says {said}")]
    Size {
        /// What it has.
        size: u64,
        /// What it should have.
        said: u64,
    },
}

/// Opens an item: every step below the packet's directory is a directory, the last one a regular
/// file, and none a link.
pub fn open(folder: &Folder, item: &Item) -> io::Result<File> {
    let (folders, name) = match item.path.rsplit_once('/') {
        Some((folders, name)) => (Some(folders), name),
        None => (None, item.path.as_str()),
    };
    let mut at: Option<Folder> = None;
    for step in folders.into_iter().flat_map(|folders| folders.split('/')) {
        let here = at.as_ref().unwrap_or(folder);
        // A file there would be called no directory, and a link so, too.
        if here.look(step)?.is_some_and(|found| !is_folder(&found)) {
            return Err(io::Error::other(format!("`{step}` is not a directory")));
        }
        at = Some(here.enter(step)?);
    }
    let opened = at.as_ref().unwrap_or(folder).open_file(name)?;
    opened.ok_or_else(|| io::ErrorKind::NotFound.into())
}

#[cfg(test)]
#[path = "packet_tests.rs"]
pub(super) mod tests;
