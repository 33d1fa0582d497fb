//! A user who is not root.

use super::podman::processes;
use super::{isolated, need, run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A user who is not root, made for the test.
pub struct OtherUser {
    name: String,
    folder: tempfile::TempDir,
}

impl OtherUser {
    /// Makes the user, with a home, a runtime directory, and a copy of the tool.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tki{}n{count}", std::process::id());
        need("uidmap", &mut Command::new("newuidmap"));
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let home = folder.path().join("home");
        let made = need(
            "passwd",
            Command::new("useradd")
                .args(["-m", "-d"])
                .arg(home)
                .arg(&name),
        );
        made.succeeded();
        let user = Self { name, folder };
        for name in ["runtime", "out"] {
            let path = user.path(name);
            fs::create_dir(&path).unwrap();
            run(Command::new("chown").arg(&user.name).arg(&path)).succeeded();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let binary = user.path("tki-attest");
        fs::copy(env!("CARGO_BIN_EXE_tki-attest"), &binary).unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        user
    }

    /// What the user is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A place below the user's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Services that run in this user's name.
    pub fn services(&self) -> Vec<i32> {
        let mut found = processes(&["system", "service", "--time=0"]);
        let id = fs::metadata(self.path("out")).unwrap().uid();
        found.retain(|pid| {
            let process = fs::metadata(format!("/proc/{pid}"));
            process.is_ok_and(|process| process.uid() == id)
        });
        found
    }

    /// A program in this user's name.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = isolated(Path::new("setpriv"));
        command
            .args([
                "--reuid",
                &self.name,
                "--regid",
                &self.name,
                "--init-groups",
            ])
            .env("HOME", self.path("home"))
            // What a test has made for root is not for this user to write to.
            .env("XDG_STATE_HOME", self.path("home/state"))
            .env("USER", &self.name)
            .env("XDG_RUNTIME_DIR", self.path("runtime"))
            .current_dir(self.path("home"))
            .arg(program);
        command
    }
}

impl Drop for OtherUser {
    fn drop(&mut self) {
        // Podman keeps a process for each user, which holds the namespaces.
        let pause = self.path("runtime/libpod/tmp/pause.pid");
        let pid = fs::read_to_string(pause).unwrap_or_default();
        if let Some(pid) = pid.trim().parse().ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = run(Command::new("userdel").arg(&self.name));
    }
}
