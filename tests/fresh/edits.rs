//! The edits of the generator over bundles that were made just now: nothing rests on a
//! recording alone.

use crate::common::consistent::every_edit_is_refused_or_told;
use crate::common::{attest, evidence_in, shared_engine};

/// Of a run that nobody asked for; the recorded one answers a request.
#[test]
fn every_consistent_edit_of_a_run_of_now_is_refused_or_told() {
    let engine = shared_engine();
    // Other users of the engine are seen in the inventory; a few attempts find a quiet moment.
    let mut last = None;
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["--venue", "vps", "--controls", "safe"];
        let said = last.insert(attest(folder.path(), &arguments));
        if said.status == 0 {
            drop(engine);
            return every_edit_is_refused_or_told(&evidence_in(folder.path()));
        }
    }
    panic!("no run is accepted: {last:?}");
}

/// The same where a gate stands, and the engine has no daemon.
#[test]
fn every_consistent_edit_of_a_gated_run_is_refused_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "--venue",
        "vps",
        "--engine",
        "embedded",
        "--controls",
        "safe",
    ];
    attest(folder.path(), &arguments).succeeded();
    every_edit_is_refused_or_told(&evidence_in(folder.path()));
}
