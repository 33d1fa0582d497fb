//! Every field edited alone.

use super::{default_inputs, real, restamp, verify_alone};
use crate::common::{run, tool};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use tki_attest::verify::Decision;

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
    while let Some(path) = pending.pop() {
        let place = name(document, &path);
        let mut edit = |kind: &str, change: &dyn Fn(&mut Value)| {
            let mut document = document.clone();
            change(at(&mut document, &path));
            with(Edit {
                name: format!("{place} {kind}"),
                document,
            });
        };
        match at(&mut document.clone(), &path) {
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
    assert!(edits > 3000 && refused > 500, "{edits} {refused}");
}

fn accepted(document: &Value, inputs: &tki_attest::verify::Inputs) -> Option<bool> {
    let finding = verify_alone(document.to_string().as_bytes(), inputs)?;
    Some(finding.decision == Decision::B4PrimeAccepted)
}

#[test]
fn what_a_new_stamp_can_hide_is_exactly_what_only_a_signature_protects() {
    let inputs = default_inputs();
    let mut hidden = BTreeSet::new();
    every_edit(&real().value, |mut edit| {
        restamp(&mut edit.document);
        if edit.document == real().value {
            return;
        }
        if accepted(&edit.document, &inputs) == Some(true) {
            hidden.insert(edit.name);
        }
    });
    let allowed: BTreeSet<String> = HIDDEN
        .iter()
        .flat_map(|(field, kinds)| kinds.iter().map(move |kind| format!("{field} {kind}")))
        .collect();
    let unlisted: Vec<&String> = hidden.difference(&allowed).collect();
    assert!(
        unlisted.is_empty(),
        "accepted but not listed: {unlisted:#?}"
    );
    // Which images the engine held besides ours depends on who used it before.
    let depends = |name: &&String| name.starts_with("inventory.") && name.contains("images ");
    let stale: Vec<&String> = allowed
        .difference(&hidden)
        .filter(|n| !depends(n))
        .collect();
    assert!(stale.is_empty(), "listed but not accepted: {stale:#?}");
}

/// Any change of a text.
const TEXT: &[&str] = &["cut", "emptied", "extended"];
/// A change of a text that leaves something of it.
const PART: &[&str] = &["cut", "extended"];

/// Edits that a new stamp hides from a verifier who has neither the artifacts
/// nor a signature. Nothing in the file contradicts them, because nothing
/// else in it says the same: each is the word of whoever ran the tool. No
/// verdict, no raw fact that a verdict follows from, no setting, no digest of
/// the image or the profile is among them.
const HIDDEN: &[(&str, &[&str])] = &[
    // The tool's digest and the venue's names.
    ("tool.sha256", TEXT),
    ("venue_facts.operating_system", TEXT),
    ("venue_facts.host_name", TEXT),
    ("venue_facts.machine_id_hmac", TEXT),
    ("venue_facts.boot_id", TEXT),
    ("venue_facts.kernel", TEXT),
    ("venue_facts.engine", TEXT),
    ("venue_facts.virtualisation", TEXT),
    ("venue_facts.container", TEXT),
    ("venue_facts.chassis", TEXT),
    ("venue_facts.ci_variables", &["grown"]),
    // What the engine says about itself.
    ("runtime.engine", TEXT),
    ("runtime.engine_version", TEXT),
    ("runtime.api_version", TEXT),
    ("runtime.oci_runtime", TEXT),
    ("runtime.kernel", TEXT),
    ("runtime.arch", TEXT),
    ("runtime.os", TEXT),
    ("runtime.cgroup_version", TEXT),
    ("runtime.rootless", &["flipped"]),
    ("runtime.security_options", &["grown", "shortened"]),
    ("runtime.security_options[]", TEXT),
    // For people; the settings beside them are compared.
    ("sandbox.out_backing.reason", TEXT),
    ("sandbox.gate.reason", TEXT),
    // Which images were ours to replace.
    // The last image of a list may be our own, which may come and go.
    (
        "inventory.before.images",
        &["grown", "reversed", "shortened"],
    ),
    (
        "inventory.after.images",
        &["grown", "reversed", "shortened"],
    ),
    ("inventory.own_images", &["grown", "reversed", "shortened"]),
    ("inventory.own_images[]", TEXT),
    // Files that are not there cannot be compared; --evidence-only settles for that.
    ("artifacts[].sha256", TEXT),
    ("artifacts[].bytes", &["increased"]),
    // Which call decided, and what a call that worked returned: the errno, the
    // state and the value beside them are judged.
    ("probes[PR-NET-2].observations[]", &["without step"]),
    ("probes[PR-NET-2].observations[].step", TEXT),
    ("probes[PR-FS-OUT-OK].observations[]", &["without returned"]),
    (
        "probes[PR-FS-OUT-OK].observations[].returned",
        &["increased"],
    ),
    (
        "probes[PR-EXEC-1].observations[]",
        &["without returned", "without step"],
    ),
    ("probes[PR-EXEC-1].observations[].returned", &["increased"]),
    ("probes[PR-EXEC-1].observations[].step", TEXT),
    ("probes[XP-MEM-EXEC].observations[]", &["without returned"]),
    (
        "probes[XP-MEM-EXEC].observations[].returned",
        &["increased"],
    ),
    // Worth knowing, never judged.
    ("information", &["grown", "reversed", "shortened"]),
    ("information[].name", TEXT),
    ("information[].value", TEXT),
    // What the host says about itself and about the container: its word, as
    // long as it does not contradict the inspector or the engine.
    ("raw.host_namespaces", &["grown", "reversed", "shortened"]),
    ("raw.host_namespaces[]", TEXT),
    ("raw.outside.descriptors", TEXT),
    ("raw.outside.uid_map", TEXT),
    ("raw.outside.gid_map", TEXT),
    ("raw.outside.limits", PART),
    ("raw.outside.mountinfo", &["cut"]),
    ("raw.outside.net_dev", PART),
    ("raw.outside.status", PART),
    ("witnesses.outside.source", TEXT),
    // Kernel texts where the change is not in what is read from them: the
    // first and the last character are numbers of mounts, headings, line ends.
    ("raw.mountinfo", &["cut"]),
    ("raw.proc_net_dev", PART),
    ("raw.proc_net_route", &["cut"]),
    ("raw.proc_net_ipv6_route", &["cut"]),
    ("raw.proc_self_status", PART),
    ("raw.proc_self_status_locked", PART),
    ("raw.proc_self_limits", PART),
    ("raw.proc_self_cgroup", TEXT),
    ("raw.proc_version", TEXT),
];

#[test]
fn the_command_line_refuses_edits_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut number = 0;
    every_edit(&real().value, |edit| {
        number += 1;
        if number % 97 != 0 {
            return;
        }
        let path = folder.path().join("edited.json");
        fs::write(&path, edit.document.to_string()).unwrap();
        let said = run(tool().arg("verify").arg(&path).arg("--evidence-only"));
        assert!([1, 2, 3].contains(&said.status), "{}: {said:?}", edit.name);
        assert!(!said.stdout.contains("B4_PRIME_ACCEPTED"), "{}", edit.name);
    });
    assert!(number > 3000, "{number}");
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
            .find(|step| step.code == "EV-PROBES")
            .unwrap();
        assert_eq!(step.outcome, tki_attest::verify::Outcome::Blocked, "{name}");
    }
}
