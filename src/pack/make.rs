//! Making a packet: each item is read once, hashed and copied into a directory that gets its
//! name when everything is in it and on its device.

use crate::files::{self, Folder, READABLE, Stage};
use crate::pack::content::Content;
use crate::pack::error::PackError;
use crate::pack::form::{AsOf, Claims, FILE, MAX_BYTES};
use crate::pack::media::media_type;
use crate::pack::mistake::{Absent, Mistake, Unfit};
use crate::pack::plan::{OPEN_TYPE, Plan, plan};
use crate::pack::source::Source;
use crate::pack::tree::{Listing, MAX_HELD, MAX_TOTAL, TakeError, Tree, make_way, take};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tki_evidence::stamp::sha256_hex;
use tki_inspector::caps;
use tki_inspector::packet::{self, Expect, Locator, Packet};

/// What is to be packed, as a command says it.
#[derive(Clone, Debug)]
pub struct Order {
    /// The directory with the files.
    pub folder: PathBuf,
    /// What is claimed; `claims.toml` in the directory if nothing else is said.
    pub claims: Option<PathBuf>,
    /// The packet; a directory beside the first if nothing else is said.
    pub out: Option<PathBuf>,
    /// The moment that it is judged at, before that of `claims.toml`.
    pub as_of: Option<AsOf>,
}

/// A packet that was written.
#[derive(Clone, Debug, Serialize)]
pub struct Packed {
    /// Its directory.
    pub packet: PathBuf,
    /// Its name.
    pub id: String,
    /// The moment that it is judged at.
    pub as_of: String,
    /// SHA-256 (hex) of `packet.json`.
    pub sha256: String,
    /// The number of items.
    pub items: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The number of claims.
    pub claims: usize,
    /// The memory that the inspector may need for it, in bytes.
    pub memory_bytes: u64,
    /// The room that its report may need, in bytes.
    pub out_bytes: u64,
    /// Items that are derived from what is no item, by id. They are packed, and the inspector
    /// will use none of them.
    pub broken_chains: Vec<String>,
    /// What lies in the directory and is not packed.
    pub left_out: Vec<String>,
    /// There is more of that than was looked at.
    pub more_left_out: bool,
}

/// How the directory of a packet begins that is not finished.
const STAGE: &str = ".tki-attest-";

/// Makes a packet.
pub fn pack(order: &Order) -> Result<Packed, PackError> {
    let folder = &order.folder;
    let tree = Tree::open(folder).map_err(|source| PackError::Folder {
        path: folder.clone(),
        source,
    })?;
    let path = order.claims.clone().unwrap_or_else(|| folder.join(FILE));
    let text = read_claims(&path, order.claims.is_some())?;
    let (source, claims) = Source::parse(&path, &text)?;
    let as_of = moment(order, &claims, &path)?;
    let given = given_lines(&claims);
    let mut plan = plan(&source, claims, as_of, &tree)?;
    // Before anything is written: the packet may come to lie in the directory.
    let unreadable = |source: Unfit| PackError::File {
        path: folder.clone(),
        problem: source,
    };
    let listing = tree.listing("").map_err(unreadable)?;

    let out = match &order.out {
        Some(out) => out.clone(),
        None => beside(folder, &format!("{}-packet", plan.packet.id)),
    };
    let Some(name) = out.file_name() else {
        return Err(PackError::NoName { path: out });
    };
    let failed = |source| PackError::Unwritable {
        path: out.clone(),
        source,
    };
    let exists = || PackError::Exists { path: out.clone() };
    let parent = Folder::open(files::folder_of(&out)).map_err(failed)?;
    if parent.look(name).map_err(failed)?.is_some() {
        return Err(exists());
    }
    let stage = Stage::new(&parent, STAGE).map_err(failed)?;
    let room = stage.folder().make("packet").map_err(failed)?;
    let (contents, copies) = copy_items(&mut plan, &source, &tree, &room, &failed)?;
    fill_in(&mut plan, &source, &contents, &given)?;
    plan.check(&source)?;

    let bytes = written(&plan.packet)?;
    Packet::parse(&bytes).map_err(PackError::Own)?;
    let json = room.write(packet::FILE, &bytes, READABLE).map_err(failed)?;
    room.set_mode(files::OPEN).map_err(failed)?;
    finish(copies, json, &room, &plan.packet).map_err(failed)?;
    match stage.folder().rename_new("packet", &parent, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists()),
        named => named.map_err(failed)?,
    }
    let _ = parent.sync();
    let own = path.strip_prefix(folder).ok();
    Ok(told(&plan.packet, &bytes, out.clone(), own, listing))
}

