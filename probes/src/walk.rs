//! Walks the whole tree that the sandbox shows, but for the kernel's own file
//! systems. Bounded: a tree beyond the bound is not ours.

use crate::io;
use crate::outcome::Outcome;
use crate::sys::{self, O_DIRECTORY, O_NOFOLLOW, O_RDONLY};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

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

/// The sorted paths of all entries that are wanted, as a fact.
pub fn find(wanted: impl Fn(&str, Kind) -> bool) -> Outcome {
    let mut found: Vec<String> = Vec::new();
    let mut waiting = vec![String::from("/")];
    let mut entries = 0;
    while let Some(folder) = waiting.pop() {
        let fd = match io::c_path(&folder)
            .and_then(|path| sys::open(&path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0))
        {
            Ok(fd) => fd,
            // What cannot be searched was not searched: no claim about it.
            Err(_) => return Outcome::error(format!("cannot list {folder}")),
        };
        let listed = io::each_entry(fd, |name, kind| {
            entries += 1;
            let path = match folder.as_str() {
                "/" => format!("/{name}"),
                folder => format!("{folder}/{name}"),
            };
            let kind = kind_of(kind, &path);
            if kind == Kind::Directory && !SKIPPED.contains(&path.as_str()) {
                waiting.push(path.clone());
            }
            if wanted(&path, kind) {
                found.push(path);
            }
        });
        sys::close(fd);
        if listed.is_err() || entries > MAX_ENTRIES {
            return Outcome::error(format!("{folder} was not listed to its end"));
        }
    }
    found.sort();
    Outcome::fact(found.join(","))
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
