//! Bundles that were made just now, by the engines of this machine: other tools read them,
//! `verify` is watched over them, and the generator edits them. What needs a bundle and
//! nothing else is in the binary `offline`.

/// Agents that do not answer.
mod agents;
/// No network, no write, no file outside the arguments, as nobody.
mod alone;
/// Requests that a run does not answer.
mod answers;
/// Signed answers to requests, made once, with and without controls.
mod bases;
/// The stamp and the canonical form against jq, the document against its schema.
mod canonical;
/// Edits that a generator makes, consistently in the whole bundle.
mod edits;
/// What other engines write down of a container, and profiles of one's own.
mod forged;
/// JUnit, read by Python.
mod junit;
/// Keys: made, encrypted, in an agent, unusable.
mod keys;
/// Policies that tighten.
mod policies;
/// jq, openssl, ssh-keygen, securesystemslib, in-toto, check-jsonschema.
mod tools;
/// `verify` opens no socket and writes nothing.
mod watched;
