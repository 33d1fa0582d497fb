//! What the verifier brings along, and several bundles at once.

use super::{copy, real};
use crate::common::bundle::write_restamped;
use crate::common::{read_json, root, run, tool, verify};
use serde_json::{Value, json};
use std::fs;

/// The line of a step.
fn line<'a>(stdout: &'a str, code: &str) -> &'a str {
    let found = stdout.lines().find(|line| line.contains(code));
    found.unwrap_or_else(|| panic!("no {code} in {stdout}"))
}

#[test]
fn another_image_than_the_expected_one_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (folder.path().join("own"), folder.path().join("other"));
    run(tool().arg("build").arg("--layout").arg(&own)).succeeded();
    let context = folder.path().join("context");
    fs::create_dir(&context).unwrap();
    fs::write(context.join("f"), "f").unwrap();
    let dockerfile = folder.path().join("Dockerfile");
    fs::write(&dockerfile, "FROM scratch\nCOPY f /f\n").unwrap();
    let mut build = tool();
    build
        .arg("build")
        .arg("--file")
        .arg(&dockerfile)
        .arg("--context")
        .arg(&context);
    run(build.arg("--layout").arg(&other)).succeeded();

    let said = verify(&real().path, &["--image", own.to_str().unwrap()]);
    said.succeeded();
    let said = verify(&real().path, &["--image", other.to_str().unwrap()]);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(
        line(&said.stdout, "EV-IMAGE").starts_with("FALSE"),
        "{said:?}"
    );
    for unusable in [folder.path().join("none"), context] {
        let said = verify(&real().path, &["--image", unusable.to_str().unwrap()]);
        assert_eq!((said.status, said.stdout.as_str()), (2, ""), "{said:?}");
    }
}

#[test]
fn another_profile_than_the_expected_one_is_rejected() {
    let profile = |name: &str| root().join("seccomp").join(name).display().to_string();
    verify(
        &real().path,
        &["--seccomp", &profile("deny-by-default.json")],
    )
    .succeeded();
    let said = verify(&real().path, &["--seccomp", &profile("targeted-deny.json")]);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(
        line(&said.stdout, "EV-SECCOMP").starts_with("FALSE"),
        "{said:?}"
    );
    verify(&real().path, &["--seccomp", &profile("none.json")]).failed(2, "seccomp.unreadable");
}

#[test]
fn a_matrix_that_would_accept_anything_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matrix.json");
    let rev4 = read_json(&root().join("evidence-schema/matrix-rev4.json"));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut matrix = rev4.clone();
        change(&mut matrix);
        fs::write(&path, matrix.to_string()).unwrap();
        verify(&real().path, &["--matrix", path.to_str().unwrap()])
    };
    with(&|_| {}).succeeded();
    for change in [
        (|matrix| matrix["tests"] = json!([])) as fn(&mut Value),
        |matrix| matrix["tests"][1]["test"] = 24.into(),
        |matrix| {
            for test in matrix["tests"].as_array_mut().unwrap() {
                test["layer"] = "L2".into();
            }
        },
        |matrix| matrix["schema"] = "tki-attest/matrix/v2".into(),
        |matrix| matrix["unknown"] = 1.into(),
    ] {
        let said = with(&change);
        said.failed(2, "matrix.malformed");
        assert_eq!(said.stdout, "");
    }
    for probes in [
        json!([]),
        json!(["PR-NO-SUCH-PROBE"]),
        json!(["PR-NET-1", "XP-1"]),
    ] {
        let said = with(&|matrix| matrix["tests"][0]["probes"] = probes.clone());
        assert_eq!(said.status, 3, "{said:?}");
        let matrix = line(&said.stdout, "EV-MATRIX");
        assert!(
            matrix.starts_with("BLOCKED") && matrix.contains("#24 UNPROVEN"),
            "{matrix}"
        );
    }
    fs::write(&path, "{\n \"tests\": [}").unwrap();
    let said = verify(&real().path, &["--matrix", path.to_str().unwrap()]);
    said.failed(2, "matrix.malformed");
    assert!(said.stderr.contains("line 2, column 12"), "{said:?}");
}

#[test]
fn the_worst_of_several_bundles_decides() {
    let good = real().path.clone();
    let (_blocked_folder, blocked) = copy();
    let mut value = real().value.clone();
    value["venue_facts"]["operating_system"] = "Docker Desktop".into();
    write_restamped(&blocked, value);
    let (_false_folder, false_one) = copy();
    let text = fs::read_to_string(&false_one).unwrap();
    fs::write(
        &false_one,
        text.replace("\"returned\": -1", "\"returned\": -2"),
    )
    .unwrap();
    for (bundles, wanted) in [
        (vec![&good, &good], 0),
        (vec![&good, &blocked], 3),
        (vec![&blocked, &good], 3),
        (vec![&false_one, &blocked, &good], 1),
        (vec![&good, &blocked, &false_one], 1),
    ] {
        let mut command = tool();
        command
            .arg("verify")
            .args(["--format", "json"])
            .args(&bundles);
        let said = run(&mut command);
        assert_eq!(said.status, wanted, "{bundles:?}: {said:?}");
        let findings: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(findings.as_array().unwrap().len(), bundles.len());
    }
    let mut command = tool();
    command.arg("verify").arg(&good).arg("/nonexistent.json");
    run(&mut command).failed(2, "evidence.unreadable");
}