/// Reads what is claimed. Only a file that the user named may be a link.
fn read_claims(path: &Path, is_named: bool) -> Result<Vec<u8>, PackError> {
    let read = match is_named {
        true => files::read_bounded(path, MAX_BYTES),
        false => files::read_beside(path, MAX_BYTES),
    };
    read.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => PackError::NoClaims {
            path: path.to_owned(),
        },
        _ => PackError::Claims {
            path: path.to_owned(),
            source,
        },
    })
}

/// The moment that the packet is judged at: a clock is asked if that is said, and only then.
fn moment(order: &Order, claims: &Claims, path: &Path) -> Result<String, PackError> {
    let written = claims.as_of.as_ref().map(|time| AsOf::of(&time.0));
    match order.as_of.clone().or(written) {
        Some(as_of) => Ok(as_of.text()),
        None => Err(PackError::NoMoment {
            path: path.to_owned(),
        }),
    }
}

/// The lines that were given for quotes, by claim and place.
fn given_lines(claims: &Claims) -> BTreeMap<(usize, usize), [u64; 2]> {
    let mut given = BTreeMap::new();
    for (index, claim) in claims.claims.iter().enumerate() {
        for (number, place) in claim.evidence.iter().enumerate() {
            if let Some(lines) = place.lines {
                given.insert((index, number), lines);
            }
        }
    }
    given
}

/// A directory of this name beside another one.
fn beside(folder: &Path, name: &str) -> PathBuf {
    match folder.file_name() {
        Some(_) => folder.with_file_name(name),
        // `.` and `..` have no name.
        None => folder.join("..").join(name),
    }
}

/// What claims look into, by item, and the copies that are not on their device yet.
type Copied = (BTreeMap<String, Content>, Vec<File>);

/// Reads each item once: what is hashed is what is copied, and what is looked into.
fn copy_items(
    plan: &mut Plan,
    source: &Source,
    tree: &Tree,
    room: &Folder,
    failed: &impl Fn(io::Error) -> PackError,
) -> Result<Copied, PackError> {
    let looked_into = looked_into(&plan.packet);
    let (mut contents, mut copies) = (BTreeMap::new(), Vec::new());
    let (mut left, mut held) = (MAX_TOTAL, 0);
    for index in 0..plan.packet.items.len() {
        let place = plan.file_of(index);
        let item = &mut plan.packet.items[index];
        let path = item.path.clone();
        let unfit = |problem| {
            let path = path.clone();
            source.mistake(&place, Mistake::File { path, problem })
        };
        let file = tree.file(&path).map_err(unfit)?;
        let (way, name) = make_way(room, &path).map_err(failed)?;
        let copy = way.as_ref().unwrap_or(room).create(name, READABLE);
        let copy = copy.map_err(failed)?;
        let hold = looked_into.contains(&item.id);
        let taken = take(&file, left, Some(&copy), hold).map_err(|error| match error {
            TakeError::Unfit(problem) => unfit(problem),
            TakeError::Copy(error) => failed(error),
        })?;
        left -= taken.size;
        item.sha256 = taken.sha256;
        item.size = taken.size;
        if item.media_type == OPEN_TYPE {
            item.media_type = media_type(&path, &taken.head).to_owned();
        }
        if let Some(bytes) = taken.bytes {
            held += taken.size;
            if held > MAX_HELD {
                return Err(unfit(Unfit::Held(MAX_HELD)));
            }
            contents.insert(item.id.clone(), Content::new(bytes, item));
        }
        copies.push(copy);
        // Descriptors are few.
        if copies.len() >= AT_ONCE {
            files::sync_all(&copies).map_err(failed)?;
            copies.clear();
        }
    }
    Ok((contents, copies))
}

/// How many copies are open at the same time.
const AT_ONCE: usize = 64;

