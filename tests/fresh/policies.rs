//! Policies that tighten.

use super::bases::full;
use crate::common::root;
use std::fs;

#[test]
fn a_policy_that_demands_what_is_there_is_met() {
    let copy = full().copy();
    let policy = copy.folder.path().join("policy.toml");
    fs::write(
        &policy,
        "schema = \"tki-attest/policy/v1\"\n\
         required_probes = [\"PR-NET-1\", \"XP-LIM-PIDS\"]\n\
         required_controls = [\"all\"]\n\
         engines = [\"docker\"]\n\
         gate = \"inspector\"\n\
         assurance = \"signed-fresh\"\n\
         threshold = 1\n\
         max_age = \"24h\"\n\
         venues = [\"vps\"]\n\
         require_artifacts = true\n\
         require_outside = true\n\
         [minimum_layers]\n\
         PR-NET-1 = 1\n\
         [kernels]\n\
         minimum = \"4.19\"\n\
         refused = [\"5.16.\"]\n",
    )
    .unwrap();
    let said = copy.verify(&["--policy", policy.to_str().unwrap()]);
    said.succeeded();
    let met = said
        .stdout
        .lines()
        .filter(|line| line.starts_with("ok          EV-POLICY"));
    assert_eq!(met.count(), 11, "{said:?}");
}

#[test]
fn the_example_in_the_documentation_is_a_policy() {
    let text = fs::read_to_string(root().join("docs/policy.md")).unwrap();
    let example = text
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let copy = full().copy();
    let policy = copy.folder.path().join("policy.toml");
    fs::write(&policy, example).unwrap();
    let said = copy.verify(&["--policy", policy.to_str().unwrap()]);
    said.succeeded();
    assert!(said.stdout.contains("EV-POLICY"), "{said:?}");
}

/// An engine that cannot make every control does not come off better for it.
#[test]
fn all_controls_are_more_than_the_embedded_engine_can_make() {
    let out = tempfile::tempdir().unwrap();
    let arguments = ["--venue", "vps", "--engine", "embedded"];
    crate::common::attest(out.path(), &arguments).succeeded();
    let path = crate::common::evidence_in(out.path());
    let policy = out.path().join("policy.toml");
    let text = "schema = \"tki-attest/policy/v1\"\nrequired_controls = [\"all\"]\n";
    fs::write(&policy, text).unwrap();
    crate::common::verify(&path, &[]).succeeded();
    let said = crate::common::verify(&path, &["--policy", policy.to_str().unwrap()]);
    assert_eq!(said.status, 3, "{said:?}");
    let mut lines = said.stdout.lines();
    let step = lines.find(|line| line.contains("required_controls"));
    assert!(step.unwrap().starts_with("BLOCKED "), "{said:?}");
}
