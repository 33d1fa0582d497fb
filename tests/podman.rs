//! Attesting on a real Podman: with a service that is started for the run, with
//! one that runs already, and as a user who is not root. The host's Podman may
//! be any; the runtime is runc, which runs everywhere.

/// Mounts of a run's Podman and those of others.
mod mounts;
/// Users who are not root.
mod rootless;

use crate::common::by_hand::ByHand;
use crate::common::podman::{
    PodmanService, Traces, podman, processes, shared_podman, whole_podman,
};
use crate::common::proxy::{Proxy, Request, Which};
use crate::common::traces::nothing_written;
use crate::common::verify;
use crate::common::{
    applicable, attest, eventually, evidence_in, passed_over, read_json, run, said, tool,
};
use crate::leftovers::{Held, send};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

/// Arguments that lead to a Podman that can run here.
const ON_PODMAN: [&str; 4] = ["--engine", "podman", "--runtime", "runc"];

fn attest_on(out: &Path, arguments: &[&str]) -> crate::common::Said {
    attest(out, &[&ON_PODMAN[..], arguments].concat())
}

#[test]
fn every_probe_passes_and_every_control_holds_under_both_profiles() {
    let _podman = whole_podman();
    let before = Traces::look();
    for profile in ["deny-by-default", "targeted-deny"] {
        let out = tempfile::tempdir().unwrap();
        let mut command = tool();
        command.args(["run", "--venue", "vps", "--timeout", "300"]);
        command.args(ON_PODMAN).args(["--seccomp", profile]);
        run(command.arg("--out").arg(out.path())).succeeded();
        let path = evidence_in(out.path());
        let evidence = read_json(&path);
        assert_eq!(evidence["status"], "SANDBOX_ATTESTED");
        assert_eq!(
            evidence["summary"]["passed"],
            evidence["summary"]["required"]
        );
        let ran = evidence["controls"].as_array().unwrap();
        assert_eq!(ran.len(), applicable("podman", &evidence).len());
        for control in ran {
            assert_eq!(control["holds"], true, "{control}");
        }
        let runtime = &evidence["runtime"];
        assert_eq!(runtime["engine"], "podman");
        assert_eq!(runtime["oci_runtime"], "runc");
        assert_eq!(evidence["inventory"]["unchanged"], true);
        let agreement = evidence["witnesses"]["agreement"].as_array().unwrap();
        assert!(agreement.iter().all(|row| row["agree"] == true));
        verify(&path, &["--require-artifacts"]).succeeded();
    }
    before.nothing_new();
}

/// What Podman was asked for and what it handed to the runtime are the same,
/// setting by setting, and both come from different places.
#[test]
fn what_is_configured_comes_from_podman() {
    let _podman = shared_podman();
    let out = tempfile::tempdir().unwrap();
    attest_on(out.path(), &["--venue", "dev"]).succeeded();
    let path = evidence_in(out.path());
    let evidence = read_json(&path);
    let sandbox = &evidence["sandbox"];
    assert_eq!(sandbox["declared"], sandbox["configured"]);
    let described = read_json(&path.with_extension("").join("container.json"));
    let linux = &described["oci_config"]["linux"];
    assert_eq!(
        linux["resources"]["pids"]["limit"],
        sandbox["configured"]["pids_limit"]
    );
    assert!(linux["seccomp"]["syscalls"].is_array());
    // The image by both of its names.
    let image = &evidence["image"];
    assert_eq!(image["engine_reported_id"], image["config_digest"]);
    assert_eq!(
        described["inspect"]["ImageDigest"],
        image["manifest_digest"]
    );
}

#[test]
fn a_service_is_started_for_the_run_and_stopped_with_it() {
    let _podman = whole_podman();
    let before = Traces::look();
    let out = tempfile::tempdir().unwrap();
    attest_on(out.path(), &["--venue", "dev"]).succeeded();
    before.nothing_new();
    // The same when the run does not come to its end.
    let said = attest_on(out.path(), &["--venue", "dev", "--seccomp", "/nowhere"]);
    assert_eq!(said.status, 2, "{said:?}");
    before.nothing_new();
    let held = running_with_its_service(out.path());
    send(&held, Signal::INT);
    let ended = said_by(held);
    assert!(matches!(ended.status, 0 | 3), "{ended:?}");
    before.nothing_new();
}

