//! The text of `claims.toml`, and where in it something stands.

use crate::pack::error::PackError;
use crate::pack::form::Claims;
use crate::pack::mistake::Mistake;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tki_evidence::strict::MAX_INTEGER;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A `claims.toml` that was read.
#[derive(Debug)]
pub struct Source<'a> {
    /// The file, for messages.
    path: PathBuf,
    text: &'a str,
    table: Spanned<DeTable<'a>>,
}

impl<'a> Source<'a> {
    /// Reads a text, and everything that it says.
    pub fn parse(path: &Path, bytes: &'a [u8]) -> Result<(Self, Claims), PackError> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let good = &bytes[..error.valid_up_to()];
                let (line, column) = line_and_column(&String::from_utf8_lossy(good), good.len());
                let path = path.to_owned();
                return Err(PackError::NotText { path, line, column });
            }
        };
        let malformed = |error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            let (line, column) = line_and_column(text, at);
            PackError::Form {
                path: path.to_owned(),
                line,
                column,
                error: Box::new(error),
            }
        };
        let table = DeTable::parse(text).map_err(malformed)?;
        let claims: Claims = toml::from_str(text).map_err(malformed)?;
        let source = Self {
            path: path.to_owned(),
            text,
            table,
        };
        match inexact(source.table.get_ref()) {
            Some((place, span)) => Err(source.at(&place, &span, Mistake::Integer)),
            None => Ok((source, claims)),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A mistake at a place such as `claim[3].evidence[0].quote`. What is not there is shown
    /// where it would have to be.
    pub fn mistake(&self, place: &str, mistake: Mistake) -> PackError {
        let span = self.span(place);
        self.at(place, &span, mistake)
    }

    fn at(&self, place: &str, span: &Range<usize>, mistake: Mistake) -> PackError {
        let (line, column) = line_and_column(self.text, span.start);
        PackError::Mistake {
            path: self.path.clone(),
            line,
            column,
            place: place.to_owned(),
            mistake: Box::new(mistake),
        }
    }

    /// Where the deepest value stands that is on the way to a place.
    fn span(&self, place: &str) -> Range<usize> {
        let steps: Vec<&str> = place
            .split(['.', '[', ']'])
            .filter(|step| !step.is_empty())
            .collect();
        let table = self.table.get_ref();
        // A key that an item does not have may come from the defaults.
        if let ["item", index, key] = steps[..]
            && follow(table, &["item", index, key]).1 == 2
            && let (Some(span), 2) = follow(table, &["defaults", key])
        {
            return span;
        }
        follow(table, &steps).0.unwrap_or(0..0)
    }
}

/// Goes down as far as there is something; where that stands, and how many steps it took.
fn follow(table: &DeTable, steps: &[&str]) -> (Option<Range<usize>>, usize) {
    let Some((first, rest)) = steps.split_first() else {
        return (None, 0);
    };
    let Some(mut value) = table.get(*first) else {
        return (None, 0);
    };
    let mut taken = 1;
    for step in rest {
        let next = match (value.get_ref(), step.parse::<usize>()) {
            (DeValue::Array(array), Ok(index)) => array.get(index),
            (DeValue::Table(table), _) => table.get(*step),
            _ => None,
        };
        let Some(next) = next else { break };
        value = next;
        taken += 1;
    }
    (Some(value.span()), taken)
}

/// The first number that not every reader of JSON keeps, with its place.
fn inexact(table: &DeTable) -> Option<(String, Range<usize>)> {
    let mut pending: Vec<(String, &Spanned<DeValue>)> = table
        .iter()
        .map(|(key, value)| (key.get_ref().to_string(), value))
        .collect();
    while let Some((place, value)) = pending.pop() {
        match value.get_ref() {
            DeValue::Integer(number) => {
                let digits = number.as_str().trim_start_matches(['+', '-']);
                let size = u64::from_str_radix(digits, number.radix());
                if size.map_or(true, |size| size > MAX_INTEGER as u64) {
                    return Some((place, value.span()));
                }
            }
            DeValue::Array(array) => pending.extend(
                array
                    .iter()
                    .enumerate()
                    .map(|(index, value)| (format!("{place}[{index}]"), value)),
            ),
            DeValue::Table(table) => pending.extend(
                table
                    .iter()
                    .map(|(key, value)| (format!("{place}.{}", key.get_ref()), value)),
            ),
            _ => {}
        }
    }
    None
}

/// Both from 1; the column counts characters.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::form::SCHEMA;

    fn with(text: &str) -> String {
        format!("schema = \"{SCHEMA}\"\nid = \"p\"\n{text}")
    }

    fn place(text: &str, place: &str) -> String {
        let text = with(text);
        let (source, _) = Source::parse(Path::new("c.toml"), text.as_bytes()).unwrap();
        source.mistake(place, Mistake::Wheres).to_string()
    }

    fn refused(text: &str) -> String {
        let text = with(text);
        let refused = Source::parse(Path::new("c.toml"), text.as_bytes());
        refused.unwrap_err().to_string()
    }

    const TWO: &str = "[defaults]\ncaptured_by = \"x\"\n\n[[item]]\nid = \"a\"\npath = \"a\"\n\n\
                       [[item]]\nid = \"b\"\nsource = { }\n";

    #[test]
    fn a_place_is_found_with_line_and_column() {
        let two = TWO.replace("source = { }", "path = \"b\"");
        for (at, wanted) in [
            (
                "item[0].path",
                "c.toml, line 8, column 8: item[0].path says",
            ),
            ("item[1].id", "c.toml, line 11, column 6: "),
            ("item[1].captured_by", "c.toml, line 4, column 15: "),
            ("item[1].locator", "c.toml, line 10, column 1: "),
            ("claim[0].id", "c.toml, line 1, column 1: "),
        ] {
            let said = place(&two, at);
            assert!(said.starts_with(wanted), "{at}: {said}");
        }
    }

    #[test]
    fn what_is_no_key_and_what_is_no_text_is_refused_with_its_place() {
        assert!(refused(TWO).starts_with("c.toml, line 12, column 1: unknown field `source`"));
        assert!(refused("as_of = ").starts_with("c.toml, line 3, column 9: "));
        let bytes = [with("# ü").as_bytes(), b"\xff"].concat();
        let refused = Source::parse(Path::new("c.toml"), &bytes).unwrap_err();
        let wanted = "c.toml, line 3, column 4: it is not UTF-8";
        assert_eq!(refused.to_string(), wanted);
    }

    #[test]
    fn a_number_that_some_reader_would_round_is_refused() {
        let item = "[[item]]\nid = \"a\"\npath = \"a\"\nrevision = ";
        assert!(
            refused(&format!("{item}9007199254740992"))
                .contains("line 6, column 12: item[0].revision is beyond 2^53")
        );
        let text = with(&format!("{item}9007199254740991"));
        assert!(Source::parse(Path::new("c.toml"), text.as_bytes()).is_ok());
    }

    #[test]
    fn deep_nesting_is_refused() {
        refused(&format!("as_of = {}", "[".repeat(100_000)));
        refused(&format!("{} = 1", ["a"; 10_000].join(".")));
    }
}
