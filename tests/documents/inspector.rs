//! The inspector's tables in the documentation against its data, and what the documents must
//! name.

use crate::common::root;
use serde_json::Value;
use std::fs;

const END: &str = "<!-- end -->";

fn data(name: &str) -> Value {
    let path = root().join("inspector/data").join(name);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn rows<'a>(data: &'a Value, list: &str) -> &'a Vec<Value> {
    data[list].as_array().unwrap()
}

/// A cell of a table: a text, a number, a list, or whether something is so.
fn cell(row: &Value, key: &str) -> String {
    let text = match &row[key] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) | Value::Null => String::new(),
        Value::Array(list) => {
            let shown = list.iter().map(|one| match one {
                Value::Number(number) => format!("#{number}"),
                other => other.as_str().unwrap().to_owned(),
            });
            shown.collect::<Vec<String>>().join(" ")
        }
        other => panic!("{other}"),
    };
    text.replace('|', "\\|")
}

/// A table with these headings; a key in `quoted` is shown as code.
fn table(rows: &[Value], columns: &[(&str, &str)], quoted: &[&str]) -> String {
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let mut text = format!(
        "\n| {} |\n|{}\n",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for row in rows {
        let cells = columns.iter().map(|(_, key)| {
            let cell = cell(row, key);
            match quoted.contains(key) && !cell.is_empty() {
                true => format!("`{cell}`"),
                false => cell,
            }
        });
        let line = cells.collect::<Vec<String>>().join(" | ");
        text += &format!("| {line} |\n")
            .replace("|  |", "| |")
            .replace("|  |", "| |");
    }
    text
}

/// Holds the text after a mark against what it must be, or writes it.
fn same(document: &str, of: &str, wanted: &str) {
    let path = root().join("docs").join(document);
    let text = fs::read_to_string(&path).unwrap();
    let mark = format!("<!-- {of}, written by `make schema` -->\n");
    let (before, rest) = text
        .split_once(&mark)
        .unwrap_or_else(|| panic!("{document}: {of}"));
    let (found, after) = rest.split_once(END).unwrap();
    let wanted = format!("{wanted}\n");
    if std::env::var_os("TKI_WRITE_SCHEMAS").is_some() {
        fs::write(&path, format!("{before}{mark}{wanted}{END}{after}")).unwrap();
    } else {
        assert_eq!(
            found, wanted,
            "{document}: {of}: `make schema` writes it again"
        );
    }
}

/// One test, because all of them write the same two files.
#[test]
fn the_tables_are_those_of_the_data() {
    let rules = data("rules.json");
    let columns = [
        ("rule", "id"),
        ("verdict", "verdict"),
        ("when", "when"),
        ("because", "why"),
        ("ours", "ours"),
    ];
    let shown = table(rows(&rules, "rules"), &columns, &["id", "verdict"]);
    same("inspector.md", "the rules", &shown);

    let statuses = data("statuses.json");
    let mut words = rows(&statuses, "words").clone();
    for word in &mut words {
        word["ours"] = (!word["seed"].as_bool().unwrap()).into();
    }
    let columns = [
        ("word", "word"),
        ("rung", "rung"),
        ("open", "open"),
        ("a holder's", "by_holder"),
        ("only after B4′", "after_b4"),
        ("ours", "ours"),
        ("meaning", "meaning"),
    ];
    same(
        "inspector.md",
        "the status words",
        &table(&words, &columns, &["word"]),
    );
    let columns = [
        ("document type", "type"),
        ("reaches", "rung"),
        ("because it", "why"),
    ];
    let kinds = table(rows(&statuses, "document_types"), &columns, &["type"]);
    same("inspector.md", "the kinds of documents", &kinds);

    let source = fs::read_to_string(root().join("inspector/src/report.rs")).unwrap();
    let list = source
        .split_once("pub const IS_NOT: [&str; 4] = [")
        .unwrap()
        .1;
    let list = list.split_once("];").unwrap().0;
    let lines = list.lines().filter_map(|line| {
        let text = line.trim().trim_end_matches(',').trim_matches('"');
        (!text.is_empty()).then(|| format!("- {text}\n"))
    });
    let lines: Vec<String> = lines.collect();
    assert_eq!(lines.len(), 4);
    same(
        "inspector.md",
        "what the report is not",
        &format!("\n{}", lines.concat()),
    );

    let matrix = data("matrix-45.json");
    let columns = [
        ("#", "test"),
        ("layer", "layer"),
        ("shows", "title"),
        ("what is tried", "tried"),
        ("where it is stopped", "block_point"),
        ("proof", "proof"),
        ("covers", "requirements"),
        ("ours", "ours"),
        ("basis", "basis"),
    ];
    same(
        "acceptance.md",
        "the tests in scope",
        &table(rows(&matrix, "tests"), &columns, &[]),
    );
    for (of, list, columns) in [
        (
            "the deferred tests",
            "deferred",
            &[
                ("id", "id"),
                ("would show", "title"),
                ("waits for", "waits_for"),
                ("ours", "ours"),
                ("basis", "basis"),
            ][..],
        ),
        (
            "the gates",
            "gates",
            &[
                ("id", "id"),
                ("gate", "title"),
                ("holds when", "holds_when"),
                ("tests", "tests"),
            ][..],
        ),
        (
            "the manual gates",
            "manual_gates",
            &[
                ("id", "id"),
                ("gate", "title"),
                ("who", "holder"),
                ("shown by", "shown_by"),
                ("ours", "ours"),
                ("basis", "basis"),
            ][..],
        ),
        (
            "the negatives",
            "negatives",
            &[
                ("id", "id"),
                ("what is tried", "tried"),
                ("what must come of it", "must"),
                ("tests", "tests"),
                ("ours", "ours"),
                ("basis", "basis"),
            ][..],
        ),
    ] {
        same(
            "acceptance.md",
            of,
            &table(rows(&matrix, list), columns, &[]),
        );
    }
}

/// The report's files, findings and limits that the document names are those of the sources.
#[test]
fn what_the_document_names_is_there() {
    let text = fs::read_to_string(root().join("docs/inspector.md")).unwrap();
    let provenance = root().join("inspector/src/provenance.rs");
    let source = fs::read_to_string(provenance).unwrap();
    let codes = |text: &str| -> std::collections::BTreeSet<String> {
        let parts = text.split("PV-").skip(1);
        let code = |part: &str| part.chars().take_while(char::is_ascii_uppercase).collect();
        parts.map(code).collect()
    };
    assert_eq!(codes(&text), codes(&source));
    let modules = text.split_once("## The modules").unwrap().1;
    let modules = modules.split_once("\n## ").unwrap().0;
    let rows = modules
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains(".rs`"));
    let mut count = 0;
    for row in rows {
        count += 1;
        for file in row.split('`').filter(|part| part.ends_with(".rs")) {
            let below = match file.contains('/') {
                true => root().join(file),
                false => root().join("inspector/src").join(file),
            };
            assert!(below.exists(), "{file}");
        }
    }
    assert_eq!(count, 13);
}
