//! Text, JSON, Markdown; binding; the verifier's own signature.

use crate::common::bundle::write_restamped;
use crate::common::signed::{Copy, keys};
use crate::common::{names_in, read_json, run, tool};
use crate::golden::{full, plain};
use serde_json::Value;
use std::fs;
use tki_evidence::stamp::sha256_hex;
use tki_evidence::step_code::StepCode;
use tki_verify::dsse::{Envelope, is_good};
use tki_verify::signers::AllowedSigners;

fn formatted(copy: &Copy, format: &str) -> String {
    copy.verify(&["--format", format]).stdout
}

/// Every step is there in its order, whether it was done or not.
#[test]
fn every_step_is_named_in_its_order_whatever_happens() {
    let steps = |copy: &Copy| -> Vec<String> {
        let json: Value = serde_json::from_str(&formatted(copy, "json")).unwrap();
        let steps = json["steps"].as_array().unwrap();
        let mut codes: Vec<String> = steps
            .iter()
            .map(|step| step["code"].as_str().unwrap().to_owned())
            .collect();
        codes.dedup();
        codes
    };
    let wanted = StepCode::ALL[1..].iter().map(|code| code.name());
    let wanted: Vec<&str> = wanted.collect();
    let copy = full().copy();
    assert_eq!(steps(&copy), wanted);
    // The evidence is not what was signed: everything after that is named too.
    let mut bytes = fs::read(&copy.path).unwrap();
    bytes[100] ^= 1;
    fs::write(&copy.path, bytes).unwrap();
    assert_eq!(steps(&copy), wanted);
    fs::remove_file(copy.envelope()).unwrap();
    let copy = plain().copy();
    fs::remove_file(copy.envelope()).unwrap();
    assert_eq!(steps(&copy), wanted);
    let stranger = keys().list("x {stranger}\n");
    let copy = plain().copy();
    fs::write(&copy.signers, stranger).unwrap();
    assert_eq!(steps(&copy), wanted);
}

#[test]
fn markdown_cannot_be_broken_out_of() {
    let copy = plain().copy();
    let good = formatted(&copy, "markdown");
    assert!(good.starts_with("# B4\\_PRIME\\_ACCEPTED\n"), "{good}");
    assert!(good.contains("## This does not prove\n"), "{good}");
    let mut value = plain().value.clone();
    value["venue"] = "|x|<script>[a](b)`c`".into();
    fs::remove_file(copy.envelope()).unwrap();
    write_restamped(&copy.path, value);
    let text = formatted(&copy, "markdown");
    assert!(
        !text.contains("<script>") && !text.contains("[a](b)"),
        "{text}"
    );
    assert!(text.contains("\\<script\\>"), "{text}");
    let row = text.lines().find(|line| line.contains("EV-VENUE")).unwrap();
    let bars = row.replace("\\|", "").matches('|').count();
    assert_eq!(bars, 7, "{row}");
}

