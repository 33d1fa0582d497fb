//! Looking at a packet that is there: its form, every file's digest and size, files that no
//! item names, and every place that a claim names.

use crate::pack::content::Content;
use crate::pack::error::PackError;
use crate::pack::mistake::{Absent, Unfit};
use crate::pack::tree::{Kind, MAX_HELD, MAX_LOOKED, MAX_TOTAL, TakeError, Tree, take};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tki_evidence::stamp::sha256_hex;
use tki_inspector::caps;
use tki_inspector::packet::{self, Expect, Item, Locator, Packet};
use tki_text::printable;

/// A packet that was looked at.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// Its directory.
    pub packet: PathBuf,
    /// Its name.
    pub id: String,
    /// SHA-256 (hex) of `packet.json`.
    pub sha256: String,
    /// The number of items.
    pub items: usize,
    /// The number of claims.
    pub claims: usize,
    /// The memory that the inspector may need for it, in bytes.
    pub memory_bytes: u64,
    /// The room that its report may need, in bytes.
    pub out_bytes: u64,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    /// There is more that is wrong.
    pub more: bool,
}

/// Something that is wrong with a packet.
#[derive(Debug, Serialize)]
pub struct Problem {
    /// Where in `packet.json`, such as `items[3].sha256`, or a file that it does not name.
    pub place: String,
    /// What.
    #[serde(serialize_with = "shown")]
    pub problem: Wrong,
}

/// What can be wrong with a packet whose form is right.
#[derive(Debug, thiserror::Error)]
pub enum Wrong {
    /// A file that is not what an item can be.
    #[error("{}: {problem}", printable(.path, 200))]
    File {
        /// It.
        path: String,
        /// Why not.
        problem: Unfit,
    },
    /// Other bytes than those that were packed.
    #[error("{} has the digest {found}", printable(.path, 200))]
    Digest {
        /// The file.
        path: String,
        /// SHA-256 (hex) of what is there.
        found: String,
    },
    /// More or fewer of them.
    #[error("{} has {found} bytes", printable(.path, 200))]
    Size {
        /// The file.
        path: String,
        /// How many.
        found: u64,
    },
    /// Something that no item names.
    #[error("no item names it")]
    Stray,
    /// There is too much to look at.
    #[error("there are more files in it than are looked at")]
    Crowded,
    /// A place that is not there.
    #[error("{0}")]
    Absent(Absent),
    /// A place in an item that could not be read.
    #[error("its item could not be looked into")]
    Unread,
}

fn shown<S: Serializer>(problem: &Wrong, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(problem)
}

/// The most problems that are told.
const MOST: usize = 1000;

/// Looks at a packet. What is wrong is told; that it cannot be read at all is an error.
pub fn check(folder: &Path) -> Result<Checked, PackError> {
    let tree = Tree::open(folder).map_err(|source| PackError::Folder {
        path: folder.to_owned(),
        source,
    })?;
    let path = folder.join(packet::FILE);
    let unfit = |problem| PackError::NoPacket {
        path: path.clone(),
        problem,
    };
    let bytes = read(&tree, packet::FILE).map_err(unfit)?;
    let packet = Packet::parse(&bytes).map_err(|error| PackError::Packet {
        path: path.clone(),
        error,
    })?;
    let need = caps::need(&packet, bytes.len() as u64);
    let mut problems = Vec::new();
    let contents = check_items(&packet, &tree, &mut problems);
    check_strays(&packet, &tree, &mut problems);
    check_places(&packet, &contents, &mut problems);
    let more = problems.len() > MOST;
    problems.truncate(MOST);
    Ok(Checked {
        packet: folder.to_owned(),
        id: packet.id.clone(),
        sha256: sha256_hex(&bytes),
        items: packet.items.len(),
        claims: packet.claims.len(),
        memory_bytes: need.memory_bytes,
        out_bytes: need.out_bytes,
        problems,
        more,
    })
}

fn read(tree: &Tree, path: &str) -> Result<Vec<u8>, Unfit> {
    let file = tree.file(path)?;
    match take(&file, packet::MAX_BYTES as u64, None, true) {
        Ok(taken) => Ok(taken.bytes.unwrap_or_default()),
        Err(TakeError::Unfit(Unfit::Total(_))) => Err(Unfit::TooLarge(packet::MAX_BYTES as u64)),
        Err(TakeError::Unfit(unfit)) => Err(unfit),
        Err(TakeError::Copy(error)) => Err(error.into()),
    }
}

