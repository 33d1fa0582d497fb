//! Through a real sshd, to this host's engine.

use super::attested_at;
use crate::common::proxy::{Gate, Proxy, Reaction, Request};
use crate::common::ssh_server::SshServer;
use crate::common::traces::{nothing_left, nothing_written};
use crate::common::{
    ENGINE_SOCKET, Said, attest, docker, eventually, names_in, run, said, tool, whole_engine,
};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};

/// The command line of a process, with a space after each word; empty if it is gone.
fn line(pid: &str) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// The words by which `ssh` is told a server's port.
fn port(server: &SshServer) -> String {
    let url = server.url();
    let (_, port) = url.rsplit_once(':').unwrap();
    format!(" -p {port} ")
}

/// Processes that are executed with this server's address or port: the tool, what it starts
/// to tidy up after it, and every `ssh` of either. Nobody else has that port.
fn processes(server: &SshServer) -> Vec<String> {
    let (url, port) = (server.url(), port(server));
    let mut lines: Vec<String> = names_in(Path::new("/proc"))
        .iter()
        .map(|pid| line(pid))
        .collect();
    lines.retain(|line| line.contains(&port) || line.contains(&url));
    lines
}

/// Every `ssh` to a server that a process has started, in whichever thread.
fn ssh_of(parent: u32, server: &SshServer) -> Vec<Pid> {
    let threads = names_in(Path::new(&format!("/proc/{parent}/task")));
    let children = threads.iter().flat_map(|thread| {
        let path = format!("/proc/{parent}/task/{thread}/children");
        let list = fs::read_to_string(path).unwrap_or_default();
        list.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    let port = port(server);
    let tunnels = children.filter(|pid| line(pid).contains(&port));
    tunnels
        .filter_map(|pid| pid.parse().ok().and_then(Pid::from_raw))
        .collect()
}

/// `engines` at an address.
fn look(url: &str, config: &Path) -> Said {
    run(tool()
        .args(["engines", "--host", url, "--ssh-config"])
        .arg(config))
}

#[test]
fn an_engine_behind_ssh_attests_and_no_ssh_is_left() {
    let _engine = whole_engine();
    let server = SshServer::start("");
    // Whatever the user's configuration would start or leave open.
    let (master, marker) = (
        server.folder().join("master"),
        server.folder().join("marker"),
    );
    let more = format!(
        "ControlMaster auto\nControlPersist 600\nControlPath {}\nPermitLocalCommand yes\n\
         LocalCommand touch {}\nRemoteCommand touch {}\nRequestTTY force\n\
         ForkAfterAuthentication yes\n",
        master.display(),
        marker.display(),
        marker.display()
    );
    let config = server.config("user", true, &more);
    let url = server.url();
    let out = tempfile::tempdir().unwrap();
    let arguments = ["--venue", "vps", "--controls", "none", "--host", &url];
    let config = ["--ssh-config", config.to_str().unwrap()];
    let said = attest(out.path(), &[&arguments[..], &config].concat());
    // At this moment, and not a little later.
    assert_eq!(processes(&server), [""; 0]);
    attested_at(&said, out.path(), &url);
    assert!(!master.exists() && !marker.exists());
}

#[test]
fn a_way_that_ssh_does_not_get_is_refused_in_its_words() {
    let _engine = whole_engine();
    // Many a server has more to say than is shown, before anything is wrong.
    let banner = tempfile::NamedTempFile::new().unwrap();
    fs::write(&banner, "Authorised use alone.\n".repeat(500)).unwrap();
    let banner = format!("Banner {}\n", banner.path().display());
    let server = SshServer::start(&banner);
    let url = server.url();
    for (key, known, why) in [
        ("user", false, "Host key verification failed"),
        ("stranger", true, "Permission denied (publickey)"),
        ("stranger", true, "Authorised use alone."),
    ] {
        let said = look(&url, &server.config(key, known, ""));
        said.failed(3, "engine.ssh");
        assert!(said.stderr.contains(why), "{said:?}");
    }
    let config = server.config("user", true, "");
    let said = look(&format!("{url}/nobody/listens.sock"), &config);
    said.failed(3, "engine.ssh");
    assert!(said.stderr.contains("open failed"), "{said:?}");
    let said = look(&url, &server.folder().join("no-such-config"));
    said.failed(3, "engine.ssh");
    // No other engine stands in, and nothing is written.
    let out = server.folder().join("out");
    let config = server.config("user", false, "");
    let config = ["--ssh-config", config.to_str().unwrap()];
    let arguments = ["--venue", "vps", "--host", &url];
    attest(&out, &[&arguments[..], &config].concat()).failed(3, "engine.ssh");
    nothing_written(&out);
    assert_eq!(processes(&server), [""; 0]);

    let deaf = SshServer::start(&format!("{banner}AllowStreamLocalForwarding no\n"));
    let said = look(&deaf.url(), &deaf.config("user", true, ""));
    said.failed(3, "engine.ssh");
    assert!(said.stderr.contains("open failed"), "{said:?}");
}

/// A run through ssh that waits at a request until the gate opens.
struct Held {
    child: Child,
    gate: Gate,
    proxy: Proxy,
}

impl Held {
    /// Starts a run. The engine's socket over there is a proxy's, which tells the run's id.
    fn at(when: fn(&Request) -> bool, server: &SshServer, out: &Path) -> Self {
        let gate = Gate::default();
        let held = gate.clone();
        let proxy = Proxy::before(Path::new(ENGINE_SOCKET), move |request| {
            if when(request) {
                held.pass();
            }
            Reaction::Pass
        });
        let url = format!("{}{}", server.url(), proxy.path().display());
        let mut command = tool();
        command.args(["run", "--venue", "vps", "--controls", "none"]);
        command.args(["--gate", "off", "--host", &url, "--ssh-config"]);
        command.arg(server.config("user", true, ""));
        command.arg("--out").arg(out);
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = piped.spawn().unwrap();
        gate.wait();
        Self { child, gate, proxy }
    }
}

/// A little later nothing is left of the runs through a proxy, over there and here.
#[track_caller]
fn gone(proxy: &Proxy, server: &SshServer) {
    eventually("no process is left", || processes(server).is_empty());
    for id in proxy.run_ids() {
        let name = format!("name=^tki-attest-{id}$");
        eventually("no container is left", || {
            docker(&["ps", "-aq", "--filter", &name]).is_empty()
        });
    }
    nothing_left(proxy);
}

#[test]
fn a_tool_that_is_killed_leaves_no_ssh_and_no_container() {
    let _engine = whole_engine();
    let server = SshServer::start("");
    let moments: [fn(&Request) -> bool; 3] =
        [Request::is_info, Request::is_start, Request::is_inspect];
    for when in moments {
        let out = tempfile::tempdir().unwrap();
        let mut held = Held::at(when, &server, out.path());
        assert!(!processes(&server).is_empty());
        held.child.kill().unwrap();
        held.child.wait().unwrap();
        held.gate.open();
        gone(&held.proxy, &server);
        nothing_written(out.path());
    }
}

#[test]
fn a_connection_that_is_cut_ends_the_run_and_its_container() {
    let _engine = whole_engine();
    let server = SshServer::start("");
    let out = tempfile::tempdir().unwrap();
    let Held { child, gate, proxy } = Held::at(Request::is_inspect, &server, out.path());
    let tunnels = ssh_of(child.id(), &server);
    assert_eq!(tunnels.len(), 1, "{tunnels:?}");
    kill_process(tunnels[0], Signal::KILL).unwrap();
    gate.open();
    let said = said(child.wait_with_output().unwrap());
    // Which request is the first to notice is chance: one that has no answer yet, or one in
    // the middle of it.
    let code = match said.stderr.contains("[engine.ssh]") {
        true => "engine.ssh",
        false => "engine.vanished",
    };
    said.failed(3, code);
    gone(&proxy, &server);
    nothing_written(out.path());
}

/// An `ssh` of before 8.7 does not know every option that it is given; it gets there too.
#[test]
fn an_ssh_that_never_goes_to_the_background_is_not_told_to_stay() {
    let _engine = whole_engine();
    let server = SshServer::start("");
    let config = server.config("user", true, "");
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("ssh");
    let script = "#!/bin/sh\ncase \"$*\" in *ForkAfterAuthentication*)\n\
                  echo 'command-line: line 0: Bad configuration option: \
                  forkafterauthentication' >&2; exit 255;;\nesac\nexec /usr/bin/ssh \"$@\"\n";
    fs::write(&old, script).unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = tool();
    command.args(["engines", "--host", &server.url(), "--ssh-config"]);
    command.arg(config).env("PATH", folder.path());
    run(&mut command).succeeded();
    assert_eq!(processes(&server), [""; 0]);
}