/// Nobody is left to stop the service, or to take away its socket.
#[test]
fn kill_9_takes_the_service_along() {
    let _podman = whole_podman();
    let before = Traces::look();
    for _ in 0..5 {
        let out = tempfile::tempdir().unwrap();
        let mut held = running_with_its_service(out.path());
        send(&held, Signal::KILL);
        held.wait().unwrap();
        eventually("the service is gone", || {
            processes(&["--runtime", "runc", "system", "service", "--time=0"]).is_empty()
        });
        // A container that had only been created is the one thing that stays.
        let mut clean = tool();
        clean.args(["clean", "--force", "--engine", "podman"]);
        run(&mut clean).succeeded();
        before.nothing_new();
    }
}

/// A run on Podman that has come as far as having a service.
fn running_with_its_service(out: &Path) -> std::process::Child {
    let mut command = tool();
    command.args(["run", "--venue", "dev", "--controls", "safe", "--out"]);
    command.arg(out).args(ON_PODMAN);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the service runs", || {
        !processes(&["--runtime", "runc", "system", "service", "--time=0"]).is_empty()
    });
    child
}

fn said_by(child: std::process::Child) -> crate::common::Said {
    said(child.wait_with_output().unwrap())
}

#[test]
fn a_service_that_runs_is_used_and_left_alone() {
    let _podman = whole_podman();
    let mut service = PodmanService::start("runc");
    let proxy = Proxy::before(&service.socket(), |_| crate::common::proxy::Reaction::Pass);
    let folder = service.runtime_folder().to_owned();
    let link = tempfile::tempdir().unwrap();
    fs::create_dir(link.path().join("podman")).unwrap();
    std::os::unix::fs::symlink(proxy.path(), link.path().join("podman/podman.sock")).unwrap();
    let host = proxy.host();
    type Way<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)]);
    let nowhere = "unix:///nowhere.sock";
    let ways: [Way; 6] = [
        (
            &["--engine", "podman", "--host", &host],
            &[("CONTAINER_HOST", nowhere)],
        ),
        (
            &["--engine", "podman"],
            &[("CONTAINER_HOST", &host), ("DOCKER_HOST", nowhere)],
        ),
        (&["--engine", "podman"], &[("DOCKER_HOST", &host)]),
        (
            &["--engine", "podman"],
            &[("XDG_RUNTIME_DIR", link.path().to_str().unwrap())],
        ),
        // With an address, the engine's name is not needed.
        (&["--host", &host], &[]),
        (&[], &[("DOCKER_HOST", &host)]),
    ];
    for (at, (arguments, variables)) in ways.into_iter().enumerate() {
        let out = tempfile::tempdir().unwrap();
        let mut command = tool();
        command
            .args(["run", "--venue", "dev", "--out"])
            .arg(out.path());
        command.args(arguments).envs(variables.iter().copied());
        run(&mut command).succeeded();
        assert_eq!(proxy.count(Request::is_start), at + 1, "way {at}");
        let evidence = read_json(&evidence_in(out.path()));
        assert_eq!(evidence["runtime"]["engine"], "podman", "way {at}");
    }
    assert!(service.is_running());
    assert!(folder.join("podman/podman.sock").exists());
}

#[test]
fn docker_and_podman_are_not_taken_for_each_other() {
    let _podman = shared_podman();
    let out = tempfile::tempdir().unwrap();
    let service = PodmanService::start("runc");
    let at = |engine: &str, host: &str| {
        let arguments = ["--venue", "dev", "--engine", engine, "--host", host];
        attest(out.path(), &arguments)
    };
    let said = at("docker", &service.host());
    said.failed(3, "engine.unusable");
    assert!(said.stderr.contains("--engine podman"), "{said:?}");
    let docker = format!("unix://{}", crate::common::ENGINE_SOCKET);
    let said = at("podman", &docker);
    said.failed(3, "engine.unusable");
    assert!(said.stderr.contains("--engine docker"), "{said:?}");
    at("podman", "unix:///nowhere.sock").failed(3, "engine.unreachable");
    at("podman", "tcp://127.0.0.1:1").failed(2, "engine.address");
    nothing_written(out.path());
}

