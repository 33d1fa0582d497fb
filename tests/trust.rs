//! Evidence that another party can trust: requests, signatures, policies.

/// Requests: written, answered, stale, another's.
mod answers;
/// Every byte of a signed bundle flipped.
mod flips;
/// Text, JSON, Markdown; binding; the verifier's own signature.
mod formats;
/// A command behind a bundle, two bundles side by side, many at once.
mod gate;
/// Any text at all in the place of what a verifier reads.
mod hostile;
/// Reports of inspections, which nothing takes.
mod inspections;
/// What is signed, and an agent that lies.
mod keys;
/// A policy that loosens.
mod policies;
/// Several signatures in one envelope: at the same time, and beside junk.
mod signatures;
/// The DSSE specification's vector and Wycheproof's Ed25519 set.
mod vectors;
