//! The self-audits: this report held against Article 13 (where facts come from) and Article 14
//! (what facts show), line by line as the original documents have them. They look at what the
//! classifier came to and not at how, so that a mistake there shows here.

use crate::bundle::Judged;
use crate::packet::{Authority, Claim, ClaimKind, DocumentType, Expect, Packet};
use crate::provenance::Standing;
use crate::report::{AuditLine, Blocker, ClaimResult, PlaceResult};
use crate::status::Statuses;
use crate::words::{Adequacy, Held};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use tki_evidence::verification::Decision;

/// Everything that the audits look at.
#[derive(Clone, Copy, Debug)]
pub struct Audited<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// What is known of each item's origin.
    pub standings: &'a [Standing],
    /// What bundles came to, by their item.
    pub bundles: &'a BTreeMap<usize, Judged>,
    /// What claims came to.
    pub results: &'a [ClaimResult],
    /// What stands in their way.
    pub blockers: &'a [Blocker],
}

/// The lines of Article 13.
pub const ARTICLE_13: [&str; 6] = [
    "the knowledge base was read first, local files last",
    "native and governed evidence decides what the world is like",
    "no local file stands in for an authority that the packet has",
    "no local-first authority",
    "what was generated is evidence and no authority",
    "no shadow source of truth",
];

/// The lines of Article 14.
pub const ARTICLE_14: [&str; 7] = [
    "nothing holds by prose alone",
    "every claim that is adequate has its evidence",
    "no fake green: a verdict is that of the rule that decided it",
    "no authorization without its evidence",
    "no hidden mutation",
    "failures are told honestly: each inadequate claim has its blocker",
    "venues are told honestly",
];

/// A claim that is adequate, with the places that hold.
struct Good<'a> {
    claim: &'a Claim,
    result: &'a ClaimResult,
}

impl<'a> Good<'a> {
    fn holding(&self) -> impl Iterator<Item = &'a PlaceResult> + use<'a> {
        self.result.places.iter().filter(|place| place.holds)
    }
}

