//! The non-global reporter: what was found becomes a report that speaks of single claims. It has
//! one next action and no word for the packet as a whole.

use crate::audit::Audited;
use crate::bundle::{Judged, Launcher};
use crate::packet::Packet;
use crate::provenance::Standing;
use crate::reader::Read;
use crate::record::Records;
use crate::report::{
    Action, Blocker, ClaimResult, IS_NOT, ItemResult, PacketFacts, Report, SCHEMA, Total, Triage,
};
use crate::rules;
use crate::status;
use crate::words::Adequacy;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use tki_evidence::stamp::sha256_hex;

/// What was found, for the report.
#[derive(Debug)]
pub struct Found<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// SHA-256 (hex) of its file.
    pub packet_sha256: String,
    /// What was read of each item.
    pub reads: &'a [Read],
    /// What is known of each item's origin.
    pub standings: &'a [Standing],
    /// What the launcher brought.
    pub launcher: &'a Launcher,
    /// What bundles came to.
    pub bundles: &'a BTreeMap<usize, Judged>,
    /// What stands on record.
    pub records: Records<'a>,
    /// What claims came to.
    pub claims: Vec<ClaimResult>,
    /// What was done.
    pub actions: Vec<Action>,
}

/// The report.
pub fn compose(found: Found) -> Report {
    let blockers = blockers(&found.claims);
    let audited = Audited {
        packet: found.packet,
        standings: found.standings,
        bundles: found.bundles,
        results: &found.claims,
        blockers: &blockers,
    };
    let (article_13, article_14) = (audited.article_13(), audited.article_14());
    let total = |verdict: Adequacy| Total {
        verdict,
        claims: found
            .claims
            .iter()
            .filter(|claim| claim.verdict == verdict)
            .count() as u64,
    };
    Report {
        schema: SCHEMA.to_owned(),
        triage: Triage::TriageWritten,
        is_not: IS_NOT.map(str::to_owned).into(),
        packet: PacketFacts {
            id: found.packet.id.clone(),
            sha256: found.packet_sha256,
            as_of: found.packet.as_of.clone(),
            items: found.packet.items.len() as u64,
            claims: found.packet.claims.len() as u64,
        },
        rules_sha256: rules::sha256(),
        statuses_sha256: sha256_hex(status::TEXT.as_bytes()),
        brought: found.launcher.brought.clone(),
        totals: Adequacy::ALL.map(total).into(),
        items: items(found.packet, found.reads, found.standings),
        contradictions: found.records.contradictions,
        bundles: found
            .bundles
            .values()
            .map(|judged| judged.result.clone())
            .collect(),
        article_13,
        article_14,
        not_done: not_done(found.packet),
        next_action: next_action(&found.claims, &blockers),
        blockers,
        claims: found.claims,
        actions: found.actions,
    }
}

fn items(packet: &Packet, reads: &[Read], standings: &[Standing]) -> Vec<ItemResult> {
    let all = packet.items.iter().zip(reads).zip(standings);
    all.map(|((item, read), standing)| ItemResult {
        id: item.id.clone(),
        path: item.path.clone(),
        sha256: read.sha256.clone(),
        bytes: read.bytes,
        usable: standing.usable,
        origin: match &standing.signer {
            Some(signer) => format!("signed by {signer}"),
            None => "declared".to_owned(),
        },
        findings: standing.findings.clone(),
    })
    .collect()
}

fn blockers(claims: &[ClaimResult]) -> Vec<Blocker> {
    let inadequate = claims
        .iter()
        .filter(|claim| claim.verdict != Adequacy::Adequate);
    inadequate
        .map(|claim| {
            let rule = claim.rule.text();
            Blocker {
                id: format!("BLK-{}", claim.id),
                class: rule.class.clone(),
                owner: rule.owner.clone(),
                claim: claim.id.clone(),
                action: rule.next.clone(),
            }
        })
        .collect()
}

/// Classes of blockers, from the one that weighs most: without a sandbox that holds, and where
/// something was changed in secret, nothing else is worth doing.
const WEIGHT: [&str; 9] = [
    "ATTESTATION",
    "MUTATION",
    "CONTRADICTION",
    "AUTHORITY",
    "VENUE",
    "PROVENANCE",
    "OVERCLAIM",
    "EVIDENCE",
    "DEFERRED",
];

/// What the blocker that weighs most asks for; of several of one class, the one whose rule comes
/// first.
fn next_action(claims: &[ClaimResult], blockers: &[Blocker]) -> String {
    let weight = |claim: &&ClaimResult| {
        let class = claim.rule.text().class.as_str();
        let place = WEIGHT.iter().position(|known| *known == class);
        (place.unwrap_or(WEIGHT.len()), claim.rule)
    };
    let inadequate = claims
        .iter()
        .filter(|claim| claim.verdict != Adequacy::Adequate);
    let first = inadequate.min_by_key(weight);
    let blocker = first.and_then(|claim| blockers.iter().find(|one| one.claim == claim.id));
    match blocker {
        Some(blocker) => format!("{}: {} ({})", blocker.owner, blocker.action, blocker.id),
        None => "owner: read the claims and decide elsewhere what follows from them".to_owned(),
    }
}

/// What the report does not rest on.
fn not_done(packet: &Packet) -> Vec<String> {
    let places = packet.claims.iter().flat_map(|claim| &claim.evidence);
    let used: BTreeSet<&str> = places.map(|place| place.item.as_str()).collect();
    let unused = packet
        .items
        .iter()
        .filter(|item| !used.contains(item.id.as_str()));
    let mut lines = Vec::from([
        "Nothing was looked up anywhere: what is not in the packet was not seen.".to_owned(),
        format!(
            "No clock was asked: everything is judged at {}, as the packet says.",
            packet.as_of
        ),
        "Authorities, times and holders are the packer's words, except where an item is signed."
            .to_owned(),
        "Prose was not understood: a quote was compared with the text, to the letter.".to_owned(),
        "Nothing was changed, started or allowed.".to_owned(),
    ]);
    match unused.count() {
        0 => {}
        count => lines.push(format!(
            "{count} items were hashed and not looked into, because no claim rests on them."
        )),
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_weight() {
        for rule in rules::all().iter().filter(|rule| rule.class != "NONE") {
            assert!(WEIGHT.contains(&rule.class.as_str()), "{:?}", rule.id);
        }
    }
}
