//! Evidence packets: from a directory and a `claims.toml` to a packet, and a packet checked.

/// What is wrong with a packet is told with its place.
mod checked;
/// What is refused, with line and column, and leaves nothing behind.
mod refused;

use crate::common::{Said, need, root, run, tool};
use crate::golden::{plain, unpacked};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tki_evidence::stamp::sha256_hex;
use tki_inspector::packet::Packet;

/// A directory with facts, in one of its own.
pub struct Facts {
    place: tempfile::TempDir,
}

/// What is claimed of them.
pub const CLAIMS: &str = r#"schema = "tki-attest/claims/v1"
id = "small"
as_of = 2026-06-10T12:00:00Z

[defaults]
authority = "LOCAL"
captured_at = "2026-06-10T11:00:00Z"
captured_by = "operator"
extent = "complete"

[[item]]
id = "index"
path = "docs/index.md"
document_type = "index"
revision = 82
status = { word = "BLOCKED", of = "B4′" }
authority = "KB"
locator = "knowledge/index"

[[item]]
id = "containers"
path = "containers.json"
document_type = "listing"
venue = "vps"

[[item]]
id = "later"
path = "later.json"
document_type = "listing"
derived_from = ["containers"]

[[item]]
id = "steps"
path = "steps.jsonl"
document_type = "transcript"

[[claim]]
id = "C-01"
kind = "says"
text = "the index says that B4′ is BLOCKED"
status = { word = "BLOCKED", of = "B4′" }
evidence = [
    { item = "index", quote = "B4′ is BLOCKED: 0 of 12 probes run" },
    { item = "index", quote = "nobody ran it", lines = [7, 7] },
]

[[claim]]
id = "C-02"
kind = "is"
text = "two containers, the same as before, and the listing was made"
scope = "containers"
evidence = [
    { item = "containers", json = "/containers", count = 2 },
    { item = "containers", json = "/containers/0/name", equals = "web" },
    { item = "containers", json = "/containers", absent = "tki-inspector" },
    { item = "containers", json = "", same_as = { item = "later", json = "" } },
    { item = "steps", step = 2, exit = 0 },
]
"#;

impl Facts {
    /// The directory that [`CLAIMS`] is about.
    pub fn new() -> Self {
        let facts = Self {
            place: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(facts.at("docs")).unwrap();
        facts.write("claims.toml", CLAIMS);
        let index =
            "# Index\n\nB4′ is BLOCKED:\n  0 of 12 probes\trun\n\nnobody ran it\nnobody ran it\n";
        facts.write("docs/index.md", index);
        let list = r#"{"containers":[{"name":"web"},{"name":"db"}]}"#;
        facts.write("containers.json", list);
        facts.write("later.json", list);
        let steps = "{\"step\":1,\"exit\":0}\n{\"step\":2,\"exit\":0}\n";
        facts.write("steps.jsonl", steps);
        facts
    }

    /// The directory around it.
    pub fn around(&self) -> &Path {
        self.place.path()
    }

    /// It.
    pub fn folder(&self) -> PathBuf {
        self.around().join("facts")
    }

    /// A path in it.
    pub fn at(&self, path: &str) -> PathBuf {
        self.folder().join(path)
    }

    /// Where the packet comes to be.
    pub fn packet(&self) -> PathBuf {
        self.around().join("small-packet")
    }

    /// Writes a file in it.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.at(path), bytes).unwrap();
    }

    /// Packs it.
    pub fn pack(&self, arguments: &[&str]) -> Said {
        run(tool().arg("pack").arg(self.folder()).args(arguments))
    }

    /// Checks the packet.
    pub fn check(&self) -> Said {
        run(tool().args(["pack", "--check"]).arg(self.packet()))
    }
}

/// Every file below a directory, by path.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(below) = pending.pop() {
        for entry in fs::read_dir(&below).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => pending.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
                    found.insert(name.to_owned(), fs::read(&path).unwrap());
                }
            }
        }
    }
    found
}

