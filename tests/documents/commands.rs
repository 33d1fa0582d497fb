//! Every command that a document shows is one that there is.

use crate::common::{names_in, root, run, tool};
use std::collections::BTreeSet;
use std::fs;

/// The words after the tool's name where a document shows a command: between backticks, or after a
/// prompt.
fn shown(text: &str) -> BTreeSet<String> {
    let starts = [
        "`tki-attest ",
        "$ tki-attest ",
        "\ntki-attest ",
        "\n./tki-attest ",
    ];
    let after = starts.iter().flat_map(|start| text.split(start).skip(1));
    let word = |rest: &str| -> String {
        let is_part = |c: &char| c.is_ascii_lowercase() || *c == '-';
        rest.chars().take_while(is_part).collect()
    };
    let words = after.map(word);
    words
        .filter(|word| !word.is_empty() && !word.starts_with('-'))
        .collect()
}

#[test]
fn every_command_that_is_shown_is_there() {
    let folder = root().join("docs");
    let documents = names_in(&folder).into_iter().map(|name| folder.join(name));
    let own = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ];
    let all = documents.chain(own.map(|name| root().join(name)));
    let mut found = BTreeSet::new();
    for path in all {
        found.extend(shown(&fs::read_to_string(path).unwrap()));
    }
    assert!(found.len() > 12, "{found:?}");
    let is_there = |name: &&String| run(tool().args([name.as_str(), "--help"])).status == 0;
    let absent: Vec<&String> = found.iter().filter(|name| !is_there(name)).collect();
    assert!(absent.is_empty(), "{absent:?}");
}
