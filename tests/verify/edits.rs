//! Every field edited alone.

use super::real;
use crate::common::bundle::{default_inputs, restamp, verify_alone};
use crate::common::sweep::{at_least, is_tried, stride};
use crate::common::{run, tool};
use serde_json::Value;
use std::fs;
use tki_attest::verify::{Decision, StepCode};

/// A step on the way to a field.
#[derive(Clone)]
enum Step {
    Key(String),
    Index(usize),
}

/// One edit: where, what it is called, and the document after it.
struct Edit {
    name: String,
    document: Value,
}

/// Calls `with` for every single edit of the document.
fn every_edit(document: &Value, mut with: impl FnMut(Edit)) {
    let mut pending: Vec<Vec<Step>> = vec![Vec::new()];
    let mut number = 0;
    while let Some(path) = pending.pop() {
        let place = name(document, &path);
        let mut edit = |kind: &str, change: &dyn Fn(&mut Value)| {
            number += 1;
            if !is_tried(number) {
                return;
            }
            let mut document = document.clone();
            change(at(&mut document, &path));
            with(Edit {
                name: format!("{place} {kind}"),
                document,
            });
        };
        match read(document, &path) {
            Value::Null => edit("set", &|value| *value = "x".into()),
            Value::Bool(_) => edit("flipped", &|value| {
                *value = (!value.as_bool().unwrap()).into()
            }),
            Value::Number(_) => {
                edit("increased", &|value| {
                    *value = (value.as_i64().unwrap() + 1).into()
                });
            }
            Value::String(text) => {
                edit("extended", &|value| {
                    *value = format!("{}x", value.as_str().unwrap()).into()
                });
                if !text.is_empty() {
                    edit("emptied", &|value| *value = "".into());
                    edit("cut", &|value| {
                        let mut text = value.as_str().unwrap().to_owned();
                        text.remove(0);
                        *value = text.into();
                    });
                }
            }
            Value::Array(items) => {
                edit("grown", &|value| {
                    let items = value.as_array_mut().unwrap();
                    items.push(items.last().cloned().unwrap_or("x".into()));
                });
                if !items.is_empty() {
                    edit("shortened", &|value| {
                        drop(value.as_array_mut().unwrap().pop())
                    });
                }
                if items.len() > 1 && items.first() != items.last() {
                    edit("reversed", &|value| value.as_array_mut().unwrap().reverse());
                }
                for index in 0..items.len() {
                    pending.push([&path[..], &[Step::Index(index)]].concat());
                }
            }
            Value::Object(map) => {
                edit("given a key", &|value| value["unknown"] = 1.into());
                for key in map.keys() {
                    edit(&format!("without {key}"), &|value| {
                        value.as_object_mut().unwrap().remove(key);
                    });
                    pending.push([&path[..], &[Step::Key(key.clone())]].concat());
                }
            }
        }
    }
}

fn at<'a>(document: &'a mut Value, path: &[Step]) -> &'a mut Value {
    path.iter().fold(document, |value, step| match step {
        Step::Key(key) => &mut value[key],
        Step::Index(index) => &mut value[index],
    })
}

fn read<'a>(document: &'a Value, path: &[Step]) -> &'a Value {
    path.iter().fold(document, |value, step| match step {
        Step::Key(key) => &value[key],
        Step::Index(index) => &value[index],
    })
}

/// A field's name: probes by their id, other items of lists by nothing.
fn name(document: &Value, path: &[Step]) -> String {
    let mut name = String::new();
    let mut value = document;
    for step in path {
        match step {
            Step::Key(key) => {
                value = &value[key];
                if !name.is_empty() {
                    name.push('.');
                }
                name += key;
            }
            Step::Index(index) => {
                value = &value[index];
                let id = value["probe_id"].as_str().unwrap_or_default();
                name += &format!("[{id}]");
            }
        }
    }
    name
}

#[test]
fn no_edit_is_accepted_with_the_old_stamp() {
    let inputs = default_inputs();
    let (mut edits, mut refused) = (0, 0);
    assert_eq!(accepted(&real().value, &inputs), Some(true));
    every_edit(&real().value, |edit| {
        edits += 1;
        match accepted(&edit.document, &inputs) {
            None => refused += 1,
            Some(accepted) => assert!(!accepted, "{} was accepted", edit.name),
        }
    });
    let enough = at_least(edits, 3001) && at_least(refused, 501);
    assert!(enough, "{edits} {refused}");
}

fn accepted(document: &Value, inputs: &tki_attest::verify::Inputs) -> Option<bool> {
    let finding = verify_alone(document.to_string().as_bytes(), inputs)?;
    Some(finding.decision == Decision::B4PrimeAccepted)
}

#[test]
fn the_command_line_refuses_edits_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut number = 0;
    every_edit(&real().value, |edit| {
        number += 1;
        let every = if stride() == 1 { 97 } else { 7 };
        if number % every != 0 {
            return;
        }
        let path = folder.path().join("edited.json");
        fs::write(&path, edit.document.to_string()).unwrap();
        let said = run(tool().arg("verify").arg(&path).arg("--evidence-only"));
        assert!([1, 2, 3].contains(&said.status), "{}: {said:?}", edit.name);
        assert!(!said.stdout.contains("B4_PRIME_ACCEPTED"), "{}", edit.name);
    });
    assert!(at_least(number, 3001), "{number}");
}

/// A bundle without exactly the required probes is not proven, whatever its
/// stamp and summary say.
#[test]
fn the_probes_must_be_exactly_the_required_ones() {
    let inputs = default_inputs();
    type Change = fn(&mut Vec<Value>);
    let changes: [(&str, Change); 6] = [
        ("removed", |probes| drop(probes.remove(3))),
        ("doubled", |probes| probes.push(probes[3].clone())),
        ("renamed", |probes| {
            probes[3]["probe_id"] = "PR-ENV-2".into()
        }),
        ("swapped", |probes| probes.swap(0, 1)),
        ("replaced", |probes| probes[3] = probes[4].clone()),
        ("none", Vec::clear),
    ];
    for (name, change) in changes {
        let mut document = real().value.clone();
        change(document["probes"].as_array_mut().unwrap());
        restamp(&mut document);
        let finding = verify_alone(document.to_string().as_bytes(), &inputs).unwrap();
        assert_ne!(finding.decision, Decision::B4PrimeAccepted, "{name}");
        let step = finding
            .steps
            .iter()
            .find(|step| step.code == StepCode::Probes)
            .unwrap();
        assert_eq!(step.outcome, tki_attest::verify::Outcome::Blocked, "{name}");
    }
}
