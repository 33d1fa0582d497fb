//! Packets from elsewhere: the packet of tests/packets/fix7, edited, and bytes that are none.
//! Nothing panics, the same packet gives the same reports, no claim that is adequate rests on a
//! file that is not what the packet says, and the report's audits of itself hold.
#![no_main]

#[path = "../edits.rs"]
mod edits;

use arbitrary::Arbitrary;
use edits::{Edit, apply};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use tki_evidence::stamp::sha256_hex;
use tki_inspector::guard::{Folder, Guard, Memory};
use tki_inspector::inspect::{Inspection, Refusal, Room, inspect};
use tki_inspector::words::{Adequacy, Held};

const ROOM: Room = Room {
    memory_bytes: 1 << 30,
    out_bytes: 1 << 26,
};

/// What is done to the packet.
#[derive(Arbitrary, Debug)]
struct Input {
    packet: Vec<Edit>,
    /// Bytes of files are changed: of which, where, to what.
    files: Vec<(u8, u16, u8)>,
    /// Digests in the packet follow the changed files.
    follows: bool,
    /// These bytes are the packet's file instead.
    raw: Option<Vec<u8>>,
}

struct Base {
    packet: Value,
    files: Vec<(String, Vec<u8>)>,
}

fn base() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/packets/fix7");
        let packet = fs::read(folder.join("packet.json")).expect("the packet");
        let packet: Value = serde_json::from_slice(&packet).expect("JSON");
        let items = packet["items"].as_array().expect("items").iter();
        let files = items.map(|item| {
            let path = item["path"].as_str().expect("a path").to_owned();
            let bytes = fs::read(folder.join(&path)).expect("an item");
            (path, bytes)
        });
        Base {
            files: files.collect(),
            packet: packet.clone(),
        }
    })
}

fn run(packet: &[u8], files: &[(String, Vec<u8>)]) -> Result<Inspection, Refusal> {
    let items = files.iter();
    let items = items.map(|(path, bytes)| (Folder::Packet, path.clone(), bytes.clone()));
    let own = (Folder::Packet, "packet.json".to_owned(), packet.to_vec());
    let mut guard = Guard::new(Memory {
        input: items.chain([own]).collect(),
        output: Vec::new(),
    });
    inspect(&mut guard, ROOM, &mut ())
}

fuzz_target!(|input: Input| {
    let base = base();
    let (mut packet, mut files) = (base.packet.clone(), base.files.clone());
    let mut changed = BTreeSet::new();
    for (file, at, byte) in &input.files {
        let index = usize::from(*file) % files.len();
        let (path, bytes) = &mut files[index];
        let length = bytes.len().max(1);
        if let Some(old) = bytes.get_mut(usize::from(*at) % length)
            && *old != *byte
        {
            *old = *byte;
            changed.insert(path.clone());
        }
    }
    if input.follows {
        for item in packet["items"].as_array_mut().into_iter().flatten() {
            let file = files.iter().find(|(path, _)| item["path"] == path.as_str());
            if let Some((_, bytes)) = file {
                item["sha256"] = sha256_hex(bytes).into();
            }
        }
        changed.clear();
    }
    apply(&mut packet, &input.packet);
    let text = match &input.raw {
        Some(raw) => raw.clone(),
        None => packet.to_string().into_bytes(),
    };
    let Ok(found) = run(&text, &files) else {
        return;
    };
    let again = run(&text, &files).expect("it was a packet");
    assert_eq!(found.files, again.files, "the same packet, other reports");
    let report = &found.report;
    for line in report.article_13.iter().chain(&report.article_14) {
        assert_ne!(line.held, Held::NotHeld, "{}: {}", line.line, line.shown_by);
    }
    let is_edited = !input.packet.is_empty() || input.raw.is_some();
    for claim in &report.claims {
        assert_eq!(claim.verdict, claim.rule.text().verdict);
        if claim.verdict != Adequacy::Adequate || is_edited {
            continue;
        }
        for place in claim.places.iter().filter(|place| place.holds) {
            let item = report.items.iter().find(|item| item.id == place.place.item);
            let path = &item.expect("an item of the packet").path;
            assert!(!changed.contains(path), "{} rests on {path}", claim.id);
        }
    }
});
