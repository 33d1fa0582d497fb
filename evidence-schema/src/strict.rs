//! JSON as evidence needs it: no duplicate keys, no floats, no integer that a
//! stock tool would round, a bounded size and depth, errors with line and
//! column. `serde_json::Value` keeps the last of two equal keys, so a bundle
//! could say `FAIL` to one reader and `PASS` to another; what was found strict
//! says the same to all.
//!
//! The check writes the text's canonical form as it goes, which is what a stamp
//! is made over: no white space, keys sorted, every string in one spelling.

use alloc::borrow::Cow;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write as _};
use core::marker::PhantomData;
use core::ops::Range;
use serde::de::{
    self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess,
    Visitor,
};

mod plain;

/// The largest evidence or request file that is read, in bytes.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Integers beyond this are not exact in every JSON reader.
pub const MAX_INTEGER: i64 = (1 << 53) - 1;

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

/// A strict text in its canonical form: exactly what `jq -cjS .` prints.
pub fn canonical(bytes: &[u8]) -> Result<String, StrictError> {
    write(bytes, None).map(|writer| writer.out)
}

/// The same, and where in it one key of the outermost object stands.
pub fn canonical_with(bytes: &[u8], key: &str) -> Result<Canonical, StrictError> {
    write(bytes, Some(key)).map(|writer| Canonical {
        text: writer.out,
        apart: writer.apart,
    })
}

/// A text in its canonical form.
#[derive(Clone, Debug)]
pub struct Canonical {
    text: String,
    apart: Range<usize>,
}

impl Canonical {
    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The canonical form without the key: these two, one after the other.
    pub fn without(&self) -> [&str; 2] {
        [&self.text[..self.apart.start], &self.text[self.apart.end..]]
    }
}

/// Reads a value, after the text as a whole was found strict.
pub fn parse(bytes: &[u8]) -> Result<serde_json::Value, StrictError> {
    parse_as(bytes)
}

/// Reads a typed value, after the text as a whole was found strict. Types read
/// this way must deny unknown fields.
pub fn parse_as<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StrictError> {
    canonical(bytes)?;
    typed(bytes)
}

/// Reads a typed value from a text that was found strict. The type must deny
/// unknown fields.
pub fn typed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StrictError> {
    read(bytes, PhantomData::<T>)
}

fn write<'a>(bytes: &'a [u8], key: Option<&'a str>) -> Result<Writer<'a, 'a>, StrictError> {
    if bytes.len() > MAX_BYTES {
        return Err(StrictError::TooLarge(bytes.len()));
    }
    if let Ok(text) = core::str::from_utf8(bytes) {
        let mut writer = Writer::new(text.len(), key);
        if plain::write(text, &mut writer).is_some() {
            return Ok(writer);
        }
    }
    carefully(bytes, key)
}

/// Reads a text of any kind, and says what is wrong with it.
fn carefully<'a>(
    bytes: &'a (impl AsRef<[u8]> + ?Sized),
    key: Option<&'a str>,
) -> Result<Writer<'a, 'a>, StrictError> {
    let mut writer = Writer::new(bytes.as_ref().len(), key);
    read(bytes.as_ref(), &mut writer)?;
    Ok(writer)
}

