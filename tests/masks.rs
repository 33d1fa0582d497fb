//! What differs from one recording to the next, and from one machine to another, is masked
//! before it is compared.

use crate::common::signed::Base;
use std::path::Path;

/// A text with everything of this kind masked: directories, digests and numbers in hex,
/// times, and what the bundle says of its machine.
pub fn masked(text: &str, folders: &[&Path], base: Option<&Base>) -> String {
    let mut text = text.to_owned();
    for folder in folders {
        text = text.replace(folder.to_str().unwrap(), "[folder]");
    }
    if let Some(base) = base {
        for (pointer, name) in [
            ("/run_id", "[run]"),
            ("/runtime/engine_version", "[engine version]"),
            ("/runtime/kernel", "[kernel]"),
            ("/venue_facts/operating_system", "[operating system]"),
        ] {
            let value = base.value.pointer(pointer).unwrap().as_str().unwrap();
            assert!(
                value.len() > 4,
                "{pointer}: {value:?} is too short to be masked"
            );
            text = text.replace(value, name);
        }
        let stem = base.path.file_stem().unwrap().to_str().unwrap();
        text = text.replace(stem, "[stem]");
    }
    let text = text.replace(env!("CARGO_PKG_VERSION"), "[version]");
    deadlines(&ages(&words(&text)))
}

/// Masks when a container stops being the run's.
fn deadlines(text: &str) -> String {
    let name = "attest.deadline=";
    let mut parts = text.split(name);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, after| {
        let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
        format!("{before}{name}[deadline]{after}")
    })
}

/// Masks how long ago something was.
fn ages(text: &str) -> String {
    let mut parts = text.split(" seconds ago");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, after| {
        let number = before.trim_end_matches(|c: char| c.is_ascii_digit());
        format!("{number}[age] seconds ago{after}")
    })
}

/// Masks what has the look of a digest, a time or a fingerprint, word by word.
fn words(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-:+/=\\".contains(c);
    while let Some(start) = rest.find(is_part) {
        out += &rest[..start];
        let end = rest[start..].find(|c| !is_part(c));
        let (word, after) = rest[start..].split_at(end.unwrap_or(rest.len() - start));
        out += &word_masked(word);
        rest = after;
    }
    out + rest
}

fn word_masked(word: &str) -> String {
    let hex = |text: &str| {
        text.len() >= 12
            && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            && text.bytes().any(|b| b.is_ascii_digit())
    };
    if let Some(digest) = word.strip_prefix("sha256:")
        && hex(digest)
    {
        return "sha256:[hex]".into();
    }
    if word.starts_with("SHA256:") {
        return "SHA256:[fingerprint]".into();
    }
    if hex(word) {
        return "[hex]".into();
    }
    let digits = |at: std::ops::Range<usize>| {
        let part = word.get(at);
        part.is_some_and(|part| part.bytes().all(|b| b.is_ascii_digit()))
    };
    // 2026-01-31T23:59:59Z, or without the zone
    let time = word.trim_end_matches('Z');
    if time.len() == 19
        && time.as_bytes()[10] == b'T'
        && digits(0..4)
        && digits(5..7)
        && digits(11..13)
    {
        return "[time]".into();
    }
    word.into()
}

#[test]
fn what_is_masked_has_its_look_and_nothing_else_has() {
    let digest = "0123456789abcdef".repeat(4);
    for (text, wanted) in [
        (format!("image sha256:{digest}."), "image sha256:[hex]."),
        (format!("({digest})"), "([hex])"),
        ("at 2026-01-31T23:59:59Z,".into(), "at [time],"),
        ("at=\"2026-01-31T23:59:59\"".into(), "at=\"[time]\""),
        ("(2026-01-31T23:59:59)".into(), "([time])"),
        ("SHA256:abc\\+/X, x".into(), "SHA256:[fingerprint], x"),
        ("SHA256:abc+/X by x".into(), "SHA256:[fingerprint] by x"),
        (
            "facade deadbeef 62 of 62".into(),
            "facade deadbeef 62 of 62",
        ),
        ("PR-NET-1 denied EPERM".into(), "PR-NET-1 denied EPERM"),
    ] {
        assert_eq!(words(&text), wanted);
    }
    assert_eq!(
        deadlines("x.attest.deadline=17 y"),
        "x.attest.deadline=[deadline] y"
    );
    assert_eq!(
        ages("59 seconds ago; 7 seconds"),
        "[age] seconds ago; 7 seconds"
    );
}
