//! #1 to #3: what a packet is.

use crate::common::acceptance::proof;
use crate::common::inspected::{Made, ROOM};
use crate::common::{need, run, tool};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use tki_inspector::guard::{Folder, Guard, Memory};
use tki_inspector::inspect::{Refusal, inspect};
use tki_inspector::packet::{MAX_CLAIMS, MAX_ITEMS};
use tki_inspector::wire::MALFORMED;

fn one_item() -> Made {
    let mut made = Made::new();
    made.item("a", "report", "text");
    made
}

/// The refusal of a text as `packet.json`, and the files that were opened.
fn refused(bytes: &[u8]) -> (Refusal, Vec<String>) {
    let mut guard = Guard::new(Memory {
        input: vec![(Folder::Packet, "packet.json".into(), bytes.to_vec())],
        output: Vec::new(),
    });
    let refusal = inspect(&mut guard, ROOM, &mut ()).expect_err("it is no packet");
    let opened = guard.log().iter().map(|action| action.path.clone());
    (refusal, opened.collect())
}

#[test]
fn m01_no_path_leads_out_of_the_packet() {
    let paths = [
        "../a",
        "/etc/shadow",
        "items/../../a",
        "./a",
        "items/./a",
        "items//a",
        "items/",
        "",
        "packet.json",
        "items\\..\\a",
        "a\u{0}b",
        "..",
    ];
    for path in paths {
        let mut made = one_item();
        made.edit("a")["path"] = path.into();
        let (refusal, opened) = refused(made.value.to_string().as_bytes());
        assert_eq!(refusal.status(), MALFORMED, "{path:?}");
        let reason = refusal.reason();
        assert!(reason.contains("items[0].path"), "{path:?}: {reason}");
        assert_eq!(opened, ["/in/packet/packet.json"], "{path:?}");
    }
    proof(
        1,
        format!(
            "{} paths refused at items[0].path, no item opened",
            paths.len()
        ),
    );
}

#[test]
fn m02_only_regular_files_are_items() {
    let kinds = ["link", "link on the way", "directory", "pipe"];
    for kind in kinds {
        let folder = tempfile::tempdir().unwrap();
        let made = one_item();
        fs::write(folder.path().join("packet.json"), made.value.to_string()).unwrap();
        let (items, elsewhere) = (folder.path().join("items"), folder.path().join("elsewhere"));
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("a"), "text").unwrap();
        match kind {
            "link on the way" => symlink(&elsewhere, &items).unwrap(),
            _ => fs::create_dir(&items).unwrap(),
        }
        let place = items.join("a");
        match kind {
            "link" => symlink(elsewhere.join("a"), &place).unwrap(),
            "directory" => fs::create_dir(&place).unwrap(),
            "pipe" => need("coreutils", Command::new("mkfifo").arg(&place)).succeeded(),
            _ => {}
        }
        let said = run(tool().args(["pack", "--check"]).arg(folder.path()));
        assert_eq!(said.status, 2, "{kind}: {said:?}");
        let both = said.stdout + &said.stderr;
        assert!(both.contains("items/a"), "{kind}: {both}");
    }
    proof(2, format!("exit 2 with the path: {}", kinds.join(", ")));
}

#[test]
fn m03_a_packet_is_strict_and_bounded() {
    let good = one_item().value;
    let text = good.to_string();
    let many = |list: &str, count: usize, of: &Value| {
        let mut value = good.clone();
        value[list] = Value::Array(vec![of.clone(); count]);
        value.to_string().into_bytes()
    };
    let claim = json!({"id": "c", "text": "t", "kind": "is", "scope": "packet", "evidence": []});
    let edited = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1).into_bytes()
    };
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "a key twice",
            edited("\"id\":\"made\"", "\"id\":\"made\",\"id\":\"x\""),
            "line 1, column",
        ),
        (
            "an item twice",
            many("items", 2, &good["items"][0]),
            "items[1].id",
        ),
        ("a claim twice", many("claims", 2, &claim), "claims[1].id"),
        (
            "an unknown field",
            edited("\"id\":\"made\"", "\"id\":\"made\",\"x\":1"),
            "line 1, column",
        ),
        (
            "a number that readers round",
            edited("\"size\":4", "\"size\":9007199254740993"),
            "line 1, column",
        ),
        (
            "a fraction",
            edited("\"size\":4", "\"size\":4.0"),
            "line 1, column",
        ),
        (
            "no UTF-8",
            [text.as_bytes(), b"\xff"].concat(),
            "line 1, column",
        ),
        (
            "deep nesting",
            "[".repeat(100_000).into_bytes(),
            "line 1, column",
        ),
        ("nothing", Vec::new(), "line 1, column"),
        (
            "too many items",
            many("items", MAX_ITEMS + 1, &good["items"][0]),
            "items has",
        ),
        (
            "too many claims",
            many("claims", MAX_CLAIMS + 1, &claim),
            "claims has",
        ),
        ("too many bytes", vec![b' '; 5 << 20], "bytes; at most"),
        (
            "another schema",
            edited("packet/v1", "packet/v9"),
            "schema is",
        ),
    ];
    for (name, bytes, wanted) in &cases {
        let (refusal, opened) = refused(bytes);
        assert_eq!(refusal.status(), MALFORMED, "{name}");
        let reason = refusal.reason();
        assert!(reason.contains(wanted), "{name}: {reason}");
        assert_eq!(opened.len(), 1, "{name}");
    }
    let names: Vec<&str> = cases.iter().map(|(name, _, _)| *name).collect();
    proof(3, format!("exit 2 with the place: {}", names.join(", ")));
}
