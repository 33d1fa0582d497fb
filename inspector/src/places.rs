//! What stands at the places that a claim rests on.

use crate::bundle::Judged;
use crate::packet::{Expect, Extent, Item, Locator, Packet, Place, Scalar};
use crate::provenance::Standing;
use crate::quote;
use crate::reader::Read;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::OnceCell;
use serde_json::Value;
use tki_evidence::strict;
use tki_evidence::verification::Decision;
use tki_text::printable;

/// Everything that was read and found out about the items.
#[derive(Debug)]
pub struct Case<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// What was read of each item.
    pub reads: &'a [Read],
    /// What is known of each item's origin.
    pub standings: &'a [Standing],
    /// What bundles came to, by their item.
    pub bundles: &'a BTreeMap<usize, Judged>,
    at: BTreeMap<&'a str, usize>,
    documents: BTreeMap<usize, OnceCell<Option<Value>>>,
    transcripts: BTreeMap<usize, OnceCell<Steps>>,
}

/// The steps of a transcript by number, each with the exit statuses that lines of that number
/// say: one, if it is in order.
type Steps = BTreeMap<u64, Vec<Option<i64>>>;

/// What was found at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The item's place in the packet.
    pub item: usize,
    /// It is there, and as expected.
    pub holds: bool,
    /// Something is there, and it is not what is expected.
    pub is_false: bool,
    /// Two values that should be the same are not.
    pub differs: bool,
    /// Something was expected of it, beyond being there.
    pub is_fact: bool,
    /// Entries were counted, or absence was looked for, in a part of a document.
    pub in_excerpt: bool,
    /// In a person's words.
    pub found: String,
}

impl<'a> Case<'a> {
    /// A case; documents are read as JSON when a place in them is first looked at.
    pub fn new(
        packet: &'a Packet,
        reads: &'a [Read],
        standings: &'a [Standing],
        bundles: &'a BTreeMap<usize, Judged>,
    ) -> Self {
        let ids = packet.items.iter().enumerate();
        Self {
            packet,
            reads,
            standings,
            bundles,
            at: ids
                .clone()
                .map(|(index, item)| (item.id.as_str(), index))
                .collect(),
            documents: ids
                .clone()
                .map(|(index, _)| (index, OnceCell::new()))
                .collect(),
            transcripts: ids.map(|(index, _)| (index, OnceCell::new())).collect(),
        }
    }

    /// The item with this id.
    pub fn index(&self, id: &str) -> Option<usize> {
        self.at.get(id).copied()
    }

    /// Looks at a place. `None` if there is no such item, which no packet has.
    pub fn look(&self, place: &Place) -> Option<Looked> {
        let item = self.index(&place.item)?;
        let standing = &self.standings[item];
        let mut looked = Looked {
            item,
            holds: false,
            is_false: false,
            differs: false,
            is_fact: place.expect.is_some(),
            in_excerpt: false,
            found: String::new(),
        };
        if !standing.usable {
            let codes = standing
                .findings
                .iter()
                .map(|finding| finding.code.as_str());
            let codes: Vec<&str> = codes.collect();
            looked.found = format!("the item does not stand: {}", codes.join(", "));
            return Some(looked);
        }
        match &place.at {
            Some(Locator::Lines(lines)) => self.quote(&mut looked, lines),
            Some(Locator::Json(pointer)) => self.json(&mut looked, pointer, place),
            Some(Locator::Step(step)) => self.step(&mut looked, *step, place),
            None => self.whole(&mut looked, place),
        }
        Some(looked)
    }

