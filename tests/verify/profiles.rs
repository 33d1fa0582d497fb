//! Profiles that let something of the floor through. The kernel itself answers EPERM to
//! much of it, and a condition on arguments may leave out just what a probe tries: what the
//! sweep does not see, reading the profile does.

use super::real;
use crate::common::bundle::{default_inputs, restamp, write_restamped};
use crate::common::sweep::{at_least, is_tried};
use crate::common::{read_json, verify as by_hand};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tki_attest::verify::artifacts::Source;
use tki_attest::verify::{Bundle, Decision, Outcome, Step, Verification, verify};
use tki_evidence::catalogue::floor;
use tki_evidence::evidence::Evidence;
use tki_evidence::matrix::Matrix;
use tki_evidence::seccomp::{About, Rules};
use tki_evidence::stamp::sha256_hex;
use tki_evidence::{DENY_BY_DEFAULT, derive, syscalls};

/// The same run as if the engine had been given this profile: the text, its digest and
/// everything that follows, in the evidence and in the artifacts.
struct Forged {
    evidence: Value,
    artifacts: BTreeMap<String, Vec<u8>>,
}

impl Forged {
    fn new(profile: &str) -> Self {
        let path = &real().path;
        let (old, new) = (DENY_BY_DEFAULT, profile);
        let (was, is) = (sha256_hex(old.as_bytes()), sha256_hex(new.as_bytes()));
        let replaced = |text: &str| text.replace(old, new).replace(&was, &is);
        let mut evidence = read_json(path);
        everywhere(&mut evidence, &replaced);
        evidence["seccomp_profile"] = "opened.json".into();
        let mut artifacts = BTreeMap::new();
        for artifact in evidence["artifacts"].as_array_mut().unwrap() {
            let name = artifact["path"].as_str().unwrap().to_owned();
            let mut bytes = fs::read(path.parent().unwrap().join(&name)).unwrap();
            if name.ends_with("seccomp.json") {
                bytes = new.as_bytes().to_vec();
            } else if name.ends_with("container.json") {
                let mut container: Value = serde_json::from_slice(&bytes).unwrap();
                everywhere(&mut container, &replaced);
                bytes = serde_json::to_vec_pretty(&container).unwrap();
            }
            artifact["sha256"] = sha256_hex(&bytes).into();
            artifact["bytes"] = bytes.len().into();
            artifacts.insert(name, bytes);
        }
        let mut evidence: Evidence = serde_json::from_value(evidence).unwrap();
        derive::derive(&mut evidence, &Matrix::rev4());
        Self {
            evidence: serde_json::to_value(&evidence).unwrap(),
            artifacts,
        }
    }

    fn verified(&self, profile: &str) -> Verification {
        let mut evidence = self.evidence.clone();
        restamp(&mut evidence);
        let bundle = Bundle {
            name: "opened".into(),
            evidence: evidence.to_string().into_bytes(),
            envelope: None,
            artifacts: Source::Memory(self.artifacts.clone()),
        };
        let mut inputs = default_inputs();
        inputs.seccomp_sha256 = Some(sha256_hex(profile.as_bytes()));
        verify(&bundle, &inputs).unwrap()
    }

    fn write(self, folder: &Path) -> PathBuf {
        for (name, bytes) in &self.artifacts {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let path = folder.join(real().path.file_name().unwrap());
        write_restamped(&path, self.evidence);
        path
    }
}

/// Changes every text of a document.
fn everywhere(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| everywhere(item, change)),
        Value::Object(map) => map.values_mut().for_each(|item| everywhere(item, change)),
        _ => {}
    }
}

/// The strict profile with one more rule, first or last.
fn opened(rule: Value, first: bool) -> String {
    let mut profile: Value = serde_json::from_str(DENY_BY_DEFAULT).unwrap();
    let rules = profile["syscalls"].as_array_mut().unwrap();
    let place = if first { 0 } else { rules.len() };
    rules.insert(place, rule);
    profile.to_string()
}

