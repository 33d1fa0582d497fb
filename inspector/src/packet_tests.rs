//! What is a packet, and what is refused with its place.

use super::*;
use alloc::string::ToString;
use serde_json::{Value, json};

fn good() -> Value {
    json!({
        "schema": SCHEMA,
        "id": "p",
        "as_of": "2026-06-10T12:00:00Z",
        "items": [{
            "id": "index",
            "path": "docs/index.md",
            "sha256": "0".repeat(64),
            "size": 3,
            "media_type": "text/markdown",
            "document_type": "index",
            "revision": 82,
            "status": { "word": "SPECIFIED", "of": "profile" },
            "extent": "complete",
            "source": {
                "authority": "KB",
                "locator": "knowledge/index.md",
                "captured_at": "2026-06-10T11:00:00Z",
                "captured_by": "operator"
            }
        }],
        "claims": [{
            "id": "C-01",
            "text": "the index says so",
            "kind": "says",
            "scope": "packet",
            "evidence": [{
                "item": "index",
                "at": { "lines": { "first": 1, "last": 1, "quote": "so" } }
            }]
        }]
    })
}

fn parse(value: &Value) -> Result<Packet, String> {
    Packet::parse(value.to_string().as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn a_packet_is_read_and_written_as_it_was() {
    let packet = parse(&good()).unwrap();
    assert_eq!(serde_json::to_value(&packet).unwrap(), good());
    assert_eq!(packet.as_of(), 1_781_092_800);
    assert!(packet.item("index").is_some() && packet.item("x").is_none());
}

#[test]
fn every_field_that_is_wrong_is_named_with_its_place() {
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 24] = [
        ("schema", |p| p["schema"] = json!("tki-attest/packet/v2")),
        ("id is", |p| p["id"] = json!("../x")),
        ("as_of", |p| p["as_of"] = json!("yesterday")),
        ("items[0].path", |p| {
            p["items"][0]["path"] = json!("../secret")
        }),
        ("items[0].path", |p| {
            p["items"][0]["path"] = json!("packet.json")
        }),
        ("items[0].sha256", |p| p["items"][0]["sha256"] = json!("AB")),
        ("items[0].media_type", |p| {
            p["items"][0]["media_type"] = json!("md")
        }),
        ("items[0].venue", |p| p["items"][0]["venue"] = json!("mac")),
        ("items[0].status.word", |p| {
            p["items"][0]["status"]["word"] = json!("GREEN")
        }),
        ("items[0].source.locator", |p| {
            p["items"][0]["source"]["locator"] = json!("a\u{1b}[2J")
        }),
        ("items[0].source.captured_at", |p| {
            p["items"][0]["source"]["captured_at"] = json!("2026-06-31T00:00:00Z");
        }),
        ("items[0].signature", |p| {
            p["items"][0]["signature"] = json!("nobody")
        }),
        ("items[1].id", |p| {
            let item = p["items"][0].clone();
            p["items"].as_array_mut().unwrap().push(item);
        }),
        ("claims[0].id", |p| p["claims"][0]["id"] = json!("")),
        ("claims[0].text", |p| p["claims"][0]["text"] = json!("")),
        ("claims[0].scope", |p| {
            p["claims"][0]["scope"] = json!("a b")
        }),
        ("claims[0].within", |p| {
            p["claims"][0]["within"] = json!("soon")
        }),
        ("claims[0].status.scope", |p| {
            p["claims"][0]["status"] = json!({ "word": "WAIVED", "of": "B0", "scope": "x" });
        }),
        ("claims[0].evidence[0].item", |p| {
            p["claims"][0]["evidence"][0]["item"] = json!("x")
        }),
        ("claims[0].evidence[0].at.lines", |p| {
            p["claims"][0]["evidence"][0]["at"]["lines"]["first"] = json!(0);
        }),
        ("claims[0].evidence[0].expect", |p| {
            p["claims"][0]["evidence"][0]["expect"] = json!({ "equals": 1 });
        }),
        ("unknown field", |p| p["verdict"] = json!("ACCEPTED")),
        ("unknown variant", |p| {
            p["claims"][0]["kind"] = json!("feels")
        }),
        ("claims[1].id", |p| {
            let claim = p["claims"][0].clone();
            p["claims"].as_array_mut().unwrap().push(claim);
        }),
    ];
    for (place, change) in changes {
        let mut packet = good();
        change(&mut packet);
        let error = parse(&packet).unwrap_err();
        assert!(error.contains(place), "{place}: {error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
}

#[test]
fn too_much_of_anything_is_refused() {
    let mut packet = parse(&good()).unwrap();
    let item = packet.items[0].clone();
    packet.items = (0..=MAX_ITEMS)
        .map(|number| Item {
            id: format!("i{number}"),
            path: format!("f{number}"),
            ..item.clone()
        })
        .collect();
    assert!(
        packet
            .check()
            .unwrap_err()
            .to_string()
            .contains("items has 4097 entries")
    );
    let error = Packet::parse(&vec![b' '; MAX_BYTES + 1]).unwrap_err();
    assert_eq!(error.code(), "packet.too-large");
    let deep = "[".repeat(100_000);
    assert!(Packet::parse(deep.as_bytes()).is_err());
}

#[test]
fn an_expectation_goes_with_its_place() {
    let place = |at: Value, expect: Value| {
        let mut packet = good();
        packet["claims"][0]["evidence"][0] = json!({ "item": "index", "expect": expect });
        if !at.is_null() {
            packet["claims"][0]["evidence"][0]["at"] = at;
        }
        parse(&packet).is_ok()
    };
    let json = json!({ "json": "/a/0" });
    for expect in [
        json!({ "equals": "x" }),
        json!({ "equals": 7 }),
        json!({ "equals": true }),
        json!({ "count": 11 }),
        json!({ "at_least": 3 }),
        json!({ "absent": "x" }),
        json!({ "same_as": { "item": "index", "json": "/b" } }),
    ] {
        assert!(place(json.clone(), expect.clone()), "{expect}");
        assert!(!place(Value::Null, expect.clone()), "{expect}");
        assert!(!place(json!({ "step": 1 }), expect.clone()), "{expect}");
    }
    assert!(place(json!({ "step": 1 }), json!({ "exit": 0 })));
    assert!(place(Value::Null, json!({ "accepted": true })));
    assert!(!place(json!({ "json": "a" }), json!({ "equals": 1 })));
    assert!(!place(
        json!({ "json": "/a" }),
        json!({ "same_as": { "item": "x", "json": "" } })
    ));
}
