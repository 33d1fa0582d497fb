//! A `podman system service` for the time of a run.
//!
//! It is handed a socket that listens already, so nobody has to wait for it to
//! appear. The socket's name is taken away at once: a descriptor of ours is the
//! only way to it, and goes with us. Should this tool be killed, the kernel ends
//! the service too. Root's has mounts of its own ([`shelter`]). Nothing of it can stay.

use super::shelter::{self, View};
use crate::engine::error::EngineError;
use crate::files::Stage;
use crate::host::claim;
use crate::host::process::{find_program, search_path, wait_at_most};
use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tki_text::printable;

/// How long the service may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// The activation protocol wants the socket as descriptor 3 and the process's
/// own id in a variable, which is known only once there is a process.
const ACTIVATE: &str =
    "exec 3<&0 0</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=podman exec \"$@\"";

/// A service of our own; stopped when dropped.
#[derive(Debug)]
pub struct Service {
    /// The socket, without a name.
    socket: OwnedFd,
    complaints: File,
    /// It has mounts of its own.
    sheltered: bool,
    /// What its keeper is to do; the last is to end it.
    wishes: Option<Sender<Wish>>,
    keeper: Option<JoinHandle<()>>,
}

/// A view that the service is to have, and where to say whether it has it.
type Wish = (View, Sender<std::io::Result<()>>);

impl Service {
    /// Starts `podman`, with a runtime if one is named.
    pub fn start(runtime: Option<&str>) -> Result<Self, EngineError> {
        let failed = |error: std::io::Error| unusable(format!("cannot start it: {error}"));
        let (listener, socket) = nameless_socket().map_err(failed)?;
        let complaints = tempfile::tempfile().map_err(failed)?;
        let mut command = command(runtime);
        command
            .stdin(OwnedFd::from(listener))
            .stderr(complaints.try_clone().map_err(failed)?);
        let (wishes, wished) = channel();
        let (started, result) = channel();
        // The kernel takes the end of the thread that starts a process for the
        // end of its parent, so that thread stays for as long as the service.
        let keeper = std::thread::spawn(move || keep(command, &started, &wished));
        let sheltered = match result.recv() {
            Ok(started) => started.map_err(failed)?,
            Err(_) => return Err(unusable("its keeper panicked".into())),
        };
        Ok(Self {
            socket,
            complaints,
            sheltered,
            wishes: Some(wishes),
            keeper: Some(keeper),
        })
    }

    /// Nobody else uses its mounts.
    pub fn is_sheltered(&self) -> bool {
        self.sheltered
    }

    /// Has it see a directory as this process does.
    pub fn show(&self, folder: &Path) -> Result<(), EngineError> {
        let shown = match &self.wishes {
            Some(wishes) if self.sheltered => View::of(folder).and_then(|view| {
                let (done, shown) = channel();
                let _ = wishes.send((view, done));
                let gone = |_| Err(std::io::ErrorKind::BrokenPipe.into());
                shown.recv_timeout(GRACE).unwrap_or_else(gone)
            }),
            _ => Ok(()),
        };
        let place = folder.display();
        shown.map_err(|error| unusable(format!("it cannot be shown {place}: {error}")))
    }

    /// The path that leads to the socket, for this process alone.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.socket.as_raw_fd())
    }

    /// Why it does not answer, in its own words.
    pub fn explain(mut self) -> EngineError {
        self.end();
        let mut text = String::new();
        let _ = self.complaints.seek(SeekFrom::Start(0));
        let _ = (&mut self.complaints).take(4096).read_to_string(&mut text);
        unusable(match text.trim() {
            "" => "`podman system service` ended without a word".into(),
            text => format!("`podman system service` ended: {}", printable(text, 600)),
        })
    }

    fn end(&mut self) {
        drop(self.wishes.take());
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.end();
    }
}

fn unusable(reason: String) -> EngineError {
    EngineError::Unusable {
        engine: "podman",
        reason,
        next: "see that `podman info` works for this user (with the same --runtime), then run \
               again"
            .into(),
    }
}

