//! The binding to the acceptance matrix: what each bundle of the packet shows of the tests that
//! are bound to probes.

use crate::bundle::Judged;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;
use tki_evidence::evidence::MatrixRow;

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/inspection-binding/v1";

/// The file.
#[derive(Debug, Serialize)]
pub struct Binding<'a> {
    schema: &'static str,
    /// SHA-256 (hex) of `packet.json`.
    packet_sha256: &'a str,
    bundles: Vec<Bound<'a>>,
}

/// What a bundle shows of the matrix.
#[derive(Debug, Serialize)]
struct Bound<'a> {
    item: &'a str,
    decision: &'a str,
    rows: &'a [MatrixRow],
}

/// The binding of all bundles.
pub fn bind<'a>(packet_sha256: &'a str, bundles: &'a BTreeMap<usize, Judged>) -> Binding<'a> {
    let bound = bundles.values().map(|judged| Bound {
        item: &judged.result.item,
        decision: &judged.result.decision,
        rows: &judged.matrix,
    });
    Binding {
        schema: SCHEMA,
        packet_sha256,
        bundles: bound.collect(),
    }
}

impl Binding<'_> {
    /// As it is written.
    pub fn to_text(&self) -> String {
        crate::write::json(self)
    }
}
