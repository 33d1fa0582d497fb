//! Reading a directory that others may have made: by plain paths downwards, never through a
//! link, without waiting for the writer of a pipe.

use crate::files::{Folder, is_folder, is_regular};
use crate::pack::media::HEAD;
use crate::pack::mistake::Unfit;
use rustix::fs::FileType;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use tki_evidence::stamp::hex;

/// The most bytes of an item.
pub const MAX_ITEM: u64 = 256 << 20;

/// The most bytes of all items.
pub const MAX_TOTAL: u64 = 1 << 30;

/// The most bytes of an item that a claim looks into.
pub const MAX_LOOKED: u64 = 16 << 20;

/// The most bytes of all of these.
pub const MAX_HELD: u64 = 64 << 20;

/// The most names of a directory that are looked at.
const MAX_NAMES: usize = 100_000;

/// How far down a directory is looked at.
const MAX_DEPTH: usize = 32;

/// A directory that is held.
#[derive(Debug)]
pub struct Tree {
    folder: Folder,
}

/// A name below a directory that is no directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// From the directory. What is not UTF-8 in it is replaced.
    pub path: String,
    /// What it is.
    pub kind: Kind,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A link.
    Link,
    /// A pipe, a socket or a device, or a directory too far down.
    Special,
    /// Anything with a name that is not UTF-8.
    NotText,
}

/// Everything below a directory.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// What was found, by path.
    pub found: Vec<Found>,
    /// There is more than was looked at.
    pub more: bool,
}

/// A file that was read to its end.
#[derive(Clone, Debug)]
pub struct Taken {
    /// SHA-256 (hex) of its bytes.
    pub sha256: String,
    /// Their number.
    pub size: u64,
    /// The first of them.
    pub head: Vec<u8>,
    /// All of them, if they were to be held.
    pub bytes: Option<Vec<u8>>,
}

/// Why a file was not copied.
#[derive(Debug)]
pub enum TakeError {
    /// It cannot be an item.
    Unfit(Unfit),
    /// The copy cannot be written.
    Copy(io::Error),
}

impl From<Unfit> for TakeError {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(unfit)
    }
}

impl Tree {
    /// Opens a directory that the user named.
    pub fn open(path: &Path) -> io::Result<Self> {
        Folder::open(path).map(|folder| Self { folder })
    }

    /// Opens a regular file in it.
    pub fn file(&self, path: &str) -> Result<File, Unfit> {
        let (way, name) = path.rsplit_once('/').unwrap_or(("", path));
        let entered = self.enter(way)?;
        let folder = entered.as_ref().unwrap_or(&self.folder);
        let Some(found) = folder.look(name)? else {
            return Err(Unfit::Missing);
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(Unfit::Link(path.to_owned())),
            FileType::Directory => return Err(Unfit::Directory),
            _ => return Err(Unfit::Special),
        }
        // What was looked at may be another by now; opening it looks again.
        folder.open_file(name)?.ok_or(Unfit::Missing)
    }

    /// Whether there is anything at a path, whatever it is.
    pub fn has(&self, path: &str) -> Result<bool, Unfit> {
        let (way, name) = path.rsplit_once('/').unwrap_or(("", path));
        let entered = self.enter(way)?;
        let folder = entered.as_ref().unwrap_or(&self.folder);
        Ok(folder.look(name)?.is_some())
    }

    /// Everything below it, or below a directory in it.
    pub fn listing(&self, below: &str) -> Result<Listing, Unfit> {
        let entered = self.enter(below)?;
        let folder = entered.as_ref().unwrap_or(&self.folder);
        let start = match below {
            "" => String::new(),
            below => format!("{below}/"),
        };
        let mut listing = Listing::default();
        let mut left = MAX_NAMES;
        list(folder, &start, MAX_DEPTH, &mut left, &mut listing)?;
        listing
            .found
            .sort_by(|one, other| one.path.cmp(&other.path));
        Ok(listing)
    }

    /// Goes down to a directory; none for itself.
    fn enter(&self, way: &str) -> Result<Option<Folder>, Unfit> {
        let mut at: Option<Folder> = None;
        let mut gone = String::new();
        for step in way.split('/').filter(|step| !step.is_empty()) {
            gone = match gone.as_str() {
                "" => step.to_owned(),
                gone => format!("{gone}/{step}"),
            };
            let folder = at.as_ref().unwrap_or(&self.folder);
            let Some(found) = folder.look(step)? else {
                return Err(Unfit::Missing);
            };
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => {}
                FileType::Symlink => return Err(Unfit::Link(gone)),
                _ => return Err(Unfit::NoDirectory(gone)),
            }
            let next = folder.enter(step)?;
            at = Some(next);
        }
        Ok(at)
    }
}

fn list(
    folder: &Folder,
    start: &str,
    depth: usize,
    left: &mut usize,
    listing: &mut Listing,
) -> io::Result<()> {
    let mut names = folder.names()?;
    names.sort();
    for name in names {
        if *left == 0 {
            listing.more = true;
            return Ok(());
        }
        *left -= 1;
        let path = format!("{start}{}", name.to_string_lossy());
        let Some(found) = folder.look(&name)? else {
            continue;
        };
        let kind = match name.to_str() {
            None => Kind::NotText,
            Some(_) if is_regular(&found) => Kind::File,
            Some(_) if is_folder(&found) && depth > 0 => {
                let below = folder.enter(&name)?;
                list(&below, &format!("{path}/"), depth - 1, left, listing)?;
                continue;
            }
            Some(_) => match FileType::from_raw_mode(found.st_mode) {
                FileType::Symlink => Kind::Link,
                _ => Kind::Special,
            },
        };
        listing.found.push(Found { path, kind });
    }
    Ok(())
}

