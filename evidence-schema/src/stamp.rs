//! The stamp: a digest over the evidence that a stock tool can recompute.
//!
//! ```sh
//! jq -cjS 'del(.evidence_sha256)' FILE | sha256sum
//! ```
//!
//! The canonical bytes are exactly what that `jq` prints: no white space, keys
//! sorted, control characters and DEL as `\u00xx` unless they have a short form.

use crate::strict::{self, Canonical, StrictError};
use alloc::string::String;
use sha2::{Digest, Sha256};

/// The field that holds the stamp and is not part of it.
pub const STAMP_FIELD: &str = "evidence_sha256";

/// SHA-256 in lower-case hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.push(digit(byte >> 4));
        out.push(digit(byte & 15));
    }
    out
}

/// The stamp of a whole evidence file, which must be strict.
pub fn stamp(text: &[u8]) -> Result<String, StrictError> {
    read(text).map(|(stamp, _)| stamp)
}

/// The same, and the file in its canonical form.
pub fn read(text: &[u8]) -> Result<(String, Canonical), StrictError> {
    let canonical = strict::canonical_with(text, STAMP_FIELD)?;
    let mut digest = Sha256::new();
    for part in canonical.without() {
        digest.update(part);
    }
    Ok((hex(&digest.finalize()), canonical))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::canonical;

    #[test]
    fn canonical_bytes_are_golden() {
        let text = canonical(
            "{ \"b\": [1, -2, true, null], \"a\": \"\\u007f\\u0001\\n\\u00e9/\\\"\", \"B\": {} }"
                .as_bytes(),
        )
        .unwrap();
        assert_eq!(
            text,
            "{\"B\":{},\"a\":\"\\u007f\\u0001\\né/\\\"\",\"b\":[1,-2,true,null]}"
        );
    }

    #[test]
    fn the_stamp_leaves_itself_out() {
        let with = stamp(br#"{"a":1,"evidence_sha256":"x"}"#).unwrap();
        let without = stamp(br#"{"a":1}"#).unwrap();
        assert_eq!(with, without);
        assert_eq!(
            without,
            "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
        );
    }
}
