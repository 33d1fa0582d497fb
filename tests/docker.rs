//! Attesting on the real Docker Engine: what must work, what it prints, and
//! what it does to everything else on the engine, which is nothing.

use crate::common::by_hand::ByHand;
use crate::common::impostor::Bystanders;
use crate::common::proxy::{Proxy, Reaction};
use crate::common::traces::{nothing_left, nothing_written};
use crate::common::{
    attest, docker, evidence_in, isolated, names_in, need, read_json, required, root, run,
    shared_engine, tool, verify, whole_engine,
};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn both_profiles_pass_every_probe_and_verify_accepts_both() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let layout = folder.path().join("layout");
    run(tool().arg("build").arg("--layout").arg(&layout)).succeeded();
    for profile in ["targeted-deny", "deny-by-default"] {
        let out = folder.path().join(profile);
        let said = attest(&out, &["--venue", "vps", "--seccomp", profile]);
        said.succeeded();
        let lines = said.stdout.lines();
        assert_eq!(
            lines.filter(|line| line.contains(" PASS  ")).count() as u64,
            required(false),
            "{said:?}"
        );
        assert!(
            said.stdout
                .contains(&format!("SANDBOX_ATTESTED  {0} of {0}", required(false))),
            "{said:?}"
        );

        let path = evidence_in(&out);
        let evidence = read_json(&path);
        assert_eq!(evidence["summary"]["passed"], required(false));
        assert_eq!(evidence["seccomp_profile"], profile);
        assert_eq!(evidence["inventory"]["unchanged"], true);
        let accepted = verify(&path, &["--require-artifacts"]);
        accepted.succeeded();
        assert!(
            accepted
                .stdout
                .contains("B4_PRIME_ACCEPTED  assurance: self-reported")
        );

        let file = root().join(format!("seccomp/{profile}.json"));
        let mut strict = tool();
        strict.arg("verify").arg(&path).arg("--require-artifacts");
        run(strict
            .arg("--image")
            .arg(&layout)
            .arg("--seccomp")
            .arg(file))
        .succeeded();
    }
}

#[test]
fn a_developers_machine_may_run_but_its_evidence_is_blocked() {
    let _engine = shared_engine();
    let out = tempfile::tempdir().unwrap();
    attest(out.path(), &["--venue", "dev"]).succeeded();
    let said = verify(&evidence_in(out.path()), &[]);
    assert_eq!(said.status, 3, "{said:?}");
    assert!(said.stdout.contains("B4_PRIME_BLOCKED"), "{said:?}");
    let blocked: Vec<&str> = said
        .stdout
        .lines()
        .filter(|l| l.starts_with("BLOCKED"))
        .collect();
    assert!(
        blocked.len() == 1 && blocked[0].contains("EV-VENUE"),
        "{blocked:?}"
    );
}

#[test]
fn verbose_prints_the_command_line_that_the_evidence_records() {
    let _engine = shared_engine();
    let out = tempfile::tempdir().unwrap();
    let said = attest(out.path(), &["--venue", "dev", "-v"]);
    said.succeeded();
    let recorded = read_json(&evidence_in(out.path()))["sandbox"]["command_line"].clone();
    let words = recorded.as_array().unwrap();
    assert!(words.len() > 20, "{recorded}");
    for word in words {
        assert!(
            said.stdout.contains(word.as_str().unwrap()),
            "{word} in {}",
            said.stdout
        );
    }
}

#[test]
fn json_is_all_that_stands_on_standard_output() {
    let _engine = shared_engine();
    let out = tempfile::tempdir().unwrap();
    let said = attest(out.path(), &["--venue", "dev", "--format", "json"]);
    said.succeeded();
    assert_eq!(said.stderr, "");
    let printed: Value = serde_json::from_str(&said.stdout).unwrap();
    assert!(printed.is_object());
    let path = evidence_in(out.path());
    let verified = verify(&path, &["--format", "json"]);
    assert_eq!((verified.status, verified.stderr.as_str()), (3, ""));
    for (text, filter, wanted) in [
        (&said.stdout, ".status", "\"SANDBOX_ATTESTED\""),
        (&verified.stdout, ".decision", "\"B4_PRIME_BLOCKED\""),
    ] {
        let file = out.path().join("printed");
        fs::write(&file, text).unwrap();
        let jq = need("jq", Command::new("jq").args(["-e", filter]).arg(&file));
        assert_eq!((jq.status, jq.stdout.trim()), (0, wanted), "{jq:?}");
    }
}

