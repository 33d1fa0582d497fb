//! Nothing that a terminal would obey.

use super::real;
use crate::common::bundle::{default_inputs, restamp, verify_alone};
use crate::common::sweep::stride;
use crate::common::{run, tool};
use serde_json::Value;
use std::fs;
use tki_attest::report::decision::render;
use tki_attest::report::table::{ColorChoice, Paint};

/// Escapes, control characters of both kinds, and characters that reorder.
const HOSTILE: &str = "\u{1b}[31m\u{1b}]0;x\u{7}\u{9b}2J\r\n\u{8}\u{202e}\u{200b}\u{7f}";

#[test]
fn no_text_in_the_evidence_reaches_the_terminal_as_an_escape() {
    let (inputs, paint) = (default_inputs(), Paint::stdout(ColorChoice::Never));
    let mut rendered = 0;
    let fields = string_fields(&real().value);
    assert!(fields.len() > 150, "{}", fields.len());
    // Each takes long, and there are few: of a sweep's sample more than elsewhere.
    for pointer in fields.into_iter().step_by(stride().div_ceil(20)) {
        let mut document = real().value.clone();
        let field = document.pointer_mut(&pointer).unwrap();
        *field = format!("{HOSTILE}{}{HOSTILE}", field.as_str().unwrap()).into();
        restamp(&mut document);
        let Some(finding) = verify_alone(document.to_string().as_bytes(), &inputs) else {
            continue;
        };
        let text = render(&finding, true, paint);
        let bad = |c: char| (c.is_control() && c != '\n') || ['\u{202e}', '\u{200b}'].contains(&c);
        assert!(!text.contains(bad), "{pointer}: {text:?}");
        rendered += 1;
    }
    assert!(rendered * stride().div_ceil(20) > 150, "{rendered}");
}

/// JSON pointers to every string, but of long lists only to the first items.
fn string_fields(document: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    let mut pending = vec![(String::new(), document)];
    while let Some((pointer, value)) = pending.pop() {
        match value {
            Value::String(_) => fields.push(pointer),
            Value::Array(items) => {
                let first = items.iter().take(4).enumerate();
                pending.extend(first.map(|(index, item)| (format!("{pointer}/{index}"), item)));
            }
            Value::Object(map) => {
                pending.extend(
                    map.iter()
                        .map(|(key, item)| (format!("{pointer}/{key}"), item)),
                );
            }
            _ => {}
        }
    }
    fields
}

#[test]
fn the_command_line_shows_hostile_texts_and_names_harmlessly() {
    let folder = tempfile::tempdir().unwrap();
    let mut document = real().value.clone();
    for pointer in [
        "/venue",
        "/run_id",
        "/venue_facts/operating_system",
        "/probes/3/probe_id",
    ] {
        *document.pointer_mut(pointer).unwrap() = HOSTILE.into();
    }
    restamp(&mut document);
    let path = folder.path().join("e\u{1b}[31mvil.json");
    fs::write(&path, document.to_string()).unwrap();
    for arguments in [&["--format", "text", "-v"][..], &["--format", "json"]] {
        let said = run(tool().arg("verify").arg(&path).args(arguments));
        assert_eq!(said.status, 1, "{said:?}");
        assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
        assert!(!said.stderr.contains('\u{1b}'), "{said:?}");
    }
    let said = run(tool()
        .arg("verify")
        .arg(folder.path().join("no\u{1b}[31mne")));
    assert_eq!(said.status, 2, "{said:?}");
    assert!(!said.stderr.contains('\u{1b}'), "{said:?}");
}
