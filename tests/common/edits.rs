//! A generator of edits: of every kind of field in a bundle, a sample, in every way that
//! such a value can be wrong.

use serde_json::Value;
use std::collections::BTreeMap;

/// How many fields of one kind are edited, and how many lines of one text.
const SAMPLES: usize = 8;
const LINES: usize = 24;

/// Observations are many, and of many kinds.
const OBSERVATIONS: usize = 40;

/// A way through the document.
pub type Path = Vec<Step>;

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Into an object.
    Key(String),
    /// Into a list.
    Index(usize),
}

/// One edit: a field, which of its lines, and its new value.
#[derive(Clone, Debug)]
pub struct Edit {
    /// Where it is.
    pub path: Path,
    /// What is done to it.
    pub kind: String,
    /// Which line of a text it is about.
    pub line: Option<String>,
    /// What stands there afterwards.
    pub value: Value,
}

/// The value at a path.
pub fn at<'a>(document: &'a mut Value, path: &[Step]) -> &'a mut Value {
    path.iter().fold(document, |value, step| match step {
        Step::Key(key) => &mut value[key],
        Step::Index(index) => &mut value[index],
    })
}

/// A field's path as the table has it: places in lists do not count.
pub fn generic(path: &[Step]) -> String {
    let mut name = String::new();
    for step in path {
        match step {
            Step::Key(key) if name.is_empty() => name += key,
            Step::Key(key) => name += &format!(".{key}"),
            Step::Index(_) => name += "[]",
        }
    }
    name
}

/// Every value of a document, lists and leaves, with its path.
fn values(document: &Value) -> Vec<(Path, &Value)> {
    let mut found = Vec::new();
    let mut pending = vec![(Path::new(), document)];
    while let Some((path, value)) = pending.pop() {
        let below = |step| [&path[..], &[step]].concat();
        match value {
            Value::Object(map) => {
                pending.extend(map.iter().map(|(k, v)| (below(Step::Key(k.clone())), v)));
                continue;
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                pending.extend(items.map(|(n, v)| (below(Step::Index(n)), v)));
            }
            _ => {}
        }
        found.push((path, value));
    }
    found.sort_by_key(|(path, _)| format!("{path:?}"));
    found
}

/// Of many things, some that are spread evenly.
fn sample<T: Clone>(all: &[T], most: usize) -> Vec<T> {
    let step = all.len().div_ceil(most).max(1);
    all.iter().step_by(step).cloned().collect()
}

/// What a text looks like: two of the same look may stand for each other.
fn look(text: &str) -> String {
    let digit = |c: char| match c {
        'a'..='f' | '0'..='9' if text.len() >= 32 => 'h',
        '0'..='9' => '0',
        'A'..='Z' => 'A',
        'a'..='z' => 'a',
        other => other,
    };
    let mut look: Vec<char> = text.chars().map(digit).collect();
    look.dedup();
    look.into_iter().collect()
}

/// The last number of a line is another one.
fn other_number(line: &str) -> Option<String> {
    let last = line.rfind(|c: char| c.is_ascii_digit())?;
    let digit = line[last..].chars().next()?.to_digit(10)?;
    let mut other = line.to_owned();
    other.replace_range(last..=last, &((digit + 1) % 10).to_string());
    Some(other)
}

/// Every edit of a value.
fn edits_of(path: &Path, value: &Value, other: Option<&Value>) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut add = |kind: &str, line: Option<&str>, value: Value| {
        edits.push(Edit {
            path: path.clone(),
            kind: kind.into(),
            line: line.map(str::to_owned),
            value,
        });
    };
    match value {
        Value::Null | Value::Object(_) => {}
        Value::Bool(flag) => add("flipped", None, (!flag).into()),
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or(0);
            add("increased", None, (number + 1).into());
            add("zero", None, 0.into());
            add("huge", None, u32::MAX.into());
        }
        Value::String(text) if text.lines().count() > 1 => {
            let lines: Vec<&str> = text.lines().collect();
            let places: Vec<usize> = (0..lines.len()).collect();
            for place in sample(&places, LINES) {
                let with = |replaced: Vec<String>| -> Value {
                    let (before, after) = (&lines[..place], &lines[place + 1..]);
                    let all = before.iter().map(|l| (*l).to_owned()).chain(replaced);
                    let all = all.chain(after.iter().map(|l| (*l).to_owned()));
                    let mut text = all.collect::<Vec<_>>().join("\n");
                    text.push('\n');
                    text.into()
                };
                let line = lines[place];
                add("line dropped", Some(line), with(Vec::new()));
                add(
                    "line doubled",
                    Some(line),
                    with(vec![line.into(), line.into()]),
                );
                if let Some(other) = other_number(line) {
                    add("number changed", Some(line), with(vec![other]));
                }
            }
            add("emptied", None, "".into());
        }
        Value::String(text) => {
            add("extended", None, format!("{text}x").into());
            add("escaped", None, format!("{text}\u{1b}[2J").into());
            if !text.is_empty() {
                add("emptied", None, "".into());
            }
            if let Some(other) = other_number(text) {
                add("number changed", None, other.into());
            }
            if let Some(other) = other {
                add("taken from elsewhere", None, other.clone());
            }
        }
        Value::Array(items) => {
            if let Some(last) = items.last() {
                add(
                    "grown",
                    None,
                    [&items[..], std::slice::from_ref(last)].concat().into(),
                );
                add("shortened", None, items[..items.len() - 1].to_vec().into());
                add("emptied", None, Vec::<Value>::new().into());
            }
            if items.first() != items.last() {
                add(
                    "reversed",
                    None,
                    items.iter().rev().cloned().collect::<Vec<_>>().into(),
                );
            }
        }
    }
    edits
}

/// Every edit of a document, of each kind of field a sample.
pub fn edits(document: &Value) -> Vec<Edit> {
    let mut kinds: BTreeMap<String, Vec<(Path, &Value)>> = BTreeMap::new();
    let mut looks: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for (path, value) in values(document) {
        if let Value::String(text) = value
            && text.len() < 200
        {
            looks.entry(look(text)).or_default().push(value);
        }
        kinds.entry(generic(&path)).or_default().push((path, value));
    }
    let mut found = Vec::new();
    for (name, own) in &kinds {
        let most = match name.starts_with("probes[].observations[]") {
            true => OBSERVATIONS,
            false => SAMPLES,
        };
        for (path, value) in sample(own, most) {
            let text = value.as_str().unwrap_or_default();
            let alike = looks.get(&look(text)).into_iter().flatten();
            let mut others = own.iter().map(|(_, other)| other).chain(alike);
            let other = others.find(|other| **other != value && other.is_string());
            found.extend(edits_of(&path, value, other.copied()));
        }
    }
    found
}
