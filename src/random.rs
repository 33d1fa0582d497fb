//! Random bytes, from the kernel.

use crate::failure::Failure;
use tki_evidence::stamp::hex;

/// The kernel gives no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("getrandom: {0}")]
pub struct RandomError(#[source] rustix::io::Errno);

impl From<RandomError> for Failure {
    fn from(error: RandomError) -> Self {
        Failure::internal("random", error.to_string())
    }
}

/// Random bytes in hex.
pub fn random_hex<const BYTES: usize>() -> Result<String, RandomError> {
    Ok(hex(&random_bytes::<BYTES>()?))
}

/// Random bytes.
pub fn random_bytes<const BYTES: usize>() -> Result<[u8; BYTES], RandomError> {
    let mut bytes = [0u8; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        let flags = rustix::rand::GetRandomFlags::empty();
        match rustix::rand::getrandom(&mut bytes[filled..], flags) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(RandomError(error)),
        }
    }
    Ok(bytes)
}
