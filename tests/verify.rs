//! Evidence against a party that edits it: no single edit is accepted, and what new stamps and
//! digests can still hide is told.

/// The files beside the evidence.
mod artifacts;
/// Controls that are not what they say they are.
mod controls;
/// Every field edited alone, with the old stamp.
mod edits;
/// A container, a conversation, times and names that no run has.
mod forged;
/// Edits that a generator makes, consistently in the whole bundle.
mod generated;
/// Nothing that a terminal would obey.
mod hostile;
/// What the verifier brings along: image, profile, matrix, several bundles.
mod inputs;
/// What is not evidence at all.
mod malformed;
/// Profiles that let something of the floor through.
mod profiles;

use crate::common::bundle::copy_of;
use crate::common::signed::Base;
use crate::golden::plain;
use std::path::PathBuf;

/// Evidence of a real run that verify accepts, without controls.
pub fn real() -> &'static Base {
    plain()
}

/// A copy of the evidence and its artifacts that a test may change.
pub fn copy() -> (tempfile::TempDir, PathBuf) {
    copy_of(&real().path)
}
