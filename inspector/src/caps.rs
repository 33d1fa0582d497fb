//! How much a packet may hold, from the limits of the sandbox that it is read in.

use crate::packet::{DocumentType, Packet};
use alloc::collections::BTreeSet;

/// The addresses that the program maps for its memory, and so the most that it ever uses. Pages
/// that are never touched cost nothing where a control group limits memory; where a limit of the
/// address space stands in for that, it maps less.
pub const MOST_USED: u64 = 512 << 20;

/// What the program needs with a packet of nothing.
const BASE: u64 = 8 << 20;

/// How many bytes of memory a byte of text takes that is looked into.
const PER_TEXT: u64 = 6;

/// The same for a byte of an evidence bundle, which is verified.
const PER_BUNDLE: u64 = 24;

/// How many bytes of report a claim takes at the most, beside its text.
const PER_CLAIM: u64 = 16 << 10;

/// How many bytes of report an item takes.
const PER_ITEM: u64 = 2 << 10;

/// What a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Room in /out, in bytes.
    pub out_bytes: u64,
}

/// What a packet takes at the most. Items that no claim looks into are hashed and never held.
pub fn need(packet: &Packet, packet_bytes: u64) -> Need {
    let (mut texts, mut bundles) = (packet_bytes, 0u64);
    let looked_into = looked_into(packet);
    for item in &packet.items {
        match item.document_type {
            DocumentType::EvidenceBundle
            | DocumentType::EvidenceArtifact
            | DocumentType::Envelope => bundles = bundles.saturating_add(item.size),
            _ if looked_into.contains(item.id.as_str()) => texts = texts.saturating_add(item.size),
            _ => {}
        }
    }
    let claims = packet.claims.len() as u64;
    let items = packet.items.len() as u64;
    let out = (claims.saturating_mul(PER_CLAIM)).saturating_add(items.saturating_mul(PER_ITEM));
    let out = out
        .saturating_add(packet_bytes.saturating_mul(4))
        .saturating_add(256 << 10);
    let held = texts
        .saturating_mul(PER_TEXT)
        .saturating_add(bundles.saturating_mul(PER_BUNDLE));
    Need {
        memory_bytes: BASE
            .saturating_add(held)
            .saturating_add(out.saturating_mul(2)),
        out_bytes: out,
    }
}

/// The items whose bytes are held, because a claim names a place in them.
pub fn looked_into(packet: &Packet) -> BTreeSet<&str> {
    let places = packet.claims.iter().flat_map(|claim| &claim.evidence);
    let mut ids = BTreeSet::new();
    for place in places {
        ids.insert(place.item.as_str());
        if let Some(crate::packet::Expect::SameAs(other)) = &place.expect {
            ids.insert(other.item.as_str());
        }
    }
    ids
}
