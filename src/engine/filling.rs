//! Files on their way into a volume: a tar archive, made while it is sent.

use crate::engine::EngineError;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};
use tar::{EntryType, Header};

/// Files below /in, in the order in which they are put there. Directories come before what is in
/// them.
pub type Files = Box<dyn Iterator<Item = io::Result<Given>> + Send>;

/// Something that is put below /in.
pub struct Given {
    /// Its path from there, without a slash at either end.
    pub path: String,
    /// What it is.
    pub what: What,
}

/// What is put somewhere.
pub enum What {
    /// A directory.
    Folder,
    /// A file with so many bytes.
    File(u64, Box<dyn Read + Send>),
}

/// Why a volume was not filled.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The engine makes no volumes.
    #[error("this engine makes no volumes that could be filled")]
    NoVolumes,
    /// The engine fails.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file cannot be read, or is another one by now.
    #[error("{0}")]
    Source(#[source] io::Error),
}

/// How much is read at a time.
const PIECE: usize = 256 << 10;

/// The unit of a tar archive.
const BLOCK: usize = 512;

/// Everything belongs to root inside and can be read by everybody.
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

/// What went wrong with a file while the archive was read by somebody else.
pub type Wrong = Arc<Mutex<Option<io::Error>>>;

/// An archive, piece by piece.
pub struct Archive {
    files: Files,
    open: Option<Open>,
    is_over: bool,
    wrong: Wrong,
}

/// A file of which not everything was read.
struct Open {
    path: String,
    size: u64,
    left: u64,
    from: Box<dyn Read + Send>,
}

impl Archive {
    /// Of these files.
    pub fn of(files: Files) -> Self {
        Self {
            files,
            open: None,
            is_over: false,
            wrong: Wrong::default(),
        }
    }

    /// Where it is said what went wrong with a file.
    pub fn wrong(&self) -> Wrong {
        Arc::clone(&self.wrong)
    }

    fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(open) = self.open.take() {
            let (piece, rest) = open.read()?;
            self.open = rest;
            return Ok(Some(piece));
        }
        if self.is_over {
            return Ok(None);
        }
        let Some(given) = self.files.next().transpose()? else {
            self.is_over = true;
            // Two empty blocks are the end.
            return Ok(Some(vec![0; 2 * BLOCK]));
        };
        let (kind, size) = match given.what {
            What::Folder => (EntryType::Directory, 0),
            What::File(size, from) => {
                self.open = Some(Open {
                    path: given.path.clone(),
                    size,
                    left: size,
                    from,
                });
                (EntryType::Regular, size)
            }
        };
        head(&given.path, kind, size).map(Some)
    }
}

impl Iterator for Archive {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let piece = self.piece().transpose()?;
        Some(piece.map_err(|error| {
            self.is_over = true;
            self.open = None;
            let told = io::Error::new(error.kind(), error.to_string());
            if let Ok(mut wrong) = self.wrong.lock() {
                *wrong = Some(error);
            }
            told
        }))
    }
}

impl Open {
    /// The next piece of it, filled up to a whole block at its end, and what is left.
    fn read(mut self) -> io::Result<(Vec<u8>, Option<Self>)> {
        let wanted = self.left.min(PIECE as u64);
        let mut piece = Vec::with_capacity(PIECE);
        self.from.by_ref().take(wanted).read_to_end(&mut piece)?;
        if piece.len() as u64 != wanted {
            return Err(changed(&self.path, self.size));
        }
        self.left -= wanted;
        if self.left > 0 {
            return Ok((piece, Some(self)));
        }
        if self.from.read(&mut [0])? != 0 {
            return Err(changed(&self.path, self.size));
        }
        piece.resize(piece.len().next_multiple_of(BLOCK), 0);
        Ok((piece, None))
    }
}

/// A file that has not the size that it had a moment ago.
pub fn changed(path: &str, size: u64) -> io::Error {
    io::Error::other(format!(
        "{path} no longer has {size} bytes: it was changed meanwhile"
    ))
}

/// What stands before an entry. A path that is too long for it stands before that.
fn head(path: &str, kind: EntryType, size: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut header = Header::new_gnu();
    if header.set_path(path).is_err() {
        let mut long = Header::new_gnu();
        long.set_path("././@LongLink")?;
        long.set_entry_type(EntryType::GNULongName);
        long.set_mode(FILE_MODE);
        long.set_size(path.len() as u64 + 1);
        long.set_cksum();
        head.extend_from_slice(long.as_bytes());
        head.extend_from_slice(path.as_bytes());
        head.push(0);
        head.resize(head.len().next_multiple_of(BLOCK), 0);
        // What an old reader makes of it.
        header.set_path("long-name")?;
    }
    header.set_entry_type(kind);
    header.set_mode(match kind {
        EntryType::Directory => FOLDER_MODE,
        _ => FILE_MODE,
    });
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header.set_cksum();
    head.extend_from_slice(header.as_bytes());
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, said: u64, bytes: Vec<u8>) -> io::Result<Given> {
        Ok(Given {
            path: path.to_owned(),
            what: What::File(said, Box::new(io::Cursor::new(bytes))),
        })
    }

    fn files(given: Vec<io::Result<Given>>) -> Archive {
        Archive::of(Box::new(given.into_iter()))
    }

    #[test]
    fn an_archive_is_read_as_it_was_given() {
        let long = format!("packet/{}/x", "d".repeat(190));
        let large: Vec<u8> = (0..PIECE + 700).map(|byte| byte as u8).collect();
        let folder = Given {
            path: "packet".into(),
            what: What::Folder,
        };
        let archive = files(vec![
            Ok(folder),
            file("packet/packet.json", 2, b"{}".to_vec()),
            file(&long, large.len() as u64, large.clone()),
            file("packet/empty", 0, Vec::new()),
        ]);
        let bytes: Vec<u8> = archive.flat_map(Result::unwrap).collect();
        assert_eq!(bytes.len() % BLOCK, 0);
        let mut found = Vec::new();
        for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            let header = entry.header().clone();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            found.push((path, header.mode().unwrap(), content));
        }
        let wanted = [
            ("packet".to_owned(), 0o755, Vec::new()),
            ("packet/packet.json".to_owned(), 0o644, b"{}".to_vec()),
            (long, 0o644, large),
            ("packet/empty".to_owned(), 0o644, Vec::new()),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_file_that_was_changed_ends_the_archive() {
        for (said, has) in [(3, 2), (2, 3), (0, 1)] {
            let mut archive = files(vec![
                file("a", said, vec![b'x'; has]),
                file("b", 0, Vec::new()),
            ]);
            let wrong = archive.wrong();
            let last = archive.by_ref().last().unwrap();
            assert!(last.is_err(), "{said} {has}");
            assert!(archive.next().is_none());
            let said = wrong.lock().unwrap().take().unwrap().to_string();
            assert!(said.starts_with("a no longer has"), "{said}");
        }
    }
}
