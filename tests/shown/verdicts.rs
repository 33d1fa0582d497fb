use super::{snapshot, transcript};
use crate::common::bundle::write_restamped;
use crate::common::signed::{Base, Copy, keys};
use crate::common::{Said, run, tool};
use crate::golden::{full, plain};
use crate::masks::masked;
use std::fs;

const FORMATS: [&str; 4] = ["text", "json", "markdown", "junit"];

fn shown(said: &Said, copy: &Copy, base: &Base) -> String {
    masked(&transcript(said), &[copy.folder.path()], Some(base))
}

#[test]
fn an_accepted_bundle_in_every_format() {
    let copy = full().copy();
    for format in FORMATS {
        let said = copy.verify(&["--format", format]);
        assert_eq!(said.status, 0, "{said:?}");
        snapshot(
            &format!("verify-accepted-{format}"),
            &shown(&said, &copy, full()),
        );
    }
    let said = copy.verify(&["-v"]);
    snapshot("verify-accepted-verbose", &shown(&said, &copy, full()));
}

#[test]
fn an_unsigned_bundle_that_nobody_asked_for() {
    let copy = plain().copy();
    fs::remove_file(copy.envelope()).unwrap();
    let said = run(tool().arg("verify").arg(&copy.path));
    assert_eq!(said.status, 0, "{said:?}");
    snapshot("verify-self-reported", &shown(&said, &copy, plain()));
}

#[test]
fn a_false_bundle_in_every_format() {
    let copy = plain().copy();
    let text = fs::read_to_string(&copy.path).unwrap();
    let edited = text.replace("\"venue\": \"vps\"", "\"venue\": \"ci\"");
    assert_ne!(text, edited);
    fs::write(&copy.path, edited).unwrap();
    fs::remove_file(copy.envelope()).unwrap();
    for format in FORMATS {
        let mut command = tool();
        let said = run(command
            .arg("verify")
            .arg(&copy.path)
            .args(["--format", format]));
        assert_eq!(said.status, 1, "{said:?}");
        snapshot(
            &format!("verify-false-{format}"),
            &shown(&said, &copy, plain()),
        );
    }
}

#[test]
fn a_bundle_that_proves_too_little_in_every_format() {
    let copy = plain().copy();
    fs::write(&copy.signers, keys().list("x {stranger}\n")).unwrap();
    for format in FORMATS {
        let said = copy.verify(&["--format", format]);
        assert_eq!(said.status, 3, "{said:?}");
        snapshot(
            &format!("verify-blocked-{format}"),
            &shown(&said, &copy, plain()),
        );
    }
}

#[test]
fn a_weaker_bar_and_evidence_alone() {
    let copy = plain().copy();
    fs::remove_file(copy.envelope()).unwrap();
    fs::remove_dir_all(copy.path.with_extension("")).unwrap();
    let mut value = plain().value.clone();
    value["venue_facts"]["operating_system"] = "Docker Desktop".into();
    write_restamped(&copy.path, value);
    let policy = copy.folder.path().join("policy.toml");
    let text = "schema = \"tki-attest/policy/v1\"\n[weaker]\nsteps = [\"EV-VENUE\"]\n";
    fs::write(&policy, text).unwrap();
    let mut command = tool();
    command
        .arg("verify")
        .arg(&copy.path)
        .arg("--policy")
        .arg(&policy);
    let said = run(command.args(["--allow-weaker", "--evidence-only"]));
    assert_eq!(said.status, 0, "{said:?}");
    snapshot("verify-weaker", &shown(&said, &copy, plain()));
}

#[test]
fn a_directory_of_bundles() {
    let copy = plain().copy();
    let folder = copy.folder.path().join("all");
    fs::create_dir(&folder).unwrap();
    let text = fs::read_to_string(&copy.path).unwrap();
    let put = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    put("good.json", &text);
    put(
        "false.json",
        &text.replace("\"venue\": \"vps\"", "\"venue\": \"ci\""),
    );
    put("cut.json", &text[..100]);
    for format in ["text", "markdown", "junit"] {
        let mut command = tool();
        command
            .arg("verify")
            .arg(&folder)
            .args(["--evidence-only", "--format", format]);
        let said = run(command.args(["--jobs", "1"]));
        assert_eq!(said.status, 1, "{said:?}");
        let name = format!("verify-directory-{format}");
        snapshot(&name, &shown(&said, &copy, plain()));
    }
}

#[test]
fn the_binding_and_the_gate() {
    let copy = full().copy();
    let stem = copy.folder.path().join("binding");
    copy.verify(&["-q", "--binding", stem.to_str().unwrap()])
        .succeeded();
    let page = fs::read_to_string(stem.with_extension("md")).unwrap();
    let page = masked(&page, &[copy.folder.path()], Some(full()));
    snapshot("binding", &page);
    let mut command = tool();
    command.arg("gate").arg(&copy.path).args(copy.strictly());
    let said = run(command.args(["--", "echo", "behind the gate"]));
    assert_eq!(said.status, 0, "{said:?}");
    snapshot("gate", &shown(&said, &copy, full()));
}

#[test]
fn two_bundles_side_by_side() {
    let copy = plain().copy();
    let mut value = plain().value.clone();
    value["runtime"]["kernel"] = "6.1.0-other".into();
    value["probes"][0]["verdict"] = "FAIL".into();
    value["raw"]["proc_net_dev"] = "Inter-|\n face |\n lo: 0\n eth0: 0\n".into();
    let edited = copy.folder.path().join("edited.json");
    write_restamped(&edited, value);
    let mut command = tool();
    let said = run(command.arg("diff").arg(&copy.path).arg(&edited));
    snapshot("diff-edited", &shown(&said, &copy, plain()));
    let mut command = tool();
    let said = run(command.arg("diff").arg(&copy.path).arg(&copy.path));
    snapshot("diff-same", &shown(&said, &copy, plain()));
}
