//! Signing: [`keys`] sign, [`agent`] is a key that an agent holds, [`passphrase`] opens
//! an encrypted one, [`envelope_file`] is where signatures lie, [`sign`] adds one to a bundle,
//! [`pair`] makes a new key, [`statement`] is what a verifier signs, [`error`] is what can
//! go wrong. Checking signatures is
//! [`tki_verify`]'s part.

pub mod agent;
pub mod envelope_file;
pub mod error;
pub mod keys;
pub mod pair;
pub mod passphrase;
pub mod sign;
pub mod statement;

pub use tki_verify::{NAMESPACE, dsse, signers};