/// What `packet.json` says.
pub fn packet(folder: &Path) -> Value {
    let bytes = fs::read(folder.join("packet.json")).unwrap();
    Packet::parse(&bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// `sha256sum` has to agree with what `packet.json` says of every file.
fn sha256sum_agrees(folder: &Path) {
    let packet = packet(folder);
    let items = packet["items"].as_array().unwrap();
    let lines = items.iter().map(|item| {
        let (sha256, path) = (item["sha256"].as_str(), item["path"].as_str());
        format!("{}  {}\n", sha256.unwrap(), path.unwrap())
    });
    let list = tempfile::NamedTempFile::new().unwrap();
    fs::write(list.path(), lines.collect::<String>()).unwrap();
    let mut command = Command::new("sha256sum");
    command.current_dir(folder).args(["--check", "--strict"]);
    need("coreutils", command.arg(list.path())).succeeded();
    for item in items {
        let path = folder.join(item["path"].as_str().unwrap());
        assert_eq!(fs::metadata(path).unwrap().len(), item["size"]);
    }
}

#[test]
fn a_directory_becomes_a_packet() {
    let facts = Facts::new();
    facts.write("stray.txt", "nobody names it");
    let said = facts.pack(&["--format", "json"]);
    said.succeeded();
    let told: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(told["left_out"], json!(["stray.txt"]));
    assert_eq!(told["items"], 4);
    assert_eq!(told["broken_chains"], json!([]));
    let files = files(&facts.packet());
    assert_eq!(files.len(), 5, "{:?}", files.keys());
    assert_eq!(told["sha256"], sha256_hex(&files["packet.json"]));
    sha256sum_agrees(&facts.packet());
    let packet = packet(&facts.packet());
    assert_eq!(packet["as_of"], "2026-06-10T12:00:00Z");
    let index = &packet["items"][0];
    assert_eq!(index["media_type"], "text/markdown");
    assert_eq!(index["source"]["locator"], "knowledge/index");
    assert_eq!(packet["items"][3]["source"]["locator"], "steps.jsonl");
    assert_eq!(packet["items"][3]["media_type"], "application/jsonl");
    let lines = |place: usize| packet["claims"][0]["evidence"][place]["at"]["lines"].clone();
    let first = "B4′ is BLOCKED: 0 of 12 probes run";
    assert_eq!(lines(0), json!({ "first": 3, "last": 4, "quote": first }));
    let second = "nobody ran it";
    assert_eq!(lines(1), json!({ "first": 7, "last": 7, "quote": second }));
    let claim = &packet["claims"][1];
    assert_eq!(packet["claims"][0]["scope"], "packet");
    assert_eq!(claim["evidence"][4]["expect"], json!({ "exit": 0 }));
    facts.check().succeeded();
}

#[test]
fn the_same_directory_becomes_the_same_bytes() {
    let one = Facts::new();
    one.pack(&[]).succeeded();
    let two = Facts::new();
    // Neither the file's time nor where it is packed makes a difference.
    two.write("docs/index.md", fs::read(one.at("docs/index.md")).unwrap());
    let out = two.around().join("elsewhere");
    two.pack(&["--out", out.to_str().unwrap()]).succeeded();
    assert_eq!(files(&one.packet()), files(&out));
}

/// The packet of the five documents is checked in beside its files.
#[test]
fn the_packet_that_is_checked_in_is_made_of_its_claims() {
    let folder = root().join("tests/packets/fix7");
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("packet");
    let mut command = tool();
    run(command.arg("pack").arg(&folder).arg("--out").arg(&out)).succeeded();
    let made = fs::read(out.join("packet.json")).unwrap();
    let known = fs::read(folder.join("packet.json")).unwrap();
    assert!(
        made == known,
        "`tki-attest pack tests/packets/fix7` makes it anew"
    );
    sha256sum_agrees(&out);
    let mut command = tool();
    run(command.args(["pack", "--check"]).arg(&out)).succeeded();
}

#[test]
fn the_moment_is_asked_of_a_clock_only_on_request() {
    let facts = Facts::new();
    let without = CLAIMS.replace("as_of = ", "# as_of = ");
    facts.write("claims.toml", &without);
    let said = facts.pack(&[]);
    said.failed(2, "pack.as-of");
    let when = |name: &str| packet(&facts.around().join(name))["as_of"].to_string();
    let given = "2026-06-11T00:00:00Z";
    facts.pack(&["--as-of", given]).succeeded();
    assert_eq!(when("small-packet"), format!("\"{given}\""));
    let out = facts.around().join("now");
    facts.write("claims.toml", format!("as_of = \"now\"\n{without}"));
    facts.pack(&["--out", out.to_str().unwrap()]).succeeded();
    assert!(when("now") > format!("\"{given}\""), "{}", when("now"));
    assert_eq!(facts.pack(&["--as-of", "soon"]).status, 2);
}

/// What the inspector finds beside the evidence is what `verify` finds beside it.
#[test]
fn a_bundle_is_packed_whole_and_stays_one() {
    let facts = Facts::new();
    let copy = plain().copy();
    fs::create_dir(facts.at("reports")).unwrap();
    let name = copy.path.file_name().unwrap().to_str().unwrap();
    let stem = name.strip_suffix(".json").unwrap();
    for (path, bytes) in files(copy.path.parent().unwrap()) {
        if path.starts_with(stem) {
            fs::create_dir_all(facts.at(&format!("reports/{stem}"))).unwrap();
            facts.write(&format!("reports/{path}"), bytes);
        }
    }
    let item = format!("\n[[item]]\nid = \"run\"\nbundle = \"reports/{name}\"\nvenue = \"vps\"\n");
    let claim = "\n[[claim]]\nid = \"C-03\"\nkind = \"is\"\ntext = \"attested\"\n\
                 evidence = [{ item = \"run\", accepted = true }]\n";
    facts.write("claims.toml", format!("{CLAIMS}{item}{claim}"));
    let said = facts.pack(&["--format", "json"]);
    said.succeeded();
    let told: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(told["left_out"], json!([]));
    sha256sum_agrees(&facts.packet());
    facts.check().succeeded();
    let packet = packet(&facts.packet());
    let by_type = |wanted: &str| -> Vec<String> {
        let items = packet["items"].as_array().unwrap().iter();
        let found = items.filter(|item| item["document_type"] == wanted);
        found
            .map(|item| item["id"].as_str().unwrap().into())
            .collect()
    };
    assert_eq!(by_type("evidence-bundle"), ["run"]);
    assert_eq!(by_type("envelope"), ["run.intoto"]);
    let artifacts = by_type("evidence-artifact");
    assert!(
        artifacts.contains(&"run.mountinfo.txt".to_owned()),
        "{artifacts:?}"
    );
    let mut items = packet["items"].as_array().unwrap().iter();
    let evidence = items.find(|item| item["id"] == "run").unwrap();
    assert_eq!(evidence["signature"], "run.intoto");
    let packed = facts.packet().join("reports").join(name);
    let verify = |path: &Path| {
        let signers = copy.signers.to_str().unwrap();
        let mut command = tool();
        command
            .arg("verify")
            .arg(path)
            .args(["--allowed-signers", signers]);
        run(command.args(["--require-artifacts", "--format", "json"])).status
    };
    assert_eq!(verify(&packed), 0);
    assert_eq!(verify(&copy.path), 0);
}

#[test]
fn a_first_file_lists_what_is_there_and_replaces_nothing() {
    let facts = Facts::new();
    let init = || {
        let mut command = tool();
        run(command.args(["pack", "--init"]).arg(facts.folder()))
    };
    init().failed(2, "pack.exists");
    assert_eq!(fs::read_to_string(facts.at("claims.toml")).unwrap(), CLAIMS);
    fs::remove_file(facts.at("claims.toml")).unwrap();
    for (path, bytes) in files(&unpacked("plain").path().join("out")) {
        if let Some((folder, _)) = path.rsplit_once('/') {
            fs::create_dir_all(facts.at(folder)).unwrap();
        }
        facts.write(&path, bytes);
    }
    let said = init();
    said.succeeded();
    let text = fs::read_to_string(facts.at("claims.toml")).unwrap();
    assert!(
        text.contains("path = \"docs/index.md\" # text/markdown"),
        "{text}"
    );
    assert_eq!(text.matches("\nbundle = \"").count(), 1, "{text}");
    assert!(!text.contains("mountinfo"), "{text}");
    // As it stands it says neither when nor who; with both it packs, and so do its examples.
    facts.pack(&[]).failed(2, "pack.as-of");
    facts.pack(&["--as-of", "now"]).failed(2, "pack.field");
    let text = text.replace("# captured_by = ", "captured_by = ");
    facts.write("claims.toml", &text);
    let out = facts.around().join("out");
    let pack = |out: &Path| facts.pack(&["--as-of", "now", "--out", out.to_str().unwrap()]);
    pack(&out).succeeded();
    let (before, claims) = text.split_once("\n#\n").unwrap();
    let claims = claims.replace("\n# ", "\n").replace("\n#\n", "\n\n");
    let (claims, _) = claims.split_once("\nA place has one of").unwrap();
    facts.write(
        "claims.toml",
        format!("{before}\n{}", claims.trim_start_matches("# ")),
    );
    facts.write("containers.json", r#"{"containers":[]}"#);
    // The first example's document is called otherwise here.
    let said = pack(&facts.around().join("examples"));
    said.failed(2, "pack.field");
    assert!(
        said.stderr.contains("\"index.md\", which is no item's id"),
        "{said:?}"
    );
}
