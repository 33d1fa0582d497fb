//! Rows of the table and functions name each other, and no function shows two of them.

use crate::common::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use tki_inspector::matrix::{Matrix, TESTS};

/// A function that shows a test.
struct Found {
    /// The test binary, the modules and the name.
    path: String,
    /// What stands between its braces.
    body: String,
}

/// The modules that the root of a test binary lists.
fn modules(binary: &str) -> Vec<String> {
    let path = root().join("tests").join(format!("{binary}.rs"));
    let source = fs::read_to_string(path).unwrap();
    let names = source.lines().filter_map(|line| line.strip_prefix("mod "));
    names
        .map(|name| name.trim_end_matches(';').to_owned())
        .collect()
}

/// Every function of a test binary whose name begins like `m07_`, by its number.
fn functions() -> BTreeMap<u32, Vec<Found>> {
    let mut found = BTreeMap::new();
    for binary in ["offline", "integration"] {
        for module in modules(binary).iter().filter(|module| *module != "common") {
            let path = root().join("tests").join(module);
            collect(
                &path.with_extension("rs"),
                &format!("{binary}::{module}"),
                &mut found,
            );
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.extension().is_some_and(|extension| extension == "rs") {
                    let stem = path.file_stem().unwrap().to_str().unwrap();
                    collect(&path, &format!("{binary}::{module}::{stem}"), &mut found);
                }
            }
        }
    }
    found
}

fn collect(path: &Path, module: &str, found: &mut BTreeMap<u32, Vec<Found>>) {
    let source = fs::read_to_string(path).unwrap();
    for part in source.split("\n#[test]\nfn ").skip(1) {
        let (name, rest) = part.split_once('(').unwrap();
        let body = rest.split_once("\n}").unwrap().0;
        let number = name.strip_prefix('m').and_then(|rest| rest.split_once('_'));
        let Some(number) = number.and_then(|(digits, _)| digits.parse().ok()) else {
            continue;
        };
        found.entry(number).or_default().push(Found {
            path: format!("{module}::{name}"),
            body: body.to_owned(),
        });
    }
}

#[test]
fn each_row_names_a_function_and_each_function_has_its_row() {
    let found = functions();
    let numbers: Vec<u32> = found.keys().copied().collect();
    assert_eq!(numbers, (1..=TESTS).collect::<Vec<u32>>());
    for (number, functions) in &found {
        let paths: Vec<&str> = functions.iter().map(|one| one.path.as_str()).collect();
        let row = Matrix::built_in().test(*number).unwrap();
        assert_eq!(paths, [row.bound_to.as_str()], "#{number}");
    }
}

/// Each says one proof, of its own number, after something was asserted.
#[test]
fn no_function_shows_two_tests() {
    let mut bodies = BTreeSet::new();
    for (number, functions) in functions() {
        let body = &functions[0].body;
        let proofs: Vec<&str> = body.split("proof(").skip(1).collect();
        assert_eq!(proofs.len(), 1, "#{number}");
        let own = format!("{number},");
        assert!(proofs[0].trim_start().starts_with(&own), "#{number}");
        let asserts = ["assert", ".holds(", "denied(", "_only_on(", "holds_only("];
        assert!(asserts.iter().any(|one| body.contains(one)), "#{number}");
        for other in 1..=TESTS {
            let name = format!("m{other:02}_");
            let calls = body.contains(&name) && other != number;
            assert!(!calls, "#{number} uses {name}");
        }
        // The same steps with other words would be the same assertion.
        let steps: String = body.chars().filter(|c| !c.is_ascii_digit()).collect();
        let steps = steps.split("proof(").next().unwrap().to_owned();
        assert!(bodies.insert(steps), "#{number}");
    }
}
