//! A policy that loosens.

use crate::common::bundle::write_restamped;
use crate::common::verify;
use crate::golden::plain;
use std::fs;

/// What is loosened is repeated with the decision, and a lie stays a lie.
#[test]
fn a_weaker_bar_is_said_with_the_decision() {
    let copy = plain().copy();
    let policy = copy.folder.path().join("policy.toml");
    fs::write(
        &policy,
        "schema = \"tki-attest/policy/v1\"\n[weaker]\nsteps = [\"EV-VENUE\"]\n",
    )
    .unwrap();
    fs::remove_file(copy.envelope()).unwrap();
    let mut value = plain().value.clone();
    value["venue_facts"]["operating_system"] = "Docker Desktop".into();
    write_restamped(&copy.path, value.clone());
    assert_eq!(verify(&copy.path, &[]).status, 3);
    let flags = ["--policy", policy.to_str().unwrap(), "--allow-weaker"];
    verify(&copy.path, &flags[..2]).failed(2, "policy.weaker");
    let said = verify(&copy.path, &flags);
    said.succeeded();
    assert!(said.stdout.contains("WAIVED      EV-VENUE"), "{said:?}");
    assert!(
        said.stdout.contains("WEAKER THAN THE BUILT-IN BAR"),
        "{said:?}"
    );
    let json = verify(&copy.path, &[&flags[..], &["--format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["weaker"].as_array().unwrap().len(), 1, "{json}");
    value["venue"] = "moon".into();
    write_restamped(&copy.path, value);
    assert_eq!(verify(&copy.path, &flags).status, 1);
}
