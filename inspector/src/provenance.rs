//! The provenance validator (Article 13): is an item what the packet says, can its origin be
//! followed, and is there a better source for the same? Authority and times are the packer's
//! word unless a signer whom the launcher brought signed the item.

use crate::guard::FileError;
use crate::packet::{Authority, DocumentType, Item, Packet};
use crate::reader::Read;
use crate::report::Finding;
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use serde::Deserialize;
use tki_evidence::statement::{PAYLOAD_TYPE, Resource, TYPE};
use tki_evidence::time::parse_rfc3339;
use tki_text::printable;
use tki_verify::dsse::{Envelope, EnvelopeError};
use tki_verify::seal::signers_of;
use tki_verify::signers::AllowedSigners;

/// What is known of an item's origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// It is what the packet says, and its origin can be followed.
    pub usable: bool,
    /// The packet has a later revision from the same source.
    pub superseded: bool,
    /// The authority that counts: a generated item has none.
    pub authority: Authority,
    /// Who signed it, according to the launcher's list.
    pub signer: Option<String>,
    /// What is to be said of it.
    pub findings: Vec<Finding>,
}

impl Standing {
    fn of(item: &Item) -> Self {
        let authority = match item.source.derived_from.is_empty() {
            true => item.source.authority,
            false => Authority::Local,
        };
        Self {
            usable: true,
            superseded: false,
            authority,
            signer: None,
            findings: Vec::new(),
        }
    }

    fn find(&mut self, code: &str, text: String) {
        self.findings.push(Finding {
            code: code.to_owned(),
            text,
        });
    }

    fn refuse(&mut self, code: &str, text: String) {
        self.usable = false;
        self.find(code, text);
    }

    /// Has a finding of this code.
    pub fn has(&self, code: &str) -> bool {
        self.findings.iter().any(|finding| finding.code == code)
    }
}

/// Looks at every item of a packet, in its order.
pub fn validate(
    packet: &Packet,
    reads: &[Read],
    signers: Option<&AllowedSigners>,
) -> Vec<Standing> {
    let mut all: Vec<Standing> = packet.items.iter().map(Standing::of).collect();
    for ((item, read), standing) in packet.items.iter().zip(reads).zip(&mut all) {
        bytes(item, read, standing);
        if !item.source.derived_from.is_empty() && item.source.authority != Authority::Local {
            let text = "it was generated, so it is evidence and no authority".to_owned();
            standing.find("PV-GENERATED", text);
        }
    }
    let order = chains(packet, &mut all);
    times(packet, &mut all);
    sources(packet, reads, &mut all);
    signatures(packet, reads, signers, &mut all);
    prose(packet, &order, &mut all);
    all
}

/// The bytes are those that the packet names.
fn bytes(item: &Item, read: &Read, standing: &mut Standing) {
    if let Some(FileError::TooLong(_)) = &read.problem {
        let text = format!(
            "it has more than the {} bytes that the packet says",
            item.size
        );
        standing.refuse("PV-DIGEST", text);
    } else if let Some(problem) = &read.problem {
        standing.refuse("PV-MISSING", format!("it cannot be read: {problem}"));
    } else if read.bytes != item.size {
        let text = format!(
            "it has {} bytes, and the packet says {}",
            read.bytes, item.size
        );
        standing.refuse("PV-DIGEST", text);
    } else if read.sha256 != item.sha256 {
        let text = format!("its SHA-256 is {}", read.sha256);
        standing.refuse("PV-DIGEST", text);
    }
}

/// Where an item is among all, by its id.
fn places(packet: &Packet) -> BTreeMap<&str, usize> {
    let items = packet.items.iter().enumerate();
    items
        .map(|(index, item)| (item.id.as_str(), index))
        .collect()
}

