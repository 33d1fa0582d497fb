//! A Docker Engine in a temporary directory.

use super::certificates::{Authority, Holder, Pair, Validity};
use super::network::Network;
use super::{docker, eventually};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Docker's port for TLS.
const TLS_PORT: u16 = 2376;

/// An engine of our own: it may be killed, and nobody else uses it.
pub struct PrivateEngine {
    daemon: Child,
    /// A containerd of its own that outlives it, as on most hosts.
    containerd: Option<Child>,
    folder: PathBuf,
    /// Gone when the engine is.
    temporary: Option<tempfile::TempDir>,
    /// Gone after it too.
    network: Option<Network>,
}

impl PrivateEngine {
    /// Starts it and waits until it answers.
    pub fn start() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut engine = Self::start_alone_in(temporary.path().to_owned());
        engine.temporary = Some(temporary);
        engine
    }

    /// The same with these OCI runtimes besides, each a name and a shell script.
    pub fn start_with(runtimes: &[(&str, &str)]) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join(RUNTIMES);
        fs::create_dir(&folder).unwrap();
        for (name, script) in runtimes {
            write_program(&folder.join(name), script);
        }
        let mut engine = Self::start_alone_in(temporary.path().to_owned());
        engine.temporary = Some(temporary);
        engine
    }

    /// The same, and what is root in its containers is a user of `owner`'s on the host.
    pub fn start_remapped(owner: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let temporary = tempfile::tempdir().unwrap();
        // Its containers' root has to get there.
        fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let folder = temporary.path().to_owned();
        let remap = format!("--userns-remap={owner}");
        let engine = Self {
            daemon: daemon(&folder, None, &[&remap]),
            containerd: None,
            folder,
            temporary: Some(temporary),
            network: None,
        };
        engine.wait();
        engine
    }

    /// The same in a network namespace of its own, where it also listens at a port. It shows
    /// a certificate for its address and for 127.0.0.1, and wants one of the same authority.
    pub fn start_tls(authority: &Authority, validity: Validity) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let network = Network::new();
        let address = network.address();
        let names = format!("IP:{address},IP:127.0.0.1");
        let Pair { cert, key } = authority.issue("server", Holder::Server(&names), validity);
        let option = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let more = [
            format!("--host=tcp://{address}:{TLS_PORT}"),
            "--tlsverify".to_owned(),
            option("tlscacert", &authority.certificate()),
            option("tlscert", &cert),
            option("tlskey", &key),
        ];
        let more = more.each_ref().map(String::as_str);
        let folder = temporary.path().to_owned();
        let program = network.command("dockerd");
        let engine = Self {
            daemon: start(program, &folder, None, &more),
            containerd: None,
            folder,
            temporary: Some(temporary),
            network: Some(network),
        };
        engine.wait();
        engine
    }

    /// The same in a directory of the caller's. Its containerd goes when it is killed.
    pub fn start_alone_in(folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).unwrap();
        let engine = Self {
            daemon: daemon(&folder, None, &[]),
            containerd: None,
            folder,
            temporary: None,
            network: None,
        };
        engine.wait();
        engine
    }

    /// The same in a directory of the caller's, with a containerd beside it that
    /// goes on when the engine is killed.
    pub fn start_in(folder: PathBuf) -> Self {
        fs::create_dir_all(&folder).unwrap();
        let containerd = containerd(&folder);
        let engine = Self {
            daemon: daemon(&folder, Some(&folder.join("containerd.sock")), &[]),
            containerd: Some(containerd),
            folder,
            temporary: None,
            network: None,
        };
        engine.wait();
        engine
    }

    /// Starts it again after it was killed, with what it had.
    pub fn start_again(&mut self) {
        let containerd = self.containerd.is_some();
        let socket = containerd.then(|| self.folder.join("containerd.sock"));
        self.daemon = daemon(&self.folder, socket.as_deref(), &[]);
        self.wait();
    }

    fn wait(&self) {
        eventually("our own engine answers", || {
            let mut ping = Command::new("docker");
            ping.args(["-H", &self.host(), "version"]);
            ping.output().is_ok_and(|output| output.status.success())
        });
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("sock")
    }

    /// The address for `--host`.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Where it listens with TLS.
    pub fn port(&self) -> SocketAddr {
        let network = self.network.as_ref().expect("it has no port");
        SocketAddr::from((network.address(), TLS_PORT))
    }

    /// `docker` on this engine; must succeed.
    pub fn docker(&self, arguments: &[&str]) -> String {
        docker(&[&["-H", &self.host()][..], arguments].concat())
    }

    /// Ends it as no engine wants to end.
    pub fn kill(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
    }

    /// Processes that it started: each has its directory on its command line.
    fn helpers(&self) -> Vec<Pid> {
        let folder = self.folder.to_str().unwrap().as_bytes();
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let ours = line.windows(folder.len()).any(|window| window == folder);
            let helper = ours && line.windows(10).any(|window| window == b"containerd");
            helper.then(|| Pid::from_raw(pid)).flatten()
        });
        pids.collect()
    }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        if let Some(containerd) = &mut self.containerd {
            let _ = containerd.kill();
            let _ = containerd.wait();
        }
        for pid in self.helpers() {
            let _ = kill_process(pid, Signal::KILL);
        }
        let folder = self.folder.to_str().unwrap().to_owned();
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let points = table.lines().filter_map(|line| line.split(' ').nth(4));
        for point in points.filter(|point| point.starts_with(&folder)) {
            let _ = Command::new("umount").args(["-l", point]).output();
        }
    }
}

