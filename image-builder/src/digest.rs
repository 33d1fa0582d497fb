//! SHA-256 digests as OCI writes them.

use sha2::{Digest, Sha256};

/// The digest of some bytes, as bare lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    finish(Sha256::new_with_prefix(bytes))
}

/// The hex of a hash in progress.
pub(crate) fn finish(hash: Sha256) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(64);
    for byte in hash.finalize() {
        out.push(DIGITS[usize::from(byte >> 4)].into());
        out.push(DIGITS[usize::from(byte & 15)].into());
    }
    out
}

/// The form that manifests use.
pub(crate) fn prefixed(hex: &str) -> String {
    format!("sha256:{hex}")
}

/// The hex part of a well-formed `sha256:` digest. Anything else is `None`, so
/// that a digest from a hostile file can never name a path.
pub(crate) fn parse(digest: &str) -> Option<&str> {
    let hex = digest.strip_prefix("sha256:")?;
    let fits = hex.len() == 64
        && hex
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    fits.then_some(hex)
}

#[cfg(test)]
mod tests {
    use super::{hex, parse, prefixed};

    #[test]
    fn digests_are_the_well_known_ones() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hex(b""), empty);
        assert_eq!(parse(&prefixed(empty)), Some(empty));
    }

    #[test]
    fn nothing_but_sha256_hex_is_a_digest() {
        let upper = format!("sha256:{}", "A".repeat(64));
        let short = format!("sha256:{}", "a".repeat(63));
        for text in ["", "sha256:", "sha256:../../etc", "md5:00", &upper, &short] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
