//! JSON as evidence needs it: no duplicate keys, no floats, no integer that a
//! stock tool would round, a bounded size and depth, errors with line and
//! column. `serde_json::Value` keeps the last of two equal keys, so a bundle
//! could say `FAIL` to one reader and `PASS` to another; this value cannot.

use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// The largest evidence or request file that is read, in bytes.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Integers beyond this are not exact in every JSON reader.
pub const MAX_INTEGER: i64 = (1 << 53) - 1;

/// A JSON value in strict form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer within ±2^53.
    Integer(i64),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// An object, its keys sorted by their bytes.
    Object(BTreeMap<String, Value>),
}

/// Why a text is not accepted, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrictError {
    /// Too large to be one of our files.
    #[error("the file has {0} bytes; at most {MAX_BYTES} are read")]
    TooLarge(usize),
    /// Not JSON, or not in the expected form.
    #[error("line {line}, column {column}: {message}")]
    Malformed {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
}

impl From<serde_json::Error> for StrictError {
    fn from(error: serde_json::Error) -> Self {
        // serde_json appends the position to its text; it is kept apart here.
        let text = error.to_string();
        let message = match text.rfind(" at line ") {
            Some(at) => text[..at].to_owned(),
            None => text,
        };
        StrictError::Malformed {
            line: error.line().max(1),
            column: error.column().max(1),
            message,
        }
    }
}

/// Reads a strict value.
pub fn parse(bytes: &[u8]) -> Result<Value, StrictError> {
    if bytes.len() > MAX_BYTES {
        return Err(StrictError::TooLarge(bytes.len()));
    }
    Ok(serde_json::from_slice(bytes)?)
}

/// Reads a typed value, after the text as a whole was found strict. Types read
/// this way must deny unknown fields.
pub fn parse_as<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, Value), StrictError> {
    let value = parse(bytes)?;
    Ok((serde_json::from_slice(bytes)?, value))
}

/// Reads a typed value from a text that [`parse`] has found strict. The type
/// must deny unknown fields.
pub fn typed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StrictError> {
    Ok(serde_json::from_slice(bytes)?)
}

impl<'de> de::Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value without floats")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > MAX_INTEGER as u64 {
            return Err(E::custom(format!("the integer {value} is beyond 2^53")));
        }
        Ok(Value::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => Err(E::custom(format!("the integer {value} is beyond 2^53"))),
        }
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Value, E> {
        Err(E::custom("a number that is not a plain integer"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(de::Error::custom(format!("duplicate key {key:?}")));
            }
            let value = access.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn what_a_second_reader_could_read_otherwise_is_refused() {
        assert_eq!(
            refusal("{\"verdict\":\"FAIL\",\n\"verdict\":\"PASS\"}"),
            "line 2, column 9: duplicate key \"verdict\""
        );
        for text in ["1.5", "1.0", "1e3", "-0", "-0.0"] {
            assert!(refusal(text).contains("not a plain integer"), "{text}");
        }
        for text in [
            "9007199254740992",
            "-9007199254740992",
            "18446744073709551615",
        ] {
            assert!(refusal(text).contains("beyond 2^53"), "{text}");
        }
        assert!(parse(b"9007199254740991").is_ok());
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in [
            "",
            "{",
            "{} {}",
            "\u{feff}{}",
            "[1,]",
            "NaN",
            "'a'",
            "// c\n1",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(parse(b"\"\xff\"").is_err());
        let deep = "[".repeat(100_000);
        assert!(refusal(&deep).contains("recursion limit"));
        assert!(matches!(
            parse(&vec![b' '; MAX_BYTES + 1]),
            Err(StrictError::TooLarge(_))
        ));
    }
}
