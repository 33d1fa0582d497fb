//! A command behind a bundle, two bundles side by side, many at once.

use crate::common::bundle::write_restamped;
use crate::common::signed::keys;
use crate::common::{Said, run, tool};
use crate::golden::{full, other, plain};
use std::fs;
use std::path::Path;

fn gate(bundle: &Path, flags: &[String], command: &[&str]) -> Said {
    let mut gate = tool();
    gate.arg("gate").arg(bundle).args(flags).arg("--");
    run(gate.args(command))
}

#[test]
fn the_command_runs_only_behind_an_accepted_bundle() {
    let copy = plain().copy();
    let marker = copy.folder.path().join("ran");
    let script = format!(
        "echo out; echo err >&2; touch {}; exit 42",
        marker.display()
    );
    let command = ["sh", "-c", &script];
    let said = gate(&copy.path, &copy.strictly(), &command);
    assert_eq!(
        (said.status, said.stdout.as_str()),
        (42, "out\n"),
        "{said:?}"
    );
    assert!(marker.exists());
    assert!(said.stderr.contains("B4_PRIME_ACCEPTED"), "{said:?}");
    fs::remove_file(&marker).unwrap();

    let mut flags = copy.strictly();
    flags.extend(["--threshold".into(), "2".into()]);
    let said = gate(&copy.path, &flags, &command);
    assert_eq!((said.status, said.stdout.as_str()), (3, ""), "{said:?}");
    let mut text = fs::read(&copy.path).unwrap();
    text[100] ^= 1;
    fs::write(&copy.path, text).unwrap();
    let said = gate(&copy.path, &copy.strictly(), &command);
    assert_eq!((said.status, said.stdout.as_str()), (1, ""), "{said:?}");
    gate(Path::new("/nonexistent"), &[], &command).failed(2, "evidence.unreadable");
    assert!(!marker.exists());
    let good = plain().copy();
    gate(&good.path, &good.strictly(), &["/nonexistent"]).failed(2, "gate.command");
    let mut none = tool();
    let said = run(none.arg("gate").arg(&good.path));
    assert_eq!(said.status, 2, "{said:?}");
}

/// A command runs now, so the evidence must be good now.
#[test]
fn no_other_time_than_now_opens_the_gate() {
    let copy = plain().copy();
    let marker = copy.folder.path().join("ran");
    let command = ["touch", marker.to_str().unwrap()];
    let finished = plain().value["finished"].as_str().unwrap();
    for time in [
        finished,
        "2020-01-01T00:00:00Z",
        "2099-01-01T00:00:00Z",
        "x",
    ] {
        let mut flags = copy.strictly();
        flags.extend(["--verify-time".into(), time.into()]);
        let said = gate(&copy.path, &flags, &command);
        said.failed(2, "gate.verify-time");
        assert!(!marker.exists(), "{said:?}");
    }
    gate(&copy.path, &copy.strictly(), &command).succeeded();
    assert!(marker.exists());
}

