//! JSON in which no object has a key twice. Readers keep the first or the last of two,
//! so such a text says different things to different people. Numbers of any size are
//! left alone: these texts are an engine's, and not ours to bound.

use super::DescribedError;
use alloc::borrow::Cow;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use core::fmt;
use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor,
};

/// Reads a text; the error says where it is none.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DescribedError> {
    let text = core::str::from_utf8(bytes).map_err(|_| DescribedError::Text)?;
    let Unique = serde_json::from_str(text)?;
    Ok(serde_json::from_str(text)?)
}

/// Any value whose keys are all different.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Unique;

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Unique, A::Error> {
        while let Some(Unique) = from.next_element()? {}
        Ok(Unique)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Unique, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(Key(key)) = from.next_key()? {
            let Unique = from.next_value()?;
            if !keys.insert(key) {
                return Err(A::Error::custom("a key stands there twice"));
            }
        }
        Ok(Unique)
    }
}

/// A key, as it means and not as it is written.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
                to.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        from.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn values_are_read_as_they_are() {
        let text = r#"{"a":[null,true,-1,18446744073709551615,1.5,"x"],"b":{"a":{}}}"#;
        let plain: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read::<Value>(text.as_bytes()).unwrap(), plain);
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
            assert!(read::<Value>(text.as_bytes()).is_err(), "{text}");
        }
        assert!(read::<Value>(b"\xff").is_err());
        assert!(read::<Value>("[".repeat(100_000).as_bytes()).is_err());
    }
}
