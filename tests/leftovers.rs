//! What is left behind when a run is interrupted, killed or abandoned: nothing
//! that the next `clean` does not find, and of a handled end nothing at all.

/// Kills at moments that nobody chose, on engines with a daemon.
mod anywhere;
/// `clean`: what it removes and what it keeps.
mod clean;
/// What Podman has forgotten.
mod forgotten;
/// What only looks like a part of ours.
mod impostors;
/// SIGINT and SIGTERM at every stage.
mod interrupted;
/// Keepers whose gate breaks, or whose tool is gone.
mod keepers;
/// `kill -9` of the tool, and of the engine.
mod killed;
/// What Docker has forgotten.
mod unlisted;

use crate::common::proxy::{Gate, Proxy, Reaction, Which};
use crate::common::tool;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Stdio};

/// A run that waits at a request until the gate opens.
pub struct Held {
    /// The tool.
    pub child: Child,
    /// Where the request waits.
    pub gate: Gate,
    /// Through which it talks to the engine.
    pub proxy: Proxy,
}

impl Held {
    /// Starts a run and waits until it has come to that request.
    pub fn at(when: Which, engine: &Path, out: &Path) -> Self {
        let gate = Gate::default();
        let held = gate.clone();
        let proxy = Proxy::before(engine, move |request| {
            if when(request) {
                held.pass();
            }
            Reaction::Pass
        });
        let mut command = tool();
        command.args([
            "run",
            "--controls",
            "none",
            "--gate",
            "off",
            "--venue",
            "vps",
            "--host",
            &proxy.host(),
            "--out",
        ]);
        command
            .arg(out)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        gate.wait();
        Self { child, gate, proxy }
    }

    /// The container's name.
    pub fn container(&self) -> String {
        format!("tki-attest-{}", self.proxy.run_ids()[0])
    }
}

/// Sends a signal to a process that a test started.
pub fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    kill_process(pid, signal).unwrap();
}
