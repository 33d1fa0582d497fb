//! What stands in an item: quotes on lines of a text, values at JSON pointers, steps of a
//! transcript.

use crate::pack::mistake::{Absent, StepProblem};
use serde_json::Value;
use std::cell::OnceCell;
use tki_evidence::strict::{self, StrictError};
use tki_inspector::packet::{DocumentType, Item, Lines};
use tki_inspector::quote;

/// The media type of items that JSON pointers lead into.
const JSON: &str = "application/json";

/// The bytes of an item that a claim looks into, read once as what they are asked as.
#[derive(Debug)]
pub struct Content {
    bytes: Vec<u8>,
    media_type: String,
    document_type: DocumentType,
    json: OnceCell<Result<Value, StrictError>>,
    steps: OnceCell<Result<Vec<u64>, BadLine>>,
}

/// The first line of a transcript that is none.
#[derive(Debug)]
struct BadLine {
    line: usize,
    error: Option<StrictError>,
}

impl Content {
    /// The bytes of an item.
    pub fn new(bytes: Vec<u8>, item: &Item) -> Self {
        Self {
            bytes,
            media_type: item.media_type.clone(),
            document_type: item.document_type,
            json: OnceCell::new(),
            steps: OnceCell::new(),
        }
    }

    /// The lines that a quote stands on. If it stands at several places, those that are given
    /// decide.
    pub fn lines_of(&self, quote: &str, given: Option<[u64; 2]>) -> Result<Lines, Absent> {
        let text = self.text()?;
        let found = quote::find(text, quote);
        let lines = |(first, last)| Lines {
            first,
            last,
            quote: quote.to_owned(),
        };
        match given {
            Some([first, last]) if quote::stands_in(text, first, last, quote) => {
                Ok(lines((first, last)))
            }
            Some([first, last]) => Err(Absent::Elsewhere {
                given: (first, last),
                found,
            }),
            None => match found.as_slice() {
                [] => Err(nearest(text, quote)),
                [place] => Ok(lines(*place)),
                _ => Err(Absent::Several(found)),
            },
        }
    }

    /// A quote stands on its lines.
    pub fn has_lines(&self, lines: &Lines) -> Result<(), Absent> {
        let given = Some([lines.first, lines.last]);
        self.lines_of(&lines.quote, given).map(drop)
    }

    /// A JSON pointer leads somewhere.
    pub fn has_value(&self, pointer: &str) -> Result<(), Absent> {
        if self.media_type != JSON {
            return Err(Absent::NotJson(self.media_type.clone()));
        }
        let json = self.json.get_or_init(|| strict::parse(&self.bytes));
        let value = json
            .as_ref()
            .map_err(|error| Absent::Malformed(error.clone()))?;
        if value.pointer(pointer).is_some() {
            return Ok(());
        }
        let mut deepest = pointer;
        while let Some((shorter, _)) = deepest.rsplit_once('/') {
            deepest = shorter;
            if value.pointer(deepest).is_some() {
                break;
            }
        }
        Err(Absent::Pointer {
            pointer: pointer.to_owned(),
            deepest: deepest.to_owned(),
        })
    }

    /// A transcript has exactly one line with this step.
    pub fn has_step(&self, step: u64) -> Result<(), Absent> {
        if self.document_type != DocumentType::Transcript {
            return Err(Absent::NoTranscript(self.document_type));
        }
        let steps = self.steps.get_or_init(|| steps_of(&self.bytes));
        let known = steps.as_ref().map_err(|bad| Absent::StepLine {
            line: bad.line,
            problem: match &bad.error {
                Some(error) => StepProblem::Malformed(error.clone()),
                None => StepProblem::NoStep,
            },
        })?;
        match known.iter().filter(|known| **known == step).count() {
            1 => Ok(()),
            0 => Err(Absent::Step {
                step,
                known: known.clone(),
            }),
            _ => Err(Absent::StepTwice(step)),
        }
    }

    fn text(&self) -> Result<&str, Absent> {
        std::str::from_utf8(&self.bytes).map_err(|_| Absent::NotText)
    }
}