/// Reads each item once; gives those that claims look into.
fn check_items<'a>(
    packet: &'a Packet,
    tree: &Tree,
    problems: &mut Vec<Problem>,
) -> BTreeMap<&'a str, Content> {
    let looked_into = caps::looked_into(packet);
    let mut contents = BTreeMap::new();
    let (mut left, mut room) = (MAX_TOTAL, MAX_HELD);
    for (index, item) in packet.items.iter().enumerate() {
        let hold = looked_into.contains(item.id.as_str()) && item.size <= MAX_LOOKED.min(room);
        let mut wrong = |field: &str, problem| {
            problems.push(Problem {
                place: format!("items[{index}].{field}"),
                problem,
            });
        };
        let path = || item.path.clone();
        let taken = match taken(tree, item, left, hold) {
            Ok(taken) => taken,
            Err(problem) => {
                let path = path();
                wrong("path", Wrong::File { path, problem });
                continue;
            }
        };
        left -= taken.size;
        if taken.bytes.is_some() {
            room = room.saturating_sub(taken.size);
        }
        if taken.size != item.size {
            let (path, found) = (path(), taken.size);
            wrong("size", Wrong::Size { path, found });
        }
        if taken.sha256 != item.sha256 {
            let (path, found) = (path(), taken.sha256);
            wrong("sha256", Wrong::Digest { path, found });
        }
        if let Some(bytes) = taken.bytes {
            contents.insert(item.id.as_str(), Content::new(bytes, item));
        }
    }
    contents
}

fn taken(tree: &Tree, item: &Item, left: u64, hold: bool) -> Result<super::tree::Taken, Unfit> {
    let file = tree.file(&item.path)?;
    take(&file, left, None, hold).map_err(|error| match error {
        TakeError::Unfit(unfit) => unfit,
        TakeError::Copy(error) => error.into(),
    })
}

fn check_strays(packet: &Packet, tree: &Tree, problems: &mut Vec<Problem>) {
    let named: BTreeSet<&str> = packet.items.iter().map(|item| item.path.as_str()).collect();
    let mut wrong = |place: String, problem| problems.push(Problem { place, problem });
    let listing = match tree.listing("") {
        Ok(listing) => listing,
        Err(problem) => {
            let path = ".".to_owned();
            return wrong(".".into(), Wrong::File { path, problem });
        }
    };
    for found in listing.found {
        let is_ours = found.path == packet::FILE || named.contains(found.path.as_str());
        // What an item names and is no file was told with the item.
        if !is_ours || found.kind == Kind::NotText {
            wrong(printable(&found.path, 200), Wrong::Stray);
        }
    }
    if listing.more {
        wrong(".".into(), Wrong::Crowded);
    }
}

fn check_places(packet: &Packet, contents: &BTreeMap<&str, Content>, problems: &mut Vec<Problem>) {
    for (index, claim) in packet.claims.iter().enumerate() {
        for (number, place) in claim.evidence.iter().enumerate() {
            // Whoever made the packet decides how much there is to look for.
            if problems.len() > MOST {
                return;
            }
            let at = |field: &str| format!("claims[{index}].evidence[{number}].{field}");
            let mut look = |field: &str, item: &str, find: &dyn Fn(&Content) -> Found| {
                let found = match contents.get(item) {
                    Some(content) => find(content).map_err(Wrong::Absent),
                    None => Err(Wrong::Unread),
                };
                if let Err(problem) = found {
                    let place = at(field);
                    problems.push(Problem { place, problem });
                }
            };
            match &place.at {
                Some(Locator::Lines(lines)) => {
                    look("at.lines", &place.item, &|content| content.has_lines(lines));
                }
                Some(Locator::Json(pointer)) => {
                    look("at.json", &place.item, &|content| {
                        content.has_value(pointer)
                    });
                }
                Some(Locator::Step(step)) => {
                    look("at.step", &place.item, &|content| content.has_step(*step));
                }
                None => {}
            }
            if let Some(Expect::SameAs(other)) = &place.expect {
                look("expect.same_as.json", &other.item, &|content| {
                    content.has_value(&other.json)
                });
            }
        }
    }
}

type Found = Result<(), Absent>;