/// Reads a file once, to its end: hashes it, copies it if there is a file to copy to, and
/// holds it if that is wanted. `room` is what the packet has left.
pub fn take(file: &File, room: u64, to: Option<&File>, hold: bool) -> Result<Taken, TakeError> {
    let most = MAX_ITEM.min(room);
    let too_large = || match room < MAX_ITEM {
        true => Unfit::Total(MAX_TOTAL),
        false => Unfit::TooLarge(MAX_ITEM),
    };
    let said = file.metadata().map_err(Unfit::from)?.len();
    if said > most {
        return Err(too_large().into());
    }
    if hold && said > MAX_LOOKED {
        return Err(Unfit::TooLarge(MAX_LOOKED).into());
    }
    let mut taken = Taken {
        sha256: String::new(),
        size: 0,
        head: Vec::new(),
        bytes: hold.then(Vec::new),
    };
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    let mut file = file;
    loop {
        let piece = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => &buffer[..length],
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Unfit::from(error).into()),
        };
        // It may have grown since it was asked for its size.
        taken.size += piece.len() as u64;
        if taken.size > most {
            return Err(too_large().into());
        }
        digest.update(piece);
        if let Some(mut to) = to {
            to.write_all(piece).map_err(TakeError::Copy)?;
        }
        let wanted = HEAD.saturating_sub(taken.head.len()).min(piece.len());
        taken.head.extend_from_slice(&piece[..wanted]);
        if let Some(bytes) = &mut taken.bytes {
            if taken.size > MAX_LOOKED {
                return Err(Unfit::TooLarge(MAX_LOOKED).into());
            }
            bytes.extend_from_slice(piece);
        }
    }
    taken.sha256 = hex(&digest.finalize());
    Ok(taken)
}

/// Makes the directories of a path in another one, or opens those that were made; gives the
/// last one, if there is one, and the name in it.
pub fn make_way<'a>(root: &Folder, path: &'a str) -> io::Result<(Option<Folder>, &'a OsStr)> {
    let (way, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut at: Option<Folder> = None;
    for step in way.split('/').filter(|step| !step.is_empty()) {
        let folder = at.as_ref().unwrap_or(root);
        let next = match folder.look(step)? {
            Some(_) => folder.enter(step)?,
            None => {
                let made = folder.make(step)?;
                made.set_mode(crate::files::OPEN)?;
                made
            }
        };
        at = Some(next);
    }
    Ok((at, name.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use tki_evidence::stamp::sha256_hex;

    fn place() -> (tempfile::TempDir, Tree) {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("a/b")).unwrap();
        fs::write(place.path().join("a/b/file"), "text").unwrap();
        symlink("file", place.path().join("a/b/link")).unwrap();
        symlink("b", place.path().join("a/way")).unwrap();
        let tree = Tree::open(place.path()).unwrap();
        let mode = rustix::fs::Mode::from(0o666);
        rustix::fs::mknodat(&tree.folder, "pipe", FileType::Fifo, mode, 0).unwrap();
        (place, tree)
    }

    #[test]
    fn only_regular_files_are_opened_and_no_link_is_followed() {
        let (_place, tree) = place();
        let taken = take(&tree.file("a/b/file").unwrap(), MAX_TOTAL, None, true).unwrap();
        assert_eq!((taken.size, taken.head.as_slice()), (4, &b"text"[..]));
        assert_eq!(taken.sha256, sha256_hex(b"text"));
        assert_eq!(taken.bytes.as_deref(), Some(&b"text"[..]));
        let why = |path: &str| tree.file(path).unwrap_err().to_string();
        for (path, wanted) in [
            ("a/b/none", "there is no such file"),
            ("none/file", "there is no such file"),
            ("a/b/link", "a/b/link is a symbolic link"),
            ("a/way/file", "a/way is a symbolic link"),
            ("a/b/file/x", "a/b/file is no directory"),
            ("a/b", "it is a directory"),
            ("pipe", "it is not a regular file"),
        ] {
            assert!(why(path).contains(wanted), "{path}: {}", why(path));
        }
    }

    #[test]
    fn a_listing_names_everything_and_follows_nothing() {
        let (place, tree) = place();
        fs::write(place.path().join(OsStr::from_bytes(b"z\xff")), "").unwrap();
        let found = tree.listing("").unwrap();
        let found: Vec<(&str, Kind)> = found
            .found
            .iter()
            .map(|found| (found.path.as_str(), found.kind))
            .collect();
        assert_eq!(
            found,
            [
                ("a/b/file", Kind::File),
                ("a/b/link", Kind::Link),
                ("a/way", Kind::Link),
                ("pipe", Kind::Special),
                ("z\u{fffd}", Kind::NotText),
            ]
        );
        assert_eq!(tree.listing("a/b").unwrap().found.len(), 2);
        assert!(matches!(tree.listing("a/way"), Err(Unfit::Link(_))));
    }

    #[test]
    fn too_much_is_refused_before_it_is_read() {
        let place = tempfile::tempdir().unwrap();
        let huge = File::create(place.path().join("huge")).unwrap();
        huge.set_len(4 << 30).unwrap();
        let tree = Tree::open(place.path()).unwrap();
        let file = tree.file("huge").unwrap();
        for (room, wanted) in [
            (MAX_TOTAL, Unfit::TooLarge(MAX_ITEM)),
            (5, Unfit::Total(MAX_TOTAL)),
        ] {
            match take(&file, room, None, false) {
                Err(TakeError::Unfit(unfit)) => assert_eq!(unfit.to_string(), wanted.to_string()),
                other => panic!("{other:?}"),
            }
        }
    }
}
