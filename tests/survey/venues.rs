//! Claims of venues against what is seen.

use crate::common::proxy::{Proxy, Reaction};
use crate::common::traces::nothing_written;
use crate::common::{attest, evidence_in, read_json, run, shared_engine, tool, verify};
use serde_json::Value;
use std::fs;
use tki_evidence::venue::BUILT_IN;

#[test]
fn a_ci_venue_needs_ci_facts() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let (none, some) = (folder.path().join("none"), folder.path().join("some"));
    let said = attest(&none, &["--venue", "ci"]);
    said.failed(3, "venue.implausible");
    assert!(
        said.stderr.contains("no variable of a CI system"),
        "{said:?}"
    );
    nothing_written(&none);

    let mut command = tool();
    command
        .args(["run", "--venue", "ci", "--controls", "none", "--out"])
        .arg(&some)
        .env("CI", "true")
        .env("GITLAB_CI", "a-value-that-is-not-recorded");
    run(&mut command).succeeded();
    let path = evidence_in(&some);
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("a-value-that-is-not-recorded"));
    let facts = read_json(&path)["venue_facts"].clone();
    assert_eq!(
        facts["ci_variables"],
        serde_json::json!(["CI", "GITLAB_CI"])
    );
    verify(&path, &[]).succeeded();
}

#[test]
fn what_is_seen_of_the_venue_is_recorded_and_the_machines_id_is_not() {
    let _engine = shared_engine();
    let out = tempfile::tempdir().unwrap();
    attest(out.path(), &["--venue", "vps"]).succeeded();
    let path = evidence_in(out.path());
    let facts = read_json(&path)["venue_facts"].clone();
    let text = |name: &str| facts[name].as_str().unwrap().to_owned();
    assert_eq!(text("tier"), "self-reported");
    assert_eq!(
        (text("platform_signed"), text("hardware")),
        ("absent".into(), "absent".into())
    );
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(text("kernel"), kernel.trim());
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(text("boot_id"), boot.trim());
    assert!(text("engine").starts_with("docker "), "{facts}");
    assert!(!text("virtualisation").is_empty() && !text("container").is_empty());
    if let Ok(id) = fs::read_to_string("/etc/machine-id") {
        assert_eq!(text("machine_id_hmac").len(), 64);
        let whole = fs::read_to_string(&path).unwrap();
        assert!(!whole.contains(id.trim()));
    }
}

/// Rules are data: a verifying party may have stricter or other ones.
#[test]
fn rules_can_be_replaced() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let head = "schema = \"tki-attest/venues/v1\"\n";
    let strict = file(
        "strict.toml",
        &format!(
            "{head}[[rule]]\nid = \"no-docker\"\nclaims = [\"vps\"]\nfacts = [\"engine\"]\n\
             words = [\"docker\"]\nreason = \"we do not take Docker\"\n"
        ),
    );
    let out = folder.path().join("out");
    let said = attest(&out, &["--venue", "vps", "--venue-rules", &strict]);
    said.failed(3, "venue.implausible");
    assert!(said.stderr.contains("we do not take Docker"), "{said:?}");
    attest(&out, &["--venue", "vps"]).succeeded();
    let evidence = evidence_in(&out);
    verify(&evidence, &[]).succeeded();
    // A verifying party says so in its policy. Without the built-in rules it asks
    // for less, and has to say that it means it.
    let policy = "schema = \"tki-attest/policy/v1\"\n";
    let as_policy = |rules: &str| policy.to_owned() + &rules.replace("[[rule]]", "[[venue_rules]]");
    let strict_text = fs::read_to_string(&strict).unwrap().replace(head, "");
    let alone = file("alone.toml", &as_policy(&strict_text));
    let said = verify(&evidence, &["--policy", &alone]);
    said.failed(2, "policy.weaker");
    assert!(said.stderr.contains("docker-desktop"), "{said:?}");
    let said = verify(&evidence, &["--policy", &alone, "--allow-weaker"]);
    assert_eq!(said.status, 3, "{said:?}");
    assert!(said.stdout.contains("we do not take Docker"), "{said:?}");
    let built_in = BUILT_IN.replace(head, "");
    let more = file(
        "more.toml",
        &as_policy(&format!("{built_in}\n{strict_text}")),
    );
    let said = verify(&evidence, &["--policy", &more]);
    assert_eq!(said.status, 3, "{said:?}");
    let same = file("same.toml", &as_policy(&built_in));
    verify(&evidence, &["--policy", &same]).succeeded();

    let broken = file("broken.toml", &format!("{head}colour = 1\n"));
    let said = attest(&out, &["--venue", "vps", "--venue-rules", &broken]);
    said.failed(2, "venues.malformed");
    assert!(said.stderr.contains("line 2, column 1"), "{said:?}");
    let said = attest(&out, &["--venue", "vps", "--venue-rules", "/nowhere"]);
    said.failed(2, "venues.unreadable");
}

