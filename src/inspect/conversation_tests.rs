//! A whole conversation, and everything that a hostile container could make of it.

use super::*;
use crate::inspect::packet::tests::small;
use serde_json::{Value, json};
use tki_evidence::stamp::sha256_hex;
use tki_inspector::packet::Packet;
use tki_inspector::report::IS_NOT;
use tki_inspector::wire::{ACTIONS, BINDING, MARKDOWN, REPORT};
use tki_inspector::{rules, status};

const MOST: u64 = 1 << 20;

/// What was put in.
struct Put {
    packet: Packet,
    sha256: String,
    brought: Vec<(String, String)>,
}

impl Put {
    fn new() -> Self {
        let bytes = small().to_string();
        Self {
            packet: Packet::parse(bytes.as_bytes()).unwrap(),
            sha256: sha256_hex(bytes.as_bytes()),
            brought: vec![("expected.json".into(), "ef".repeat(32))],
        }
    }

    fn terms(&self) -> Terms<'_> {
        Terms {
            about: About {
                packet: &self.packet,
                sha256: &self.sha256,
                brought: &self.brought,
            },
            most: MOST,
        }
    }
}

/// A report about it, of one claim that came to this.
fn report(put: &Put, rule: &str, verdict: &str) -> Value {
    let claim = &put.packet.claims[0];
    let items = put.packet.items.iter().map(|item| {
        json!({
            "id": item.id, "path": item.path, "sha256": item.sha256, "bytes": item.size,
            "usable": true, "origin": "declared", "findings": [],
        })
    });
    let mut actions = Vec::new();
    for (number, (action, path)) in [
        ("READ_PACKET_ITEM", "/in/packet/packet.json"),
        ("WRITE_LOCAL_REPORT", "/out/inspection.json"),
    ]
    .into_iter()
    .enumerate()
    {
        actions.push(json!({"number": number + 1, "action": action, "path": path}));
    }
    json!({
        "schema": "tki-attest/inspection/v1",
        "triage": "TRIAGE_WRITTEN",
        "is_not": IS_NOT,
        "packet": {
            "id": put.packet.id, "sha256": put.sha256, "as_of": put.packet.as_of,
            "items": put.packet.items.len(), "claims": put.packet.claims.len(),
        },
        "rules_sha256": rules::sha256(),
        "statuses_sha256": sha256_hex(status::TEXT.as_bytes()),
        "brought": [{"name": "expected.json", "sha256": "ef".repeat(32)}],
        "totals": [{"verdict": verdict, "claims": 1}],
        "claims": [{
            "id": claim.id, "text": claim.text, "kind": "says", "asserts": "",
            "verdict": verdict, "rule": rule, "reason": "because", "places": [],
        }],
        "items": items.collect::<Vec<Value>>(),
        "contradictions": [],
        "bundles": [],
        "article_13": [],
        "article_14": [],
        "not_done": [],
        "blockers": [],
        "next_action": "nothing",
        "actions": actions,
    })
}

/// The four files that go with a report.
fn files(report: &Value) -> Vec<(&'static str, String)> {
    let actions = report["actions"].as_array().into_iter().flatten();
    let log = actions.map(|action| format!("{action}\n")).collect();
    vec![
        (REPORT, format!("{report:#}\n")),
        (MARKDOWN, "# An inspection\n".to_owned()),
        (BINDING, "{}\n".to_owned()),
        (ACTIONS, log),
    ]
}

