use super::{Facts, packet};
use crate::common::{run, tool};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

/// Edits `packet.json`.
fn edit(facts: &Facts, change: impl FnOnce(&mut Value)) {
    let mut value = packet(&facts.packet());
    change(&mut value);
    let path = facts.packet().join("packet.json");
    fs::write(path, serde_json::to_vec_pretty(&value).unwrap()).unwrap();
}

#[test]
fn what_is_wrong_with_a_packet_is_told_with_its_place() {
    type Change = fn(&Facts);
    let changes: [(Change, &[&str]); 14] = [
        (
            |facts| {
                let path = facts.packet().join("docs/index.md");
                let text = fs::read_to_string(&path).unwrap();
                fs::write(path, text.replace("BLOCKED", "ALLOWED")).unwrap();
            },
            &[
                "items[0].sha256: docs/index.md has the digest ",
                "claims[0].evidence[0].at.lines: the quote does not stand on lines 3-4, and nowhere else",
            ],
        ),
        (
            |facts| fs::write(facts.packet().join("steps.jsonl"), "").unwrap(),
            &[
                "items[3].size: steps.jsonl has 0 bytes",
                "claims[1].evidence[4].at.step: the transcript has no step 2; it has none",
            ],
        ),
        (
            |facts| fs::remove_file(facts.packet().join("later.json")).unwrap(),
            &[
                "items[2].path: later.json: there is no such file",
                "claims[1].evidence[3].expect.same_as.json: its item could not be looked into",
            ],
        ),
        (
            |facts| fs::write(facts.packet().join("docs/more.md"), "").unwrap(),
            &["docs/more.md: no item names it"],
        ),
        (
            |facts| symlink("index.md", facts.packet().join("docs/link.md")).unwrap(),
            &["docs/link.md: no item names it"],
        ),
        (
            |facts| {
                let made = Command::new("mkfifo")
                    .arg(facts.packet().join("pipe"))
                    .status();
                assert!(made.unwrap().success());
            },
            &["pipe: no item names it"],
        ),
        (
            |facts| {
                let path = facts.packet().join("later.json");
                fs::remove_file(&path).unwrap();
                symlink("containers.json", path).unwrap();
            },
            &["items[2].path: later.json: later.json is a symbolic link"],
        ),
        (
            |facts| {
                let path = facts.packet().join("later.json");
                fs::remove_file(&path).unwrap();
                let made = Command::new("mkfifo").arg(path).status();
                assert!(made.unwrap().success());
            },
            &["items[2].path: later.json: it is not a regular file"],
        ),
        (
            |facts| {
                let file = fs::File::create(facts.packet().join("later.json")).unwrap();
                file.set_len(4 << 30).unwrap();
            },
            &["items[2].path: later.json: it has more than 268435456 bytes"],
        ),
        (
            |facts| {
                edit(facts, |packet| {
                    packet["claims"][0]["evidence"][0]["at"]["lines"]["last"] = json!(3);
                })
            },
            &[
                "claims[0].evidence[0].at.lines: the quote does not stand on line 3; it stands on lines 3-4",
            ],
        ),
        (
            |facts| {
                edit(facts, |packet| {
                    packet["claims"][1]["evidence"][0]["at"]["json"] = json!("/pods");
                })
            },
            &["claims[1].evidence[0].at.json: the item has nothing at \"/pods\""],
        ),
        (
            |facts| {
                edit(facts, |packet| {
                    packet["claims"][1]["evidence"][4]["at"]["step"] = json!(9);
                })
            },
            &["claims[1].evidence[4].at.step: the transcript has no step 9"],
        ),
        (
            |facts| {
                edit(facts, |packet| {
                    packet["items"][1]["media_type"] = json!("text/plain");
                })
            },
            &["claims[1].evidence[0].at.json: the item is text/plain"],
        ),
        (
            |facts| {
                edit(facts, |packet| {
                    packet["items"][0]["size"] = json!(1);
                })
            },
            &["items[0].size: docs/index.md has "],
        ),
    ];
    for (change, wanted) in changes {
        let facts = Facts::new();
        facts.pack(&[]).succeeded();
        change(&facts);
        let said = facts.check();
        assert_eq!(said.status, 2, "{said:?}");
        for wanted in wanted {
            let told = format!("wrong      {wanted}");
            assert!(said.stdout.contains(&told), "{wanted}: {}", said.stdout);
        }
        assert!(said.stdout.contains("\nnext: "), "{said:?}");
        let mut json = tool();
        let json = run(json
            .args(["pack", "--format", "json", "--check"])
            .arg(facts.packet()));
        assert_eq!(json.status, 2);
        let told: Value = serde_json::from_str(&json.stdout).unwrap();
        let problems = told["problems"].as_array().unwrap();
        let place = wanted[0].split_once(": ").unwrap().0;
        assert!(
            problems.iter().any(|problem| problem["place"] == place),
            "{told}"
        );
    }
}

#[test]
fn what_is_no_packet_is_an_error_with_its_place() {
    type Change = fn(&str) -> String;
    let changes: [(Change, &str, &str); 7] = [
        (|_| "{".into(), "pack.packet", "line 1, column 1: EOF"),
        (
            |text| text.replacen("\"id\"", "\"name\"", 1),
            "pack.packet",
            "line 3, column",
        ),
        (
            |text| text.replacen("\"docs/index.md\"", "\"../index.md\"", 1),
            "pack.packet",
            "items[0].path is \"../index.md\"",
        ),
        (
            |text| text.replacen("\"id\": \"later\"", "\"id\": \"index\"", 1),
            "pack.packet",
            "items[2].id",
        ),
        (
            |text| text.replacen("packet/v1", "packet/v2", 1),
            "pack.packet",
            "schema is",
        ),
        (|_| "[".repeat(200_000), "pack.packet", "recursion limit"),
        (
            |_| " ".repeat((4 << 20) + 1),
            "pack.unreadable",
            "it has more than 4194304 bytes",
        ),
    ];
    for (change, code, says) in changes {
        let facts = Facts::new();
        facts.pack(&[]).succeeded();
        let path = facts.packet().join("packet.json");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, change(&text)).unwrap();
        let said = facts.check();
        said.failed(2, code);
        assert!(said.stderr.contains(says), "{says}: {}", said.stderr);
    }
    let facts = Facts::new();
    facts.check().failed(2, "pack.unreadable");
    fs::create_dir(facts.packet()).unwrap();
    let said = facts.check();
    said.failed(2, "pack.unreadable");
    assert!(
        said.stderr.contains("packet.json: there is no such file"),
        "{said:?}"
    );
    symlink("/dev/zero", facts.packet().join("packet.json")).unwrap();
    facts.check().failed(2, "pack.unreadable");
}
