//! Containers that do not behave as the prober does, or are killed.

use crate::common::impostor::Impostor;
use crate::common::proxy::{Gate, Proxy, Reaction, Which};
use crate::common::traces::{Before, nothing_left, nothing_written};
use crate::common::{
    Said, docker, eventually, evidence_in, read_json, required, run, said, tool, verify,
    whole_engine,
};
use std::path::Path;
use std::process::{Command, Stdio};

/// A run of one container, under the profile that lets an ordinary program start.
fn run_into(out: &Path) -> Command {
    let mut command = tool();
    command.args(["run", "--gate", "off", "--controls", "none"]);
    command.args(["--venue", "vps", "--seccomp", "targeted-deny", "--out"]);
    command.arg(out);
    command
}

/// Runs an image that is not the prober's.
fn attest_impostor(behaviour: &str, more: &[&str]) -> Said {
    let impostor = Impostor::new(behaviour);
    let out = tempfile::tempdir().unwrap();
    let proxy = Proxy::plain();
    let mut command = run_into(out.path());
    command.args(["--host", &proxy.host()]);
    let said = run(command.args(impostor.arguments()).args(more));
    nothing_written(out.path());
    nothing_left(&proxy);
    said
}

#[test]
fn what_is_not_the_prober_is_never_believed() {
    let _engine = whole_engine();
    let before = Before::look();
    for (behaviour, code, wanted) in [
        ("garbage", "inspector.garbled", "line 1 is not a message"),
        ("binary", "inspector.garbled", "line 1 is not a message"),
        ("megabytes", "inspector.garbled", "line 1 is not a message"),
        ("endless-line", "inspector.flood", "a line of more than"),
        (
            "hello-megabytes",
            "inspector.garbled",
            "a kernel text came twice",
        ),
        ("hello-flood", "inspector.flood", "more than"),
        (
            "hello-miscount",
            "inspector.garbled",
            "number of observations is wrong",
        ),
        ("hello-wrong-nonce", "inspector.garbled", "the nonce is not"),
        (
            "hello-more",
            "inspector.garbled",
            "it goes on after its end",
        ),
        ("hello-old", "inspector.garbled", "of another version"),
        (
            "hello-hours",
            "inspector.garbled",
            "longer than it was given",
        ),
        ("hello-refuse", "inspector.refused", "I would rather not"),
        (
            "hello-die",
            "container.ended-early",
            "(status 0) before it had answered",
        ),
        ("hello-fail-after", "container.ended-badly", "status 7"),
        ("noise", "container.ended-early", "it wrote: eeee"),
        (
            "exit",
            "container.ended-early",
            "(status 1) before it said anything",
        ),
    ] {
        let said = attest_impostor(behaviour, &[]);
        said.failed(3, code);
        assert!(said.stderr.contains(wanted), "{behaviour}: {said:?}");
        assert!(said.stderr.len() < 2000, "{behaviour}: {said:?}");
    }
    before.nothing_new();
}

#[test]
fn a_container_that_says_nothing_meets_the_time_limit() {
    let _engine = whole_engine();
    let before = Before::look();
    for behaviour in ["hang", "hello-hang"] {
        let said = attest_impostor(behaviour, &["--timeout", "3"]);
        said.failed(3, "run.timeout");
    }
    before.nothing_new();
}

/// "I am done" without a single observation is a true statement about
/// nothing: every probe is UNPROVEN, and the evidence says so.
#[test]
fn an_end_without_observations_proves_nothing() {
    let _engine = whole_engine();
    let impostor = Impostor::new("hello-done");
    let out = tempfile::tempdir().unwrap();
    let said = run(run_into(out.path()).args(impostor.arguments()));
    assert_eq!(said.status, 3, "{said:?}");
    let path = evidence_in(out.path());
    let evidence = read_json(&path);
    assert_eq!(evidence["summary"]["passed"], 0, "{said:?}");
    assert_eq!(evidence["summary"]["unproven"], required(false), "{said:?}");
    assert_eq!(evidence["status"], "SANDBOX_ATTESTATION_PARTIAL");
    let said = verify(&path, &[]);
    assert_eq!(said.status, 3, "{said:?}");
}

/// Holds a run at a request, does something to its container, lets it go on.
fn meddle(at: Which, how: &[&str], out: &Path) -> Said {
    let gate = Gate::default();
    let held = gate.clone();
    let proxy = Proxy::with(move |request| {
        if at(request) {
            held.pass();
        }
        Reaction::Pass
    });
    let mut command = run_into(out);
    command.args(["--host", &proxy.host()]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    gate.wait();
    let name = format!("tki-attest-{}", proxy.run_ids()[0]);
    docker(&[how, &[name.as_str()]].concat());
    gate.open();
    let said = said(child.wait_with_output().unwrap());
    nothing_left(&proxy);
    said
}

#[test]
fn a_container_that_is_killed_from_outside_is_no_proof() {
    let _engine = whole_engine();
    let out = tempfile::tempdir().unwrap();
    for how in [&["kill"][..], &["rm", "-f"], &["stop", "-t", "0"]] {
        let said = meddle(|request| request.is_inspect(), how, out.path());
        said.failed(3, "container.ended-early");
        nothing_written(out.path());
    }
    let said = meddle(|request| request.is_start(), &["rm", "-f"], out.path());
    said.failed(3, "engine.refused");
    nothing_written(out.path());
}

/// The tool itself is stopped while the container runs, and goes on when the
/// container has been gone for long.
#[test]
fn a_tool_that_slept_through_the_containers_death_does_not_pass() {
    let _engine = whole_engine();
    let impostor = Impostor::new("hello-hang");
    let out = tempfile::tempdir().unwrap();
    let proxy = Proxy::plain();
    let mut command = run_into(out.path());
    command
        .args(["--host", &proxy.host()])
        .args(impostor.arguments());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the prober has greeted", || {
        proxy.count(|request| request.is_inspect()) == 1
    });
    let signal = |name: &str| {
        let pid = child.id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &pid])
                .status()
                .unwrap()
                .success()
        );
    };
    signal("-STOP");
    docker(&["kill", &format!("tki-attest-{}", proxy.run_ids()[0])]);
    signal("-CONT");
    let said = said(child.wait_with_output().unwrap());
    said.failed(3, "container.ended-early");
    nothing_written(out.path());
    nothing_left(&proxy);
}
