//! The stamp and the canonical form against jq, the document against its
//! schema: tools that know nothing of ours.

use super::bases::plain;
use crate::common::{need, root};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use std::fs;
use std::process::Command;
use tki_evidence::strict;

#[test]
fn the_stamp_is_what_the_documented_command_prints() {
    let real = plain();
    let command = "jq -cjS 'del(.evidence_sha256)' \"$1\" | sha256sum";
    let mut sh = Command::new("sh");
    sh.args(["-c", command, "sh"]).arg(&real.path);
    let said = need("jq", &mut sh);
    let printed = said.stdout.split(' ').next().unwrap();
    assert_eq!(printed, real.value["evidence_sha256"], "{said:?}");
}

/// Any JSON that is strict: every kind of character in keys and strings,
/// integers up to the bound, every nesting.
fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-c]{0,3}",
        proptest::collection::vec(any::<char>(), 0..6).prop_map(String::from_iter),
        proptest::collection::vec(proptest::char::range('\0', '\u{a0}'), 0..6)
            .prop_map(String::from_iter),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-strict::MAX_INTEGER..=strict::MAX_INTEGER).prop_map(Value::from),
        (-1000i64..1000).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(Map::from_iter(pairs))),
        ]
    })
}

/// One call of jq for all of them: it prints a line per value.
#[test]
fn the_canonical_form_is_what_jq_prints() {
    let mut runner = TestRunner::default();
    let mut values = vec![
        json!(strict::MAX_INTEGER),
        json!(-strict::MAX_INTEGER),
        json!({"\u{7f}": "\u{7f}\u{80}\u{9b}\u{0}\u{1b}/\\\"", "\u{1f600}": "\u{ffff}", "\u{ffff}": 1}),
    ];
    let strategy = any_json();
    values.extend((0..300).map(|_| strategy.new_tree(&mut runner).unwrap().current()));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.json");
    let texts: Vec<String> = values.iter().map(Value::to_string).collect();
    fs::write(&file, texts.join("\n")).unwrap();
    let said = need("jq", Command::new("jq").args(["-cS", "."]).arg(&file));
    assert_eq!(said.status, 0, "{said:?}");
    let printed: Vec<&str> = said.stdout.trim_end_matches('\n').split('\n').collect();
    assert_eq!(printed.len(), texts.len());
    for (text, printed) in texts.iter().zip(printed) {
        let ours = strict::canonical(text.as_bytes()).unwrap();
        assert_eq!(ours, printed, "{text:?}");
    }
}

/// Validates documents against schemas with an implementation that is not
/// ours, and shows that the schema refuses what it should.
const VALIDATE: &str = r#"
import json, sys
import jsonschema
for schema, document in zip(sys.argv[1::2], sys.argv[2::2]):
    schema, document = json.load(open(schema)), json.load(open(document))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(document)
    for key in list(document):
        value = document.pop(key)
        assert not validator.is_valid(document), "without " + key
        document[key] = {"not": "this"}
        assert not validator.is_valid(document), "another " + key
        document[key] = value
    assert not validator.is_valid({**document, "unknown": 1}), "unknown key"
    validator.validate(document)
print("valid")
"#;

#[test]
fn evidence_and_matrix_follow_their_published_schemas() {
    let schemas = root().join("evidence-schema");
    let mut python = Command::new("python3");
    python.args(["-W", "ignore", "-c", VALIDATE]);
    python
        .arg(schemas.join("evidence.v1.schema.json"))
        .arg(&plain().path);
    python
        .arg(schemas.join("matrix.v1.schema.json"))
        .arg(schemas.join("matrix-rev4.json"));
    let said = need("python3-jsonschema", &mut python);
    assert_eq!(
        (said.status, said.stdout.trim()),
        (0, "valid"),
        "{}",
        said.stderr
    );
}
