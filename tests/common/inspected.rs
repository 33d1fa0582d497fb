//! Packets in memory, and what the inspector's core says of them.

use crate::common::root;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tki_attest::image::built_in;
use tki_evidence::stamp::sha256_hex;
use tki_inspector::guard::{Folder, Guard, Memory};
use tki_inspector::inspect::{Inspection, Refusal, Room, inspect};
use tki_inspector::report::{ClaimResult, ItemResult};
use tki_inspector::wire::{EXPECTED, Expected, ExpectedImage};

/// The moment that these packets are judged at.
pub const AS_OF: &str = "2026-06-23T00:00:00Z";

/// When their items were captured.
pub const CAPTURED: &str = "2026-06-22T12:00:00Z";

/// As much as any packet of these tests takes.
pub const ROOM: Room = Room {
    memory_bytes: 256 << 20,
    out_bytes: 64 << 20,
};

/// A packet, and what the launcher brings.
#[derive(Clone)]
pub struct Made {
    /// `packet.json`.
    pub value: Value,
    /// The items' files, by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The launcher's files, by name.
    pub launcher: BTreeMap<String, Vec<u8>>,
}

impl Made {
    /// A packet without items and claims.
    pub fn new() -> Self {
        Self {
            value: json!({
                "schema": "tki-attest/packet/v1", "id": "made", "as_of": AS_OF,
                "items": [], "claims": [],
            }),
            files: BTreeMap::new(),
            launcher: BTreeMap::new(),
        }
    }

    /// A packet of `tests/packets`.
    pub fn of(name: &str) -> Self {
        let folder = folder(name);
        let mut files = BTreeMap::new();
        collect(&folder, &folder, &mut files);
        let value = serde_json::from_slice(&files["packet.json"]).unwrap();
        files.remove("packet.json");
        Self {
            value,
            files,
            launcher: launcher(),
        }
    }

    /// Adds an item from the system itself, in whole.
    pub fn item(&mut self, id: &str, kind: &str, content: &str) -> &mut Value {
        let media_type = match content.trim_start().starts_with(['{', '[']) {
            _ if kind == "transcript" => "application/jsonl",
            true => "application/json",
            false => "text/markdown",
        };
        let path = format!("items/{id}");
        self.files.insert(path.clone(), content.as_bytes().to_vec());
        let items = self.value["items"].as_array_mut().unwrap();
        items.push(json!({
            "id": id, "path": path, "sha256": sha256_hex(content.as_bytes()),
            "size": content.len(), "media_type": media_type, "document_type": kind,
            "extent": "complete",
            "source": {
                "authority": "NATIVE", "locator": id, "captured_at": CAPTURED,
                "captured_by": "packer",
            },
        }));
        items.last_mut().unwrap()
    }

    /// An item that is there.
    pub fn edit(&mut self, id: &str) -> &mut Value {
        let items = self.value["items"].as_array_mut().unwrap();
        items.iter_mut().find(|item| item["id"] == id).unwrap()
    }

    /// Adds a claim about the world that rests on these places.
    pub fn claim(&mut self, id: &str, places: Value) -> &mut Value {
        let claims = self.value["claims"].as_array_mut().unwrap();
        claims.push(json!({
            "id": id, "text": format!("claim {id}"), "kind": "is", "scope": "packet",
            "evidence": places,
        }));
        claims.last_mut().unwrap()
    }

    /// Everything that lies below /in.
    pub fn input(&self) -> Vec<(Folder, String, Vec<u8>)> {
        let packet = self.value.to_string().into_bytes();
        let mut input = vec![(Folder::Packet, "packet.json".to_owned(), packet)];
        let files = self.files.iter();
        input.extend(files.map(|(path, bytes)| (Folder::Packet, path.clone(), bytes.clone())));
        let files = self.launcher.iter();
        input.extend(files.map(|(name, bytes)| (Folder::Launcher, name.clone(), bytes.clone())));
        input
    }

    /// A guard before all of that.
    pub fn guard(&self) -> Guard<Memory> {
        Guard::new(Memory {
            input: self.input(),
            output: Vec::new(),
        })
    }

    /// What the inspector makes of it.
    pub fn inspect(&self) -> Result<Inspection, Refusal> {
        inspect(&mut self.guard(), ROOM, &mut ())
    }

    /// The same, where there is a report.
    #[track_caller]
    pub fn inspected(&self) -> Inspected {
        Inspected(self.inspect().expect("a packet"))
    }
}

/// A report of a packet.
pub struct Inspected(pub Inspection);

impl Inspected {
    /// What a claim came to.
    #[track_caller]
    pub fn claim(&self, id: &str) -> &ClaimResult {
        let mut claims = self.0.report.claims.iter();
        claims.find(|claim| claim.id == id).expect("a claim")
    }

    /// Verdict and rule of a claim.
    #[track_caller]
    pub fn came_to(&self, id: &str) -> (&'static str, String) {
        let claim = self.claim(id);
        (claim.verdict.name(), claim.rule.name())
    }

    /// A claim came to this, by this rule.
    #[track_caller]
    pub fn holds(&self, id: &str, verdict: &'static str, rule: &str) {
        let reason = &self.claim(id).reason;
        assert_eq!(
            self.came_to(id),
            (verdict, rule.to_owned()),
            "{id}: {reason}"
        );
    }

    /// What is known of an item.
    #[track_caller]
    pub fn item(&self, id: &str) -> &ItemResult {
        let mut items = self.0.report.items.iter();
        items.find(|item| item.id == id).expect("an item")
    }

    /// Whether an item stands, and the codes of its findings.
    #[track_caller]
    pub fn standing(&self, id: &str) -> (bool, Vec<&str>) {
        let item = self.item(id);
        let codes = item.findings.iter().map(|finding| finding.code.as_str());
        (item.usable, codes.collect())
    }

    /// The text of a file of the report.
    pub fn file(&self, name: &str) -> &str {
        let mut files = self.0.files.iter();
        let (_, bytes) = files.find(|(own, _)| *own == name).expect("a file");
        std::str::from_utf8(bytes).expect("text")
    }
}

/// Where a packet of `tests/packets` is.
pub fn folder(name: &str) -> std::path::PathBuf {
    root().join("tests/packets").join(name)
}

/// What a launcher of this build brings: the image that it vouches for.
pub fn launcher() -> BTreeMap<String, Vec<u8>> {
    let image = built_in::image().unwrap();
    let expected = Expected {
        known_image: ExpectedImage {
            manifest_digest: image.manifest_digest,
            config_digest: image.config_digest,
            diff_ids: image.diff_ids,
        },
        ..Expected::default()
    };
    let bytes = serde_json::to_vec(&expected).unwrap();
    BTreeMap::from([(EXPECTED.to_owned(), bytes)])
}

fn collect(folder: &Path, base: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, base, files);
        } else {
            let name = path.strip_prefix(base).unwrap().to_str().unwrap();
            files.insert(name.to_owned(), fs::read(&path).unwrap());
        }
    }
}
