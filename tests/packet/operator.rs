//! The operator's packet, executed.

use super::{judge, packet, shellcheck};
use crate::common::podman::whole_podman;
use crate::common::proxy::{Proxy, Reaction};
use crate::common::traces::Before;
use crate::common::{attest, evidence_in, read_json, run, said, shared_engine, tool, whole_engine};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use tki_evidence::catalogue::CANONICAL;
use tki_evidence::evidence::ProbeResult;
use tki_evidence::stamp::sha256_hex;
use tki_evidence::wire::HostMessage;

/// The script of a section, as it stands.
fn script(packet: &str, section: &str) -> String {
    let (_, rest) = packet.split_once(&format!("\n### {section}\n")).unwrap();
    let (_, rest) = rest.split_once("```bash\n").unwrap();
    rest.split_once("\n```").unwrap().0.to_owned() + "\n"
}

#[test]
fn a_packet_is_complete_for_this_build() {
    let folder = tempfile::tempdir().unwrap();
    let path = packet(folder.path(), "operator", "packet.md");
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("{{"), "a place was not filled");
    let built = run(tool().args(["build", "--format", "json"]));
    let built: Value = serde_json::from_str(&built.stdout).unwrap();
    for name in ["manifest_digest", "config_digest"] {
        assert!(text.contains(built[name].as_str().unwrap()), "{name}");
    }
    let tool_digest = sha256_hex(&fs::read(env!("CARGO_BIN_EXE_tki-attest")).unwrap());
    assert!(text.contains(&tool_digest));
    let profile = fs::read(folder.path().join("packet.files/seccomp.json")).unwrap();
    assert!(text.contains(&sha256_hex(&profile)));
    for probe in CANONICAL {
        assert!(text.contains(&format!("| {} |", probe.id)), "{}", probe.id);
        assert!(
            text.contains(&probe.expected.replace('|', "\\|")),
            "{}",
            probe.id
        );
    }
    for heading in [
        "What must be used",
        "What it touches on that host",
        "Route A",
        "Route B",
        "### docker",
        "### podman",
        "### bwrap",
        "The twelve probes",
        "What to return",
        "How it will be verified",
        "Cleaning up",
        "Risk if it is waived",
        "What was NOT done",
        "SPECIFIED, NOT RUN",
    ] {
        assert!(text.contains(heading), "{heading}");
    }
    for shell in ["docker", "podman", "bwrap"] {
        let file = folder.path().join(format!("{shell}.sh"));
        fs::write(&file, script(&text, shell)).unwrap();
        let said = shellcheck("bash", &file);
        assert_eq!(said.status, 0, "{shell}: {}", said.stdout);
    }
    let check = "cd packet.files && sha256sum --check --strict SHA256SUMS";
    let mut sh = Command::new("sh");
    let said = run(sh.args(["-c", check]).current_dir(folder.path()));
    assert_eq!(said.status, 0, "{said:?}");
}

/// The first command of route A, as it stands, and the verifier's.
#[test]
fn route_a_is_what_the_tool_takes() {
    let _engine = shared_engine();
    let own = tempfile::tempdir().unwrap();
    let (seccomp, limits) = (own.path().join("own.json"), own.path().join("own.toml"));
    fs::write(&seccomp, tki_evidence::TARGETED_DENY.to_owned() + "\n").unwrap();
    fs::write(&limits, "[limits]\npids = 40\n").unwrap();
    let (seccomp, limits) = (seccomp.to_str().unwrap(), limits.to_str().unwrap());
    route_a(&[], "deny-by-default", 32);
    route_a(&["--seccomp", seccomp, "--profile", limits], "seccomp", 40);
}

