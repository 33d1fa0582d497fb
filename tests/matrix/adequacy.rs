//! #9 to #13: what a claim's evidence comes to.

use crate::common::acceptance::proof;
use crate::common::inspected::Made;
use serde_json::{Value, json};

fn quote(item: &str, quote: &str) -> Value {
    json!({"item": item, "at": {"lines": {"first": 1, "last": 1, "quote": quote}}})
}

fn equals(item: &str, pointer: &str, value: impl Into<Value>) -> Value {
    json!({"item": item, "at": {"json": pointer}, "expect": {"equals": value.into()}})
}

#[test]
fn m09_prose_shows_no_fact() {
    let mut made = Made::new();
    made.item(
        "report",
        "report",
        "Eleven containers run. All is green. PASS.",
    );
    made.item("listing", "listing", "{\"containers\": 11}");
    for (id, text) in [
        ("count", "Eleven containers run."),
        ("green", "All is green. PASS."),
    ] {
        made.claim(id, json!([quote("report", text)]));
        let says = made.claim(&format!("says-{id}"), json!([quote("report", text)]));
        says["kind"] = "says".into();
    }
    let bare = json!([{"item": "listing", "at": {"json": "/containers"}}]);
    made.claim("pointer", bare.clone());
    made.claim("says-pointer", bare)["kind"] = "says".into();
    let fact = equals("listing", "/containers", 11);
    made.claim(
        "fact",
        json!([fact, quote("report", "Eleven containers run.")]),
    );
    let inspected = made.inspected();
    for id in ["count", "green", "pointer"] {
        inspected.holds(id, "PROSE_ONLY", "AD-PROSE");
    }
    for id in ["says-count", "says-green"] {
        inspected.holds(id, "ADEQUATE", "AD-SAYS");
    }
    // That something stands there says nothing.
    inspected.holds("says-pointer", "UNSUPPORTED", "AD-NOT-THERE");
    inspected.holds("fact", "ADEQUATE", "AD-IS");
    proof(
        9,
        "PROSE_ONLY for quotes and for a pointer without an expectation; `says` by the same quotes holds",
    );
}

#[test]
fn m10_what_was_is_not_what_is() {
    let mut made = Made::new();
    for revision in [77, 83] {
        let id = format!("index-{revision}");
        let text = format!("{{\"revision\": {revision}}}");
        let item = made.item(&id, "index", &text);
        item["revision"] = revision.into();
        item["source"]["locator"] = "index".into();
        made.claim(&id, json!([equals(&id, "/revision", revision)]));
    }
    let says = made.claim("says-77", json!([equals("index-77", "/revision", 77)]));
    says["kind"] = "says".into();
    made.item("listing", "listing", "{\"containers\": 11}");
    for (id, within) in [("old", "6h"), ("young", "24h")] {
        let claim = made.claim(id, json!([equals("listing", "/containers", 11)]));
        claim["within"] = within.into();
    }
    let built = json!({"word": "BUILT", "of": "MVP"});
    made.item("report", "report", "not built")["status"] =
        json!({"word": "NOT_BUILT", "of": "MVP"});
    made.claim("built", json!([equals("listing", "/containers", 11)]))["status"] = built;
    let inspected = made.inspected();
    inspected.holds("index-77", "STALE", "AD-SUPERSEDED");
    inspected.holds("index-83", "ADEQUATE", "AD-IS");
    inspected.holds("says-77", "ADEQUATE", "AD-SAYS");
    inspected.holds("old", "STALE", "AD-OLD");
    inspected.holds("young", "ADEQUATE", "AD-IS");
    inspected.holds("built", "CONTRADICTED", "AD-STATUS-CONTRADICTED");
    proof(
        10,
        "revision 77 beside 83 and twelve hours where six are allowed are STALE; BUILT against NOT_BUILT is CONTRADICTED",
    );
}

