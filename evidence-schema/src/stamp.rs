//! The stamp: a digest over the evidence that a stock tool can recompute.
//!
//! ```sh
//! jq -cjS 'del(.evidence_sha256)' FILE | sha256sum
//! ```
//!
//! The canonical bytes are exactly what that `jq` prints: no white space, keys
//! sorted, control characters and DEL as `\u00xx` unless they have a short form.

use crate::strict::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The field that holds the stamp and is not part of it.
pub const STAMP_FIELD: &str = "evidence_sha256";

/// SHA-256 in lower-case hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// The stamp of a whole evidence file.
pub fn stamp(mut value: Value) -> String {
    if let Value::Object(map) = &mut value {
        map.remove(STAMP_FIELD);
    }
    sha256_hex(canonical(&value).as_bytes())
}

/// The value as `jq -cjS .` prints it.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Integer(number) => {
            let _ = write!(out, "{number}");
        }
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(out, key);
                out.push(':');
                write_value(out, item);
            }
            out.push('}');
        }
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' || c == '\u{7f}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::parse;

    #[test]
    fn canonical_bytes_are_golden() {
        let value = parse(
            "{ \"b\": [1, -2, true, null], \"a\": \"\\u007f\\u0001\\n\\u00e9/\\\"\", \"B\": {} }"
                .as_bytes(),
        )
        .unwrap();
        assert_eq!(
            canonical(&value),
            "{\"B\":{},\"a\":\"\\u007f\\u0001\\né/\\\"\",\"b\":[1,-2,true,null]}"
        );
    }

    #[test]
    fn the_stamp_leaves_itself_out() {
        let with = parse(br#"{"a":1,"evidence_sha256":"x"}"#).unwrap();
        let without = parse(br#"{"a":1}"#).unwrap();
        assert_eq!(stamp(with), stamp(without.clone()));
        assert_eq!(
            stamp(without),
            "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
        );
    }
}