fn allow(name: &str, condition: Option<Value>) -> Value {
    match condition {
        None => json!({"names": [name], "action": "SCMP_ACT_ALLOW"}),
        Some(argument) => {
            json!({"names": [name], "action": "SCMP_ACT_ALLOW", "args": [argument]})
        }
    }
}

/// Calls that the strict profile denies whatever their arguments.
fn denied() -> impl Iterator<Item = &'static str> {
    let rules = Rules::parse(DENY_BY_DEFAULT.as_bytes()).unwrap();
    let names = (0..syscalls::BEYOND).filter_map(syscalls::name);
    names.filter(move |name| rules.about(name) == About::Denied)
}

/// Every call that the profile denies, opened one at a time: outright, and for an argument
/// that no probe uses, before and after all other rules.
#[test]
fn each_call_that_is_opened_is_found_if_it_is_on_the_floor() {
    let odd = json!({"index": 1, "value": 977, "op": "SCMP_CMP_EQ"});
    let mut tried = BTreeMap::from([(true, 0), (false, 0)]);
    for (_, name) in denied().enumerate().filter(|(number, _)| is_tried(*number)) {
        let is_part = floor::PARTS.iter().any(|(part, ..)| *part == name);
        for (condition, first) in [
            (None, true),
            (Some(odd.clone()), false),
            (Some(odd.clone()), true),
        ] {
            let on_the_floor = floor::DENIED.contains(&name) || is_part && condition.is_none();
            let profile = opened(allow(name, condition), first);
            let found = Forged::new(&profile).verified(&profile);
            *tried.get_mut(&on_the_floor).unwrap() += 1;
            let bad = |step: &&Step| matches!(step.outcome, Outcome::False | Outcome::Blocked);
            let bad: Vec<&Step> = found.steps.iter().filter(bad).collect();
            if on_the_floor {
                assert_eq!(found.decision, Decision::B4PrimeRejected, "{name}");
                let names = |step: &&Step| step.place == "XP-ABI-SWEEP" && step.got.contains(name);
                assert!(bad.iter().any(names), "{name}: {bad:?}");
            } else {
                assert_eq!(found.decision, Decision::B4PrimeAccepted, "{name}: {bad:?}");
            }
        }
    }
    assert!(
        at_least(tried[&true], 3 * 90 + 1) && at_least(tried[&false], 3 * 150 + 1),
        "{tried:?}"
    );
}

/// The same through the command line, with the profile in the verifier's hand.
#[test]
fn verify_names_the_call_and_ends_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let plain = json!({"index": 1, "value": 1, "op": "SCMP_CMP_EQ"});
    // Every flag but the one that makes a network namespace.
    let clone = json!({"index": 0, "value": 0x3e02_0000, "op": "SCMP_CMP_MASKED_EQ"});
    for (rule, status, name) in [
        (allow("socket", Some(plain)), 1, "socket (depends)"),
        (allow("reboot", None), 1, "reboot (allowed)"),
        (allow("clone", Some(clone)), 1, "clone(CLONE_NEWNET)"),
        (
            json!({"names": ["mount"], "action": "SCMP_ACT_ERRNO", "errnoRet": 0}),
            1,
            "mount (allowed)",
        ),
        (
            json!({"names": ["bpf"], "action": "SCMP_ACT_LOG"}),
            1,
            "bpf (allowed)",
        ),
        (allow("getuid", None), 0, "B4_PRIME_ACCEPTED"),
    ] {
        let text = opened(rule, true);
        let profile = folder.path().join("opened.json");
        fs::write(&profile, &text).unwrap();
        let room = tempfile::tempdir_in(folder.path()).unwrap();
        let path = Forged::new(&text).write(room.path());
        let said = by_hand(&path, &["--seccomp", profile.to_str().unwrap()]);
        assert_eq!(said.status, status, "{name}: {said:?}");
        assert!(said.stdout.contains(name), "{name}: {said:?}");
    }
}
