//! Evidence that somebody else can trust: requests, signatures, policies, and
//! everything that must be refused.

/// Agents that do not answer.
mod agents;
/// No network, no write, no file outside the arguments, as nobody.
mod alone;
/// Requests: written, answered, stale, another's.
mod answers;
/// A signed answer to a request, made once, with and without controls.
pub mod bases;
/// Every byte of a signed bundle flipped.
mod flips;
/// Text, JSON, Markdown, JUnit; binding; the verifier's own signature.
mod formats;
/// A command behind a bundle, two bundles side by side, many at once.
mod gate;
/// Any text at all in the place of what a verifier reads.
mod hostile;
/// Keys: made, encrypted, in an agent, unusable.
mod keys;
/// Policies that tighten, and one that loosens.
mod policies;
/// One folder per refusal, `tests/reject/bundle-*`.
mod refusals;
/// Several signatures in one envelope: at the same time, and beside junk.
mod signatures;
/// jq, openssl, ssh-keygen, securesystemslib, in-toto, check-jsonschema.
mod tools;
/// The DSSE specification's vector and Wycheproof's Ed25519 set.
mod vectors;
