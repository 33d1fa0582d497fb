use super::{snapshot, transcript};
use crate::common::{Said, root, run, tool};
use crate::golden::{full, plain};
use crate::masks::masked;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tki_attest::inspect::stage::Inspected;
use tki_attest::inspect::stamp::{self, Accepted, Stamp};
use tki_attest::report::table::{ColorChoice, Paint};
use tki_attest::report::{engines, evidence, inspection, seccomp};
use tki_attest::sandbox::minimise::Minimal;
use tki_evidence::evidence::{Evidence, Status, Tool, Verdict};
use tki_evidence::stamp::sha256_hex;
use tki_evidence::verification::{Assurance, Decision};
use tki_inspector::guard::{Folder, Guard, Memory};
use tki_inspector::inspect::{Room, inspect};

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

/// A packet with a claim of each kind of fate, and its two items.
fn packet() -> (Vec<u8>, [(&'static str, &'static str); 2]) {
    let files = [
        ("report.md", "# Report\nThe gate is open.\n"),
        (
            "list.json",
            "{\"containers\": 11, \"runtime\": \"docker\"}\n",
        ),
    ];
    let item = |id: &str, (path, text): (&str, &str), media: &str, kind: &str| {
        json!({
            "id": id, "path": path, "sha256": sha256_hex(text.as_bytes()), "size": text.len(),
            "media_type": media, "document_type": kind, "extent": "complete",
            "source": {
                "authority": "NATIVE", "locator": path,
                "captured_at": "2026-06-10T08:00:00Z", "captured_by": "operator",
            },
        })
    };
    let quote = |text: &str| {
        let lines = json!({"first": 2, "last": 2, "quote": text});
        json!([{"item": "report", "at": {"lines": lines}}])
    };
    let count = |number: u64| {
        let expect = json!({"equals": number});
        json!([{"item": "list", "at": {"json": "/containers"}, "expect": expect}])
    };
    let claim = |id: &str, kind: &str, scope: &str, text: &str, evidence: Value| json!({"id": id, "kind": kind, "scope": scope, "text": text, "evidence": evidence});
    let packet = json!({
        "schema": "tki-attest/packet/v1",
        "id": "june",
        "as_of": "2026-06-23T00:00:00Z",
        "items": [
            item("report", files[0], "text/markdown", "report"),
            item("list", files[1], "application/json", "listing"),
        ],
        "claims": [
            claim("eleven", "is", "packet", "There are eleven containers.", count(11)),
            claim("twelve", "is", "packet", "There are twelve containers.", count(12)),
            claim("says-open", "says", "packet", "The gate is said to be open.", quote("open")),
            claim("is-open", "is", "packet", "The gate is open.", quote("open")),
            claim("shut", "says", "packet", "The gate is said to be shut.", quote("shut")),
            claim("anywhere", "is", "global", "No gate is open anywhere.", json!([])),
        ],
    });
    (packet.to_string().into_bytes(), files)
}

/// What the inspector makes of it, in memory.
fn inspected(decision: Decision) -> Inspected {
    let (bytes, files) = packet();
    let mut input = vec![
        (Folder::Packet, "packet.json".to_owned(), bytes),
        (
            Folder::Launcher,
            "expected.json".to_owned(),
            br#"{"known_image":{"manifest_digest":"","config_digest":"","diff_ids":[]}}"#.to_vec(),
        ),
    ];
    for (path, text) in files {
        let bytes = text.as_bytes().to_vec();
        input.push((Folder::Packet, path.to_owned(), bytes));
    }
    let mut guard = Guard::new(Memory {
        input,
        output: Vec::new(),
    });
    let room = Room {
        memory_bytes: u64::MAX,
        out_bytes: u64::MAX,
    };
    let found = inspect(&mut guard, room, &mut ()).unwrap();
    let is_accepted = decision == Decision::B4PrimeAccepted;
    let text = |text: &str| text.to_owned();
    let stamp = Stamp {
        schema: stamp::SCHEMA,
        sandbox: match is_accepted {
            true => Accepted::Accepted,
            false => Accepted::NotAccepted,
        },
        accepted: is_accepted,
        dev: !is_accepted,
        venue: text(if is_accepted { "vps" } else { "dev" }),
        tool: Tool {
            name: text("tki-attest"),
            version: text("0.0.0"),
            sha256: "0".repeat(64),
        },
        engine: stamp::Engine {
            name: text("docker"),
            version: text("20.10.24"),
            runtime: text("runc"),
            at: text("this host"),
        },
        image_digest: format!("sha256:{}", "0".repeat(64)),
        evidence: stamp::Before {
            name: text("evidence.json"),
            sha256: "0".repeat(64),
            run_id: text("20260623t000000z-00000000"),
            decision,
            assurance: Assurance::SelfReported,
        },
        started: text("2026-06-23T00:00:00Z"),
        finished: text("2026-06-23T00:00:01Z"),
        selfcheck_us: 700,
        judged_us: 900,
        packet: stamp::Packet {
            id: found.report.packet.id.clone(),
            sha256: found.report.packet.sha256.clone(),
        },
        status: 11,
        reports: found
            .files
            .iter()
            .map(|(name, bytes)| stamp::Written {
                name,
                sha256: sha256_hex(bytes),
                bytes: bytes.len() as u64,
            })
            .collect(),
    };
    Inspected {
        report: found.report,
        stamp,
        path: "reports/inspection-june".into(),
    }
}

#[test]
fn what_an_inspection_shows() {
    let accepted = inspected(Decision::B4PrimeAccepted);
    snapshot("inspection", &inspection::text(&accepted, false, plainly()));
    let dev = inspected(Decision::B4PrimeBlocked);
    snapshot("inspection-dev", &inspection::text(&dev, true, plainly()));
    let mut summary = serde_json::to_value(inspection::summary(&dev)).unwrap();
    // The inspector's own digests are for its own tests.
    summary["stamp"]["reports"] = json!([]);
    let summary = serde_json::to_string_pretty(&summary).unwrap();
    snapshot("inspection-json", &summary);
}
