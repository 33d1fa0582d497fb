//! What changed between two runs: every field, by its place, in groups. Lists
//! are compared by what their items are called, not by their position.

use serde::Serialize;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use std::collections::BTreeMap;

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// What the runs came to: verdicts, controls, matrix, status.
    Verdicts,
    /// What was seen: observations, kernel texts, witnesses, inventory.
    Facts,
    /// What it was seen with: engine, kernel, image, profile, settings, tool.
    Environment,
    /// What names a run and differs between any two.
    Identity,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What it is about.
    pub group: Group,
    /// The field.
    pub place: String,
    /// What the first run says; absent if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// What the second run says; absent if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<String>,
}

/// Everything that changed, in groups and by place.
pub fn compare(first: &Value, second: &Value) -> Vec<Change> {
    let (mut left, mut right) = (BTreeMap::new(), BTreeMap::new());
    flatten(String::new(), first, &mut left);
    flatten(String::new(), second, &mut right);
    let mut places: Vec<&String> = left.keys().chain(right.keys()).collect();
    places.sort();
    places.dedup();
    let mut changes: Vec<Change> = places
        .into_iter()
        .filter(|place| left.get(*place) != right.get(*place))
        .map(|place| Change {
            group: group(place),
            place: place.clone(),
            first: left.get(place).cloned(),
            second: right.get(place).cloned(),
        })
        .collect();
    changes.sort_by_key(|change| change.group);
    changes
}

/// The lines of two texts that differ, with their signs.
pub fn lines(first: &str, second: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(first, second);
    let changed = diff.iter_all_changes().filter_map(|change| {
        let sign = match change.tag() {
            ChangeTag::Equal => return None,
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        Some(format!("{sign} {}", change.value().trim_end_matches('\n')))
    });
    changed.collect()
}

fn group(place: &str) -> Group {
    let top = place.split(['.', '[']).next().unwrap_or_default();
    match top {
        "run_id" | "started" | "finished" | "request" | "artifacts" | "evidence_sha256" => {
            Group::Identity
        }
        "status" | "summary" | "matrix" | "not_proven" => Group::Verdicts,
        "probes" | "controls" if place.contains("artifact_path") => Group::Identity,
        "probes" if place.contains(".observations") || place.contains(".actual_") => Group::Facts,
        "probes" | "controls" => Group::Verdicts,
        "raw" | "witnesses" | "inventory" | "information" => Group::Facts,
        _ => Group::Environment,
    }
}

/// Names by which items of lists are known.
const NAMES: &[&[&str]] = &[
    &["probe_id"],
    &["control"],
    &["test"],
    &["fact"],
    &["phase", "operation"],
    &["path"],
    &["target"],
    &["name"],
];

fn flatten(place: String, value: &Value, out: &mut BTreeMap<String, String>) {
    match value {
        Value::Null => drop(out.insert(place, "null".into())),
        Value::Bool(value) => drop(out.insert(place, value.to_string())),
        Value::Number(value) => drop(out.insert(place, value.to_string())),
        Value::String(text) => drop(out.insert(place, text.clone())),
        Value::Object(map) => {
            for (key, value) in map {
                let below = if place.is_empty() {
                    key.clone()
                } else {
                    format!("{place}.{key}")
                };
                flatten(below, value, out);
            }
        }
        Value::Array(items) => {
            if items
                .iter()
                .all(|item| matches!(item, Value::String(_) | Value::Number(_)))
            {
                let lines: Vec<String> = items.iter().map(scalar).collect();
                out.insert(place, lines.join("\n"));
                return;
            }
            let mut seen = BTreeMap::new();
            for (index, item) in items.iter().enumerate() {
                let name = called(item).unwrap_or_else(|| index.to_string());
                let count = seen.entry(name.clone()).or_insert(0u32);
                *count += 1;
                let below = match count {
                    1 => format!("{place}[{name}]"),
                    count => format!("{place}[{name} #{count}]"),
                };
                flatten(below, item, out);
            }
        }
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

fn called(item: &Value) -> Option<String> {
    let Value::Object(map) = item else {
        return None;
    };
    NAMES.iter().find_map(|names| {
        let parts: Option<Vec<String>> = names
            .iter()
            .map(|name| map.get(*name).map(scalar))
            .collect();
        parts.map(|parts| parts.join(" "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tki_evidence::strict::parse;

    fn changes(first: &str, second: &str) -> Vec<Change> {
        compare(
            &parse(first.as_bytes()).unwrap(),
            &parse(second.as_bytes()).unwrap(),
        )
    }

    #[test]
    fn items_are_compared_by_their_names() {
        let first =
            r#"{"probes":[{"probe_id":"A","verdict":"PASS"},{"probe_id":"B","verdict":"PASS"}]}"#;
        let swapped =
            r#"{"probes":[{"probe_id":"B","verdict":"PASS"},{"probe_id":"A","verdict":"PASS"}]}"#;
        assert_eq!(changes(first, swapped), []);
        let failed = first.replace("\"B\",\"verdict\":\"PASS\"", "\"B\",\"verdict\":\"FAIL\"");
        let found = changes(first, &failed);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "probes[B].verdict");
        assert_eq!(found[0].group, Group::Verdicts);
        let gone = changes(first, r#"{"probes":[{"probe_id":"A","verdict":"PASS"}]}"#);
        assert_eq!((gone.len(), &gone[0].second), (2, &None));
    }

    #[test]
    fn texts_are_compared_by_lines() {
        assert_eq!(lines("a\nb\nc\n", "a\nx\nc\n"), ["- b", "+ x"]);
        assert_eq!(lines("a", "a"), Vec::<String>::new());
    }
}