/// Has Podman make the namespaces of a user who is not root, which it keeps. A
/// service that finds none makes them itself and goes there as a second process,
/// which does not always end with the first. What is wrong the service will say.
pub async fn make_namespaces() -> Result<(), EngineError> {
    let Some(podman) = find_program(PROGRAM) else {
        return Ok(());
    };
    let made = Command::new(podman)
        .args(["unshare", "true"])
        .env("PATH", search_path())
        .env_remove("CONTAINER_HOST")
        .env_remove("CONTAINER_CONNECTION")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    // The caller that stops waiting ends it.
    struct Ended(Child);
    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    if let Ok(mut made) = made.map(Ended) {
        while let Ok(None) = made.0.try_wait() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    Ok(())
}

/// A listening socket, and a descriptor to connect to it by.
fn nameless_socket() -> std::io::Result<(UnixListener, OwnedFd)> {
    const NAME: &str = "podman.sock";
    let parent = claim::parent()?;
    let stage = Stage::new(&parent, "tki-attest-")?;
    let listener = stage.folder().bind(NAME, 0o600)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let socket = openat(stage.folder(), NAME, flags, Mode::empty())?;
    Ok((listener, socket))
}

/// How much more than what is in use may become rubbish before the service looks for
/// it, in percent. For one run it need not: that takes a second processor, and what
/// the run is waiting for goes on there.
const RUBBISH: (&str, &str) = ("GOGC", "1000");

/// Where the service and its monitors are. A monitor whose container runs out of memory
/// makes a file there, and here nobody can make one.
const PLACE: &str = "/proc";

/// What is started.
const PROGRAM: &str = "podman";

fn command(runtime: Option<&str>) -> Command {
    let mut command = Command::new("/bin/sh");
    command.env("PATH", search_path());
    command.current_dir(PLACE);
    if std::env::var_os(RUBBISH.0).is_none() {
        command.env(RUBBISH.0, RUBBISH.1);
    }
    command.args(["-c", ACTIVATE, "sh", PROGRAM]);
    if let Some(runtime) = runtime {
        command
            .arg("--runtime")
            .arg(runtime_from_elsewhere(runtime));
    }
    command.args(["system", "service", "--time=0"]);
    command
        // They would make it talk to another service instead of being one.
        .env_remove("CONTAINER_HOST")
        .env_remove("CONTAINER_CONNECTION")
        .env_remove("NOTIFY_SOCKET")
        .stdout(Stdio::null())
        // Ctrl-C is for the tool, which then still needs the service.
        .process_group(0);
    let parent = rustix::process::getpid();
    let with_us = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
        // Should the tool have ended before, nobody would tell.
        match rustix::process::getppid() {
            Some(still) if still == parent => Ok(()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls and
    // touches no memory but its own copy of a number.
    unsafe {
        command.pre_exec(with_us);
    }
    command
}

/// The runtime as it is called wherever one is: a path leads to the same program, and a
/// name is looked up.
fn runtime_from_elsewhere(runtime: &str) -> PathBuf {
    match runtime.contains('/') {
        true => std::path::absolute(runtime).unwrap_or_else(|_| runtime.into()),
        false => runtime.into(),
    }
}

/// Starts the service, tells whether it has mounts of its own, does what is wished, and
/// stops it.
fn keep(mut command: Command, started: &Sender<std::io::Result<bool>>, wished: &Receiver<Wish>) {
    // Podman itself has others for users who are not root, which they share.
    let sheltered = match rustix::process::geteuid().is_root() {
        true => shelter::enter(),
        false => Ok(false),
    };
    let child = sheltered.and_then(|sheltered| Ok((command.spawn()?, sheltered)));
    // The listening end that came with the command must not outlive it: a client that
    // connects to a service that has ended is to be told so.
    drop(command);
    match child {
        Err(error) => drop(started.send(Err(error))),
        Ok((child, sheltered)) => {
            let _ = started.send(Ok(sheltered));
            for (view, done) in wished {
                let _ = done.send(view.show());
            }
            end(child);
        }
    }
}

/// Asks it to end, then makes it.
fn end(mut child: Child) {
    let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    if wait_at_most(&mut child, GRACE).is_some() {
        return;
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_the_same_from_elsewhere() {
        let here = std::env::current_dir().unwrap();
        for (given, wanted) in [
            ("runc", "runc".into()),
            ("/usr/bin/runc", "/usr/bin/runc".into()),
            ("./runc", here.join("runc")),
            ("bin/runc", here.join("bin/runc")),
        ] {
            assert_eq!(runtime_from_elsewhere(given), wanted);
        }
    }
}
