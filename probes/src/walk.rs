//! Walks the whole tree that the sandbox shows, but for the kernel's own file
//! systems. Bounded: a tree beyond the bound is not ours.

use crate::outcome::Outcome;
use crate::sys::{self, O_DIRECTORY, O_NOFOLLOW, O_RDONLY};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use tki_inside::io;

const MAX_ENTRIES: usize = 20_000;

/// Kernel file systems: they hold no files of anybody's and have no end.
const SKIPPED: &[&str] = &["/proc", "/sys"];

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A socket.
    Socket,
    /// Anything else.
    Other,
}

/// What was found, or why not everything was searched.
pub type Found = core::result::Result<Vec<(String, Kind)>, String>;

/// The sorted paths of all entries that are wanted, as a fact.
pub fn find(tree: &Found, wanted: impl Fn(&str, Kind) -> bool) -> Outcome {
    match tree {
        // What cannot be searched was not searched: no claim about it.
        Err(why) => Outcome::error(why.as_str()),
        Ok(entries) => {
            let wanted = entries.iter().filter(|(path, kind)| wanted(path, *kind));
            let paths: Vec<&str> = wanted.map(|(path, _)| path.as_str()).collect();
            Outcome::fact(paths.join(","))
        }
    }
}

/// Every entry of the tree, sorted by path.
pub fn search() -> Found {
    let mut found: Vec<(String, Kind)> = Vec::new();
    let mut waiting = vec![String::from("/")];
    while let Some(folder) = waiting.pop() {
        let fd = io::c_path(&folder)
            .and_then(|path| sys::open(&path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0))
            .map_err(|_| format!("cannot list {folder}"))?;
        let listed = io::each_entry(fd, |name, kind| {
            let path = match folder.as_str() {
                "/" => format!("/{name}"),
                folder => format!("{folder}/{name}"),
            };
            let kind = kind_of(kind, &path);
            if kind == Kind::Directory && !SKIPPED.contains(&path.as_str()) {
                waiting.push(path.clone());
            }
            found.push((path, kind));
        });
        sys::close(fd);
        if listed.is_err() || found.len() > MAX_ENTRIES {
            return Err(format!("{folder} was not listed to its end"));
        }
    }
    found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

/// The directory's word, or the file's own where the directory has none.
fn kind_of(entry_type: u8, path: &str) -> Kind {
    const DT_UNKNOWN: u8 = 0;
    const DT_DIR: u8 = 4;
    const DT_REG: u8 = 8;
    const DT_SOCK: u8 = 12;
    let entry_type = match entry_type {
        DT_UNKNOWN => {
            let mode = io::c_path(path).and_then(|path| sys::stat(&path));
            mode.map_or(DT_UNKNOWN, |stat| ((stat.mode >> 12) & 0xf) as u8)
        }
        known => known,
    };
    match entry_type {
        DT_DIR => Kind::Directory,
        DT_REG => Kind::File,
        DT_SOCK => Kind::Socket,
        _ => Kind::Other,
    }
}
