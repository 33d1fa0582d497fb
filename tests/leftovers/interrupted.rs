//! SIGINT and SIGTERM at every stage.

use super::{Held, send};
use crate::common::proxy::{Proxy, Request, Which};
use crate::common::traces::{Before, nothing_left, nothing_written};
use crate::common::{ENGINE_SOCKET, eventually, evidence_in, said, tool, verify, whole_engine};
use rustix::process::Signal;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn a_signal_at_any_stage_ends_the_run_and_leaves_nothing() {
    let _engine = whole_engine();
    let before = Before::look();
    let stages: [(&str, Which); 5] = [
        ("before anything is made", Request::is_info),
        ("while the image is looked for", |request| {
            request.method == "GET" && request.target.starts_with("/images/")
        }),
        ("between create and start", Request::is_attach),
        ("at start", Request::is_start),
        ("while it runs", Request::is_inspect),
    ];
    for (stage, when) in stages {
        for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM")] {
            let out = tempfile::tempdir().unwrap();
            let held = Held::at(when, Path::new(ENGINE_SOCKET), out.path());
            send(&held.child, signal);
            let said = said(held.child.wait_with_output().unwrap());
            said.failed(3, "run.interrupted");
            assert!(said.stderr.contains(name), "{stage}: {said:?}");
            nothing_left(&held.proxy);
            held.gate.open();
            held.proxy.settle();
            nothing_left(&held.proxy);
            nothing_written(out.path());
        }
    }
    before.nothing_new();
}

/// The engine has just got the request and is making the container: what it
/// makes in the end must go too, although nobody waits for it any more.
#[test]
fn a_signal_during_create_does_not_leave_the_container_that_comes_late() {
    let _engine = whole_engine();
    let before = Before::look();
    for _ in 0..8 {
        let out = tempfile::tempdir().unwrap();
        let held = Held::at(Request::is_create, Path::new(ENGINE_SOCKET), out.path());
        held.gate.open();
        send(&held.child, Signal::INT);
        let said = said(held.child.wait_with_output().unwrap());
        said.failed(3, "run.interrupted");
        held.proxy.settle();
        nothing_left(&held.proxy);
        nothing_written(out.path());
    }
    before.nothing_new();
}

/// At moments that nobody chose. Whatever the moment is: interrupted and
/// nothing left, or finished and whole.
#[test]
fn a_signal_at_a_random_moment_leaves_all_or_nothing() {
    let _engine = whole_engine();
    let before = Before::look();
    for _ in 0..8 {
        let out = tempfile::tempdir().unwrap();
        let random = std::hash::RandomState::new().build_hasher().finish();
        let moment = Duration::from_millis(random % 500);
        let proxy = Proxy::plain();
        let mut command = tool();
        command.args(["run", "--gate", "off", "--venue", "dev"]);
        command.args(["--host", &proxy.host(), "--out"]);
        command
            .arg(out.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Before the engine is asked, the signal's own effect is the right one.
        eventually("the engine is asked", || {
            !proxy.log().is_empty() || child.try_wait().unwrap().is_some()
        });
        std::thread::sleep(moment);
        send(&child, Signal::INT);
        let said = said(child.wait_with_output().unwrap());
        nothing_left(&proxy);
        if said.stderr.is_empty() {
            // Blocked if another client has used the engine meanwhile; whole
            // all the same.
            assert!([0, 3].contains(&said.status), "after {moment:?}: {said:?}");
            let verified = verify(&evidence_in(out.path()), &["--require-artifacts"]);
            assert_eq!(verified.status, 3, "{verified:?}");
            assert!(!verified.stdout.contains("FALSE"), "{verified:?}");
        } else {
            said.failed(3, "run.interrupted");
            nothing_written(out.path());
        }
    }
    before.nothing_new();
}
