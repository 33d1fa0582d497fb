//! A PostgreSQL server in a temporary directory, as an unprivileged user.

use super::{eventually, need};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Nobody: PostgreSQL refuses to run as root.
const NOBODY: u32 = 65534;

/// The server; stopped when dropped.
pub struct Postgres {
    server: Child,
    folder: tempfile::TempDir,
    /// The port on the loopback interface.
    pub port: u16,
}

/// The newest of Debian's versions.
fn programs() -> PathBuf {
    let found = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let newest = found.map(|entry| entry.path().join("bin")).max();
    newest
        .filter(|folder| folder.join("initdb").exists())
        .expect("no initdb: install the Debian package postgresql")
}

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null());
    command
}

impl Postgres {
    /// Starts one: passwords on the loopback interface, trust on its socket.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (data, socket) = (folder.path().join("data"), folder.path().join("socket"));
        for path in [&data, &socket] {
            fs::create_dir(path).unwrap();
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
        let mut init = as_nobody(&programs().join("initdb"));
        init.args([
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            "--no-sync",
        ])
        .args([
            "--username=owner",
            "--encoding=UTF8",
            "--locale=C",
            "--pgdata",
        ])
        .arg(&data);
        let said = need("util-linux", &mut init);
        assert_eq!(said.status, 0, "{said:?}");
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let server = as_nobody(&programs().join("postgres"))
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(&socket)
            .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "fsync=off", "-c", "log_statement=all"])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let postgres = Self {
            server,
            folder,
            port,
        };
        eventually("PostgreSQL answers", || {
            let mut psql = postgres.psql("SELECT 1");
            psql.output().is_ok_and(|output| output.status.success())
        });
        postgres
    }

    /// The directory of its unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn psql(&self, sql: &str) -> Command {
        let mut psql = Command::new("psql");
        psql.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "owner",
            "-d",
        ])
        .args(["postgres", "-p", &self.port.to_string(), "-h"])
        .arg(self.socket())
        .args(["-c", sql]);
        psql
    }

    /// SQL as the owner of everything; must succeed.
    #[track_caller]
    pub fn owner(&self, sql: &str) -> String {
        let said = need("postgresql-client", &mut self.psql(sql));
        assert_eq!(said.status, 0, "{said:?}");
        said.stdout.trim().to_owned()
    }

    /// Every statement that it has heard.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.server), Signal::INT);
        let _ = self.server.wait();
    }
}
