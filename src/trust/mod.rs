//! Keys, signatures and who may sign. [`dsse`] is the envelope, [`keys`] what
//! signs, [`agent`] a key that somebody else holds, [`passphrase`] what opens
//! an encrypted one, [`signers`] whom a verifier trusts, [`envelope_file`]
//! where signatures lie.
//!
//! What is verified comes from the bundle; whom to trust never does.

pub mod agent;
pub mod dsse;
pub mod envelope_file;
pub mod keys;
pub mod passphrase;
pub mod signers;

/// The namespace that an allowed signer must be listed for, if its line names
/// any.
pub const NAMESPACE: &str = "tki-attest";
