//! The packets of `tests/packets`: what each of their claims must come to and why is argued in
//! `expected.toml`, by what the documents say.

use crate::common::inspected::{Made, folder};
use crate::common::{run, tool};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use tki_inspector::rules;
use tki_inspector::words::Adequacy;

/// All packets.
const NAMES: [&str; 4] = ["fix7", "accepted", "rejected", "dev"];

/// `expected.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    claim: Vec<Argued>,
}

/// What a claim must come to.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Argued {
    id: String,
    verdict: String,
    rule: String,
    because: String,
}

fn expected(name: &str) -> Vec<Argued> {
    let text = fs::read_to_string(folder(name).join("expected.toml")).unwrap();
    let expected: Expected = toml::from_str(&text).unwrap();
    expected.claim
}

fn every_verdict_is_as_argued(name: &str) {
    let inspected = Made::of(name).inspected();
    let expected = expected(name);
    let ids = |all: Vec<&String>| all.into_iter().cloned().collect::<Vec<String>>();
    let claimed = ids(inspected
        .0
        .report
        .claims
        .iter()
        .map(|claim| &claim.id)
        .collect());
    assert_eq!(
        ids(expected.iter().map(|one| &one.id).collect()),
        claimed,
        "{name}"
    );
    let mut wrong = Vec::new();
    for one in &expected {
        assert!(one.because.len() > 30, "{name}: {} has no argument", one.id);
        let (verdict, rule) = inspected.came_to(&one.id);
        if (verdict, rule.as_str()) != (one.verdict.as_str(), one.rule.as_str()) {
            let reason = &inspected.claim(&one.id).reason;
            wrong.push(format!(
                "{}: {verdict} by {rule} ({reason}), and should be {} by {}: {}",
                one.id, one.verdict, one.rule, one.because
            ));
        }
    }
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
}

#[test]
fn every_claim_of_fix7_comes_to_what_the_documents_argue() {
    every_verdict_is_as_argued("fix7");
    assert!(expected("fix7").len() >= 40);
}

#[test]
fn a_claim_on_an_accepted_bundle_holds_as_far_as_it_goes() {
    every_verdict_is_as_argued("accepted");
}

#[test]
fn no_claim_holds_on_a_rejected_bundle_but_that_it_is_rejected() {
    every_verdict_is_as_argued("rejected");
}

#[test]
fn a_bundle_of_a_developers_machine_shows_nothing_about_another() {
    every_verdict_is_as_argued("dev");
}

/// All seven verdicts several times, and every rule but the one that `pack` keeps from being
/// needed.
#[test]
fn the_packets_show_every_verdict_and_every_rule() {
    let all: Vec<Argued> = NAMES.iter().flat_map(|name| expected(name)).collect();
    let mut verdicts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in &all {
        *verdicts.entry(&one.verdict).or_default() += 1;
    }
    for verdict in Adequacy::ALL {
        let count = verdicts.get(verdict.name()).copied().unwrap_or_default();
        assert!(count >= 5, "{}: {count}", verdict.name());
    }
    let shown: BTreeSet<&str> = all.iter().map(|one| one.rule.as_str()).collect();
    let rules: Vec<String> = rules::all().iter().map(|text| text.id.name()).collect();
    let missing: Vec<&str> = rules
        .iter()
        .map(String::as_str)
        .filter(|rule| !shown.contains(rule))
        .collect();
    assert_eq!(missing, ["AD-NOT-THERE"]);
}

/// `packet.json` is what `pack` makes of `claims.toml`, to the byte, and stands its own check.
#[test]
fn packing_again_gives_the_same_packet() {
    for name in NAMES {
        let work = tempfile::tempdir().unwrap();
        let out = work.path().join("packed");
        let mut pack = tool();
        pack.arg("pack").arg(folder(name)).arg("--out").arg(&out);
        run(&mut pack).succeeded();
        let packed = fs::read(out.join("packet.json")).unwrap();
        let kept = fs::read(folder(name).join("packet.json")).unwrap();
        assert!(packed == kept, "{name}: pack it again");
        run(tool().args(["pack", "--check"]).arg(&out)).succeeded();
    }
}
