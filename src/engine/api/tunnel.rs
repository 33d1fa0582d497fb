//! A way through `ssh` to the socket of an engine on another host.
//!
//! Docker's own client starts an `ssh` for each connection. An attestation makes hundreds,
//! and each would log in again; sharing one login (`ControlMaster`) is bounded by the
//! server's `MaxSessions`, which is ten. So there is one `ssh` for everything that a command
//! does. It forwards a socket here to the engine's over there, and each connection is a
//! channel of it.
//!
//! The socket's name is taken away as soon as `ssh` listens: a descriptor of ours is the only
//! way to it. Should this tool be killed, the kernel ends the `ssh` too.

use crate::engine::api::address::Target;
use crate::engine::api::fault::Fault;
use crate::engine::api::login::Login;
use crate::engine::error::EngineError;
use crate::files::Stage;
use crate::host::claim;
use crate::host::process::{find_program, search_path};
use rustix::fs::{Mode, OFlags, openat};
use rustix::process::Signal;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// What the socket is called while it has a name.
const NAME: &str = "engine.sock";

/// The longest path to it: the kernel takes 107 bytes.
const LONGEST: usize = 100;

/// How often to look whether `ssh` listens.
const LOOK: Duration = Duration::from_millis(5);

/// An option that keeps `ssh` from going on in the background, where it would outlive us, and
/// the beginning of what an `ssh` says that cannot do so anyway (before OpenSSH 8.7).
const STAYS: &str = "ForkAfterAuthentication=no";
const ALWAYS_STAYS: &str =
    "command-line: line 0: Bad configuration option: forkafterauthentication";

/// A running `ssh`; ended when dropped.
#[derive(Debug)]
pub struct Tunnel {
    shown: String,
    /// The socket, without a name.
    socket: OwnedFd,
    login: Login,
}

impl Tunnel {
    /// Logs in, and waits until `ssh` listens: the caller has a deadline. `config` stands in
    /// for the user's own configuration of `ssh`.
    pub async fn open(target: &Target, config: Option<&Path>) -> Result<Self, EngineError> {
        match Self::open_with(target, config, &[STAYS]).await {
            Err(EngineError::Ssh { said, .. }) if said.starts_with(ALWAYS_STAYS) => {
                Self::open_with(target, config, &[]).await
            }
            other => other,
        }
    }

    async fn open_with(
        target: &Target,
        config: Option<&Path>,
        more: &[&str],
    ) -> Result<Self, EngineError> {
        let shown = target.shown();
        let failed = |error: io::Error| EngineError::Unreachable {
            host: target.shown(),
            reason: format!("cannot start ssh: {error}"),
        };
        let parent = claim::parent().map_err(failed)?;
        let stage = Stage::new(&parent, "tki-attest-").map_err(failed)?;
        let local = plain_path(&stage);
        let login = Login::start(command(target, config, more, &local)).map_err(failed)?;
        let socket = loop {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(stage.folder(), NAME, flags, Mode::empty()) {
                Ok(socket) => break socket,
                Err(_) if login.has_ended() => {
                    return Err(EngineError::Ssh {
                        host: shown,
                        said: login.last_words(),
                    });
                }
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        };
        Ok(Self {
            shown,
            socket,
            login,
        })
    }

    /// The address, as evidence and errors have it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// A connection to the engine.
    pub async fn connect(self: &Arc<Self>) -> io::Result<Channel> {
        let path = format!("/proc/self/fd/{}", self.socket.as_raw_fd());
        let heard = self.login.heard();
        loop {
            match UnixStream::connect(&path).await {
                Ok(stream) => {
                    return Ok(Channel {
                        stream,
                        tunnel: Arc::clone(self),
                        heard,
                        has_answered: false,
                    });
                }
                // Its queue is full, or it has bound the socket and not listened yet.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::ConnectionRefused
                    ) && !self.login.has_ended() =>
                {
                    tokio::time::sleep(LOOK).await;
                }
                Err(_) => return Err(self.fault(heard)),
            }
        }
    }

    /// Why a connection came to nothing, before which so many bytes had been heard.
    fn fault(&self, heard: usize) -> io::Error {
        Fault::Ssh {
            said: self.login.next_words(heard),
        }
        .into()
    }
}

/// The socket's path in a form that `ssh` takes as it is. In any other, a colon would end it
/// and a percent sign begin something else; there is a way through our own descriptor.
fn plain_path(stage: &Stage) -> PathBuf {
    let path = stage.folder().path().join(NAME);
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let bytes = path.as_os_str().as_encoded_bytes();
    match bytes.len() <= LONGEST && bytes.iter().all(plain) {
        true => path,
        false => {
            let folder = stage.folder().alias();
            let number = folder.file_name().unwrap_or_default();
            let own = rustix::process::getpid().as_raw_nonzero();
            Path::new("/proc")
                .join(own.to_string())
                .join("fd")
                .join(number)
                .join(NAME)
        }
    }
}

fn command(target: &Target, config: Option<&Path>, more: &[&str], local: &Path) -> Command {
    // Without an absolute path, the working directory could have the program.
    let mut command = Command::new(find_program("ssh").unwrap_or_else(|| "/usr/bin/ssh".into()));
    command.env("PATH", search_path());
    let options = [
        // Nothing is asked of a person, and no unknown host is trusted.
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        // Whatever the user's configuration says: no command comes with the login, here or
        // there, and the login is our own, so that it ends with us.
        "PermitLocalCommand=no",
        "RemoteCommand=none",
        "ControlMaster=no",
        "ControlPath=none",
        "ForwardAgent=no",
        "ForwardX11=no",
        "Tunnel=no",
        "StreamLocalBindMask=0177",
        "StreamLocalBindUnlink=no",
        "ExitOnForwardFailure=yes",
        "ServerAliveInterval=15",
        "LogLevel=INFO",
    ];
    for option in options.iter().chain(more) {
        command.args(["-o", option]);
    }
    if let Some(file) = config {
        command.arg("-F").arg(file);
    }
    if let Some(port) = target.port {
        command.args(["-p", &port.to_string()]);
    }
    let forward = format!("{}:{}", local.display(), target.socket);
    command
        .args(["-T", "-N", "-L", &forward, "--", &target.destination()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Ctrl-C is for the tool, which then still needs the engine.
        .process_group(0);
    let parent = rustix::process::getpid();
    let with_us = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
        // Should the tool have ended before, nobody would tell.
        match rustix::process::getppid() {
            Some(still) if still == parent => Ok(()),
            _ => Err(ErrorKind::NotFound.into()),
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls and
    // touches no memory but its own copy of a number.
    unsafe {
        command.pre_exec(with_us);
    }
    command
}

/// A connection. One that ends before the first byte never reached the engine, and `ssh`
/// says why.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    tunnel: Arc<Tunnel>,
    /// So many bytes `ssh` had said before.
    heard: usize,
    has_answered: bool,
}

impl AsyncRead for Channel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        buffer: &mut ReadBuf,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(result) = &read
            && !self.has_answered
        {
            if result.is_err() || buffer.filled().len() == before {
                return Poll::Ready(Err(self.tunnel.fault(self.heard)));
            }
            self.has_answered = true;
        }
        read
    }
}

impl AsyncWrite for Channel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        match written {
            Poll::Ready(Err(_)) if !self.has_answered => {
                Poll::Ready(Err(self.tunnel.fault(self.heard)))
            }
            other => other,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