fn route_a(arguments: &[&str], profile: &str, pids: i64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("packet.md");
    let mut command = tool();
    command
        .args(["packet", "--for", "operator", "--out"])
        .arg(&path);
    run(command.args(arguments)).succeeded();
    let text = fs::read_to_string(&path).unwrap();
    std::os::unix::fs::symlink(
        env!("CARGO_BIN_EXE_tki-attest"),
        folder.path().join("tki-attest"),
    )
    .unwrap();
    let (_, rest) = text.split_once("## Route A").unwrap();
    let (_, rest) = rest.split_once("```sh\n").unwrap();
    let lines = rest.split_once("\n```").unwrap().0;
    let mut sh = crate::common::isolated(Path::new("sh"));
    // The controls have tests of their own, and take their time.
    let lines = lines.replace("--out reports", "--out reports --controls none");
    let said = run(sh.args(["-ec", &lines]).current_dir(folder.path()));
    assert_eq!(said.status, 0, "{said:?}");
    let evidence = read_json(&evidence_in(&folder.path().join("reports")));
    assert!(
        evidence["seccomp_profile"]
            .as_str()
            .unwrap()
            .starts_with(profile),
        "{profile}"
    );
    assert_eq!(evidence["sandbox"]["declared"]["pids_limit"], pids);
    let (_, rest) = text.split_once("## How it will be verified").unwrap();
    let (_, rest) = rest.split_once("```sh\n").unwrap();
    let lines = rest.split_once("\n```").unwrap().0;
    let mut sh = crate::common::isolated(Path::new("sh"));
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let said = run(sh
        .args(["-ec", lines])
        .env("PATH", path)
        .current_dir(folder.path()));
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stdout.contains("B4_PRIME_ACCEPTED"), "{said:?}");
}

/// What a transcript comes to, by the same judge.
fn judged(folder: &Path, engine: &str) -> Vec<ProbeResult> {
    let line = fs::read(folder.join("challenge.json")).unwrap();
    let HostMessage::Challenge(challenge) = serde_json::from_slice(&line).unwrap();
    let bytes = fs::read(folder.join(format!("transcript-{engine}.ndjson"))).unwrap();
    let (missing, results) = judge(&bytes, &challenge);
    assert_eq!(missing, [""; 0]);
    results
}

/// Each script is executed as it stands, and gives what `run` gives.
#[test]
fn the_plain_command_lines_give_the_same_probe_results() {
    let _engine = whole_engine();
    let _podman = whole_podman();
    let before = Before::look();
    let folder = tempfile::tempdir().unwrap();
    let path = packet(folder.path(), "operator", "packet.md");
    let text = fs::read_to_string(&path).unwrap();
    let files = folder.path().join("packet.files");
    for engine in ["docker", "podman", "bwrap"] {
        let mut bash = crate::common::isolated(Path::new("bash"));
        bash.arg("-c")
            .arg(script(&text, engine))
            .current_dir(&files);
        let said = said(bash.output().unwrap());
        assert_eq!(said.status, 0, "{engine}: {said:?}");
        let by_hand = judged(&files, engine);

        let out = folder.path().join(engine);
        let arguments = ["--venue", "dev", "--engine", engine, "--gate", "off"];
        attest(&out, &arguments).succeeded();
        let evidence = read_json(&evidence_in(&out));
        for (probe, by_tool) in by_hand.iter().zip(evidence["probes"].as_array().unwrap()) {
            assert_eq!(by_tool["probe_id"], probe.probe_id);
            assert_eq!(
                (probe.verdict.name(), probe.errno_or_exit.as_str()),
                (
                    by_tool["verdict"].as_str().unwrap(),
                    by_tool["errno_or_exit"].as_str().unwrap()
                ),
                "{engine}: {} {:?}",
                probe.probe_id,
                probe.reasons
            );
            assert_eq!(probe.verdict.name(), "PASS", "{engine}: {probe:?}");
        }
        assert_eq!(by_hand.len(), 12);
    }
    before.nothing_new();
}

/// Puts the challenge into the volume that is /in, through a container that never starts.
const FILL: &str = r#"
volume=$(grep -o 'tki-attest-packet-[0-9a-f]*' <<<"$(trap -p EXIT)" | head -n 1)
filler=$("$docker" create --mount "type=volume,src=$volume,dst=/in" tki-inspector:attest)
chmod 644 challenge.json
"$docker" cp --quiet challenge.json "$filler:/in/challenge.json"
"$docker" rm "$filler" >/dev/null
"#;

