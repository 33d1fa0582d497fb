//! No network, no write, and nothing that a terminal would obey.

use super::{copy, default_inputs, real, restamp, verify_alone};
use crate::common::{isolated, need, run, tool};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tki_attest::report::decision::render;
use tki_attest::report::table::{ColorChoice, Paint};

/// As nobody, in an empty network namespace, and watched.
#[test]
fn verify_opens_no_socket_and_writes_nothing() {
    let (folder, path) = copy();
    let binary = folder.path().join("tki-attest");
    fs::copy(env!("CARGO_BIN_EXE_tki-attest"), &binary).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let log = folder.path().join("strace.log");
    let mut watched = isolated(Path::new("unshare"));
    watched.args([
        "-n",
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ]);
    watched.args([
        "strace",
        "-f",
        "-qq",
        "-e",
        "trace=%network,%file,write,writev,pwrite64,ftruncate,fchmod,fchown",
        "-o",
    ]);
    watched
        .arg(&log)
        .arg(&binary)
        .arg("verify")
        .arg(&path)
        .arg("--require-artifacts");
    let said = need("util-linux and strace", &mut watched);
    said.succeeded();
    assert!(said.stdout.contains("B4_PRIME_ACCEPTED"), "{said:?}");
    let log = fs::read_to_string(&log).unwrap();
    assert!(log.contains("evidence-vps"), "strace saw nothing: {log}");
    // Finding a program and asking for names and states.
    let harmless = [
        "execve",
        "access",
        "faccessat2",
        "readlink",
        "readlinkat",
        "stat",
        "fstat",
        "lstat",
        "newfstatat",
        "statx",
        "statfs",
        "getcwd",
    ];
    for line in log.lines() {
        let call = line
            .split_once(' ')
            .map_or(line, |(_, call)| call.trim_start());
        let (name, rest) = call.split_once('(').unwrap_or((call, ""));
        let fine = match name {
            "open" | "openat" => ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"]
                .iter()
                .all(|flag| !rest.contains(flag)),
            "write" | "writev" => rest.starts_with("1, "),
            name => harmless.contains(&name) || call.starts_with(['+', '-']),
        };
        assert!(fine, "{line}");
    }
}

/// Escapes, control characters of both kinds, and characters that reorder.
const HOSTILE: &str = "\u{1b}[31m\u{1b}]0;x\u{7}\u{9b}2J\r\n\u{8}\u{202e}\u{200b}\u{7f}";

#[test]
fn no_text_in_the_evidence_reaches_the_terminal_as_an_escape() {
    let (inputs, paint) = (default_inputs(), Paint::stdout(ColorChoice::Never));
    let mut rendered = 0;
    for pointer in string_fields(&real().value) {
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
    assert!(rendered > 150, "{rendered}");
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