fn read<'de, S: DeserializeSeed<'de>>(bytes: &'de [u8], seed: S) -> Result<S::Value, StrictError> {
    // What is valid text as a whole need not be looked through string by string.
    let Ok(text) = core::str::from_utf8(bytes) else {
        return Err(not_text(bytes));
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// What is wrong with bytes that are no text, and where: the same for all types.
fn not_text(bytes: &[u8]) -> StrictError {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let mut writer = Writer::new(bytes.len(), None);
    match DeserializeSeed::deserialize(&mut writer, &mut reader) {
        Err(error) => error.into(),
        // It does not come this far; if it did, it would not be text all the same.
        Ok(()) => <serde_json::Error as de::Error>::custom("not UTF-8").into(),
    }
}

/// Checks a text and writes it in its canonical form.
struct Writer<'de, 'w> {
    out: String,
    /// Where the entries of an object are put in order.
    moved: String,
    /// Entries of the objects that are open, those of the innermost last.
    entries: Vec<Entry<'de>>,
    /// A key of the outermost object whose place is looked for.
    key: Option<&'w str>,
    /// Where it and its value stand, with one comma.
    apart: Range<usize>,
}

/// A key, and where it and its value stand in what was written.
struct Entry<'de> {
    key: Cow<'de, str>,
    start: usize,
    end: usize,
}

/// So many keys are compared one by one; for more there is a set.
const FEW: usize = 16;

impl<'de> DeserializeSeed<'de> for &mut Writer<'de, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Writer<'de, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value without floats")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.out.push_str("null");
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.out.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        if value.unsigned_abs() > MAX_INTEGER as u64 {
            return Err(E::custom(format!("the integer {value} is beyond 2^53")));
        }
        write!(self.out, "{value}").map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => Err(E::custom(format!("the integer {value} is beyond 2^53"))),
        }
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        Err(E::custom("a number that is not a plain integer"))
    }

    fn visit_borrowed_str<E: de::Error>(self, value: &'de str) -> Result<(), E> {
        write_unescaped(&mut self.out, value);
        Ok(())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        write_string(&mut self.out, value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        self.out.push('[');
        let start = self.out.len();
        while access.next_element_seed(&mut *self)?.is_some() {
            self.out.push(',');
        }
        if self.out.len() > start {
            self.out.pop();
        }
        self.out.push(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let outermost = self.out.is_empty();
        self.out.push('{');
        let (first, start) = (self.entries.len(), self.out.len());
        let mut more = BTreeSet::new();
        while let Some(Key(key)) = access.next_key()? {
            let few = self.entries[first..].iter().take(FEW);
            if few.into_iter().any(|entry| entry.key == key) || more.contains(&key) {
                return Err(de::Error::custom(format!("duplicate key {key:?}")));
            }
            if self.entries.len() - first >= FEW {
                more.insert(key.clone());
            }
            let start = self.out.len();
            match &key {
                Cow::Borrowed(key) => write_unescaped(&mut self.out, key),
                Cow::Owned(key) => write_string(&mut self.out, key),
            }
            self.out.push(':');
            access.next_value_seed(&mut *self)?;
            let end = self.out.len();
            self.out.push(',');
            self.entries.push(Entry { key, start, end });
        }
        // No key stands twice, as was seen above.
        self.close(first, start, outermost);
        Ok(())
    }
}

impl<'w> Writer<'_, 'w> {
    fn new(length: usize, key: Option<&'w str>) -> Self {
        Self {
            out: String::with_capacity(length),
            moved: String::new(),
            entries: Vec::new(),
            key,
            apart: 0..0,
        }
    }

    /// Puts the entries of an object in their order, and ends it. False if a key
    /// stands twice.
    fn close(&mut self, first: usize, start: usize, outermost: bool) -> bool {
        let entries = &mut self.entries[first..];
        if !entries.is_sorted_by(|a, b| a.key < b.key) {
            entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
            if entries.windows(2).any(|pair| pair[0].key == pair[1].key) {
                return false;
            }
            self.moved.clear();
            for entry in entries.iter_mut() {
                let moved = start + self.moved.len();
                self.moved.push_str(&self.out[entry.start..entry.end]);
                self.moved.push(',');
                (entry.start, entry.end) = (moved, moved + entry.end - entry.start);
            }
            self.out.truncate(start);
            self.out.push_str(&self.moved);
        }
        if !entries.is_empty() {
            self.out.pop();
        }
        let apart = self.key.filter(|_| outermost);
        let apart = apart.and_then(|key| entries.iter().find(|entry| entry.key == key));
        if let Some(Entry {
            start: own, end, ..
        }) = apart
        {
            // The comma after it goes with it; the last one has it before it.
            self.apart = match (*end == self.out.len(), *own == start) {
                (false, _) => *own..end + 1,
                (true, false) => own - 1..*end,
                (true, true) => *own..*end,
            };
        }
        self.out.push('}');
        self.entries.truncate(first);
        true
    }
}

/// An object's key, borrowed where it can be.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: de::Error>(self, value: &'de str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Borrowed(value)))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Key<'de>, E> {
        Ok(Key(Cow::Owned(value.to_owned())))
    }
}