#[test]
fn without_a_service_and_a_program_there_is_no_podman() {
    let out = tempfile::tempdir().unwrap();
    let mut command = tool();
    command.args(["run", "--venue", "dev", "--engine", "podman", "--out"]);
    command.arg(out.path()).env("PATH", "/nowhere");
    // A service of the system's would be used.
    if !Path::new("/run/podman/podman.sock").exists() {
        let said = run(&mut command);
        said.failed(3, "engine.unusable");
        assert!(said.stderr.contains("install podman"), "{said:?}");
    }
    nothing_written(out.path());
}

/// Podman gets a path and not the text: what it has read must be what was meant.
#[test]
fn a_profile_that_is_changed_on_the_way_is_noticed() {
    let _podman = whole_podman();
    let before = Traces::look();
    let service = PodmanService::start("runc");
    let out = tempfile::tempdir().unwrap();
    let held = Held::at(Request::is_start, &service.socket(), out.path());
    let file = format!("/run/{}-engine/seccomp.json", held.container());
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o222, 0);
    fs::write(&file, text.replacen("SCMP_ACT_ERRNO", "SCMP_ACT_ALLOW", 1)).unwrap();
    held.gate.open();
    let said = said_by(held.child);
    said.failed(3, "seccomp.changed");
    assert!(said.stderr.contains(&file), "{said:?}");
    nothing_written(out.path());
    drop(service);
    before.nothing_new();
}

#[test]
fn where_crun_cannot_run_runc_is_used_and_it_is_said() {
    let _podman = shared_podman();
    let unified = fs::read_to_string("/sys/fs/cgroup/unified/cgroup.controllers");
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
        || unified.unwrap_or_default().trim().is_empty()
    {
        passed_over("this host's cgroups are not hybrid: crun can run");
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let said = attest(out.path(), &["--venue", "dev", "--engine", "podman"]);
    said.succeeded();
    assert!(said.stderr.contains("note: crun cannot run"), "{said:?}");
    assert!(said.stderr.contains("using runc"), "{said:?}");
    let evidence = read_json(&evidence_in(out.path()));
    assert_eq!(evidence["runtime"]["oci_runtime"], "runc");
    let quiet = attest(out.path(), &["--venue", "dev", "--engine", "podman", "-q"]);
    assert_eq!((quiet.status, quiet.stderr.as_str()), (0, ""));
    // A user who asks for it all the same hears what it says.
    let other = tempfile::tempdir().unwrap();
    let arguments = ["--venue", "dev", "--engine", "podman", "--runtime", "crun"];
    let said = attest(other.path(), &arguments);
    said.failed(3, "engine.refused");
    assert!(said.stderr.contains("hybrid"), "{said:?}");
    nothing_written(other.path());
}

#[test]
fn a_runtime_is_recorded_and_an_unknown_one_refused() {
    let _podman = shared_podman();
    let out = tempfile::tempdir().unwrap();
    attest_on(out.path(), &["--venue", "dev"]).succeeded();
    let evidence = read_json(&evidence_in(out.path()));
    assert_eq!(evidence["runtime"]["oci_runtime"], "runc");

    let other = tempfile::tempdir().unwrap();
    let arguments = [
        "--venue",
        "dev",
        "--engine",
        "podman",
        "--runtime",
        "nosuch",
    ];
    let said = attest(other.path(), &arguments);
    said.failed(3, "engine.unusable");
    assert!(said.stderr.contains("nosuch"), "{said:?}");
    // A service that was named uses what it was started with.
    let service = PodmanService::start("runc");
    let host = service.host();
    let said = attest(other.path(), &[&arguments[..], &["--host", &host]].concat());
    assert_eq!(said.status, 3, "{said:?}");
    assert!(said.stderr.contains("nosuch"), "{said:?}");
    nothing_written(other.path());
}

#[test]
fn a_signal_at_any_stage_ends_the_run_and_leaves_nothing() {
    let _podman = whole_podman();
    let before = Traces::look();
    let stages: [(&str, Which); 5] = [
        ("while it looks around", |request| {
            request.method == "GET" && request.target.starts_with("/libpod/images/")
        }),
        ("at create", Request::is_create),
        ("between create and start", Request::is_attach),
        ("at start", Request::is_start),
        ("while it runs", Request::is_inspect),
    ];
    for (stage, when) in stages {
        for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM")] {
            let service = PodmanService::start("runc");
            let out = tempfile::tempdir().unwrap();
            let held = Held::at(when, &service.socket(), out.path());
            send(&held.child, signal);
            if stage == "at create" {
                held.gate.open();
            }
            let said = said_by(held.child);
            said.failed(3, "run.interrupted");
            assert!(said.stderr.contains(name), "{stage}: {said:?}");
            held.gate.open();
            held.proxy.settle();
            nothing_written(out.path());
        }
    }
    before.nothing_new();
}

