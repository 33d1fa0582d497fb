//! The contradiction check: documents that assert different statuses of one subject, and which
//! of them stands.

use crate::packet::{Item, Packet};
use crate::provenance::Standing;
use crate::report::{Contradiction, Said};
use crate::status::{Rung, Statuses, Word};
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use tki_evidence::time::parse_rfc3339;

/// What stands on record about a subject.
#[derive(Clone, Copy, Debug)]
pub struct OnRecord<'a> {
    /// The item.
    pub item: &'a Item,
    /// The word that it asserts.
    pub word: &'static Word,
}

/// A document that asserts a status: where it is from, and the word.
type Document<'a, 's> = (&'a Item, &'s Standing, &'static Word);

/// Of each subject, what stands on record.
#[derive(Debug, Default)]
pub struct Records<'a> {
    by_subject: BTreeMap<(&'a str, &'a str), OnRecord<'a>>,
    /// Items that contradict each other.
    pub contradictions: Vec<Contradiction>,
}

impl<'a> Records<'a> {
    /// Looks at every document of the packet that stands.
    pub fn of(packet: &'a Packet, standings: &[Standing]) -> Self {
        let mut said: BTreeMap<(&str, &str), Vec<Document>> = BTreeMap::new();
        for (item, standing) in packet.items.iter().zip(standings) {
            let word = item.status.as_ref().and_then(|status| {
                let word = Statuses::built_in().word(&status.word)?;
                Some((status, word))
            });
            if let Some((status, word)) = word.filter(|_| standing.usable) {
                let subject = (status.of.as_str(), status.scope.as_str());
                said.entry(subject)
                    .or_default()
                    .push((item, standing, word));
            }
        }
        let mut records = Self::default();
        for (subject, all) in said {
            let current = all.iter().filter(|(_, standing, _)| !standing.superseded);
            let mut best: Option<&Document> = None;
            let mut is_tied = false;
            for one in current {
                match best.map(|best| (order(one, best), best)) {
                    None | Some((Ordering::Greater, _)) => (best, is_tied) = (Some(one), false),
                    Some((Ordering::Equal, best)) => is_tied |= differ(one.2, best.2),
                    Some((Ordering::Less, _)) => {}
                }
            }
            let stands = best.filter(|_| !is_tied);
            if let Some((item, _, word)) = stands {
                records.by_subject.insert(subject, OnRecord { item, word });
            }
            let is_contradicted = all
                .iter()
                .any(|one| all.iter().any(|other| differ(one.2, other.2)));
            if is_contradicted {
                records
                    .contradictions
                    .push(contradiction(subject, &all, stands.map(|one| one.0)));
            }
        }
        records
    }

    /// What stands on record about a subject in a scope, or about the subject without one.
    pub fn about(&self, subject: &str, scope: &str) -> Option<OnRecord<'a>> {
        let of = |scope: &str| {
            let mut known = self.by_subject.iter();
            let found = known.find(|((of, within), _)| *of == subject && *within == scope);
            found.map(|(_, record)| *record)
        };
        of(scope).or_else(|| of(""))
    }
}

/// Two words that cannot both be so.
fn differ(one: &Word, other: &Word) -> bool {
    one.open != other.open || (!one.open && one.rung != other.rung)
}

/// Which of two documents stands: from one source the later revision, else that of the
/// higher authority, else the one that was captured later.
fn order((item, standing, _): &Document, (other, others, _): &Document) -> Ordering {
    let captured = |item: &Item| parse_rfc3339(&item.source.captured_at).unwrap_or(0);
    let by_revision = match item.source.locator == other.source.locator {
        true => item.revision.cmp(&other.revision),
        false => Ordering::Equal,
    };
    by_revision
        .then(standing.authority.cmp(&others.authority))
        .then(captured(item).cmp(&captured(other)))
}

fn contradiction(
    (subject, scope): (&str, &str),
    all: &[Document],
    stands: Option<&Item>,
) -> Contradiction {
    let subject = match scope {
        "" => subject.to_owned(),
        scope => format!("{subject} ({scope})"),
    };
    let said = all.iter().map(|(item, _, word)| Said {
        item: item.id.clone(),
        says: word.word.clone(),
    });
    Contradiction {
        subject,
        between: said.collect(),
        stands: stands.map(|item| item.id.clone()).unwrap_or_default(),
        because: match stands {
            Some(_) => "of one source the later revision stands, then the higher authority, then \
                        what was captured later"
                .to_owned(),
            None => "revision, authority and time are the same: none of them stands".to_owned(),
        },
    }
}

/// How a claimed word stands to the word on record: whether the record contradicts it.
pub fn contradicts(record: &Word, claimed: &Word) -> bool {
    match (record.open, claimed.open) {
        (true, false) => record.rung < claimed.rung || claimed.rung == Rung::None,
        (false, true) => record.rung > claimed.rung,
        (true, true) | (false, false) => false,
    }
}

/// A text for what is on record.
pub fn shown(record: &OnRecord) -> String {
    let of = record
        .item
        .status
        .as_ref()
        .map_or("", |status| status.of.as_str());
    format!("{} says {} of {of}", record.item.id, record.word.word)
}