#[test]
fn two_runs_are_compared_by_what_they_say() {
    let copy = plain().copy();
    let diff = |first: &Path, second: &Path, more: &[&str]| {
        let mut command = tool();
        command.arg("diff").arg(first).arg(second);
        run(command.args(more))
    };
    let said = diff(&copy.path, &copy.path, &[]);
    said.succeeded();
    assert_eq!(
        said.stdout.matches("nothing changed").count(),
        3,
        "{said:?}"
    );
    let mut value = plain().value.clone();
    value["runtime"]["kernel"] = "6.1.0-\u{1b}[31m".into();
    value["probes"][0]["verdict"] = "FAIL".into();
    value["raw"]["proc_net_dev"] = "Inter-|\n face |\n lo: 0\n eth0: 0\n".into();
    let edited = copy.folder.path().join("edited.json");
    write_restamped(&edited, value);
    let said = diff(&copy.path, &edited, &[]);
    said.succeeded();
    for wanted in [
        "probes[PR-NET-1].verdict: PASS → FAIL",
        "runtime.kernel: ",
        "+  eth0: 0",
        "fields that name a run differ",
    ] {
        assert!(said.stdout.contains(wanted), "{wanted}: {said:?}");
    }
    assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
    diff(&copy.path, &copy.path, &["--exit-code"]).succeeded();
    diff(&plain().path, &copy.path, &["--exit-code", "-q"]).succeeded();
    let said = diff(&copy.path, &edited, &["--exit-code", "-q"]);
    assert_eq!((said.status, said.stdout.as_str()), (1, ""), "{said:?}");
    let json = diff(&copy.path, &edited, &["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["same"], false);
    let groups: Vec<&str> = json["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["group"].as_str().unwrap())
        .collect();
    assert_eq!(groups, ["verdicts", "facts", "environment", "identity"]);
    let said = diff(&plain().path, &other().path, &["-v"]);
    said.succeeded();
    assert!(said.stdout.contains("run_id: "), "{said:?}");
    diff(&copy.path, Path::new("/nonexistent"), &[]).failed(2, "evidence.unreadable");
    fs::write(&edited, "{}").unwrap();
    diff(&copy.path, &edited, &[]).failed(2, "evidence.malformed");
}

#[test]
fn a_directory_is_verified_one_line_each_and_the_worst_decides() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(&full().path).unwrap();
        change(&mut bytes);
        fs::write(folder.path().join(name), bytes).unwrap();
    };
    let verify = |jobs: &str, more: &[&str]| {
        let mut command = tool();
        command
            .arg("verify")
            .arg(folder.path())
            .args(["--jobs", jobs, "--evidence-only"]);
        run(command.args(more))
    };
    verify("2", &[]).failed(3, "evidence.none");
    for number in 0..40 {
        put(&format!("{number:02}.json"), &|_| {});
    }
    put(".hidden.json", &Vec::clear);
    fs::write(folder.path().join("notes.txt"), "not evidence").unwrap();
    let said = verify("2", &[]);
    said.succeeded();
    assert_eq!(said.stdout.lines().count(), 41, "{said:?}");
    assert_eq!(said.stdout, verify("1", &[]).stdout);
    let order: Vec<bool> = said
        .stdout
        .lines()
        .take(40)
        .enumerate()
        .map(|(number, line)| line.contains(&format!("/{number:02}.json")))
        .collect();
    assert!(order.iter().all(|there| *there), "{said:?}");
    // Missing signatures block, what is no evidence is unreadable, what was
    // edited is false: each is worse than the one before.
    assert_eq!(verify("2", &["--require-assurance", "signed"]).status, 3);
    put("50.json", &|bytes| bytes.truncate(100));
    let said = verify("2", &[]);
    said.failed(2, "evidence.malformed");
    assert!(said.stdout.contains("UNREADABLE"), "{said:?}");
    put("60.json", &|bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        *bytes = text
            .replace("\"venue\": \"vps\"", "\"venue\": \"ci\"")
            .into();
    });
    let said = verify("2", &[]);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(said.stdout.contains("FALSE EV-STAMP"), "{said:?}");
    for format in ["json", "junit", "markdown"] {
        let said = verify("2", &["--format", format]);
        assert_eq!(said.status, 1, "{said:?}");
        assert!(said.stdout.contains("60.json"), "{format}");
    }
    let json = verify("2", &["--format", "json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 42);
    let said = verify("2", &["--verification", "x.json"]);
    said.failed(2, "verify.several");
}

/// What the owner of a directory keeps beside evidence is named and not taken;
/// whatever else is there could be evidence.
#[test]
fn documents_beside_evidence_are_named_and_not_taken_for_it() {
    let copy = plain().copy();
    let folder = copy.path.parent().unwrap();
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let key = keys().private("second");
    let (verification, binding) = (at("verification.json"), at("binding"));
    let written = copy.verify(&[
        "--verification",
        &verification,
        "--binding",
        &binding,
        "--attest",
        key.to_str().unwrap(),
    ]);
    written.succeeded();
    fs::rename(&copy.request, at("request.json")).unwrap();
    let matrix = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/evidence-schema/matrix-rev4.json"
    );
    fs::copy(matrix, at("matrix.json")).unwrap();
    let verify = |path: &str, more: &[&str]| {
        let mut command = tool();
        command.arg("verify").arg(path).args(more);
        run(command.arg("--allowed-signers").arg(&copy.signers))
    };
    for format in ["text", "json"] {
        let said = verify(folder.to_str().unwrap(), &["--format", format]);
        said.succeeded();
        for (name, what) in [
            ("request", "a request"),
            ("verification", "a verification"),
            ("binding", "a binding"),
            ("matrix", "a matrix"),
        ] {
            let line = format!("{name}.json: not verified, because it is {what} (tki-attest/");
            assert!(said.stderr.contains(&line), "{line}: {said:?}");
        }
        assert_eq!(
            said.stderr.matches("[evidence.other]").count(),
            4,
            "{said:?}"
        );
        assert!(!said.stdout.contains("request.json"), "{said:?}");
    }
    // Named, it is what was asked about.
    let named = verify(&at("request.json"), &[]);
    named.failed(2, "evidence.malformed");
    // One that is broken could be anything.
    fs::write(at("request.json"), "{\"schema\":\"tki-attest/request/v1\"").unwrap();
    verify(folder.to_str().unwrap(), &[]).failed(2, "evidence.malformed");
    // A directory of nothing else proves nothing.
    let others = tempfile::tempdir().unwrap();
    fs::copy(&verification, others.path().join("verification.json")).unwrap();
    verify(others.path().to_str().unwrap(), &[]).failed(3, "evidence.none");
}