#[test]
fn a_pipe_gets_no_progress_and_no_escapes_unless_they_are_asked_for() {
    let _engine = shared_engine();
    let out = tempfile::tempdir().unwrap();
    let plain = attest(out.path(), &["--venue", "dev"]);
    plain.succeeded();
    assert_eq!(plain.stderr, "");
    assert!(!plain.stdout.contains('\u{1b}'), "{plain:?}");
    assert!(plain.stdout.contains("evidence  "), "{plain:?}");

    let coloured = attest(out.path(), &["--venue", "dev", "--color", "always"]);
    coloured.succeeded();
    assert_eq!(coloured.stderr, "");
    assert!(coloured.stdout.contains("\u{1b}["), "{coloured:?}");

    let quiet = attest(out.path(), &["--venue", "dev", "-q"]);
    quiet.succeeded();
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn a_terminal_gets_a_line_per_stage_and_colour() {
    let _engine = shared_engine();
    let out = tempfile::tempdir().unwrap();
    let command = format!(
        "{} run --venue dev --out {}",
        env!("CARGO_BIN_EXE_tki-attest"),
        out.path().display()
    );
    let mut script = isolated(Path::new("script"));
    script.env_remove("NO_COLOR").env("TERM", "xterm");
    script
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::null());
    let said = need("bsdutils", &mut script);
    said.succeeded();
    for stage in [
        "build", "engine", "image", "launch", "probe", "collect", "write",
    ] {
        let done = |line: &str| line.contains('✓') && line.contains(stage) && line.contains(" ms");
        assert!(said.stdout.lines().any(done), "{stage}: {said:?}");
    }
    assert!(said.stdout.contains("\u{1b}["), "{said:?}");
}