/// Where nobody can speak to the container, as in a pod, the challenge is a file.
#[test]
fn the_challenge_can_be_a_file() {
    let _engine = whole_engine();
    let folder = tempfile::tempdir().unwrap();
    let path = packet(folder.path(), "operator", "packet.md");
    let text = fs::read_to_string(&path).unwrap();
    let files = folder.path().join("packet.files");
    let ask = |name: &str| {
        let script = script(&text, "docker")
            .replace("mkfifo ", &format!("{FILL}mkfifo "))
            .replace("<&3 >", &format!("{name} </dev/null >"));
        // An earlier transcript is not written over.
        let _ = fs::remove_file(files.join("transcript-docker.ndjson"));
        let mut bash = crate::common::isolated(Path::new("bash"));
        run(bash.args(["-c", &script]).current_dir(&files))
    };
    let said = ask("/in/challenge.json");
    assert_eq!(said.status, 0, "{said:?}");
    for probe in judged(&files, "docker") {
        assert_eq!(probe.verdict.name(), "PASS", "{probe:?}");
    }
    for (name, status, why) in [
        ("/in/nothing", 3, "cannot be read"),
        ("/in", 3, "cannot be read"),
        ("/in/tki-probe-target", 2, "malformed"),
        ("/dev/zero", 3, "cannot be read"),
    ] {
        let said = ask(name);
        assert_eq!(said.status, status, "{name}: {said:?}");
        let heard = fs::read_to_string(files.join("transcript-docker.ndjson")).unwrap();
        let last = heard.lines().last().unwrap();
        assert!(
            last.contains("refused") && last.contains(why),
            "{name}: {last}"
        );
    }
}

/// The packet's files are checked before anything runs.
#[test]
fn a_changed_file_stops_the_plain_command_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = packet(folder.path(), "operator", "packet.md");
    let text = fs::read_to_string(&path).unwrap();
    let files = folder.path().join("packet.files");
    fs::write(
        files.join("seccomp.json"),
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\"}",
    )
    .unwrap();
    for engine in ["docker", "podman", "bwrap"] {
        let mut bash = Command::new("bash");
        let said = run(bash
            .arg("-c")
            .arg(script(&text, engine))
            .current_dir(&files));
        assert_ne!(said.status, 0, "{engine}: {said:?}");
        assert!(!files.join(format!("transcript-{engine}.ndjson")).exists());
    }
}

#[test]
fn a_blocked_run_offers_the_packet_and_writes_it_where_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (out, path) = (folder.path().join("out"), folder.path().join("packet.md"));
    let proxy = Proxy::with(|request| match request.method.as_str() {
        "GET" => Reaction::Pass,
        _ => Reaction::Answer(403, "{\"message\":\"read-only\"}"),
    });
    let host = proxy.host();
    let arguments = ["--venue", "vps", "--host", &host];
    let said = attest(&out, &arguments);
    said.failed(3, "engine.read-only");
    assert!(said.stderr.contains("packet --for operator"), "{said:?}");
    assert!(!path.exists());
    let said = attest(
        &out,
        &[&arguments[..], &["--packet", path.to_str().unwrap()]].concat(),
    );
    said.failed(3, "engine.read-only");
    assert!(said.stderr.contains(path.to_str().unwrap()), "{said:?}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\\[engine.read-only\\]"), "{text}");
    assert!(text.contains("--seccomp deny-by-default"), "{text}");
    // It is about the sandbox that was to be run.
    let own = [
        "--packet",
        path.to_str().unwrap(),
        "--seccomp",
        "targeted-deny",
    ];
    attest(&out, &[&arguments[..], &own].concat()).failed(3, "engine.read-only");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("--seccomp targeted-deny"), "{text}");
    assert!(
        folder
            .path()
            .join("packet.files/tki-inspector.tar")
            .exists()
    );
}