    fn item(&self, looked: &Looked) -> &'a Item {
        &self.packet.items[looked.item]
    }

    fn text(&self, item: usize) -> Option<&'a str> {
        let held = self.reads[item].held.as_ref()?;
        core::str::from_utf8(held).ok()
    }

    fn quote(&self, looked: &mut Looked, lines: &crate::packet::Lines) {
        let Some(text) = self.text(looked.item) else {
            looked.found = "the item is no UTF-8 text".to_owned();
            return;
        };
        looked.holds = quote::stands_in(text, lines.first, lines.last, &lines.quote);
        looked.found = match looked.holds {
            true => "the quoted text stands there".to_owned(),
            false => "other text stands there".to_owned(),
        };
    }

    /// The item as a strict JSON document.
    fn document(&self, item: usize) -> Option<&Value> {
        let read = || strict::parse(self.reads[item].held.as_ref()?).ok();
        self.documents.get(&item)?.get_or_init(read).as_ref()
    }

    fn value(&self, item: usize, pointer: &str) -> Result<&Value, &'static str> {
        let document = self.document(item).ok_or("the item is no strict JSON")?;
        document.pointer(pointer).ok_or("the pointer leads nowhere")
    }

    fn json(&self, looked: &mut Looked, pointer: &str, place: &Place) {
        let value = match self.value(looked.item, pointer) {
            Ok(value) => value,
            Err(why) => {
                looked.found = why.to_owned();
                return;
            }
        };
        looked.found = shown(value);
        let is_part = self.item(looked).extent == Extent::Excerpt;
        let holds = match &place.expect {
            None => Some(true),
            Some(Expect::Equals(scalar)) => Some(equals(value, scalar)),
            Some(Expect::Count(count)) => {
                looked.in_excerpt = is_part;
                entries(value).map(|entries| entries == *count)
            }
            Some(Expect::AtLeast(least)) => match value.as_i64() {
                Some(number) => Some(number >= *least),
                None => entries(value)
                    .map(|entries| i64::try_from(entries).unwrap_or(i64::MAX) >= *least),
            },
            Some(Expect::Absent(name)) => {
                looked.in_excerpt = is_part;
                is_absent(value, name)
            }
            Some(Expect::SameAs(other)) => {
                let item = self.index(&other.item);
                let usable = item.filter(|item| self.standings[*item].usable);
                let found = usable.map(|item| self.value(item, &other.json));
                match found {
                    Some(Ok(found)) => {
                        looked.differs = found != value;
                        if looked.differs {
                            looked.found += &format!("; {} has {}", other.item, shown(found));
                        }
                        Some(found == value)
                    }
                    Some(Err(why)) => {
                        looked.found = format!("{}: {why}", other.item);
                        return;
                    }
                    None => {
                        looked.found = format!("{} does not stand", other.item);
                        return;
                    }
                }
            }
            Some(Expect::Exit(_) | Expect::Accepted(_)) => None,
        };
        looked.holds = holds == Some(true);
        looked.is_false = holds != Some(true);
        if holds.is_none() {
            looked.found += ", of which that cannot be said";
        }
    }

    /// The item as a transcript; one that is no text has no steps.
    fn steps(&self, item: usize) -> Option<&Steps> {
        let read = || {
            let mut steps = Steps::new();
            let lines = self.text(item).unwrap_or_default().lines();
            for value in lines.filter_map(|line| strict::parse(line.as_bytes()).ok()) {
                if let Some(step) = value.get("step").and_then(Value::as_u64) {
                    let exit = value.get("exit").and_then(Value::as_i64);
                    steps.entry(step).or_default().push(exit);
                }
            }
            steps
        };
        Some(self.transcripts.get(&item)?.get_or_init(read))
    }

    fn step(&self, looked: &mut Looked, step: u64, place: &Place) {
        let known = self.steps(looked.item).and_then(|steps| steps.get(&step));
        let Some([exit]) = known.map(Vec::as_slice) else {
            looked.found = "no line, or more than one, is that step".to_owned();
            return;
        };
        looked.found = match exit {
            Some(exit) => format!("it ended with {exit}"),
            None => "it says no exit status".to_owned(),
        };
        match &place.expect {
            Some(Expect::Exit(wanted)) => {
                looked.holds = *exit == Some(*wanted);
                looked.is_false = exit.is_some() && !looked.holds;
            }
            _ => looked.holds = true,
        }
    }

    fn whole(&self, looked: &mut Looked, place: &Place) {
        let Some(Expect::Accepted(wanted)) = &place.expect else {
            looked.found = "it is the whole item, and no place in it".to_owned();
            return;
        };
        let Some(judged) = self.bundles.get(&looked.item) else {
            looked.found = "it is no evidence bundle".to_owned();
            return;
        };
        let is_accepted = judged.decision == Some(Decision::B4PrimeAccepted);
        looked.holds = is_accepted == *wanted;
        looked.is_false = is_accepted && !*wanted;
        let open = judged.result.open.iter().map(|step| step.code.as_str());
        let open: Vec<&str> = open.collect();
        looked.found = match open.is_empty() {
            true => judged.result.decision.clone(),
            false => format!("{}: {}", judged.result.decision, open.join(", ")),
        };
    }
}

/// A value in one line, as much of it as a person reads.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(array) => format!("an array of {}", array.len()),
        Value::Object(object) => format!("an object of {}", object.len()),
        Value::String(text) => format!("{:?}", printable(text, 120)),
        other => other.to_string(),
    }
}

fn equals(value: &Value, scalar: &Scalar) -> bool {
    match scalar {
        Scalar::Truth(truth) => value.as_bool() == Some(*truth),
        Scalar::Number(number) => value.as_i64() == Some(*number),
        Scalar::Text(text) => value.as_str() == Some(text),
    }
}

fn entries(value: &Value) -> Option<u64> {
    match value {
        Value::Array(array) => Some(array.len() as u64),
        Value::Object(object) => Some(object.len() as u64),
        _ => None,
    }
}

/// None of the entries is called so; `None` if there are no entries to look at.
fn is_absent(value: &Value, name: &str) -> Option<bool> {
    let is_called = |entry: &Value| {
        let named = |key: &str| entry.get(key).and_then(Value::as_str) == Some(name);
        entry.as_str() == Some(name) || named("name") || named("id")
    };
    match value {
        Value::Array(array) => Some(!array.iter().any(is_called)),
        Value::Object(object) => Some(!object.contains_key(name)),
        _ => None,
    }
}
