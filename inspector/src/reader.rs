//! The packet reader: every item is opened once, hashed as it is read, and held only if a claim
//! looks into it. What was hashed is what is judged.

use crate::caps::looked_into;
use crate::guard::{FileError, Files, Folder, Guard};
use crate::packet::{DocumentType, Item, Packet};
use alloc::string::String;
use alloc::vec::Vec;
use sha2::{Digest, Sha256};
use tki_evidence::stamp::hex;

/// What was read of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// SHA-256 (hex) of it; empty if it could not be read.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
    /// The bytes, if something is looked for in them.
    pub held: Option<Vec<u8>>,
    /// Why it could not be read.
    pub problem: Option<FileError>,
}

/// Reads every item of a packet, in its order. `each` is told after each one, and says whether
/// to go on; `None` if not.
pub fn read_all<F: Files>(
    guard: &mut Guard<F>,
    packet: &Packet,
    each: &mut dyn FnMut(u64) -> bool,
) -> Option<Vec<Read>> {
    let wanted = looked_into(packet);
    let mut all = Vec::with_capacity(packet.items.len());
    for item in &packet.items {
        let is_held = wanted.contains(item.id.as_str()) || belongs_to_a_bundle(item);
        all.push(read(guard, item, is_held));
        if !each(all.len() as u64) {
            return None;
        }
    }
    Some(all)
}

/// Bundles are verified with everything that is beside them, and signatures with what they
/// are over.
fn belongs_to_a_bundle(item: &Item) -> bool {
    matches!(
        item.document_type,
        DocumentType::EvidenceBundle | DocumentType::EvidenceArtifact | DocumentType::Envelope
    )
}

fn read<F: Files>(guard: &mut Guard<F>, item: &Item, is_held: bool) -> Read {
    let mut digest = Sha256::new();
    let mut held = is_held.then(Vec::new);
    let read = guard.read_packet_item(Folder::Packet, &item.path, item.size, &mut |piece| {
        digest.update(piece);
        if let Some(held) = &mut held {
            held.extend_from_slice(piece);
        }
    });
    match read {
        Ok(bytes) => Read {
            sha256: hex(&digest.finalize()),
            bytes,
            held,
            problem: None,
        },
        Err(problem) => Read {
            problem: Some(problem),
            ..Read::default()
        },
    }
}