/// Where the beginning of a quote stands that does not stand anywhere as a whole. It stands
/// with so many words if it stands with more, so that halving finds how many.
fn nearest(text: &str, quote: &str) -> Absent {
    let words: Vec<&str> = quote.split_whitespace().collect();
    let found = |count: usize| quote::find(text, &words[..count].join(" "));
    let (mut good, mut bad) = (0, words.len());
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match found(middle).is_empty() {
            true => bad = middle,
            false => good = middle,
        }
    }
    Absent::Quote {
        words: good,
        nearest: found(good),
    }
}

/// The numbers of the steps of a transcript.
fn steps_of(bytes: &[u8]) -> Result<Vec<u64>, BadLine> {
    let mut steps = Vec::new();
    for (row, line) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        if row.trim_ascii().is_empty() {
            continue;
        }
        let value = strict::parse(row).map_err(|error| BadLine {
            line,
            error: Some(error),
        })?;
        let step = value.get("step").and_then(Value::as_u64);
        steps.push(step.ok_or(BadLine { line, error: None })?);
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn content(text: &str, media_type: &str, document_type: &str) -> Content {
        let item: Item = serde_json::from_value(json!({
            "id": "i", "path": "p", "sha256": "", "size": 0, "media_type": media_type,
            "document_type": document_type, "extent": "complete",
            "source": { "authority": "LOCAL", "locator": "p", "captured_at": "", "captured_by": "" }
        }))
        .unwrap();
        Content::new(text.as_bytes().to_vec(), &item)
    }

    fn why<T: std::fmt::Debug>(result: Result<T, Absent>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_quote_gets_its_lines_or_the_candidates() {
        let text = content("one two\nthree\none two four\n", "text/plain", "report");
        let lines = text.lines_of("two three", None).unwrap();
        assert_eq!((lines.first, lines.last), (1, 2));
        text.has_lines(&lines).unwrap();
        let lines = text.lines_of("one two", Some([3, 3])).unwrap();
        assert_eq!((lines.first, lines.last), (3, 3));
        let said = why(text.lines_of("one two", None));
        assert!(said.contains("2 places, on line 1, line 3"), "{said}");
        let said = why(text.lines_of("one two five", None));
        assert!(
            said.ends_with("first 2 words stand on line 1, line 3"),
            "{said}"
        );
        let said = why(text.lines_of("two three", Some([2, 2])));
        assert!(
            said.ends_with("not stand on line 2; it stands on lines 1-2"),
            "{said}"
        );
        let said = why(text.lines_of("six", None));
        assert_eq!(said, "the quote stands nowhere in the item");
    }

    #[test]
    fn a_pointer_leads_into_strict_json() {
        let text = r#"{"a":[{"b/c":1}],"":2}"#;
        let value = content(text, JSON, "listing");
        for good in ["", "/a", "/a/0/b~1c", "/"] {
            value.has_value(good).unwrap();
        }
        for bad in ["/b", "/a/1", "/a/00", "/a/-", "/a/0/b/c"] {
            assert!(value.has_value(bad).is_err(), "{bad}");
        }
        let said = why(value.has_value("/a/0/x"));
        assert_eq!(said, "the item has nothing at \"/a/0/x\"; it has \"/a/0\"");
        let said = why(content(text, "text/plain", "listing").has_value("/a"));
        assert!(said.contains("text/plain"), "{said}");
        let twice = content("{\"a\":1,\n\"a\":2}", JSON, "listing");
        assert!(why(twice.has_value("/a")).contains("line 2, column 3: duplicate key"));
        let deep = content(&"[".repeat(100_000), JSON, "listing");
        assert!(deep.has_value("/0").is_err());
    }

    #[test]
    fn a_step_is_there_exactly_once() {
        let text = "{\"step\":1,\"exit\":0}\n\n{\"step\":2,\"exit\":3}\n{\"step\":2,\"exit\":0}\n";
        let steps = content(text, "application/jsonl", "transcript");
        steps.has_step(1).unwrap();
        assert!(why(steps.has_step(2)).contains("more than once"));
        assert!(why(steps.has_step(7)).ends_with("no step 7; it has 1, 2, 2"));
        assert!(why(content(text, "text/plain", "report").has_step(1)).contains("type report"));
        let bad = content("{\"step\":1}\n{\"exit\":0}", "text/plain", "transcript");
        assert!(why(bad.has_step(1)).starts_with("line 2 of the transcript"));
        let bad = content("step 1", "text/plain", "transcript");
        assert!(why(bad.has_step(1)).contains("line 1 of the transcript"));
    }
}