#[test]
fn the_binding_is_written_as_json_and_markdown() {
    let copy = full().copy();
    let stem = copy.folder.path().join("binding");
    let flags = ["--binding", stem.to_str().unwrap()];
    copy.verify(&flags).succeeded();
    let json = read_json(&stem.with_extension("json"));
    assert_eq!(json["b4_prime"], true);
    assert_eq!(json["decision"], "B4_PRIME_ACCEPTED");
    let evidence = fs::read(&copy.path).unwrap();
    assert_eq!(json["evidence_file_sha256"], sha256_hex(&evidence));
    let tests = json["tests"].as_array().unwrap();
    let numbers: Vec<u64> = tests.iter().map(|t| t["test"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (24..=37).collect::<Vec<_>>());
    for test in tests {
        assert_eq!(test["result"], "PASS");
        for probe in test["probes"].as_array().unwrap() {
            assert!(!probe["facts"].as_str().unwrap().is_empty(), "{probe}");
        }
    }
    let page = fs::read_to_string(stem.with_extension("md")).unwrap();
    assert!(page.contains("**B4′ is asserted**"), "{page}");
    assert!(
        page.contains("| \\#24 ") && page.contains("| \\#37 "),
        "{page}"
    );
    // Not asserted where the evidence as a whole is not accepted, and nothing
    // is replaced.
    let said = copy.verify(&[&flags[..], &["--threshold", "2"]].concat());
    assert_eq!(said.status, 3, "{said:?}");
    assert!(said.stderr.contains("no binding was written"), "{said:?}");
    copy.verify(
        &[
            &flags[..],
            &["--max-age", "0s", "--verify-time", "2099-01-01T00:00:00Z"],
        ]
        .concat(),
    );
    let json = read_json(&copy.folder.path().join("binding-2.json"));
    assert_eq!(json["b4_prime"], false);
    let page = fs::read_to_string(copy.folder.path().join("binding-2.md")).unwrap();
    assert!(page.contains("**B4′ is not asserted.**"), "{page}");
}

#[test]
fn the_verifier_signs_what_it_came_to() {
    let copy = plain().copy();
    let file = copy.folder.path().join("verification.json");
    let key = keys().private("second");
    let flags = [
        "--verification",
        file.to_str().unwrap(),
        "--attest",
        key.to_str().unwrap(),
    ];
    copy.verify(&flags).succeeded();
    let written = fs::read(&file).unwrap();
    let json: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(json["schema"], "tki-attest/verification/v1");
    assert_eq!(json["assurance"], "signed-fresh");
    assert_eq!(json["signers"][0]["principals"], "operator@vps");
    let envelope = fs::read(copy.folder.path().join("verification.intoto.jsonl")).unwrap();
    let envelope = Envelope::parse(&envelope).unwrap();
    let list = keys().list("v {second}\n");
    let list = AllowedSigners::parse(list.as_bytes()).unwrap();
    let sig = &envelope.signatures[0].sig;
    assert!(is_good(&list.entries[0].key, &envelope.signed_bytes(), sig));
    let statement: Value = serde_json::from_slice(&envelope.payload).unwrap();
    assert_eq!(
        statement["predicateType"],
        "https://in-toto.io/attestation/svr/v0.1"
    );
    let properties = &statement["predicate"]["properties"];
    assert_eq!(properties[0], "TKI_ATTEST_B4_PRIME_ACCEPTED");
    assert_eq!(properties[1], "TKI_ATTEST_ASSURANCE_SIGNED_FRESH");
    let subjects = statement["subject"].as_array().unwrap();
    let digests: Vec<&str> = subjects
        .iter()
        .map(|subject| subject["digest"]["sha256"].as_str().unwrap())
        .collect();
    let evidence = sha256_hex(&fs::read(&copy.path).unwrap());
    assert_eq!(digests[0], evidence);
    assert_eq!(digests[1], sha256_hex(&written));
    // A second verification gets a name of its own.
    copy.verify(&flags).succeeded();
    let names = names_in(copy.folder.path());
    assert!(
        names.contains(&"verification-2.json".to_owned()),
        "{names:?}"
    );
    assert!(
        names.contains(&"verification-2.intoto.jsonl".to_owned()),
        "{names:?}"
    );
    // What was not accepted has no property, and no given time is the signature's.
    let late = [&flags[..], &["--verify-time", "2099-01-01T00:00:00Z"]].concat();
    assert_eq!(copy.verify(&late).status, 3);
    let envelope = fs::read(copy.folder.path().join("verification-3.intoto.jsonl")).unwrap();
    let envelope = Envelope::parse(&envelope).unwrap();
    let statement: Value = serde_json::from_slice(&envelope.payload).unwrap();
    assert_eq!(statement["predicate"]["properties"], serde_json::json!([]));
    let time = statement["predicate"]["timeCreated"].as_str().unwrap();
    assert!(!time.starts_with("2099"), "{time}");
}

#[test]
fn completions_and_manual_pages_are_there() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = run(tool().arg("completions").arg(shell));
        said.succeeded();
        assert!(said.stdout.contains("allowed-signers"), "{shell}");
    }
    let said = run(tool().arg("man"));
    said.succeeded();
    assert!(said.stdout.contains(".TH tki-attest 1"), "{said:?}");
    let folder = tempfile::tempdir().unwrap();
    run(tool().arg("man").arg("--out").arg(folder.path())).succeeded();
    let names = names_in(folder.path());
    for name in [
        "tki-attest.1",
        "tki-attest-verify.1",
        "tki-attest-seccomp-lint.1",
    ] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
}