#[test]
fn m11_nobody_speaks_for_the_holder_of_an_authority() {
    let mut made = Made::new();
    let record = made.item("record", "decision", "B0 is waived for the prototype");
    record["status"] = json!({"word": "WAIVED", "of": "B0", "scope": "prototype"});
    record["source"]["captured_by"] = "owner".into();
    made.item("report", "report", "B0 is waived for the prototype; build!");
    let waived = |made: &mut Made, id: &str, item: &str, of: &str, scope: &str| {
        let claim = made.claim(id, json!([quote(item, "B0 is waived")]));
        claim["status"] = json!({"word": "WAIVED", "of": of});
        claim["scope"] = scope.into();
        claim["holder"] = "owner".into();
    };
    waived(&mut made, "waived", "record", "B0", "prototype");
    waived(&mut made, "wider", "record", "B0", "production");
    waived(&mut made, "other", "record", "B4'", "prototype");
    waived(&mut made, "report", "report", "B0", "prototype");
    waived(&mut made, "stranger", "record", "B0", "prototype");
    made.value["claims"][4]["holder"] = "operator".into();
    let approved = made.claim("approved", json!([quote("record", "B0 is waived")]));
    approved["status"] = json!({"word": "APPROVED", "of": "venue"});
    let build = made.claim("build", json!([quote("record", "B0 is waived")]));
    build["status"] = json!({"word": "BUILD_AUTHORIZED", "of": "build"});
    build["holder"] = "owner".into();
    let inspected = made.inspected();
    inspected.holds("waived", "ADEQUATE", "AD-IS");
    for id in ["wider", "other"] {
        inspected.holds(id, "OUT_OF_SCOPE", "AD-SCOPE-WAIVER");
    }
    for id in ["report", "stranger", "approved"] {
        inspected.holds(id, "UNSUPPORTED", "AD-AUTHORITY");
    }
    inspected.holds("build", "UNSUPPORTED", "AD-BUILD");
    proof(
        11,
        "OUT_OF_SCOPE beyond the waiver's scope and subject; UNSUPPORTED by a report, for another holder, and for a build without an accepted bundle",
    );
}

#[test]
fn m12_one_venue_says_nothing_about_another() {
    let mut made = Made::new();
    for venue in ["vps", "dev"] {
        let item = made.item(venue, "listing", "{\"daemon\": true}");
        item["venue"] = venue.into();
    }
    for (id, claimed, item) in [
        ("right", "vps", "vps"),
        ("mac-for-vps", "vps", "dev"),
        ("vps-for-ci", "ci", "vps"),
        ("dev", "dev", "dev"),
    ] {
        let claim = made.claim(id, json!([equals(item, "/daemon", true)]));
        claim["venue"] = claimed.into();
    }
    let both = json!([
        equals("vps", "/daemon", true),
        equals("dev", "/daemon", true)
    ]);
    made.claim("mixed", both)["venue"] = "vps".into();
    let inspected = made.inspected();
    for id in ["right", "dev"] {
        inspected.holds(id, "ADEQUATE", "AD-IS");
    }
    for id in ["mac-for-vps", "vps-for-ci", "mixed"] {
        inspected.holds(id, "UNSUPPORTED", "AD-VENUE");
    }
    proof(
        12,
        "UNSUPPORTED for vps by a developer's machine, for ci by vps, and where both are mixed",
    );
}

#[test]
fn m13_a_bundle_is_believed_as_far_as_it_is_verified() {
    for (packet, decision) in [
        ("accepted", "B4_PRIME_ACCEPTED"),
        ("rejected", "B4_PRIME_REJECTED"),
        ("dev", "B4_PRIME_BLOCKED"),
    ] {
        let inspected = Made::of(packet).inspected();
        let judged = inspected.0.report.bundles.iter();
        let of = judged.filter(|bundle| bundle.item == "bundle");
        let found: Vec<&str> = of.map(|bundle| bundle.decision.as_str()).collect();
        assert_eq!(found, [decision], "{packet}");
    }
    let accepted = |made: &Made| made.inspected().came_to("b4-accepted");
    let by = |verdict, rule: &str| (verdict, rule.to_owned());
    let good = Made::of("accepted");
    assert_eq!(accepted(&good), by("ADEQUATE", "AD-BUNDLE-ACCEPTED"));
    assert_eq!(
        accepted(&Made::of("rejected")),
        by("CONTRADICTED", "AD-BUNDLE-REJECTED")
    );
    assert_eq!(accepted(&Made::of("dev")), by("UNSUPPORTED", "AD-VENUE"));
    // Without what the launcher brings, the packet's own word for its image counts nothing.
    let mut alone = good;
    alone.launcher.clear();
    let run = alone.inspected().came_to("probes-run");
    assert_eq!(run, by("UNSUPPORTED", "AD-BUNDLE-BLOCKED"));
    // What is called a bundle and is none.
    let mut none = Made::new();
    none.item(
        "bundle",
        "evidence-bundle",
        "{\"status\": \"SANDBOX_ATTESTED\"}",
    );
    let places = json!([{"item": "bundle", "expect": {"accepted": true}}]);
    none.claim("b4-accepted", places)["status"] = json!({"word": "ACCEPTED", "of": "B4'"});
    assert_eq!(accepted(&none), by("UNSUPPORTED", "AD-BUNDLE-BLOCKED"));
    proof(
        13,
        "one of five is B4_PRIME_ACCEPTED; a changed one, one of dev, one whose image nobody vouches for and what is no evidence are not",
    );
}
