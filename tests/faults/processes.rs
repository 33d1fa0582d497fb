//! Engines that name a process which is not the container's: nothing is done to it.

use crate::common::proxy::{Proxy, Reaction, Request};
use crate::common::{ENGINE_SOCKET, attest, eventually, whole_engine};
use std::fs;
use std::io::{ErrorKind, copy};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Another party's process in a network namespace of its own; ended when dropped.
struct Unrelated {
    child: Child,
    _folder: tempfile::TempDir,
}

impl Unrelated {
    /// It is called like the prober: a name is nothing.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("tki-prober");
        fs::copy("/bin/sleep", &program).unwrap();
        let mut command = Command::new("unshare");
        let child = command
            .arg("--net")
            .arg(&program)
            .arg("600")
            .spawn()
            .unwrap();
        let comm = format!("/proc/{}/comm", child.id());
        eventually("it is in its namespace", || {
            fs::read_to_string(&comm).is_ok_and(|name| name == "tki-prober\n")
        });
        Self {
            child,
            _folder: folder,
        }
    }

    /// Its interfaces and routes.
    fn network(&self) -> String {
        let folder = Path::new("/proc")
            .join(self.child.id().to_string())
            .join("net");
        ["dev", "route", "if_inet6"]
            .map(|file| fs::read_to_string(folder.join(file)).unwrap_or_default())
            .join("\n")
    }
}

impl Drop for Unrelated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the engine is made to say: no real one would.
static PID: AtomicI32 = AtomicI32::new(0);

#[test]
fn an_engine_that_lies_about_a_process_id_changes_nobodys_network() {
    let _engine = whole_engine();
    let unrelated = Unrelated::new();
    let before = unrelated.network();
    assert!(
        before.contains("lo:") && !before.contains("tki"),
        "{before}"
    );
    PID.store(unrelated.child.id().try_into().unwrap(), Ordering::SeqCst);
    // The run's own container is asked about first; what comes then are controls.
    let asked = AtomicUsize::new(0);
    let proxy = Proxy::with(move |request| {
        match request.is_inspect() && asked.fetch_add(1, Ordering::SeqCst) > 0 {
            true => Reaction::Rewrite(|container| {
                container["State"]["Pid"] = PID.load(Ordering::SeqCst).into();
            }),
            false => Reaction::Pass,
        }
    });
    let out = tempfile::tempdir().unwrap();
    let arguments = ["--venue", "vps", "--controls", "safe", "--host"];
    let said = attest(out.path(), &[&arguments[..], &[&proxy.host()]].concat());
    // Nothing is put into anybody's: controls join the network of a neighbour of theirs.
    assert_eq!(unrelated.network(), before);
    said.succeeded();
}

/// The outside witness is of the container or of nobody.
#[test]
fn an_engine_that_lies_about_a_process_id_has_no_outside_witness() {
    let _engine = whole_engine();
    let unrelated = Unrelated::new();
    PID.store(unrelated.child.id().try_into().unwrap(), Ordering::SeqCst);
    let proxy = Proxy::with(|request| match request.is_inspect() {
        true => Reaction::Rewrite(|container| {
            container["State"]["Pid"] = PID.load(Ordering::SeqCst).into();
        }),
        false => Reaction::Pass,
    });
    let out = tempfile::tempdir().unwrap();
    let said = attest(out.path(), &["--venue", "vps", "--host", &proxy.host()]);
    let evidence = crate::common::read_json(&crate::common::evidence_in(out.path()));
    let outside = &evidence["witnesses"]["outside"];
    assert_eq!(outside["available"], false, "{said:?}");
    assert!(
        outside.to_string().contains("in no control group"),
        "{outside}"
    );
}

/// An engine that says that it runs elsewhere, and one behind a port, are not asked whose
/// number is a process's here. They attest all the same: nothing of a run is a path of this
/// host, and nobody takes the engine's venue for this one.
#[test]
fn an_engine_that_may_be_another_machines_attests_without_an_outside_witness() {
    let _engine = whole_engine();
    let proxy = Proxy::with(|request: &Request| match request.is_info() {
        true => Reaction::Rewrite(|info| info["Name"] = "another-host".into()),
        false => Reaction::Pass,
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("tcp://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listen(&listener));
    for (host, why) in [
        (&proxy.host(), "runs on another-host"),
        (&port, "the engine is at tcp://127.0.0.1"),
    ] {
        let out = tempfile::tempdir().unwrap();
        let arguments = ["--venue", "vps", "--controls", "safe", "--host", host];
        attest(out.path(), &arguments).succeeded();
        let path = crate::common::evidence_in(out.path());
        let evidence = crate::common::read_json(&path);
        let outside = &evidence["witnesses"]["outside"];
        assert_eq!(outside["available"], false, "{outside}");
        assert!(outside.to_string().contains(why), "{outside}");
        assert_eq!(evidence["status"], "SANDBOX_ATTESTED");
        crate::common::verify(&path, &[]).succeeded();
    }
}

/// Passes connections on to the engine, for as long as the tests run.
fn listen(listener: &TcpListener) {
    for client in listener.incoming().flatten() {
        std::thread::spawn(move || -> std::io::Result<()> {
            let engine = UnixStream::connect(ENGINE_SOCKET)?;
            let (up, from) = (engine.try_clone()?, client.try_clone()?);
            let other = std::thread::spawn(move || {
                let _ = copy(&mut &from, &mut &up);
                let _ = up.shutdown(Shutdown::Write);
            });
            let _ = copy(&mut &engine, &mut &client);
            let _ = client.shutdown(Shutdown::Both);
            let joined = other.join();
            joined.map_err(|_| ErrorKind::Other.into())
        });
    }
}
