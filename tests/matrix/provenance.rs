//! #4 to #8: where items are from.

use crate::common::acceptance::proof;
use crate::common::inspected::{AS_OF, Made};
use serde_json::json;

/// A claim that its item says `{"a": 1}`.
fn resting_on(id: &str) -> serde_json::Value {
    json!([{"item": id, "at": {"json": "/a"}, "expect": {"equals": 1}}])
}

fn fact(made: &mut Made, id: &str) {
    made.item(id, "listing", "{\"a\": 1}");
    made.claim(id, resting_on(id));
}

#[test]
fn m04_what_was_hashed_is_what_is_judged() {
    let mut made = Made::new();
    for id in ["same", "byte", "short", "long", "gone"] {
        fact(&mut made, id);
    }
    made.files
        .insert("items/byte".into(), b"{\"a\": 2}".to_vec());
    made.files
        .insert("items/short".into(), b"{\"a\": 1".to_vec());
    made.files
        .insert("items/long".into(), b"{\"a\": 1} ".to_vec());
    made.files.remove("items/gone");
    let inspected = made.inspected();
    inspected.holds("same", "ADEQUATE", "AD-IS");
    // Of a longer one no more is read than the packet says that there is.
    for (id, code) in [
        ("byte", "PV-DIGEST"),
        ("short", "PV-DIGEST"),
        ("long", "PV-DIGEST"),
        ("gone", "PV-MISSING"),
    ] {
        assert_eq!(inspected.standing(id), (false, vec![code]), "{id}");
        inspected.holds(id, "UNSUPPORTED", "AD-UNUSABLE");
    }
    proof(
        4,
        "PV-DIGEST for another byte, a shorter item and a longer one; PV-MISSING for none",
    );
}

#[test]
fn m05_origins_end() {
    let mut made = Made::new();
    for (id, from) in [
        ("itself", vec!["itself"]),
        ("one", vec!["two"]),
        ("two", vec!["three"]),
        ("three", vec!["one"]),
        ("orphan", vec!["nobody"]),
        ("grandchild", vec!["orphan"]),
        ("root", vec![]),
        ("child", vec!["root"]),
    ] {
        fact(&mut made, id);
        let source = &mut made.edit(id)["source"];
        source["derived_from"] = json!(from);
        source["authority"] = "LOCAL".into();
    }
    let inspected = made.inspected();
    for id in ["itself", "one", "two", "three"] {
        assert_eq!(inspected.standing(id), (false, vec!["PV-CYCLE"]), "{id}");
        inspected.holds(id, "UNSUPPORTED", "AD-UNUSABLE");
    }
    for id in ["orphan", "grandchild"] {
        assert_eq!(inspected.standing(id), (false, vec!["PV-CHAIN"]), "{id}");
        inspected.holds(id, "UNSUPPORTED", "AD-UNUSABLE");
    }
    inspected.holds("child", "ADEQUATE", "AD-IS");
    proof(
        5,
        "PV-CYCLE in circles of one and of three, PV-CHAIN for what is not there and what is made of it",
    );
}

#[test]
fn m06_no_second_source_of_truth() {
    let mut made = Made::new();
    for (id, text, authority, locator) in [
        ("high", "{\"a\": 1}", "KB", "first"),
        ("low", "{\"a\": 1, \"b\": 2}", "NATIVE", "first"),
        ("left", "{\"a\": 1}", "PG", "second"),
        ("right", "{\"a\": 1, \"b\": 2}", "PG", "second"),
        ("copy", "{\"a\": 1}", "KB", "third"),
        ("copy-of-it", "{\"a\": 1}", "KB", "third"),
    ] {
        let source = &mut made.item(id, "listing", text)["source"];
        source["authority"] = authority.into();
        source["locator"] = locator.into();
        made.claim(id, resting_on(id));
    }
    let inspected = made.inspected();
    assert_eq!(inspected.standing("high"), (true, vec![]));
    for id in ["low", "left", "right"] {
        assert_eq!(inspected.standing(id), (false, vec!["PV-SHADOW"]), "{id}");
        inspected.holds(id, "UNSUPPORTED", "AD-UNUSABLE");
    }
    for id in ["high", "copy", "copy-of-it"] {
        inspected.holds(id, "ADEQUATE", "AD-IS");
    }
    proof(
        6,
        "PV-SHADOW for the lower authority and for both of equal ones; the same bytes twice are no second source",
    );
}

#[test]
fn m07_local_comes_last() {
    let mut made = Made::new();
    for (id, authority, locator) in [
        ("kb", "KB", "index"),
        ("local", "LOCAL", "index"),
        ("alone", "LOCAL", "notes"),
    ] {
        let source = &mut made.item(id, "listing", "{\"a\": 1}")["source"];
        source["authority"] = authority.into();
        source["locator"] = locator.into();
        made.claim(id, resting_on(id));
    }
    // Not even a later revision helps.
    made.edit("local")["revision"] = 9.into();
    let inspected = made.inspected();
    assert_eq!(inspected.standing("local"), (false, vec!["PV-LOCAL"]));
    inspected.holds("local", "UNSUPPORTED", "AD-UNUSABLE");
    inspected.holds("kb", "ADEQUATE", "AD-IS");
    inspected.holds("alone", "PARTIAL", "AD-LOCAL");
    proof(
        7,
        "PV-LOCAL beside the knowledge base's item; on local files alone PARTIAL by AD-LOCAL",
    );
}

#[test]
fn m08_what_is_generated_is_no_authority() {
    let mut made = Made::new();
    let blocked = json!({"word": "BLOCKED", "of": "B4'"});
    let accepted = json!({"word": "ACCEPTED", "of": "B4'"});
    made.item("original", "report", "B4' is blocked")["status"] = blocked;
    let generated = made.item("generated", "report", "{\"a\": 1}");
    generated["status"] = accepted.clone();
    generated["source"]["authority"] = "KB".into();
    generated["source"]["captured_at"] = AS_OF.into();
    generated["source"]["derived_from"] = json!(["original"]);
    made.claim("accepted", resting_on("generated"))["status"] = accepted;
    let inspected = made.inspected();
    assert_eq!(
        inspected.standing("generated"),
        (true, vec!["PV-GENERATED", "PV-PROSE"])
    );
    inspected.holds("accepted", "CONTRADICTED", "AD-STATUS-CONTRADICTED");
    let contradictions = &inspected.0.report.contradictions;
    assert_eq!(contradictions.len(), 1);
    assert_eq!(contradictions[0].stands, "original");
    proof(
        8,
        "PV-GENERATED; though it declares the knowledge base and is younger, its original stands",
    );
}
