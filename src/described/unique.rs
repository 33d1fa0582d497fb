//! JSON in which no object has a key twice. Readers keep the first or the last of two,
//! so such a text says different things to different people. Numbers of any size are
//! left alone: these texts are an engine's, and not ours to bound.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Reads a text; the error says where it is none.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    let read: Unique = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(read.0)
}

struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Unique(item)) = from.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            let Unique(value) = from.next_value()?;
            if map.contains_key(&key) {
                return Err(A::Error::custom("a key stands there twice"));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are() {
        let text = r#"{"a":[null,true,-1,18446744073709551615,1.5,"x"],"b":{"a":{}}}"#;
        let plain: Value = serde_json::from_str(text).unwrap();
        assert_eq!(parse(text.as_bytes()), Ok(plain));
    }

    #[test]
    fn no_key_stands_there_twice() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"[{"b":{"a":1,"\u0061":2}}]"#,
            "{",
            "",
            "{} {}",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(b"\xff").is_err());
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }
}