/// Rewritten answers are right here: such engines do not run on servers.
#[test]
fn developers_machines_are_blocked_with_the_reason() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 6] = [
        (
            |info| info["OperatingSystem"] = "Docker Desktop".into(),
            "Docker Desktop",
        ),
        (
            |info| info["KernelVersion"] = "6.6.12-linuxkit".into(),
            "linuxkit",
        ),
        (|info| info["Name"] = "colima".into(), "colima"),
        (|info| info["Name"] = "lima-default".into(), "lima"),
        (
            |info| info["KernelVersion"] = "5.15.153.1-microsoft-standard-WSL2".into(),
            "WSL",
        ),
        (
            |info| info["OperatingSystem"] = "OrbStack".into(),
            "OrbStack",
        ),
    ];
    for (change, why) in cases {
        let proxy = Proxy::with(move |request| match request.is_info() {
            true => Reaction::Rewrite(change),
            false => Reaction::Pass,
        });
        let said = attest(&out, &["--venue", "vps", "--host", &proxy.host()]);
        said.failed(3, "venue.implausible");
        assert!(said.stderr.contains(why), "{why}: {said:?}");
        nothing_written(&out);
    }
}

/// What others signed is kept by its digest, and said to be unchecked.
#[test]
fn a_statement_of_the_platform_is_kept_and_not_judged() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let (out, token) = (folder.path().join("out"), folder.path().join("token"));
    fs::write(&token, "header.claims.signature").unwrap();
    let token_path = token.to_str().unwrap();
    attest(&out, &["--venue", "vps", "--platform-proof", token_path]).succeeded();
    let path = evidence_in(&out);
    let evidence = read_json(&path);
    let digest = tki_evidence::stamp::sha256_hex(b"header.claims.signature");
    let facts = &evidence["venue_facts"];
    assert_eq!(facts["platform_signed"], format!("sha256:{digest}"));
    assert_eq!(
        (&facts["tier"], &facts["hardware"]),
        (&"self-reported".into(), &"absent".into())
    );
    let kept = path.with_extension("").join("venue-proof-platform");
    assert_eq!(fs::read(&kept).unwrap(), fs::read(&token).unwrap());
    let said = verify(&path, &["--require-artifacts"]);
    said.succeeded();
    assert!(
        said.stdout.contains("it was kept, and not checked"),
        "{said:?}"
    );
    // Another one in its place is found out.
    fs::write(&kept, "header.claims.another").unwrap();
    assert_eq!(verify(&path, &[]).status, 1);

    fs::write(&token, "").unwrap();
    let large = folder.path().join("large");
    fs::write(&large, vec![b'x'; 70_000]).unwrap();
    for file in [token_path, large.to_str().unwrap(), "/nowhere"] {
        let said = attest(&out, &["--venue", "vps", "--hardware-proof", file]);
        said.failed(2, "venue.proof");
    }
}

/// A tier that nothing shows is not believed.
#[test]
fn a_signed_tier_is_not_taken_on_trust() {
    let _engine = shared_engine();
    let out = tempfile::tempdir().unwrap();
    attest(out.path(), &["--venue", "vps"]).succeeded();
    let path = evidence_in(out.path());
    let text = fs::read_to_string(&path).unwrap();
    let edited = text.replace("\"hardware\": \"absent\"", "\"hardware\": \"tpm2\"");
    assert_ne!(text, edited);
    fs::write(&path, edited).unwrap();
    let said = verify(&path, &[]);
    let venue = said
        .stdout
        .lines()
        .find(|line| line.contains("EV-VENUE"))
        .unwrap();
    assert!(
        venue.starts_with("BLOCKED") && venue.contains("tpm2"),
        "{venue}"
    );
}
