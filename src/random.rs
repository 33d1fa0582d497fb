//! Random bytes, from the kernel.

use crate::failure::Failure;
use tki_evidence::stamp::hex;

/// Random bytes in hex.
pub fn random_hex<const BYTES: usize>() -> Result<String, Failure> {
    Ok(hex(&random_bytes::<BYTES>()?))
}

/// Random bytes.
pub fn random_bytes<const BYTES: usize>() -> Result<[u8; BYTES], Failure> {
    let mut bytes = [0u8; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        let flags = rustix::rand::GetRandomFlags::empty();
        match rustix::rand::getrandom(&mut bytes[filled..], flags) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Failure::internal("random", format!("getrandom: {error}"))),
        }
    }
    Ok(bytes)
}