#[test]
fn a_service_that_is_killed_in_the_middle_of_a_run_is_said_to_be_gone() {
    let _podman = whole_podman();
    let before = Traces::look();
    let stages: [Which; 3] = [Request::is_create, Request::is_attach, Request::is_inspect];
    for when in stages {
        let mut service = PodmanService::start("runc");
        let out = tempfile::tempdir().unwrap();
        let held = Held::at(when, &service.socket(), out.path());
        service.kill();
        held.gate.open();
        let said = said_by(held.child);
        said.failed(3, "engine.vanished");
        assert!(said.stderr.contains("tki-attest clean"), "{said:?}");
        nothing_written(out.path());
    }
    let mut clean = tool();
    run(clean.args(["clean", "--force", "--engine", "podman"])).succeeded();
    before.nothing_new();
}

#[test]
fn clean_removes_what_is_ours_and_nothing_else() {
    let _podman = whole_podman();
    let mut load = tool();
    run(load.args(["build", "--load", "--engine", "podman"])).succeeded();
    let id = std::process::id();
    let run_id = format!("20200101t000000z-{id:08x}");
    let ours = format!("tki-attest-{run_id}");
    let folder = tempfile::tempdir().unwrap();
    let mut like_ours = vec!["--rm".to_owned(), format!("--label={LABEL}.run={run_id}")];
    like_ours.extend(["role=probe", "deadline=1"].map(|rest| format!("--label={LABEL}.{rest}")));
    for side in ["in", "out"] {
        let path = folder.path().join(&ours).join(side);
        fs::create_dir_all(&path).unwrap();
        let path = path.display();
        like_ours.push(format!("--mount=type=bind,source={path},target=/{side}"));
    }
    let [labelled, foreign] = ["labelled", "foreign"].map(|name| format!("tki-test-{name}-{id}"));
    for (name, options) in [
        (&ours, like_ours),
        // A label alone makes none ours.
        (&labelled, vec![format!("--label={LABEL}.run=old")]),
        (&foreign, vec!["--label=x=y".to_owned()]),
    ] {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let limits = ["--pids-limit=8", "--network=none", "--pull=never"];
        let create = ["create", "--name", name];
        let image = ["tki-inspector:attest", "probe"];
        podman(&[&create[..], &options, &limits, &image].concat());
    }
    let mut clean = tool();
    let cleaned = run(clean.args(["clean", "--engine", "podman", "--format", "json"]));
    let left = podman(&["ps", "-a", "--format", "{{.Names}}"]);
    podman(&["rm", "-f", "--ignore", &ours, &labelled, &foreign]);
    cleaned.succeeded();
    let rows: Value = serde_json::from_str(&cleaned.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    for (run, action) in [(run_id.as_str(), "removed"), ("old", "kept (not ours)")] {
        let about = format!("of run {run} ");
        let mut found = rows.iter();
        let row = found.find(|row| row["what"].as_str().unwrap().contains(&about));
        assert_eq!(row.unwrap()["action"], action, "{rows:?}");
    }
    assert!(!left.contains(&ours), "{left}");
    assert!(
        left.contains(&labelled) && left.contains(&foreign),
        "{left}"
    );
}

/// What labels of ours begin with.
const LABEL: &str = "dev.tki.attest";

/// Who has only the evidence can do by hand what the tool did.
#[test]
fn the_recorded_command_line_starts_the_same_sandbox_by_hand() {
    let _podman = whole_podman();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // With a gate the profile asks a supervisor that is not there any more.
    attest_on(&out, &["--venue", "dev", "--gate", "off"]).succeeded();
    let by_hand = ByHand::new(&evidence_in(&out));
    let said = run(by_hand.command().stdin(Stdio::null()));
    let greeting: Value = serde_json::from_str(said.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(greeting["hello"]["missing"], Value::Array(Vec::new()));
    // Standard input was closed before a challenge came.
    assert_eq!(said.status, 3, "{said:?}");
}