impl<'a> Audited<'a> {
    fn adequate(&self) -> Vec<Good<'a>> {
        let pairs = self.packet.claims.iter().zip(self.results);
        let good = pairs.filter(|(_, result)| result.verdict == Adequacy::Adequate);
        good.map(|(claim, result)| Good { claim, result }).collect()
    }

    fn index(&self, id: &str) -> Option<usize> {
        self.packet.items.iter().position(|item| item.id == id)
    }

    fn standing(&self, place: &PlaceResult) -> Option<&'a Standing> {
        self.standings.get(self.index(&place.place.item)?)
    }

    fn is_bundle(&self, place: &PlaceResult) -> bool {
        let index = self.index(&place.place.item);
        index.is_some_and(|index| self.bundles.contains_key(&index))
    }

    fn is_accepted(&self, place: &PlaceResult) -> bool {
        let index = self.index(&place.place.item);
        let judged = index.and_then(|index| self.bundles.get(&index));
        judged.is_some_and(|judged| judged.decision == Some(Decision::B4PrimeAccepted))
    }

    fn is_decision(&self, place: &PlaceResult) -> bool {
        let item = self.packet.item(&place.place.item);
        item.is_some_and(|item| {
            item.document_type == DocumentType::Decision && item.source.derived_from.is_empty()
        })
    }

    /// No adequate claim is like that.
    fn none(&self, what: &str, is_bad: impl Fn(&Good) -> bool) -> (Held, String) {
        let good = self.adequate();
        if good.is_empty() {
            return (Held::NothingToHold, "no claim is adequate".to_owned());
        }
        let bad: Vec<&str> = good
            .iter()
            .filter(|good| is_bad(good))
            .map(|good| good.claim.id.as_str())
            .collect();
        match bad.is_empty() {
            true => (
                Held::Held,
                format!("of {} adequate claims none {what}", good.len()),
            ),
            false => (Held::NotHeld, format!("{what}: {}", bad.join(", "))),
        }
    }

    /// This report held against Article 13.
    pub fn article_13(&self) -> Vec<AuditLine> {
        let refused = |code: &str| {
            let known = self.standings.iter().filter(|standing| standing.has(code));
            known.count()
        };
        let rests_on = |good: &Good, code: &str| {
            good.holding()
                .any(|place| self.standing(place).is_some_and(|own| own.has(code)))
        };
        let is_local = |place: &PlaceResult| {
            let item = self.packet.item(&place.place.item);
            let generated = item.is_some_and(|item| !item.source.derived_from.is_empty());
            self.standing(place).is_some_and(|standing| {
                standing.authority == Authority::Local && standing.signer.is_none() && !generated
            }) && !self.is_bundle(place)
        };
        let is = |good: &Good| good.claim.kind == ClaimKind::Is;
        let local_only = |good: &Good| is(good) && good.holding().all(is_local);
        let lines = [
            self.none(
                "rests on a local file where an authority's is there",
                |good| rests_on(good, "PV-LOCAL"),
            ),
            self.none("about the world rests on local files alone", local_only),
            match refused("PV-LOCAL") {
                0 => (
                    Held::NothingToHold,
                    "no item stands beside its authority's".to_owned(),
                ),
                count => (Held::Held, format!("{count} such items do not stand")),
            },
            self.none("takes a local file for an authority", local_only),
            self.generated(),
            self.none("rests on a second source of truth", |good| {
                rests_on(good, "PV-SHADOW")
            }),
        ];
        audit(ARTICLE_13, lines)
    }

    fn generated(&self) -> (Held, String) {
        let items = self.packet.items.iter().zip(self.standings);
        let made = items.filter(|(item, _)| !item.source.derived_from.is_empty());
        let (mut count, mut bad) = (0, Vec::new());
        for (item, standing) in made {
            count += 1;
            if standing.authority != Authority::Local {
                bad.push(item.id.as_str());
            }
        }
        match (count, bad.is_empty()) {
            (0, _) => (Held::NothingToHold, "no item was generated".to_owned()),
            (count, true) => (
                Held::Held,
                format!("{count} generated items, none an authority"),
            ),
            (_, false) => (Held::NotHeld, format!("an authority: {}", bad.join(", "))),
        }
    }

    /// This report held against Article 14.
    pub fn article_14(&self) -> Vec<AuditLine> {
        let word = |good: &Good| {
            let status = good.claim.status.as_ref();
            status.and_then(|status| Statuses::built_in().word(&status.word))
        };
        let is_fact = |place: &PlaceResult| place.place.expect.is_some() || self.is_decision(place);
        let other_venue = |good: &Good| {
            let venue = &good.claim.venue;
            let of = |place: &PlaceResult| {
                let index = self.index(&place.place.item)?;
                Some(match self.bundles.get(&index) {
                    Some(judged) => judged.result.venue.clone(),
                    None => self.packet.items[index].venue.clone(),
                })
            };
            let differs = |other: String| !other.is_empty() && other != *venue;
            !venue.is_empty() && good.holding().filter_map(of).any(differs)
        };
        let says_itself = self
            .results
            .iter()
            .all(|one| one.verdict == one.rule.text().verdict);
        let inadequate = self.results.len() - self.adequate().len();
        let lines = [
            self.none("about the world rests on quotes alone", |good| {
                good.claim.kind == ClaimKind::Is && !good.holding().any(is_fact)
            }),
            self.none("has no place that holds", |good| {
                good.holding().next().is_none()
            }),
            match says_itself {
                true => (
                    Held::Held,
                    format!("{} verdicts, each its rule's", self.results.len()),
                ),
                false => (Held::NotHeld, "a verdict is not its rule's".to_owned()),
            },
            self.none("lets something begin without an accepted bundle", |good| {
                let after = word(good).is_some_and(|word| word.after_b4);
                after && !good.holding().any(|place| self.is_accepted(place))
            }),
            self.none("hides a change", |good| {
                let compares =
                    |place: &PlaceResult| matches!(place.place.expect, Some(Expect::SameAs(_)));
                good.result
                    .places
                    .iter()
                    .any(|place| compares(place) && !place.holds)
            }),
            match self.blockers.len() == inadequate {
                true => (
                    Held::Held,
                    format!("{inadequate} inadequate claims, as many blockers"),
                ),
                false => (
                    Held::NotHeld,
                    "an inadequate claim has no blocker".to_owned(),
                ),
            },
            self.none("rests on another venue's evidence", other_venue),
        ];
        audit(ARTICLE_14, lines)
    }
}

fn audit<const N: usize>(names: [&str; N], lines: [(Held, String); N]) -> Vec<AuditLine> {
    let pairs = names.into_iter().zip(lines);
    let line = |(line, (held, shown_by)): (&str, (Held, String))| AuditLine {
        line: line.to_owned(),
        held,
        shown_by,
    };
    pairs.map(line).collect()
}