#[test]
fn an_existing_evidence_file_is_never_touched() {
    let _engine = shared_engine();
    let out = tempfile::tempdir().unwrap();
    attest(out.path(), &["--venue", "dev"]).succeeded();
    let first = evidence_in(out.path());
    let stem = first.file_stem().unwrap().to_str().unwrap().to_owned();
    let bytes = fs::read(&first).unwrap();
    // Four at once; each must find a name of its own.
    let mut running: Vec<_> = (0..4)
        .map(|_| {
            let mut command = tool();
            command
                .args(["run", "--gate", "off", "--venue", "dev", "--out"])
                .arg(out.path());
            command.stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for child in &mut running {
        // Four at once may keep each other from using up their CPU quota, which
        // is then not proven; the evidence is written all the same.
        let status = child.wait().unwrap().code();
        assert!(matches!(status, Some(0 | 3)), "{status:?}");
    }
    assert_eq!(fs::read(&first).unwrap(), bytes);
    let names = names_in(out.path());
    let evidence: Vec<&String> = names.iter().filter(|n| n.ends_with(".json")).collect();
    assert_eq!(evidence.len(), 5, "{names:?}");
    assert_eq!(names.len(), 10, "{names:?}");
    // A run that began after midnight starts with a name without a suffix.
    let next_day = evidence.iter().any(|name| !name.starts_with(&stem));
    assert!(
        next_day || names.contains(&format!("{stem}-2.json")),
        "{names:?}"
    );
    for name in evidence {
        let said = verify(&out.path().join(name), &["--require-artifacts"]);
        assert_eq!(said.status, 3, "{name}: {said:?}");
        assert!(!said.stdout.contains("FALSE"), "{name}: {said:?}");
    }
}

#[test]
fn the_image_is_loaded_once_and_then_found() {
    let _engine = whole_engine();
    let out = tempfile::tempdir().unwrap();
    run(tool().args(["build", "--load"])).succeeded();
    docker(&["rmi", "-f", "tki-inspector:attest"]);
    let proxy = Proxy::plain();
    for wanted in [1, 1] {
        attest(out.path(), &["--venue", "dev", "--host", &proxy.host()]).succeeded();
        assert_eq!(
            proxy.count(|request| request.is_load()),
            wanted,
            "{:?}",
            proxy.log()
        );
    }
    nothing_left(&proxy);
    // Reading, our image, our container: nothing else was asked of the engine.
    for request in proxy.log() {
        let ours = request.method == "GET"
            || request.is_load()
            || request.is_create()
            || request.target.starts_with("/volumes/tki-attest-")
            || request.target.starts_with("/containers/");
        assert!(ours, "{request}");
    }
}

#[test]
fn flag_and_variable_name_the_engine_and_the_flag_wins() {
    let _engine = shared_engine();
    let out = tempfile::tempdir().unwrap();
    let proxy = Proxy::plain();
    let mut command = tool();
    command
        .args(["run", "--gate", "off", "--venue", "dev", "--out"])
        .arg(out.path());
    run(command.env("DOCKER_HOST", proxy.host())).succeeded();
    assert_eq!(proxy.count(|request| request.is_start()), 1);
    let mut command = tool();
    command
        .args(["run", "--gate", "off", "--venue", "dev", "--out"])
        .arg(out.path());
    command.env("DOCKER_HOST", "unix:///nowhere.sock");
    run(command.args(["--host", &proxy.host()])).succeeded();
    assert_eq!(proxy.count(|request| request.is_start()), 2);
    nothing_left(&proxy);
}

#[test]
fn what_others_keep_on_the_engine_is_untouched() {
    let _engine = whole_engine();
    let out = tempfile::tempdir().unwrap();
    let bystanders = Bystanders::new();
    let before = bystanders.described();
    attest(out.path(), &["--venue", "vps"]).succeeded();
    assert_eq!(bystanders.described(), before);
    let inventory = read_json(&evidence_in(out.path()))["inventory"].clone();
    assert_eq!(inventory["unchanged"], true);
    for kind in ["containers", "networks", "volumes", "images"] {
        let held = |when: &str| inventory[when][kind].as_array().unwrap().clone();
        assert!(!held("before").is_empty(), "{kind}");
        for id in held("before") {
            assert!(held("after").contains(&id), "{kind} {id}");
        }
    }
    let listed = inventory["before"]["containers"].as_array().unwrap().len();
    assert!(listed >= 2, "{inventory}");
}

#[test]
fn something_that_appears_during_the_run_is_seen_and_blocks() {
    let _engine = whole_engine();
    let out = tempfile::tempdir().unwrap();
    let volume = format!("tki-bystander-late-{}", std::process::id());
    let name = volume.clone();
    let proxy = Proxy::with(move |request| {
        if request.is_start() {
            docker(&["volume", "create", &name]);
        }
        Reaction::Pass
    });
    let said = attest(out.path(), &["--venue", "vps", "--host", &proxy.host()]);
    docker(&["volume", "rm", &volume]);
    assert_eq!(said.status, 3, "{said:?}");
    let path = evidence_in(out.path());
    let evidence = read_json(&path);
    assert_eq!(evidence["inventory"]["unchanged"], false);
    assert_eq!(evidence["status"], "SANDBOX_ATTESTATION_PARTIAL");
    assert_eq!(evidence["summary"]["passed"], required(false));
    let verified = verify(&path, &[]);
    assert_eq!(verified.status, 3, "{verified:?}");
    assert!(verified.stdout.contains("EV-INVENTORY"), "{verified:?}");
    nothing_left(&proxy);
}

#[test]
fn a_profile_that_denies_nothing_is_disproved() {
    let _engine = shared_engine();
    let folder = tempfile::tempdir().unwrap();
    let (weak, out) = (folder.path().join("weak.json"), folder.path().join("out"));
    fs::write(
        &weak,
        "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[]}",
    )
    .unwrap();
    let said = attest(
        &out,
        &["--venue", "vps", "--seccomp", weak.to_str().unwrap()],
    );
    assert_eq!(said.status, 1, "{said:?}");
    let path = evidence_in(&out);
    let evidence = read_json(&path);
    assert_eq!(evidence["status"], "SANDBOX_ATTESTATION_FAILED");
    assert_eq!(evidence["seccomp_profile"], "weak.json");
    let failed: Vec<&str> = evidence["probes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|probe| probe["verdict"] == "FAIL")
        .map(|probe| probe["probe_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        failed,
        [
            "PR-NET-1",
            "PR-SOCK-1",
            "PR-PTRACE-1",
            "XP-URING",
            "XP-PROGRAMS",
            "XP-KEYRING",
            "XP-ADMIN",
            "XP-HANDLES",
            "XP-PAGE-CACHE",
            "XP-FAMILIES",
            "XP-PROCESSES",
            "XP-PERSONALITY",
            "XP-TTY",
            "XP-MOUNT-API",
            "XP-NS-MAKE",
            "XP-ABI-SWEEP",
            "XP-FS-SPECIAL",
        ]
    );
    let verified = verify(&path, &["--require-artifacts"]);
    assert_eq!(verified.status, 1, "{verified:?}");
    assert!(
        verified.stdout.contains("B4_PRIME_REJECTED"),
        "{verified:?}"
    );
}

/// Who has only the evidence can do by hand what the tool did.
#[test]
fn the_recorded_command_line_starts_the_same_sandbox_by_hand() {
    let _engine = whole_engine();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    attest(&out, &["--venue", "dev"]).succeeded();
    let by_hand = ByHand::new(&evidence_in(&out));
    let mut child = by_hand
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut greeting = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut greeting).unwrap();
    drop(child.stdin.take());
    let status = child.wait().unwrap();
    let greeting: Value = serde_json::from_str(&greeting).unwrap();
    assert_eq!(greeting["hello"]["missing"], Value::Array(Vec::new()));
    // Standard input was closed before a challenge came.
    assert_eq!(status.code(), Some(3));
}

#[test]
fn a_missing_venue_is_a_usage_error_and_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("reports");
    for arguments in [
        &[][..],
        &["--venue", "mars"],
        &["--venue", "vps", "--timeout", "0"],
    ] {
        let said = attest(&out, arguments);
        assert_eq!(said.status, 2, "{said:?}");
        nothing_written(&out);
    }
}

/// Engines apply the last of two profiles, and read both back.
#[test]
fn an_unrequested_security_option_is_no_attestation() {
    let _engine = shared_engine();
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 4] = [
        ("seccomp=unconfined", |body| {
            add_option(body, "seccomp=unconfined")
        }),
        ("seccomp:unconfined", |body| {
            add_option(body, "seccomp:unconfined")
        }),
        ("label=disable", |body| add_option(body, "label=disable")),
        ("group-add", |body| {
            body["HostConfig"]["GroupAdd"] = serde_json::json!(["58714"])
        }),
    ];
    for (name, change) in changes {
        let proxy = Proxy::with(move |request| match request.is_create() {
            true => Reaction::Ask(change),
            false => Reaction::Pass,
        });
        let out = tempfile::tempdir().unwrap();
        let said = attest(out.path(), &["--venue", "vps", "--host", &proxy.host()]);
        assert_ne!(said.status, 0, "{name}: {said:?}");
        assert!(
            !said.stdout.contains("SANDBOX_ATTESTED "),
            "{name}: {said:?}"
        );
        assert!(proxy.count(|request| request.is_create()) > 0, "{name}");
        // What was seen is written down, and is no contradiction.
        let evidence = read_json(&evidence_in(out.path()));
        let options = &evidence["sandbox"]["configured"]["security_options"];
        assert_ne!(options.as_array().unwrap().len(), 0, "{name}");
    }
}

fn add_option(body: &mut Value, option: &str) {
    let options = body["HostConfig"]["SecurityOpt"].as_array_mut().unwrap();
    options.push(option.into());
}