/// What an honest inspector says of these files, a message on each line.
fn said(files: &[(&'static str, String)], inadequate: u64) -> Vec<Value> {
    let version = env!("CARGO_PKG_VERSION");
    let written = files.iter().map(|(name, text)| {
        json!({"name": name, "bytes": text.len(), "sha256": sha256_hex(text.as_bytes())})
    });
    let mut lines = vec![
        json!({"hello": {"protocol": 1, "version": version, "selfcheck_us": 700}}),
        json!({"progress": {"items": 1, "of": 2}}),
        json!({"progress": {"items": 2, "of": 2}}),
        json!({"written": {
            "files": written.collect::<Vec<Value>>(), "claims": 1, "inadequate": inadequate,
        }}),
    ];
    for (name, text) in files {
        let bytes: Vec<char> = text.chars().collect();
        for piece in bytes.chunks(500) {
            let text: String = piece.iter().collect();
            lines.push(json!({"piece": {"name": name, "text": text}}));
        }
    }
    let status = match inadequate {
        0 => 10,
        _ => 11,
    };
    lines.push(json!({"done": {"status": status, "judged_us": 900}}));
    lines
}

fn honest(put: &Put) -> Vec<Value> {
    said(&files(&report(put, "AD-SAYS", "ADEQUATE")), 0)
}

fn hear(put: &Put, lines: &[Value]) -> Result<Inspection, TalkError> {
    let mut conversation = Conversation::new(put.terms());
    for line in lines {
        conversation.hear(line.to_string().as_bytes())?;
    }
    conversation.end()
}

fn refused(put: &Put, lines: &[Value]) -> String {
    hear(put, lines).unwrap_err().to_string()
}

/// What is said of a report that was changed in one place.
fn refused_report(change: impl FnOnce(&mut Value)) -> String {
    let put = Put::new();
    let mut report = report(&put, "AD-SAYS", "ADEQUATE");
    change(&mut report);
    refused(&put, &said(&files(&report), 0))
}

#[test]
fn an_honest_inspector_is_heard_to_its_end() {
    let put = Put::new();
    let inspection = hear(&put, &honest(&put)).unwrap();
    assert_eq!((inspection.status, inspection.selfcheck_us), (10, 700));
    assert_eq!(inspection.judged_us, 900);
    assert_eq!(inspection.report.claims[0].id, "C-1");
    let names: Vec<&str> = inspection.files.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, FILES);
    let report = report(&put, "AD-NOT-THERE", "UNSUPPORTED");
    let inspection = hear(&put, &said(&files(&report), 1)).unwrap();
    assert_eq!(inspection.status, 11);
}

#[test]
fn it_is_told_when_it_is_the_launchers_turn_and_how_far_it_is() {
    let put = Put::new();
    let mut conversation = Conversation::new(put.terms());
    let lines = honest(&put);
    let heard: Vec<Heard> = lines
        .iter()
        .map(|line| conversation.hear(line.to_string().as_bytes()).unwrap())
        .collect();
    assert_eq!(
        heard[..4],
        [
            Heard::Hello,
            Heard::Progress(1),
            Heard::Progress(2),
            Heard::More
        ]
    );
    assert_eq!(heard.last(), Some(&Heard::Done));
}

#[test]
fn each_message_comes_in_its_turn() {
    let put = Put::new();
    let lines = honest(&put);
    let last = lines.len() - 1;
    // Left out.
    for index in 0..lines.len() {
        let mut without = lines.clone();
        without.remove(index);
        // Progress need not be told.
        let may_go = index == 1 || index == 2;
        assert_eq!(hear(&put, &without).is_ok(), may_go, "{index}");
    }
    // Twice.
    for (index, line) in lines.iter().enumerate() {
        let mut twice = lines.clone();
        twice.insert(index, line.clone());
        let may_go = index == 1 || index == 2;
        assert_eq!(hear(&put, &twice).is_ok(), may_go, "{index}");
    }
    // In another order.
    for index in 0..last {
        let mut swapped = lines.clone();
        swapped.swap(index, index + 1);
        if lines[index] != lines[index + 1] {
            assert!(hear(&put, &swapped).is_err(), "{index}");
        }
    }
    // Cut short, and gone on with.
    for index in 0..last {
        assert!(hear(&put, &lines[..=index]).is_err(), "{index}");
    }
    for line in &lines {
        let mut more = lines.clone();
        more.push(line.clone());
        assert!(hear(&put, &more).is_err(), "{line}");
    }
}

#[test]
fn nothing_else_is_a_message() {
    let put = Put::new();
    for line in [
        &b""[..],
        b"{",
        b"null",
        b"[]",
        b"\"hello\"",
        b"{}",
        b"{\"hello\":{}}",
        b"{\"go\":{}}",
        b"\xff",
        br#"{"hello":{"protocol":1,"version":"0.2.0","selfcheck_us":1,"more":1}}"#,
        br#"{"hello":{"protocol":1,"protocol":1,"version":"0.2.0","selfcheck_us":1}}"#,
        br#"{"hello":{"protocol":1,"version":"0.2.0","selfcheck_us":1.5}}"#,
        br#"{"hello":{"protocol":1,"version":"0.2.0","selfcheck_us":1},"done":{"status":10,"judged_us":1}}"#,
        br#"{"hello":{"protocol":1,"version":"0.2.0","selfcheck_us":1}}{}"#,
    ] {
        let heard = Conversation::new(put.terms()).hear(line);
        assert!(
            matches!(heard, Err(TalkError::Unreadable(_))),
            "{}: {heard:?}",
            String::from_utf8_lossy(line)
        );
    }
    let greeting = |protocol: u32, version: &str| {
        vec![json!({"hello": {"protocol": protocol, "version": version, "selfcheck_us": 1}})]
    };
    let version = env!("CARGO_PKG_VERSION");
    assert!(refused(&put, &greeting(2, version)).contains("speaks version 2"));
    assert!(refused(&put, &greeting(1, "\u{1b}[2J")).contains(r"of version \u{1b}[2J"));
}

#[test]
fn progress_goes_forward_and_no_further_than_the_packet() {
    let put = Put::new();
    let hello = honest(&put)[0].clone();
    let progress = |items: u64, of: u64| json!({"progress": {"items": items, "of": of}});
    for wrong in [
        vec![progress(0, 3)],
        vec![progress(3, 2)],
        vec![progress(2, 2), progress(1, 2)],
        // More often than there are items.
        vec![progress(1, 2); 4],
    ] {
        let lines: Vec<Value> = [vec![hello.clone()], wrong.clone()].concat();
        let said = refused(&put, &lines);
        assert!(said.contains("of a packet of 2"), "{wrong:?}: {said}");
    }
}

/// Edits what it says that it has written.
fn with_written(change: impl FnOnce(&mut Value)) -> String {
    let put = Put::new();
    let mut lines = honest(&put);
    change(&mut lines[3]["written"]);
    refused(&put, &lines)
}

#[test]
fn the_files_are_those_and_no_others() {
    let others = "other files than inspection.json";
    assert!(with_written(|w| w["files"][0]["name"] = json!("../x")).contains(others));
    assert!(with_written(|w| w["files"].as_array_mut().unwrap().swap(0, 1)).contains(others));
    assert!(with_written(|w| drop(w["files"].as_array_mut().unwrap().pop())).contains(others));
    let twice = |w: &mut Value| {
        let first = w["files"][0].clone();
        w["files"].as_array_mut().unwrap().push(first);
    };
    assert!(with_written(twice).contains(others));
    let digest = |text: &str| with_written(|w| w["files"][1]["sha256"] = json!(text));
    for text in ["", "x", &"G".repeat(64), &"A".repeat(64)] {
        assert!(digest(text).contains("the digest of"), "{text}");
    }
    let bytes = |bytes: u64| with_written(|w| w["files"][2]["bytes"] = json!(bytes));
    for much in [MOST + 1, u64::MAX] {
        assert!(bytes(much).contains("at most 1048576 are taken"), "{much}");
    }
    // Fewer bytes than come, more than come, and as many of another content.
    assert!(bytes(2).contains("not due"), "{}", bytes(2));
    assert!(bytes(4).contains("is not due"), "{}", bytes(4));
    assert!(digest(&"0".repeat(64)).contains("inspection.md is not the file"));
    assert!(with_written(|w| w["claims"] = json!(2)).contains("the number of claims"));
    assert!(with_written(|w| w["inadequate"] = json!(1)).contains("ends with 10, and 1 claims"));
}

#[test]
fn a_file_may_be_empty_and_no_piece_may() {
    let put = Put::new();
    let mut some = files(&report(&put, "AD-SAYS", "ADEQUATE"));
    some[1].1.clear();
    assert!(hear(&put, &said(&some, 0)).is_ok());
    let mut lines = honest(&put);
    lines.insert(4, json!({"piece": {"name": REPORT, "text": ""}}));
    assert!(refused(&put, &lines).contains("is not due, or too long"));
    let long = "x".repeat(MAX_PIECE + 1);
    lines[4] = json!({"piece": {"name": REPORT, "text": long}});
    assert!(refused(&put, &lines).contains("is not due, or too long"));
    lines[4] = json!({"piece": {"name": "\u{1b}[31m", "text": "x"}});
    assert!(refused(&put, &lines).contains(r"a piece of \u{1b}[31m"));
}

#[test]
fn a_report_is_about_this_packet_and_follows_from_itself() {
    type Change = fn(&mut Value);
    let changes: [(Change, &str); 17] = [
        (|r| r["schema"] = json!("tki-attest/evidence/v1"), "schema"),
        (|r| r["is_not"] = json!([]), "is_not"),
        (
            |r| r["packet"]["sha256"] = json!("00".repeat(32)),
            "packet: sha256",
        ),
        (|r| r["packet"]["id"] = json!("other"), "packet"),
        (
            |r| r["packet"]["as_of"] = json!("2027-01-01T00:00:00Z"),
            "packet",
        ),
        (|r| r["packet"]["items"] = json!(3), "packet: items"),
        (|r| r["packet"]["claims"] = json!(0), "packet: claims"),
        (|r| r["rules_sha256"] = json!("00"), "rules_sha256"),
        (|r| r["statuses_sha256"] = json!("00"), "statuses_sha256"),
        (|r| r["brought"] = json!([]), "brought"),
        (
            |r| r["brought"][0]["sha256"] = json!("00".repeat(32)),
            "brought",
        ),
        (|r| r["claims"] = json!([]), "claims"),
        (|r| r["claims"][0]["text"] = json!("It says two."), "claims"),
        (|r| r["claims"][0]["rule"] = json!("AD-FALSE"), "claims"),
        (|r| r["items"].as_array_mut().unwrap().swap(0, 1), "items"),
        (|r| r["totals"] = json!([]), "totals"),
        (|r| r["totals"][0]["claims"] = json!(2), "totals"),
    ];
    for (change, what) in changes {
        let said = refused_report(change);
        let wanted = format!("{REPORT}: {what} is not what it must be");
        assert_eq!(said, wanted);
    }
    // Words that a report does not have.
    for change in [
        (|r: &mut Value| r["verdict"] = json!("PASS")) as Change,
        |r| r["triage"] = json!("ACCEPTED"),
        |r| r["claims"][0]["verdict"] = json!("PASS"),
        |r| r["actions"][0]["action"] = json!("EXECUTE"),
        |r| drop(r.as_object_mut().unwrap().remove("not_done")),
    ] {
        let said = refused_report(change);
        assert!(said.starts_with("inspection.json: "), "{said}");
    }
}

#[test]
fn the_number_of_inadequate_claims_is_counted_again() {
    let put = Put::new();
    let report = report(&put, "AD-NOT-THERE", "UNSUPPORTED");
    let said = refused(&put, &said(&files(&report), 0));
    assert!(said.contains("the number of claims"), "{said}");
}

/// Replaces one of the files.
fn refused_file(name: &str, text: &str) -> String {
    let put = Put::new();
    let mut some = files(&report(&put, "AD-SAYS", "ADEQUATE"));
    let file = some.iter_mut().find(|(own, _)| *own == name).unwrap();
    file.1 = text.to_owned();
    refused(&put, &said(&some, 0))
}

#[test]
fn no_file_acts_on_a_terminal_and_each_is_what_it_is_called() {
    for text in ["\u{1b}[2J", "a\u{202e}b", "a\rb", "a\tb"] {
        let said = refused_file(MARKDOWN, text);
        assert_eq!(said, "inspection.md: it is not plain text");
    }
    for text in ["", "{", "{\"a\":1,\"a\":2}", "1.5"] {
        let said = refused_file(BINDING, text);
        assert!(said.starts_with("binding.json: line 1"), "{text}: {said}");
    }
    let put = Put::new();
    let whole = files(&report(&put, "AD-SAYS", "ADEQUATE"))[3].1.clone();
    let first = whole.lines().next().unwrap();
    for text in [
        first.to_owned(),
        format!("{whole}{first}\n"),
        format!("{first}\n{first}\n"),
    ] {
        let said = refused_file(ACTIONS, &text);
        assert_eq!(said, "actions.ndjson: it is not the log of the report");
    }
    assert!(refused_file(ACTIONS, "x\n").starts_with("actions.ndjson: "));
    // A key that one reader takes and another does not.
    let twice = format!("{:#}", report(&put, "AD-SAYS", "ADEQUATE"));
    let twice = twice.replacen('{', "{\"schema\": \"tki-attest/evidence/v1\",", 1);
    assert!(refused_file(REPORT, &twice).contains("duplicate field"));
}

#[test]
fn a_refusal_has_a_code_and_is_printable() {
    let put = Put::new();
    let hello = honest(&put)[0].clone();
    let refusal = |status: i32, code: &str| {
        let refused = json!({"status": status, "code": code, "reason": "items[3]: \u{1b}[31m"});
        hear(&put, &[hello.clone(), json!({"refused": refused})]).unwrap_err()
    };
    let TalkError::Refused { packet, code, .. } = refusal(2, "packet.field") else {
        panic!();
    };
    assert!(packet && code == "packet.field");
    let said = refusal(2, "packet.field").to_string();
    assert!(said.contains(r"items[3]: \u{1b}[31m"), "{said}");
    assert!(matches!(
        refusal(3, "inspector.gone"),
        TalkError::Refused { packet: false, .. }
    ));
    for (status, code) in [(0, "a"), (1, "a"), (10, "a"), (2, ""), (2, "A"), (2, "a b")] {
        assert!(
            matches!(refusal(status, code), TalkError::Undue("refused")),
            "{status} {code}"
        );
    }
    // Behind its end it refuses nothing any more.
    let mut lines = honest(&put);
    lines.push(json!({"refused": {"status": 2, "code": "packet.field", "reason": "x"}}));
    assert!(refused(&put, &lines).contains("`refused` is not due"));
}
