//! Inspections that are interrupted or killed, at every stage: no report, and nothing left.

use super::{DEV, ENGINES, Packet, command, evidence_of, evidence_of_docker};
use crate::common::private_engine::PrivateEngine;
use crate::common::proxy::{Gate, Proxy, Reaction, Request, Which};
use crate::common::traces::{Before, nothing_left, nothing_written};
use crate::common::{ENGINE_SOCKET, Said, kill_children, run, said, tool, whole_engine};
use crate::leftovers::send;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// The request that fills the volume.
fn is_fill(request: &Request) -> bool {
    request.method == "PUT"
}

/// The creation of the inspector's own container, after that of the one that is never started.
fn is_own_create(request: &Request) -> bool {
    request.is_create() && !request.target.contains("-fill")
}

/// An inspection that waits at a request until the gate opens.
struct Held {
    child: Option<Child>,
    gate: Gate,
    /// The janitor needs it for as long as it lives.
    proxy: Proxy,
    _packet: Packet,
}

impl Held {
    fn at(when: Which, engine: &Path, evidence: &Path, out: &Path) -> Self {
        let gate = Gate::default();
        let (held, started) = (gate.clone(), AtomicBool::new(false));
        let proxy = Proxy::before(engine, move |request| {
            // Before that, others are looked at.
            let is_other = request.is_inspect() && !started.load(Ordering::SeqCst);
            if when(request) && !is_other {
                held.pass();
            }
            started.fetch_or(request.is_start(), Ordering::SeqCst);
            Reaction::Pass
        });
        let packet = Packet::small();
        let host = proxy.host();
        let given = ["--host", &host, "--evidence", evidence.to_str().unwrap()];
        let mut command = command(packet.path(), out, &[&DEV[..], &given].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        gate.wait();
        Self {
            child: Some(child),
            gate,
            proxy,
            _packet: packet,
        }
    }

    /// Sends a signal, and waits for the end.
    fn end(&mut self, signal: Signal) -> Said {
        let child = self.child.take().unwrap();
        send(&child, signal);
        said(child.wait_with_output().unwrap())
    }
}

const AT_CREATE: &str = "at create";

const STAGES: [(&str, Which); 6] = [
    ("before anything is made", Request::is_info),
    ("while the volume is filled", is_fill),
    (AT_CREATE, is_own_create),
    ("between create and start", Request::is_attach),
    ("at start", Request::is_start),
    ("before it is let go", Request::is_inspect),
];

fn prepared() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let evidence = evidence_of_docker(folder.path());
    (folder, evidence)
}

#[test]
fn a_signal_at_any_stage_ends_it_and_leaves_nothing() {
    let _engine = whole_engine();
    let before = Before::look();
    let (folder, evidence) = prepared();
    let out = folder.path().join("out");
    for (stage, when) in STAGES {
        let mut held = Held::at(when, Path::new(ENGINE_SOCKET), &evidence, &out);
        // What is being made is waited for, and then removed.
        if stage == AT_CREATE {
            held.gate.open();
        }
        let said = held.end(Signal::INT);
        said.failed(3, "run.interrupted");
        assert!(said.stderr.contains("SIGINT"), "{stage}: {said:?}");
        held.gate.open();
        held.proxy.settle();
        nothing_left(&held.proxy);
        nothing_written(&out);
    }
    before.nothing_new();
}

#[test]
fn after_kill_9_at_any_stage_the_janitor_leaves_nothing() {
    let _engine = whole_engine();
    let before = Before::look();
    let (folder, evidence) = prepared();
    let out = folder.path().join("out");
    // The janitor goes on for as long as a request may be under way, and needs the proxy.
    let mut all = Vec::new();
    for (stage, when) in STAGES {
        let mut held = Held::at(when, Path::new(ENGINE_SOCKET), &evidence, &out);
        assert_eq!(held.end(Signal::KILL).status, -1, "{stage}");
        held.gate.open();
        nothing_written(&out);
        all.push(held);
    }
    before.nothing_new();
}

/// Where the janitor is killed as well, `clean` finds the container, be it the one that is never
/// started, and both volumes.
#[test]
fn clean_finds_what_nobody_tidied_up() {
    let _alone = whole_engine();
    let engine = PrivateEngine::start();
    let folder = tempfile::tempdir().unwrap();
    let evidence = evidence_of(&engine.host(), folder.path());
    let out = folder.path().join("out");
    for when in [is_fill as Which, Request::is_start] {
        let mut held = Held::at(when, &engine.socket(), &evidence, &out);
        let tool_id = held.child.as_ref().unwrap().id();
        while kill_children(tool_id, "internal-janitor") == 0 {}
        held.end(Signal::KILL);
        let mut clean = tool();
        clean.args(["clean", "--force", "--host", &engine.host()]);
        let said = run(&mut clean);
        said.succeeded();
        let gone = said
            .stdout
            .lines()
            .filter(|line| line.starts_with("removed"));
        assert_eq!(gone.count(), 3, "{said:?}");
        assert!(!said.stdout.contains("not ours"), "{said:?}");
        assert_eq!(engine.docker(&["ps", "-aq"]), "");
        assert_eq!(engine.docker(&["volume", "ls", "-q"]), "");
        held.gate.open();
    }
}

/// On engines without a daemon everything goes with the tool, or with its janitor.
#[test]
fn a_signal_and_a_kill_leave_nothing_of_a_keeper() {
    let before = Before::look();
    let packet = Packet::small();
    let out = tempfile::tempdir().unwrap();
    for (engine, arguments) in &ENGINES[2..] {
        for (signal, millis) in [
            (Signal::INT, 60),
            (Signal::INT, 200),
            (Signal::INT, 320),
            (Signal::KILL, 100),
            (Signal::KILL, 250),
            (Signal::KILL, 340),
        ] {
            let arguments = [&DEV[..], arguments].concat();
            let mut command = command(packet.path(), out.path(), &arguments);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(millis));
            send(&child, signal);
            let status = child.wait().unwrap().code();
            let known = [None, Some(3), Some(10)];
            assert!(known.contains(&status), "{engine}: {status:?}");
            before.nothing_new();
        }
    }
    // Whatever was written is whole.
    for name in super::inspections(out.path()) {
        super::reports(out.path(), &name);
    }
}
