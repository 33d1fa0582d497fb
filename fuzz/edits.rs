//! Edits of a JSON document along its structure: what comes out is almost right, so it
//! gets past the first reader.

use arbitrary::Arbitrary;
use serde_json::Value;

/// One edit of a JSON document, along its structure.
#[derive(Arbitrary, Debug)]
pub enum Edit {
    /// Sets the field at this place, counted through the document.
    Set(u16, Leaf),
    /// Removes it.
    Remove(u16),
    /// Puts a copy of one place into another.
    Copy(u16, u16),
    /// Adds a field that nobody knows.
    Add(u16, String),
}

/// A value that readers stumble over.
#[derive(Arbitrary, Debug)]
pub enum Leaf {
    Null,
    Bool(bool),
    Integer(i64),
    Float(u8),
    Text(String),
    Long(u8),
    Deep(u8),
}

impl Leaf {
    fn value(&self) -> Value {
        match self {
            Leaf::Null => Value::Null,
            Leaf::Bool(value) => (*value).into(),
            Leaf::Integer(value) => (*value).into(),
            Leaf::Float(value) => (f64::from(*value) / 3.0).into(),
            Leaf::Text(text) => text.clone().into(),
            Leaf::Long(count) => "\u{1b}[31m\u{202e}x"
                .repeat(usize::from(*count) * 64)
                .into(),
            Leaf::Deep(count) => (0..*count).fold(Value::Null, |value, _| vec![value].into()),
        }
    }
}

/// Every place in a document, in its order.
fn places(value: &Value, at: String, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, format!("{at}/{key}"), out);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                places(value, format!("{at}/{index}"), out);
            }
        }
        _ => {}
    }
    out.push(at);
}

/// Applies the first edits.
pub fn apply(document: &mut Value, edits: &[Edit]) {
    let mut all = Vec::new();
    places(document, String::new(), &mut all);
    let at = |number: u16| all[usize::from(number) * 7919 % all.len()].clone();
    for edit in edits.iter().take(8) {
        match edit {
            Edit::Set(place, leaf) => {
                if let Some(value) = document.pointer_mut(&at(*place)) {
                    *value = leaf.value();
                }
            }
            Edit::Copy(from, to) => {
                if let Some(copied) = document.pointer(&at(*from)).cloned()
                    && let Some(value) = document.pointer_mut(&at(*to))
                {
                    *value = copied;
                }
            }
            Edit::Add(place, key) => {
                if let Some(Value::Object(map)) = document.pointer_mut(&at(*place)) {
                    map.insert(key.clone(), 1.into());
                }
            }
            Edit::Remove(place) => {
                let place = at(*place);
                let Some((above, last)) = place.rsplit_once('/') else {
                    continue;
                };
                match document.pointer_mut(above) {
                    Some(Value::Object(map)) => drop(map.remove(last)),
                    Some(Value::Array(items)) => {
                        if let Some(index) = last.parse().ok().filter(|n| *n < items.len()) {
                            items.remove(index);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}
