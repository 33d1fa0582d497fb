//! A Docker Engine in a temporary directory.

use super::{docker, eventually};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// An engine of our own: it may be killed, and nobody else uses it.
pub struct PrivateEngine {
    daemon: Child,
    folder: tempfile::TempDir,
}

impl PrivateEngine {
    /// Starts it and waits until it answers.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("daemon.json"), "{}").unwrap();
        let log = fs::File::create(path("log")).unwrap();
        let daemon = Command::new("dockerd")
            .args(["--config-file", &path("daemon.json")])
            .args(["--data-root", &path("data"), "--exec-root", &path("exec")])
            .args(["--pidfile", &path("pid"), "--host"])
            .arg(format!("unix://{}", path("sock")))
            .args(["--bridge=none", "--iptables=false", "--ip6tables=false"])
            // If there is a containerd of the system's it is shared.
            .args(["--containerd-namespace=tki-test"])
            .args(["--containerd-plugins-namespace=tki-test-plugins"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("dockerd: {error}: install docker.io"));
        let engine = Self { daemon, folder };
        eventually("our own engine answers", || {
            let mut ping = Command::new("docker");
            ping.args(["-H", &engine.host(), "version"]);
            ping.output().is_ok_and(|output| output.status.success())
        });
        engine
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("sock")
    }

    /// The address for `--host`.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
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
        let folder = self.folder.path().to_str().unwrap().as_bytes();
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
        for pid in self.helpers() {
            let _ = kill_process(pid, Signal::KILL);
        }
        let folder = self.folder.path().to_str().unwrap().to_owned();
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let points = table.lines().filter_map(|line| line.split(' ').nth(4));
        for point in points.filter(|point| point.starts_with(&folder)) {
            let _ = Command::new("umount").args(["-l", point]).output();
        }
    }
}