fn containerd(folder: &Path) -> Child {
    let path = |name: &str| folder.join(name);
    fs::write(path("containerd.toml"), "version = 2\n").unwrap();
    let log = fs::File::create(path("containerd.log")).unwrap();
    let child = Command::new("containerd")
        .arg("--config")
        .arg(path("containerd.toml"))
        .arg("--address")
        .arg(path("containerd.sock"))
        .arg("--root")
        .arg(path("containerd-root"))
        .arg("--state")
        .arg(path("containerd-state"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| panic!("containerd: {error}: install containerd"));
    eventually("containerd listens", || {
        std::os::unix::net::UnixStream::connect(path("containerd.sock")).is_ok()
    });
    child
}

/// A runtime that takes its time to create and to start a container, so that much can
/// happen meanwhile.
fn slow_runtime(folder: &Path) -> PathBuf {
    let path = folder.join("slow-runtime");
    let text = "#!/bin/sh\nfor word in \"$@\"; do\n  case \"$word\" in\n    create|start) \
                sleep 0.2; runc \"$@\"; status=$?; sleep 0.2; exit $status;;\n  esac\n\
                done\nexec runc \"$@\"\n";
    // One that is in use cannot be written.
    if !path.exists() {
        write_program(&path, text);
    }
    path
}

/// Where further runtimes lie.
const RUNTIMES: &str = "runtimes";

/// A program in a file of its own.
pub fn write_program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn daemon(folder: &Path, containerd: Option<&Path>, more: &[&str]) -> Child {
    start(Command::new("dockerd"), folder, containerd, more)
}

fn start(mut command: Command, folder: &Path, containerd: Option<&Path>, more: &[&str]) -> Child {
    let path = |name: &str| folder.join(name).display().to_string();
    let mut runtimes = serde_json::json!({"slow": {"path": slow_runtime(folder)}});
    for entry in fs::read_dir(folder.join(RUNTIMES)).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        runtimes[name] = serde_json::json!({"path": entry.path()});
    }
    let configuration = serde_json::json!({"runtimes": runtimes}).to_string();
    fs::write(path("daemon.json"), configuration).unwrap();
    // One that was killed cannot take it away.
    for left in ["pid", "exec/containerd/containerd.pid"] {
        let _ = fs::remove_file(path(left));
    }
    let log = fs::File::create(path("log")).unwrap();
    if let Some(socket) = containerd {
        command.arg("--containerd").arg(socket);
    }
    command
        .args(["--config-file", &path("daemon.json")])
        .args(["--data-root", &path("data"), "--exec-root", &path("exec")])
        .args(["--pidfile", &path("pid"), "--host"])
        .arg(format!("unix://{}", path("sock")))
        .args(["--bridge=none", "--iptables=false", "--ip6tables=false"])
        // If there is a containerd of the system's it is shared.
        .args(["--containerd-namespace=tki-test"])
        .args(["--containerd-plugins-namespace=tki-test-plugins"])
        .args(more)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| {
            let program = command.get_program();
            panic!("{program:?}: {error}: install docker.io (dockerd), util-linux (nsenter)")
        })
}
