//! Which item stands, and why another does not.

use super::*;
use crate::packet::{Extent, Source};
use alloc::string::ToString;
use tki_evidence::stamp::sha256_hex;

fn item(id: &str, locator: &str, revision: u64, authority: Authority) -> Item {
    Item {
        id: id.to_owned(),
        path: id.to_owned(),
        sha256: sha256_hex(id.as_bytes()),
        size: id.len() as u64,
        media_type: "text/plain".to_owned(),
        document_type: DocumentType::Report,
        revision,
        status: None,
        extent: Extent::Complete,
        venue: String::new(),
        source: Source {
            authority,
            locator: locator.to_owned(),
            captured_at: "2026-06-10T10:00:00Z".to_owned(),
            captured_by: "somebody".to_owned(),
            derived_from: Vec::new(),
        },
        signature: String::new(),
    }
}

fn made_from(id: &str, parents: &[&str]) -> Item {
    let mut made = item(id, id, 0, Authority::Local);
    made.source.derived_from = parents.iter().map(ToString::to_string).collect();
    made
}

/// What each item has come to: whether it is usable, and its codes.
fn findings(items: Vec<Item>) -> Vec<(bool, Vec<String>)> {
    let packet = Packet {
        schema: crate::packet::SCHEMA.to_owned(),
        id: "p".to_owned(),
        as_of: "2026-06-10T12:00:00Z".to_owned(),
        items,
        claims: Vec::new(),
    };
    packet.check().unwrap();
    let read = |item: &Item| Read {
        sha256: sha256_hex(item.id.as_bytes()),
        bytes: item.id.len() as u64,
        ..Read::default()
    };
    let reads: Vec<Read> = packet
        .items
        .iter()
        .map(|item| match item.path.as_str() {
            "gone" => Read {
                problem: Some(crate::guard::FileError::Missing),
                ..Read::default()
            },
            _ => Read {
                sha256: item.sha256.clone(),
                ..read(item)
            },
        })
        .collect();
    let all = validate(&packet, &reads, None);
    let codes = |standing: &Standing| {
        let found = standing.findings.iter();
        found.map(|finding| finding.code.clone()).collect()
    };
    all.iter().map(|one| (one.usable, codes(one))).collect()
}

fn expect(items: Vec<Item>, wanted: &[(bool, &[&str])]) {
    let found = findings(items);
    let wanted: Vec<(bool, Vec<String>)> = wanted
        .iter()
        .map(|(usable, codes)| (*usable, codes.iter().map(ToString::to_string).collect()))
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn an_item_that_is_as_the_packet_says_stands() {
    expect(vec![item("a", "kb/a", 1, Authority::Kb)], &[(true, &[])]);
}

#[test]
fn other_bytes_or_none_do_not_stand_nor_what_was_made_from_them() {
    let mut longer = item("a", "kb/a", 1, Authority::Kb);
    longer.size = 7;
    let mut gone = item("b", "kb/b", 1, Authority::Kb);
    gone.path = "gone".to_owned();
    let made = made_from("c", &["a"]);
    let again = made_from("d", &["c"]);
    expect(
        vec![longer, gone, made, again],
        &[
            (false, &["PV-DIGEST"]),
            (false, &["PV-MISSING"]),
            (false, &["PV-CHAIN"]),
            (false, &["PV-CHAIN"]),
        ],
    );
}

#[test]
fn chains_end_in_the_packet_and_do_not_turn() {
    let items = vec![
        made_from("a", &["b"]),
        made_from("b", &["c"]),
        made_from("c", &["a"]),
        made_from("d", &["nobody"]),
        made_from("e", &["e"]),
        made_from("f", &["a"]),
    ];
    expect(
        items,
        &[
            (false, &["PV-CYCLE"]),
            (false, &["PV-CYCLE"]),
            (false, &["PV-CYCLE"]),
            (false, &["PV-CHAIN"]),
            (false, &["PV-CYCLE"]),
            (false, &["PV-CYCLE"]),
        ],
    );
}

#[test]
fn an_authority_comes_before_a_local_file_and_what_was_made_is_none() {
    let mut made = made_from("made", &["kb"]);
    made.source.authority = Authority::Kb;
    expect(
        vec![
            item("local", "x", 1, Authority::Local),
            item("kb", "x", 1, Authority::Kb),
            made,
        ],
        &[
            (false, &["PV-LOCAL"]),
            (true, &[]),
            (true, &["PV-GENERATED", "PV-PROSE"]),
        ],
    );
}

#[test]
fn there_is_one_truth_for_a_revision() {
    let pg = item("pg", "x", 3, Authority::Pg);
    let kb = item("kb", "x", 3, Authority::Kb);
    expect(vec![pg, kb], &[(false, &["PV-SHADOW"]), (true, &[])]);
    let one = item("one", "x", 3, Authority::Kb);
    let two = item("two", "x", 3, Authority::Kb);
    expect(
        vec![one, two],
        &[(false, &["PV-SHADOW"]), (false, &["PV-SHADOW"])],
    );
    let mut copy = item("copy", "x", 3, Authority::Kb);
    copy.sha256 = sha256_hex(b"one");
    copy.size = 4;
    let one = item("one", "x", 3, Authority::Kb);
    expect(vec![one, copy], &[(true, &[]), (true, &[])]);
}

#[test]
fn the_later_revision_is_what_the_source_says_now() {
    expect(
        vec![
            item("r77", "x", 77, Authority::Kb),
            item("r82", "x", 82, Authority::Kb),
        ],
        &[(true, &["PV-SUPERSEDED"]), (true, &[])],
    );
}

#[test]
fn times_are_in_order() {
    let mut late = item("late", "l", 0, Authority::Kb);
    late.source.captured_at = "2026-06-10T12:00:01Z".to_owned();
    let mut early = made_from("early", &["kb"]);
    early.source.captured_at = "2026-06-10T09:59:59Z".to_owned();
    expect(
        vec![late, item("kb", "k", 0, Authority::Kb), early],
        &[(false, &["PV-TIME"]), (true, &[]), (false, &["PV-TIME"])],
    );
}

#[test]
fn a_signature_that_nobody_listed_can_have_made_is_said() {
    let mut signed = item("a", "x", 0, Authority::Kb);
    signed.signature = "b".to_owned();
    let mut envelope = item("b", "y", 0, Authority::Local);
    envelope.document_type = DocumentType::Envelope;
    expect(
        vec![signed, envelope],
        &[(true, &["PV-SIGNATURE"]), (true, &[])],
    );
}

#[test]
fn what_was_made_from_prose_alone_is_said_to_be() {
    let mut listing = item("listing", "l", 0, Authority::Native);
    listing.document_type = DocumentType::Listing;
    expect(
        vec![
            item("report", "r", 0, Authority::Kb),
            listing,
            made_from("facts", &["report"]),
            made_from("more", &["facts"]),
            made_from("both", &["report", "listing"]),
        ],
        &[
            (true, &[]),
            (true, &[]),
            (true, &["PV-PROSE"]),
            (true, &["PV-PROSE"]),
            (true, &[]),
        ],
    );
}
