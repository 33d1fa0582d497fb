//! What is not evidence at all: exit 2, with line and column where there are
//! any, and never a decision.

use super::real;
use crate::common::{Said, need, run, tool, verify};
use std::fs;
use std::path::Path;
use std::process::Command;

fn refused(name: &str, bytes: &[u8]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evidence.json");
    fs::write(&path, bytes).unwrap();
    let said = verify(&path, &[]);
    said.failed(2, "evidence.malformed");
    assert!(said.stderr.contains("evidence.json"), "{name}: {said:?}");
    assert_eq!(said.stdout, "", "{name}");
    said
}

#[test]
fn json_that_two_readers_could_read_differently_is_refused_with_its_place() {
    let text = fs::read_to_string(&real().path).unwrap();
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    // A request that is not there is not the same as `null`.
    let mut unasked = real().value.clone();
    unasked.as_object_mut().unwrap().remove("request").unwrap();
    let without_request = unasked.to_string();
    let deep = format!("{{\"schema\":{}", "[".repeat(100_000));
    let cases = [
        (
            "duplicate key",
            with("{", "{\n\"venue\": \"dev\","),
            "duplicate key \"venue\"",
        ),
        (
            "unknown key",
            with("{", "{\n\"extra\": 1,"),
            "unknown field",
        ),
        (
            "float",
            with("\"bytes\": ", "\"bytes\": 1.5, \"x\": "),
            "not a plain integer",
        ),
        (
            "exponent",
            with("\"bytes\": ", "\"bytes\": 1e3, \"x\": "),
            "not a plain integer",
        ),
        (
            "huge",
            with("\"bytes\": ", "\"bytes\": 99999999999999999999"),
            "column",
        ),
        (
            "2^53",
            with("\"bytes\": ", "\"bytes\": 9007199254740993, \"x\": "),
            "beyond 2^53",
        ),
        (
            "negative zero",
            with("\"bytes\": ", "\"bytes\": -0, \"x\": "),
            "not a plain integer",
        ),
        ("truncated", text[..text.len() / 2].to_owned(), "EOF"),
        ("trailing", format!("{text}{{}}"), "trailing characters"),
        (
            "byte order mark",
            format!("\u{feff}{text}"),
            "line 1, column 1",
        ),
        ("deep nesting", deep, "recursion limit"),
        (
            "single quotes",
            "{'schema': 1}".to_owned(),
            "line 1, column 2",
        ),
        ("empty", String::new(), "line 1, column 1"),
        (
            "an unknown verdict",
            with("\"verdict\": \"PASS\"", "\"verdict\": \"MAYBE\""),
            "MAYBE",
        ),
        (
            "a missing field",
            without_request,
            "missing field `request`",
        ),
    ];
    for (name, text, wanted) in cases {
        let said = refused(name, text.as_bytes());
        assert!(said.stderr.contains(wanted), "{name}: {said:?}");
        assert!(said.stderr.contains(": line "), "{name}: {said:?}");
        assert!(said.stderr.contains(", column "), "{name}: {said:?}");
    }
}

#[test]
fn json_that_is_something_else_is_refused() {
    for text in ["[]", "null", "1", "{}", "{\"schema\":1}"] {
        refused(text, text.as_bytes());
    }
    let later = real()
        .value
        .to_string()
        .replace("evidence/v1", "evidence/v2");
    let said = refused("later version", later.as_bytes());
    assert!(said.stderr.contains("tki-attest/evidence/v2"), "{said:?}");
    refused("not UTF-8", b"{\"schema\":\"\xff\"}");
    let said = refused(
        "an escape",
        b"{\"schema\":\"tki\",\"\\u001b[31m\":\x1b[31m}",
    );
    assert!(!said.stderr.contains('\u{1b}'), "{said:?}");
}

#[test]
fn a_file_that_cannot_be_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.json");
    // Sparse: 17 MB that nobody has to write.
    fs::File::create(&large).unwrap().set_len(17 << 20).unwrap();
    let missing = folder.path().join("missing.json");
    // Nobody ever writes into it: a reader waits for ever.
    let pipe = folder.path().join("pipe.json");
    need("coreutils", Command::new("mkfifo").arg(&pipe));
    for (path, wanted) in [
        (large.as_path(), "more than 16777216 bytes"),
        (missing.as_path(), "No such file"),
        (Path::new("/dev/zero"), "it is not a regular file"),
        (pipe.as_path(), "it is not a regular file"),
    ] {
        let said = verify(path, &[]);
        said.failed(2, "evidence.unreadable");
        assert!(said.stderr.contains(wanted), "{said:?}");
        assert!(said.stderr.contains(path.to_str().unwrap()), "{said:?}");
    }
    let said = run(tool().arg("verify"));
    assert_eq!(said.status, 2, "{said:?}");
}
