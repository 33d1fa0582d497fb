use super::{snapshot, transcript};
use crate::common::{Said, root, run, tool};
use crate::golden::{full, plain};
use crate::masks::masked;
use std::fs;
use std::path::Path;
use tki_attest::report::table::{ColorChoice, Paint};
use tki_attest::report::{engines, evidence, seccomp};
use tki_attest::sandbox::minimise::Minimal;
use tki_evidence::evidence::{Evidence, Status, Verdict};

fn plainly() -> Paint {
    Paint::stdout(ColorChoice::Never)
}

fn read(value: &serde_json::Value) -> Evidence {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn what_a_run_shows() {
    let (found, path) = (read(&full().value), Path::new("reports/evidence.json"));
    let all = [
        evidence::table(&found, plainly()),
        evidence::details(&found, 1_234_567, plainly()),
        evidence::conclusion(&found, path, plainly()),
    ];
    let text = masked(&all.join("=====\n"), &[], Some(full()));
    snapshot("run-attested", &text);
    let summary = evidence::summary(&found, path);
    let summary = serde_json::to_string_pretty(&summary).unwrap();
    snapshot("run-attested-json", &masked(&summary, &[], Some(full())));
}

#[test]
fn what_a_run_shows_that_failed() {
    let mut found = read(&plain().value);
    found.probes[0].verdict = Verdict::Fail;
    found.probes[0].reasons = vec!["allowed: tcp4-stream".into()];
    found.probes[1].verdict = Verdict::Unproven;
    found.probes[1].reasons = vec!["not reached: lookup-ipv4".into()];
    found.witnesses.agreement[0].agree = false;
    found.summary = tki_evidence::derive::summary(&found.probes, false);
    found.status = Status::SandboxAttestationFailed;
    let path = Path::new("reports/evidence.json");
    let all = [
        evidence::table(&found, plainly()),
        evidence::conclusion(&found, path, plainly()),
    ];
    let text = masked(&all.join("=====\n"), &[], Some(plain()));
    snapshot("run-failed", &text);
}

#[test]
fn engines_side_by_side() {
    let found = read(&full().value);
    let columns = [
        engines::Column {
            engine: "docker",
            result: Ok(&found),
        },
        engines::Column {
            engine: "bwrap",
            result: Err("bubblewrap is not there"),
        },
    ];
    let text = engines::matrix(&columns, plainly());
    snapshot("engines-matrix", &masked(&text, &[], Some(full())));
}

#[test]
fn the_catalogue() {
    for (name, more) in [("probes", &[][..]), ("probes-verbose", &["-v"])] {
        let said = run(tool().arg("probes").args(more));
        assert_eq!(said.status, 0, "{said:?}");
        snapshot(name, &transcript(&said));
    }
}

fn of_profile(words: &[&str], file: &Path) -> Said {
    run(tool().arg("seccomp").args(words).arg(file))
}

#[test]
fn seccomp_profiles_linted_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let open = folder.path().join("open.json");
    fs::write(&open, r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#).unwrap();
    for (name, words) in [
        ("lint", &["lint"][..]),
        ("lint-json", &["lint", "--format", "json"]),
        ("explain", &["explain"]),
        ("explain-verbose", &["explain", "-v"]),
    ] {
        for (kind, file) in [
            ("open", open.clone()),
            ("targeted-deny", root().join("seccomp/targeted-deny.json")),
            (
                "deny-by-default",
                root().join("seccomp/deny-by-default.json"),
            ),
        ] {
            let text = masked(
                &transcript(&of_profile(words, &file)),
                &[folder.path(), root()],
                None,
            );
            snapshot(&format!("seccomp-{name}-{kind}"), &text);
        }
    }
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let minimal = Minimal {
        needed: list(&["execve", "read"]),
        margin: list(&["brk"]),
        superfluous: list(&["ptrace"]),
    };
    snapshot("seccomp-derive", &seccomp::minimal(&minimal));
}
