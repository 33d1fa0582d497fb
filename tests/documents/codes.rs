use crate::common::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use tki_evidence::step_code::StepCode;

/// The endings of files that are called like codes.
const FILES: &[&str] = &[
    "bpf", "json", "jsonl", "md", "ndjson", "pem", "sh", "sock", "tar", "toml", "txt", "yml",
];

/// Where failures are made: everything that is linked into the tool.
const SOURCES: &[&str] = &["src", "inspector/src", "verify/src", "image-builder/src"];

fn document() -> String {
    fs::read_to_string(root().join("docs/exit-codes.md")).unwrap()
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The codes that are documented, each with its exit code.
fn documented() -> BTreeMap<String, String> {
    let text = document();
    let (_, text) = text.split_once("## Failure codes\n").unwrap();
    let (text, _) = text.split_once("## Steps of verify\n").unwrap();
    let (tables, internal) = text.split_once("### Internal\n").unwrap();
    let mut found = BTreeMap::new();
    for row in tables.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        for code in quoted(cells[0]) {
            let earlier = found.insert(code.to_owned(), cells[1].to_owned());
            assert_eq!(earlier, None, "{code} is documented twice");
        }
    }
    let (list, _) = internal.trim_start().split_once("\n\n").unwrap();
    for code in quoted(list).filter(|code| is_code(code)) {
        let earlier = found.insert(code.to_owned(), "4".to_owned());
        assert_eq!(earlier, None, "{code} is documented twice");
    }
    found
}

fn is_code(text: &str) -> bool {
    let word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    match text.split_once('.') {
        None => word(text),
        Some((family, own)) => word(family) && word(own) && !FILES.contains(&own),
    }
}

/// The sources of the tool without their tests and comments, by path.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let there = SOURCES.iter().map(|folder| root().join(folder));
    let mut pending: Vec<PathBuf> = there.filter(|folder| folder.is_dir()).collect();
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                if name != "tests" {
                    pending.push(path);
                }
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                let lines = text
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"));
                found.push((path, lines.map(|line| format!("{line}\n")).collect()));
            }
        }
    }
    found.sort();
    found
}

/// The first string in a text, and what comes after it.
fn string(text: &str) -> Option<(&str, &str)> {
    text.split_once('"')?.1.split_once('"')
}

/// Every string of the sources that has a code's form, with the place where it stands first.
fn strings(sources: &[(PathBuf, String)]) -> BTreeMap<&str, &Path> {
    let mut found = BTreeMap::new();
    for (path, text) in sources {
        for line in text.lines() {
            let mut rest = line;
            while let Some((own, after)) = string(rest) {
                // The start of a code is none.
                let before = &rest[..rest.len() - after.len() - own.len() - 2];
                if is_code(own) && !before.ends_with("starts_with(") {
                    found.entry(own).or_insert(path.as_path());
                }
                rest = after;
            }
            // A text may hold one in brackets, as it is printed.
            let brackets = line
                .split('[')
                .skip(1)
                .filter_map(|part| part.split_once(']'));
            for (own, _) in brackets.filter(|(own, _)| own.contains('.') && is_code(own)) {
                found.entry(own).or_insert(path.as_path());
            }
        }
    }
    found
}

/// The codes that failures are made with, the exit code where the call says it, and the place.
fn made(sources: &[(PathBuf, String)]) -> Vec<(&str, Option<&'static str>, &Path)> {
    let mut found = Vec::new();
    for (path, text) in sources {
        for (call, exit) in [
            ("Failure::usage(", Some("2")),
            ("Failure::blocked(", Some("3")),
            ("Failure::internal(", Some("4")),
            ("Failure::new(", None),
            ("code: ", None),
        ] {
            for (at, _) in text.match_indices(call) {
                let after = &text[at + call.len()..];
                // A code that is handed on stands elsewhere as a string.
                let argument = after.trim_start();
                let argument = match argument.strip_prefix("Exit::") {
                    Some(rest) => rest
                        .split_once(',')
                        .map_or("", |(_, rest)| rest.trim_start()),
                    None => argument,
                };
                if argument.starts_with('"')
                    && let Some((code, _)) = string(argument)
                {
                    found.push((code, exit, path.as_path()));
                }
            }
        }
    }
    found
}

#[test]
fn the_documented_codes_are_those_that_there_are() {
    let (documented, sources) = (documented(), sources());
    assert!(documented.len() > 100, "{}", documented.len());
    let (strings, made) = (strings(&sources), made(&sources));
    assert!(made.len() > 50, "{}", made.len());
    let mut wrong = BTreeSet::new();
    for code in documented.keys() {
        if !strings.contains_key(code.as_str()) {
            wrong.insert(format!("{code}: documented, and no source has it"));
        }
    }
    for (code, exit, path) in made {
        let path = path.display();
        match (documented.get(code), exit) {
            (None, _) => {
                wrong.insert(format!("{code}: not documented ({path})"));
            }
            (Some(own), Some(exit)) if own != exit => {
                wrong.insert(format!(
                    "{code}: documented with exit {own}, not {exit} ({path})"
                ));
            }
            _ => {}
        }
    }
    // Errors that become failures elsewhere have their codes in a table of the stage: what is
    // called like a code of a family that is documented is one.
    let families: BTreeSet<&str> = documented
        .keys()
        .filter_map(|code| code.split_once('.'))
        .map(|(family, _)| family)
        .collect();
    for (code, path) in strings {
        let family = code.split_once('.').map(|(family, _)| family);
        if family.is_some_and(|family| families.contains(family)) && !documented.contains_key(code)
        {
            wrong.insert(format!("{code}: not documented ({})", path.display()));
        }
    }
    assert!(wrong.is_empty(), "docs/exit-codes.md: {wrong:#?}");
}

#[test]
fn the_documented_steps_are_those_of_verify_in_their_order() {
    let text = document();
    let (_, text) = text.split_once("## Steps of verify\n").unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `EV-"));
    let steps: Vec<&str> = rows.filter_map(|row| quoted(row).next()).collect();
    assert_eq!(steps, StepCode::ALL.map(StepCode::name));
}

#[test]
fn the_documented_findings_of_lint_are_those_that_there_are() {
    let text = document();
    let (_, text) = text.split_once("## Findings of seccomp lint\n").unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `SL-"));
    let first = rows.map(|row| row.split(" | ").next().unwrap());
    let documented: BTreeSet<&str> = first.flat_map(quoted).collect();
    let sources = sources();
    let mut found = BTreeSet::new();
    for (_, text) in &sources {
        for line in text.lines() {
            let mut rest = line;
            while let Some((own, after)) = string(rest) {
                if own.starts_with("SL-") {
                    found.insert(own);
                }
                rest = after;
            }
        }
    }
    assert_eq!(documented, found);
}