/// What an item was made from is there, ends, and stands itself. Gives the items in an order in
/// which each comes after those that it was made from, without those of a circle.
fn chains(packet: &Packet, all: &mut [Standing]) -> Vec<usize> {
    let at = places(packet);
    // The items that wait for how many of those that they were made from.
    let mut open: Vec<usize> = vec![0; all.len()];
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    for (index, item) in packet.items.iter().enumerate() {
        let parents: BTreeSet<&String> = item.source.derived_from.iter().collect();
        for parent in parents {
            match at.get(parent.as_str()) {
                Some(parent) => {
                    open[index] += 1;
                    children[*parent].push(index);
                }
                None => {
                    let text = format!(
                        "it was made from {:?}, which the packet does not hold",
                        printable(parent, 80)
                    );
                    all[index].refuse("PV-CHAIN", text);
                }
            }
        }
    }
    let mut ready: Vec<usize> = (0..all.len()).filter(|index| open[*index] == 0).collect();
    let mut order = Vec::with_capacity(all.len());
    while let Some(parent) = ready.pop() {
        order.push(parent);
        for child in core::mem::take(&mut children[parent]) {
            open[child] -= 1;
            if !all[parent].usable {
                let text = format!(
                    "it was made from {}, which does not stand",
                    packet.items[parent].id
                );
                all[child].refuse("PV-CHAIN", text);
            }
            if open[child] == 0 {
                ready.push(child);
            }
        }
    }
    for (standing, open) in all.iter_mut().zip(open) {
        if open > 0 {
            let text = "what it was made from was, in the end, made from it".to_owned();
            standing.refuse("PV-CYCLE", text);
        }
    }
    order
}

/// What was made from prose alone shows no more of the world than the prose does: it is said,
/// because it looks like a measurement.
fn prose(packet: &Packet, order: &[usize], all: &mut [Standing]) {
    let at = places(packet);
    let mut only_prose = vec![false; all.len()];
    for index in order {
        let item = &packet.items[*index];
        let mut parents = item.source.derived_from.iter();
        let is_prose_itself = |parent: &String| {
            let parent = at.get(parent.as_str());
            parent.is_some_and(|parent| only_prose[*parent])
        };
        only_prose[*index] = match item.source.derived_from.is_empty() {
            true => is_prose(item.document_type),
            false => parents.all(is_prose_itself),
        };
        let is_made = !item.source.derived_from.is_empty();
        if is_made && only_prose[*index] && all[*index].usable {
            let text = "it was made from prose: its values are what a text says".to_owned();
            all[*index].find("PV-PROSE", text);
        }
    }
}

/// A text about something, and not what a program printed or a program itself.
fn is_prose(kind: DocumentType) -> bool {
    use DocumentType as D;
    match kind {
        D::Specification | D::Plan | D::Index | D::Report | D::Checkpoint => true,
        D::Packet | D::Decision | D::Other => true,
        D::Harness | D::Listing | D::Transcript => false,
        D::EvidenceBundle | D::EvidenceArtifact | D::Envelope => false,
    }
}

fn captured(item: &Item) -> u64 {
    parse_rfc3339(&item.source.captured_at).unwrap_or(0)
}

/// Nothing is from after the packet's moment, or from before what it was made from.
fn times(packet: &Packet, all: &mut [Standing]) {
    let at = places(packet);
    for (index, item) in packet.items.iter().enumerate() {
        if captured(item) > packet.as_of() {
            let text = format!(
                "it was captured at {}, after the packet's as_of",
                item.source.captured_at
            );
            all[index].refuse("PV-TIME", text);
        }
        for parent in &item.source.derived_from {
            let parent = at.get(parent.as_str()).map(|at| &packet.items[*at]);
            if let Some(parent) = parent.filter(|parent| captured(parent) > captured(item)) {
                let text = format!(
                    "it was captured before {}, which it was made from",
                    parent.id
                );
                all[index].refuse("PV-TIME", text);
            }
        }
    }
}

/// One source of truth for each locator: the authority before a local file, and the latest
/// revision of it.
fn sources(packet: &Packet, reads: &[Read], all: &mut [Standing]) {
    let mut by_locator: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, item) in packet.items.iter().enumerate() {
        if all[index].usable {
            by_locator
                .entry(item.source.locator.as_str())
                .or_default()
                .push(index);
        }
    }
    for group in by_locator.values().filter(|group| group.len() > 1) {
        local_last(packet, group, all);
        one_truth(packet, reads, group, all);
        let stands = group.iter().filter(|index| all[**index].usable);
        let latest = stands.map(|index| packet.items[*index].revision).max();
        for index in group {
            if latest.is_some_and(|latest| packet.items[*index].revision < latest) {
                all[*index].superseded = true;
                let text = format!("the packet has revision {} of it", latest.unwrap_or(0));
                all[*index].find("PV-SUPERSEDED", text);
            }
        }
    }
}