/// Writes a string that stands in the text as it is: there is no escape in it, and
/// JSON has no control character without one but DEL.
fn write_unescaped(out: &mut String, text: &str) {
    if memchr::memchr(0x7f, text.as_bytes()).is_some() {
        return write_string(out, text);
    }
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// Writes a string: control characters and DEL as `\u00xx` unless they have a
/// short form.
fn write_string(out: &mut String, text: &str) {
    out.push('"');
    // Most text needs no escape and is copied in one piece; what needs one is
    // ASCII, so a byte of it is never part of another character.
    let mut rest = text;
    while let Some(at) = rest.bytes().position(is_escaped) {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            control => {
                let _ = write!(out, "\\u{control:04x}");
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\' || byte == 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

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
    fn a_key_twice_is_found_among_many_and_at_every_depth() {
        let many: Vec<String> = (0..200).map(|n| format!("\"k{n}\":0")).collect();
        let many = many.join(",");
        assert!(parse(format!("{{{many}}}").as_bytes()).is_ok());
        for twice in [0, 15, 16, 17, 199] {
            let text = format!("{{\"a\":[{{{many},\"\\u006b{twice}\":0}}]}}");
            let wanted = format!("duplicate key \"k{twice}\"");
            assert!(refusal(&text).contains(&wanted), "{twice}");
        }
        assert!(refusal("{\"a\":{\"b\":1},\"a\":2}").contains("duplicate"));
        assert!(parse(b"{\"a\":{\"a\":{\"a\":1}}}").is_ok());
    }

    #[test]
    fn keys_are_sorted_at_every_depth_and_one_is_left_out_at_the_first() {
        let text = b"{\"b\":{\"d\":[{},{\"z\":1,\"y\":[]}],\"c\":0},\"a\":{\"b\":2}}";
        let sorted = "{\"a\":{\"b\":2},\"b\":{\"c\":0,\"d\":[{},{\"y\":[],\"z\":1}]}}";
        assert_eq!(canonical(text).unwrap(), sorted);
        let without = |text: &[u8], key: &str| {
            let with = canonical_with(text, key).unwrap();
            assert_eq!(with.text(), canonical(text).unwrap());
            // The careful reader finds the same place.
            let careful = carefully(text, Some(key)).unwrap();
            assert_eq!((&careful.out, &careful.apart), (&with.text, &with.apart));
            with.without().concat()
        };
        assert_eq!(without(text, "b"), "{\"a\":{\"b\":2}}");
        assert_eq!(without(b"{\"b\":1}", "b"), "{}");
        assert_eq!(without(b"[{\"b\":1}]", "b"), "[{\"b\":1}]");
        assert_eq!(without(b"{}", "b"), "{}");
        let three = b"{\"c\":[],\"b\":{},\"a\":\"\"}";
        assert_eq!(without(three, "a"), "{\"b\":{},\"c\":[]}");
        assert_eq!(without(three, "b"), "{\"a\":\"\",\"c\":[]}");
        assert_eq!(without(three, "c"), "{\"a\":\"\",\"b\":{}}");
        assert_eq!(without(three, "d"), canonical(three).unwrap());
        // What is left out is no less strict.
        assert!(canonical_with(b"{\"b\":1,\"b\":1}", "b").is_err());
        assert!(canonical_with(b"{\"b\":1.5}", "b").is_err());
    }

    #[test]
    fn every_string_has_one_spelling() {
        for (text, wanted) in [
            ("\"a\u{7f}\"", "\"a\\u007f\""),
            ("\"\\u0061\\u007f\\n\"", "\"a\\u007f\\n\""),
            ("{\"\u{7f}\":\"\\/\"}", "{\"\\u007f\":\"/\"}"),
            ("{\"\\u007f\":\"\u{e9}\"}", "{\"\\u007f\":\"\u{e9}\"}"),
            (
                "\"\\u0000\\u001f\\b\\f\\r\\t\\\\\\\"\"",
                "\"\\u0000\\u001f\\b\\f\\r\\t\\\\\\\"\"",
            ),
        ] {
            assert_eq!(canonical(text.as_bytes()).unwrap(), wanted, "{text}");
        }
        // What would need an escape and has none is not JSON.
        for raw in 0..0x20u8 {
            assert!(canonical(&[b'"', raw, b'"']).is_err(), "{raw}");
        }
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
