//! Podman, its services, and what they could leave behind.

use super::{eventually, names_in, need};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static PODMAN: RwLock<()> = RwLock::new(());

/// For tests that only use the tool: they may share Podman's storage.
pub fn shared_podman() -> RwLockReadGuard<'static, ()> {
    PODMAN.read().unwrap_or_else(|poison| poison.into_inner())
}

/// For tests that create or remove anything themselves, or look at everything.
pub fn whole_podman() -> RwLockWriteGuard<'static, ()> {
    PODMAN.write().unwrap_or_else(|poison| poison.into_inner())
}

/// `podman` with arguments; must succeed.
#[track_caller]
pub fn podman(arguments: &[&str]) -> String {
    podman_by(Command::new("podman"), arguments)
}

/// The same with a command that the caller has prepared.
#[track_caller]
pub fn podman_by(mut command: Command, arguments: &[&str]) -> String {
    command.env_remove("CONTAINER_HOST");
    let said = need(
        "podman",
        command.args(["--runtime", "runc"]).args(arguments),
    );
    assert_eq!(said.status, 0, "podman {arguments:?}: {}", said.stderr);
    said.stdout.trim().to_owned()
}

/// A storage of Podman's in which nobody else's containers are.
pub struct Storage {
    /// The directory that it is in.
    pub folder: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

impl Storage {
    /// In a directory of its own.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut storage = Self::below(folder.path());
        storage._temporary = Some(folder);
        storage
    }

    /// In a directory that is there.
    pub fn below(folder: &Path) -> Self {
        let text = format!(
            "[storage]\ndriver = \"overlay\"\nrunroot = \"{}\"\ngraphroot = \"{}\"\n",
            folder.join("run").display(),
            folder.join("storage").display()
        );
        fs::write(folder.join("storage.conf"), text).unwrap();
        Self {
            folder: folder.to_owned(),
            _temporary: None,
        }
    }

    /// A command on this storage.
    pub fn on(&self, mut command: Command) -> Command {
        command.env("CONTAINERS_STORAGE_CONF", self.folder.join("storage.conf"));
        command
    }

    /// `podman` on this storage; must succeed.
    #[track_caller]
    pub fn podman(&self, arguments: &[&str]) -> String {
        podman_by(self.on(Command::new("podman")), arguments)
    }
}

impl Drop for Storage {
    /// A Podman that ends as it should takes the storage's mount along, also one that
    /// a killed one has left.
    fn drop(&mut self) {
        let _ = self.on(Command::new("podman")).arg("ps").output();
    }
}

/// A service of the test's own, with a runtime of its choice.
pub struct PodmanService {
    daemon: Child,
    folder: tempfile::TempDir,
}

impl PodmanService {
    /// Starts it and waits until it listens.
    pub fn start(runtime: &str) -> Self {
        Self::start_by(Command::new("podman"), runtime)
    }

    /// The same with a command that the caller has prepared.
    pub fn start_by(mut podman: Command, runtime: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("podman")).unwrap();
        let socket = folder.path().join("podman/podman.sock");
        let daemon = podman
            .args(["--runtime", runtime, "system", "service", "--time=0"])
            .arg(format!("unix://{}", socket.display()))
            // Monitors leave a file where it is when a container runs out of memory.
            .current_dir(folder.path())
            .env_remove("CONTAINER_HOST")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("podman: {error}: install the Debian package podman"));
        let service = Self { daemon, folder };
        eventually("the service listens", || {
            std::os::unix::net::UnixStream::connect(service.socket()).is_ok()
        });
        service
    }

    /// The directory in which Podman's usual name leads to it.
    pub fn runtime_folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("podman/podman.sock")
    }

    /// The address for `--host`.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// It has not ended.
    pub fn is_running(&mut self) -> bool {
        self.daemon.try_wait().unwrap().is_none()
    }

    /// Ends it as no service wants to end.
    pub fn kill(&mut self) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
    }
}

impl Drop for PodmanService {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// Processes whose command line has these words in this order, without those
/// that have ended.
pub fn processes(words: &[&str]) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let found = entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(&words.join(" ")).then_some(pid)
    });
    found.collect()
}

/// Everything that a run on Podman could leave.
pub struct Traces(BTreeSet<String>);

impl Traces {
    /// Looks now.
    pub fn look() -> Self {
        let mut found = BTreeSet::new();
        let mut add = |kind: &str, what: &str| found.insert(format!("{kind} {what}"));
        let label = "label=dev.tki.attest.run";
        for id in podman(&["ps", "-aq", "--no-trunc", "--filter", label]).lines() {
            add("container", id);
        }
        for words in [&["system", "service"][..], &["conmon", "--api-version"]] {
            for pid in processes(words) {
                add("process", &pid.to_string());
            }
        }
        for name in names_in(Path::new("/run")) {
            if name.starts_with("tki-attest-") {
                add("directory", &name);
            }
        }
        for name in names_in(&std::env::temp_dir()) {
            if name.starts_with("tki-attest-") {
                add("directory", &name);
            }
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        for point in mounts.lines().filter_map(|line| line.split(' ').nth(4)) {
            if point.contains("tki-attest-") || point.contains("/overlay/") {
                add("mount", point);
            }
        }
        let sockets = fs::read_to_string("/proc/net/unix").unwrap();
        for path in sockets.lines().filter_map(|line| line.split(' ').nth(7)) {
            if path.contains("tki-attest-") || path.contains("podman.sock") {
                add("socket", path);
            }
        }
        for hierarchy in names_in(Path::new("/sys/fs/cgroup")) {
            let parent = Path::new("/sys/fs/cgroup")
                .join(&hierarchy)
                .join("libpod_parent");
            if parent.is_dir() {
                for name in names_in(&parent) {
                    if name.starts_with("libpod-") {
                        add("cgroup", &format!("{hierarchy}/{name}"));
                    }
                }
            }
        }
        Self(found)
    }

    /// Nothing has come to stay. Another run on the same machine may be under
    /// way at this moment, so this may take a while.
    #[track_caller]
    pub fn nothing_new(&self) {
        let mut last = BTreeSet::new();
        let give_up = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while std::time::Instant::now() < give_up {
            last = Self::look().0.difference(&self.0).cloned().collect();
            if last.is_empty() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("still there: {last:?}");
    }
}