/// The items that claims look into at some place. A bundle as a whole is not looked into.
fn looked_into(packet: &Packet) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for place in packet.claims.iter().flat_map(|claim| &claim.evidence) {
        if place.at.is_some() {
            ids.insert(place.item.clone());
        }
        if let Some(Expect::SameAs(other)) = &place.expect {
            ids.insert(other.item.clone());
        }
    }
    ids
}

/// Looks for every place that a claim names, and fills in the lines of quotes.
fn fill_in(
    plan: &mut Plan,
    source: &Source,
    contents: &BTreeMap<String, Content>,
    given: &BTreeMap<(usize, usize), [u64; 2]>,
) -> Result<(), PackError> {
    let content = |id: &String, at: &str| {
        let known = contents.get(id);
        known.ok_or_else(|| source.mistake(at, Mistake::NoItem(id.clone())))
    };
    for (index, claim) in plan.packet.claims.iter_mut().enumerate() {
        for (number, place) in claim.evidence.iter_mut().enumerate() {
            let at = |key: &str| format!("claim[{index}].evidence[{number}].{key}");
            let absent = |key: &str, why: Absent| source.mistake(&at(key), Mistake::Absent(why));
            match &mut place.at {
                Some(Locator::Lines(lines)) => {
                    let content = content(&place.item, &at("item"))?;
                    let given = given.get(&(index, number)).copied();
                    let found = content.lines_of(&lines.quote, given);
                    *lines = found.map_err(|why| absent("quote", why))?;
                }
                Some(Locator::Json(pointer)) => {
                    let content = content(&place.item, &at("item"))?;
                    let found = content.has_value(pointer);
                    found.map_err(|why| absent("json", why))?;
                }
                Some(Locator::Step(step)) => {
                    let content = content(&place.item, &at("item"))?;
                    let found = content.has_step(*step);
                    found.map_err(|why| absent("step", why))?;
                }
                None => {}
            }
            if let Some(Expect::SameAs(other)) = &place.expect {
                let content = content(&other.item, &at("same_as.item"))?;
                let found = content.has_value(&other.json);
                found.map_err(|why| absent("same_as.json", why))?;
            }
        }
    }
    Ok(())
}

/// `packet.json`: the same packet always has the same bytes, and nothing in them acts on a
/// terminal.
fn written(packet: &Packet) -> Result<Vec<u8>, PackError> {
    let mut text = tki_text::json(serde_json::to_string_pretty(packet)?);
    text.push('\n');
    Ok(text.into_bytes())
}

/// Waits until everything is on its device.
fn finish(mut copies: Vec<File>, json: File, room: &Folder, packet: &Packet) -> io::Result<()> {
    copies.push(json);
    files::sync_all(&copies)?;
    let paths: BTreeSet<&str> = packet.items.iter().map(|item| item.path.as_str()).collect();
    let ways: BTreeSet<&str> = paths
        .iter()
        .flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..=at]))
        .collect();
    for way in ways {
        if let (Some(folder), _) = make_way(room, way)? {
            folder.sync()?;
        }
    }
    room.sync()
}

fn told(
    packet: &Packet,
    bytes: &[u8],
    out: PathBuf,
    claims: Option<&Path>,
    listing: Listing,
) -> Packed {
    let need = caps::need(packet, bytes.len() as u64);
    let packed: BTreeSet<&str> = packet.items.iter().map(|item| item.path.as_str()).collect();
    let left_out = listing.found.into_iter().filter(|found| {
        let is_claims = claims.is_some_and(|claims| claims == Path::new(&found.path));
        !is_claims && !packed.contains(found.path.as_str())
    });
    let ids: BTreeSet<&str> = packet.items.iter().map(|item| item.id.as_str()).collect();
    let is_broken = |from: &[String]| from.iter().any(|id| !ids.contains(id.as_str()));
    let broken = packet.items.iter();
    let broken = broken.filter(|item| is_broken(&item.source.derived_from));
    Packed {
        packet: out,
        id: packet.id.clone(),
        as_of: packet.as_of.clone(),
        sha256: sha256_hex(bytes),
        items: packet.items.len(),
        bytes: packet.items.iter().map(|item| item.size).sum(),
        claims: packet.claims.len(),
        memory_bytes: need.memory_bytes,
        out_bytes: need.out_bytes,
        broken_chains: broken.map(|item| item.id.clone()).collect(),
        left_out: left_out.map(|found| found.path).collect(),
        more_left_out: listing.more,
    }
}
