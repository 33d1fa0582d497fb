//! Tests that need no root, no engine, no network and no other program: what reads a
//! bundle, a profile, a Dockerfile or the documentation. The bundles are recordings.

/// Building an image.
mod builds;
/// Running the tool; bundles that a test changes.
#[allow(dead_code, reason = "the rest is for tests that need an engine")]
mod common;
/// The documentation against the code.
mod documents;
/// Bundles of real runs, recorded by `make golden`.
mod golden;
/// Packets for the inspector, with the argued verdict of each claim.
mod inspection;
/// What differs from one recording to the next is masked.
mod masks;
/// Acceptance tests of the inspector, and their registry.
mod matrix;
/// Packets: where they are written, and what they are called.
mod packets;
/// Evidence packets for the inspector: from a directory and claims, and checked.
mod packs;
/// Reading seccomp profiles: lint, explain.
mod profiles;
/// The recordings themselves: current, signed, small, without secrets.
mod recordings;
/// Runs over an engine that plays a recording.
mod replay;
/// What a person reads, as it stands in files.
mod shown;
/// Requests, signatures, policies.
mod trust;
/// Every edit is refused.
mod verify;
