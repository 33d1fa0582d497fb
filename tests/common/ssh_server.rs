//! An SSH server on the loopback interface, with keys of its own.

use super::{Daemon, eventually, need};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where sshd wants to lock itself in; Debian's package makes it at boot.
const EMPTY: &str = "/run/sshd";

/// The server; stopped when dropped.
pub struct SshServer {
    _daemon: Daemon,
    folder: tempfile::TempDir,
    made_empty: bool,
    port: u16,
}

impl SshServer {
    /// Starts one that lets in a client that has its key. `more` are further lines of
    /// its configuration.
    pub fn start(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["host", "user", "stranger"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
            let said = need("openssh-client", keygen.arg(at(name)));
            assert_eq!(said.status, 0, "{said:?}");
        }
        fs::copy(at("user.pub"), at("authorized")).unwrap();
        let made_empty = fs::create_dir(EMPTY).is_ok();
        fs::set_permissions(EMPTY, fs::Permissions::from_mode(0o755)).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {host}\nPidFile none\n\
             AuthorizedKeysFile {keys}\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PermitRootLogin prohibit-password\n{more}",
            host = at("host").display(),
            keys = at("authorized").display()
        );
        fs::write(at("sshd_config"), config).unwrap();
        let daemon = Command::new("/usr/sbin/sshd")
            .args(["-D", "-f"])
            .arg(at("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{error}: install the Debian package openssh-server"));
        let server = Self {
            _daemon: Daemon(daemon),
            folder,
            made_empty,
            port,
        };
        eventually("sshd listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        server
    }

    /// Its address for `--host`.
    pub fn url(&self) -> String {
        format!("ssh://root@127.0.0.1:{}", self.port)
    }

    /// The directory of its keys.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A configuration for `ssh` that offers a key, and knows the server or not.
    pub fn config(&self, key: &str, known: bool, more: &str) -> PathBuf {
        let at = |name: &str| self.folder.path().join(name);
        let host = fs::read_to_string(at("host.pub")).unwrap();
        let line = format!("[127.0.0.1]:{} {host}", self.port);
        fs::write(at("known_hosts"), if known { &line } else { "" }).unwrap();
        let text = format!(
            "IdentityFile {}\nIdentitiesOnly yes\nIdentityAgent none\n\
             UserKnownHostsFile {}\nGlobalKnownHostsFile none\n{more}",
            at(key).display(),
            at("known_hosts").display()
        );
        fs::write(at("ssh_config"), text).unwrap();
        at("ssh_config")
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        if self.made_empty {
            let _ = fs::remove_dir(EMPTY);
        }
    }
}
