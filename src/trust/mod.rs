//! Signing: [`keys`] sign, [`agent`] is a key that an agent holds, [`passphrase`] opens
//! an encrypted one, [`envelope_file`] is where signatures lie, [`error`] what can
//! go wrong. Checking signatures is
//! [`tki_verify`]'s part.

pub mod agent;
pub mod envelope_file;
pub mod error;
pub mod keys;
pub mod passphrase;

pub use tki_verify::{NAMESPACE, dsse, signers};
