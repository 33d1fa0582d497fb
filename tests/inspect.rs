//! Inspections: a packet in, reports out, in a sandbox that was attested; and everything that
//! keeps one from beginning.

/// Interrupted and killed.
mod ended;
/// On every engine, as root and as other users.
mod engines;
/// What is not inspected, and in what nothing is.
mod refused;

use crate::common::{ENGINE_SOCKET, Said, evidence_in, names_in, root, run, tool};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tki_evidence::stamp::sha256_hex;

/// What an inspection writes.
const FILES: [&str; 5] = [
    "actions.ndjson",
    "binding.json",
    "inspection.json",
    "inspection.md",
    "stamp.json",
];

/// Arguments that lead to each engine.
const ENGINES: [(&str, &[&str]); 4] = [
    ("docker", &["--engine", "docker"]),
    ("podman", &["--engine", "podman", "--runtime", "runc"]),
    ("embedded", &["--engine", "embedded"]),
    ("bwrap", &["--engine", "bwrap"]),
];

/// For development: nothing need be accepted.
const DEV: [&str; 3] = ["--venue", "dev", "--dev"];

/// The packet of the five documents.
fn fix7() -> PathBuf {
    root().join("tests/packets/fix7")
}

/// An item, as `packet.json` has it.
fn item(id: &str, path: &str, bytes: &[u8]) -> Value {
    json!({
        "id": id,
        "path": path,
        "sha256": sha256_hex(bytes),
        "size": bytes.len(),
        "media_type": "text/plain",
        "document_type": "report",
        "extent": "complete",
        "source": {
            "authority": "KB",
            "locator": id,
            "captured_at": "2026-06-10T00:00:00Z",
            "captured_by": "a test",
        },
    })
}

/// A claim that a document says this in its first line.
fn says(id: &str, item: &str, quote: &str) -> Value {
    let lines = json!({"first": 1, "last": 1, "quote": quote});
    json!({
        "id": id,
        "text": format!("It says {quote}."),
        "kind": "says",
        "scope": "packet",
        "evidence": [{"item": item, "at": {"lines": lines}}],
    })
}

/// A packet on disk.
struct Packet {
    folder: tempfile::TempDir,
    document: Value,
}

impl Packet {
    /// Of these files, each with a claim that its first line is there.
    fn of(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut items, mut claims) = (Vec::new(), Vec::new());
        for (number, (path, text)) in files.iter().enumerate() {
            let place = folder.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
            let id = format!("i{number}");
            items.push(item(&id, path, text.as_bytes()));
            let quote = text.lines().next().unwrap();
            claims.push(says(&format!("C-{number}"), &id, quote));
        }
        let packet = Self {
            folder,
            document: json!({
                "schema": "tki-attest/packet/v1",
                "id": "small",
                "as_of": "2026-06-11T00:00:00Z",
                "items": items,
                "claims": claims,
            }),
        };
        packet.write();
        packet
    }

    fn small() -> Self {
        Self::of(&[("a.txt", "one\n"), ("deep/er/b.txt", "two\nthree\n")])
    }

    /// With something changed in its own file.
    fn with(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.document);
        self.write();
        self
    }

    fn write(&self) {
        fs::write(self.path().join("packet.json"), self.document.to_string()).unwrap();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// `tki-attest inspect` of this packet.
fn command(packet: &Path, out: &Path, arguments: &[&str]) -> Command {
    let mut command = tool();
    command.arg("inspect").arg("--packet").arg(packet);
    command.arg("--out").arg(out).args(arguments);
    command
}

fn inspect(packet: &Path, out: &Path, arguments: &[&str]) -> Said {
    run(&mut command(packet, out, arguments))
}

/// The directories of inspections below another one.
fn inspections(out: &Path) -> Vec<String> {
    let mut names = names_in(out);
    names.retain(|name| name.starts_with("inspection-"));
    names
}

/// The files that the inspector has written, without the stamp.
fn reports(out: &Path, name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = out.join(name);
    assert_eq!(names_in(&folder), FILES);
    let own = FILES.iter().filter(|file| **file != "stamp.json");
    own.map(|file| ((*file).to_owned(), fs::read(folder.join(file)).unwrap()))
        .collect()
}

/// Evidence of this machine's Docker Engine for development.
fn evidence_of_docker(out: &Path) -> PathBuf {
    evidence_of(&format!("unix://{ENGINE_SOCKET}"), out)
}

/// The same of the one at this address.
fn evidence_of(host: &str, out: &Path) -> PathBuf {
    let mut command = tool();
    command.args(["run", "--venue", "dev", "--gate", "off", "--host", host]);
    let said = run(command.arg("--out").arg(out));
    // Not all of it is proven if another client uses the engine meanwhile.
    assert!([0, 3].contains(&said.status), "{said:?}");
    evidence_in(out)
}
