//! `kill -9` of the tool, and of the engine.

use super::{Held, send};
use crate::common::private_engine::PrivateEngine;
use crate::common::proxy::{Request, Which};
use crate::common::traces::{Before, nothing_left, nothing_written};
use crate::common::{ENGINE_SOCKET, docker, eventually, said, whole_engine};
use rustix::process::Signal;
use std::path::Path;

/// Nobody is left to tidy up: the prober sees its standard input close and
/// ends, the engine removes it, and the directories were gone already.
#[test]
fn after_kill_9_a_running_container_goes_by_itself() {
    let _engine = whole_engine();
    let before = Before::look();
    let out = tempfile::tempdir().unwrap();
    let held = Held::at(Request::is_inspect, Path::new(ENGINE_SOCKET), out.path());
    let name = held.container();
    let state = docker(&["inspect", "-f", "{{.State.Running}}", &name]);
    assert_eq!(state, "true");
    send(&held.child, Signal::KILL);
    let status = said(held.child.wait_with_output().unwrap()).status;
    assert_eq!(status, -1);
    held.gate.open();
    eventually("the container is gone", || {
        docker(&["ps", "-aq", "--filter", &format!("name=^{name}$")]).is_empty()
    });
    nothing_left(&held.proxy);
    nothing_written(out.path());
    before.nothing_new();
}

/// A container that was created and never started has nobody but the janitor.
#[test]
fn after_kill_9_before_the_start_the_janitor_tidies_up() {
    let _engine = whole_engine();
    let before = Before::look();
    let out = tempfile::tempdir().unwrap();
    let held = Held::at(Request::is_start, Path::new(ENGINE_SOCKET), out.path());
    let name = held.container();
    let volumes = || docker(&["volume", "ls", "-q", "--filter", &format!("name=^{name}$")]);
    assert_eq!(volumes(), name);
    send(&held.child, Signal::KILL);
    assert_eq!(said(held.child.wait_with_output().unwrap()).status, -1);
    // The start request never reaches the engine: the gate stays shut.
    eventually("the container is gone", || {
        docker(&["ps", "-aq", "--filter", &format!("name=^{name}$")]).is_empty()
    });
    eventually("its volume is gone", || volumes().is_empty());
    nothing_written(out.path());
    before.nothing_new();
}

#[test]
fn an_engine_that_is_killed_in_the_middle_of_a_run_leaves_nothing_half_done() {
    let _engine = whole_engine();
    let before = Before::look();
    let stages: [Which; 3] = [Request::is_create, Request::is_start, Request::is_inspect];
    for when in stages {
        let mut engine = PrivateEngine::start();
        let out = tempfile::tempdir().unwrap();
        let held = Held::at(when, &engine.socket(), out.path());
        engine.kill();
        held.gate.open();
        let said = said(held.child.wait_with_output().unwrap());
        said.failed(3, "engine.vanished");
        assert!(said.stderr.contains("tki-attest clean"), "{said:?}");
        nothing_written(out.path());
        nothing_left(&held.proxy);
        drop(engine);
    }
    before.nothing_new();
}
