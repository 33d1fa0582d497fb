//! What is verified: the evidence file's bytes, the envelope's, and where the
//! artifacts are. Each file is read once; what was checked is what is used.

use crate::artifacts::Source;
use alloc::string::String;
use alloc::vec::Vec;

/// A bundle as it was handed over.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The evidence file's name, for people.
    pub name: String,
    /// The evidence file's bytes.
    pub evidence: Vec<u8>,
    /// The envelope's bytes, if there is one.
    pub envelope: Option<Vec<u8>>,
    /// Where the artifacts are.
    pub artifacts: Source,
}