/// A local file does not stand for what an authority's item of the packet holds.
fn local_last(packet: &Packet, group: &[usize], all: &mut [Standing]) {
    let mut items = group.iter();
    let Some(better) = items.find(|index| all[**index].authority != Authority::Local) else {
        return;
    };
    let better = packet.items[*better].id.clone();
    for index in group {
        if all[*index].authority == Authority::Local {
            let text = format!("{better} has the same from an authority");
            all[*index].refuse("PV-LOCAL", text);
        }
    }
}

/// Other bytes for the same revision of the same are a second source of truth.
fn one_truth(packet: &Packet, reads: &[Read], group: &[usize], all: &mut [Standing]) {
    let mut by_revision: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for index in group.iter().filter(|index| all[**index].usable) {
        by_revision
            .entry(packet.items[*index].revision)
            .or_default()
            .push(*index);
    }
    for same in by_revision.values() {
        let digests: BTreeSet<&str> = same
            .iter()
            .map(|index| reads[*index].sha256.as_str())
            .collect();
        if digests.len() < 2 {
            continue;
        }
        let highest = same.iter().map(|index| all[*index].authority).max();
        let is_highest = |index: &&usize| Some(all[**index].authority) == highest;
        let leading: BTreeSet<&str> = same
            .iter()
            .filter(is_highest)
            .map(|index| reads[*index].sha256.as_str())
            .collect();
        let one_leads = leading.len() == 1;
        let leading: Vec<usize> = same
            .iter()
            .copied()
            .filter(|index| is_highest(&index))
            .collect();
        for index in same {
            if !(one_leads && leading.contains(index)) {
                let text = match one_leads {
                    true => format!("{} has other bytes for the same revision, from a higher authority", packet.items[leading[0]].id),
                    false => "another item has other bytes for the same revision, from the same authority".to_owned(),
                };
                all[*index].refuse("PV-SHADOW", text);
            }
        }
    }
}

/// What of a statement counts here: which bytes it is about.
#[derive(Deserialize)]
struct About {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Resource>,
}

fn signatures(
    packet: &Packet,
    reads: &[Read],
    signers: Option<&AllowedSigners>,
    all: &mut [Standing],
) {
    let at = places(packet);
    for (index, item) in packet.items.iter().enumerate() {
        if item.signature.is_empty() || !all[index].usable {
            continue;
        }
        let Some(list) = signers else {
            let text = "it names a signature, and the launcher brought no list of signers";
            all[index].find("PV-SIGNATURE", text.to_owned());
            continue;
        };
        let envelope = at.get(item.signature.as_str());
        let envelope = envelope.and_then(|at| {
            let is_one = packet.items[*at].document_type == DocumentType::Envelope;
            reads[*at]
                .held
                .as_ref()
                .filter(|_| is_one && all[*at].usable)
        });
        match signed_by(
            envelope.map(Vec::as_slice),
            &item.sha256,
            list,
            packet.as_of(),
        ) {
            Ok(signer) => all[index].signer = Some(signer),
            Err(why) => all[index].find("PV-SIGNATURE", why.to_string()),
        }
    }
}

/// Why a signature that an item names does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum SignatureError {
    #[error("the signature that it names is no envelope that stands")]
    NoEnvelope,
    #[error("{}", printable(&.0.to_string(), 200))]
    Envelope(#[from] EnvelopeError),
    #[error("no listed and valid key signed it")]
    Unlisted,
    #[error("what was signed is something else")]
    Other,
}

/// The principals of the listed key that signed these bytes.
fn signed_by(
    envelope: Option<&[u8]>,
    sha256: &str,
    list: &AllowedSigners,
    now: u64,
) -> Result<String, SignatureError> {
    let envelope = Envelope::parse(envelope.ok_or(SignatureError::NoEnvelope)?)?;
    let good = signers_of(&envelope, list, now);
    let signer = good.first().ok_or(SignatureError::Unlisted)?;
    let text = core::str::from_utf8(&envelope.payload).unwrap_or_default();
    let about: Option<About> = serde_json::from_str(text).ok();
    let is_about = about.is_some_and(|about| {
        let mut subjects = about.subject.iter();
        envelope.payload_type == PAYLOAD_TYPE
            && about.kind == TYPE
            && subjects.any(|subject| subject.digest.sha256 == sha256)
    });
    match is_about {
        true => Ok(printable(&signer.principals, 200)),
        false => Err(SignatureError::Other),
    }
}

#[cfg(test)]
#[path = "provenance_tests.rs"]
mod tests;
