use super::*;
use alloc::collections::BTreeSet;
use alloc::format;
use tki_evidence::matrix::Matrix as Rev4;

fn table() -> &'static Matrix {
    Matrix::built_in()
}

/// `D1` to `D11` and the like: in order, without a gap, each once.
fn ids_are(prefix: &str, count: usize, ids: &[&str]) {
    let expected: Vec<String> = (1..=count).map(|n| format!("{prefix}{n}")).collect();
    assert_eq!(ids, expected);
}

#[test]
fn it_has_as_many_rows_of_each_kind_as_the_plan_and_the_matrix_have() {
    let table = table();
    assert_eq!(table.schema, SCHEMA);
    let numbers: Vec<u32> = table.tests.iter().map(|test| test.test).collect();
    assert_eq!(numbers, (1..=TESTS).collect::<Vec<u32>>());
    let ids = |list: Vec<&'static String>| -> Vec<&str> {
        list.into_iter().map(String::as_str).collect()
    };
    ids_are(
        "D",
        11,
        &ids(table.deferred.iter().map(|row| &row.id).collect()),
    );
    ids_are(
        "G",
        12,
        &ids(table.gates.iter().map(|row| &row.id).collect()),
    );
    ids_are(
        "M",
        5,
        &ids(table.manual_gates.iter().map(|row| &row.id).collect()),
    );
    ids_are(
        "N",
        32,
        &ids(table.negatives.iter().map(|row| &row.id).collect()),
    );
}

#[test]
fn no_field_is_empty_and_no_two_tests_try_or_show_the_same() {
    let (mut titles, mut tried, mut bound) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for test in &table().tests {
        for text in [&test.title, &test.tried, &test.block_point, &test.proof] {
            assert!(!text.trim().is_empty(), "#{}", test.test);
        }
        assert!(titles.insert(&test.title), "#{}", test.test);
        assert!(tried.insert(&test.tried), "#{}", test.test);
        assert!(bound.insert(&test.bound_to), "#{}", test.test);
        let name = test.bound_to.rsplit("::").next().unwrap();
        let starts = format!("m{:02}_", test.test);
        assert!(name.starts_with(&starts), "#{}: {name}", test.test);
        for requirement in &test.requirements {
            let number = requirement.strip_prefix('R').and_then(|n| n.parse().ok());
            assert!(
                number.is_some_and(|n: u32| (1..=13).contains(&n)),
                "{requirement}"
            );
        }
    }
}

/// What the documents say of a row, they say somewhere; what is not ours is said.
#[test]
fn what_is_not_ours_names_where_it_is_from() {
    let table = table();
    let tests = table.tests.iter().map(|row| (row.ours, &row.basis));
    let rows = tests
        .chain(table.deferred.iter().map(|row| (row.ours, &row.basis)))
        .chain(table.gates.iter().map(|row| (row.ours, &row.basis)))
        .chain(table.manual_gates.iter().map(|row| (row.ours, &row.basis)))
        .chain(table.negatives.iter().map(|row| (row.ours, &row.basis)));
    for (ours, basis) in rows {
        assert!(ours || !basis.is_empty());
        let documents = ["attestation", "blocker", "build-go", "route", "survey"];
        let known = documents.iter().any(|name| basis.starts_with(name));
        assert!(basis.is_empty() || known, "{basis}");
    }
}

#[test]
fn the_rows_of_the_sandbox_agree_with_the_evidences_matrix() {
    let rev4 = Rev4::built_in();
    assert_eq!(table().revision, rev4.revision);
    for test in &table().tests {
        let theirs = rev4.tests.iter().find(|row| row.test == test.test);
        assert_eq!(theirs.is_some(), test.layer == Layer::L1, "#{}", test.test);
        let Some(theirs) = theirs else { continue };
        assert_eq!(theirs.layer, test.layer.name());
        assert_eq!(theirs.title, test.title);
        assert_eq!(theirs.block_point, test.block_point);
        assert_eq!(theirs.proof, test.proof);
        assert_eq!(theirs.requirements, test.requirements);
    }
    let sandbox = table().tests.iter().filter(|test| test.layer == Layer::L1);
    assert_eq!(sandbox.count(), rev4.tests.len());
    assert_eq!(rev4.tests.len(), 14);
}

#[test]
fn every_layer_requirement_gate_and_negative_has_its_tests() {
    let table = table();
    for layer in [Layer::L1, Layer::L2, Layer::L3, Layer::L4, Layer::L5] {
        assert!(
            table.tests.iter().any(|test| test.layer == layer),
            "{layer:?}"
        );
    }
    for number in 1..=13 {
        let requirement = format!("R{number}");
        let covers = |test: &Test| test.requirements.contains(&requirement);
        assert!(table.tests.iter().any(covers), "{requirement}");
    }
    let mut in_gates: Vec<u32> = table
        .gates
        .iter()
        .flat_map(|gate| gate.tests.clone())
        .collect();
    in_gates.sort_unstable();
    assert_eq!(in_gates, (1..=TESTS).collect::<Vec<u32>>());
    for negative in &table.negatives {
        assert!(!negative.tests.is_empty(), "{}", negative.id);
        assert!(
            negative
                .tests
                .iter()
                .all(|number| table.test(*number).is_some())
        );
    }
}

#[test]
fn about_eleven_tests_depend_on_the_sandbox() {
    let dependence = &table().depend_on_l1;
    assert_eq!(dependence.named, [25, 27, 28, 29, 33, 34, 35, 37]);
    let all: BTreeSet<&u32> = dependence
        .named
        .iter()
        .chain(&dependence.siblings)
        .collect();
    assert_eq!(all.len(), 11);
    let is_l1 = |number: &&u32| table().test(**number).unwrap().layer == Layer::L1;
    assert!(all.iter().all(is_l1));
}

#[test]
fn a_table_with_anything_else_in_it_is_refused() {
    for (from, to) in [
        ("\"layer\": \"L4\"", "\"layer\": \"L6\""),
        ("\"ours\": true", "\"ours\": 1"),
        ("\"tried\"", "\"attempted\""),
        ("\"test\": 2", "\"test\": 1, \"test\": 2"),
    ] {
        assert!(
            Matrix::parse(TEXT.replacen(from, to, 1).as_bytes()).is_err(),
            "{to}"
        );
    }
}
