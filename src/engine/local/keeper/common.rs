//! What keepers of either engine do.

use super::error::{KeeperError, at};
use crate::engine::gate::{Closed, Gate, State};
use crate::engine::local::job::Job;
use crate::engine::local::{filter, rootfs};
use crate::files::Folder;
use crate::host::descriptors;
use crate::host::namespaces::unshare;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use tki_evidence::stamp::sha256_hex;

/// Descriptors that come with a job.
pub struct Streams {
    /// Its standard input.
    pub input: OwnedFd,
    /// Its standard output.
    pub output: OwnedFd,
    /// Its standard error.
    pub error: OwnedFd,
}

/// A mount namespace of our own, in which a memory file system lies over the directory of
/// the run: it holds everything and goes with us. Gives its place, with the image unpacked.
///
/// On the host only the tool's user can enter that directory. Here it is open, so that
/// bubblewrap gets through as the sandbox's user, and the binds of the run are seen in it as
/// they were; nobody else is in this namespace.
pub fn private_place(job: &Job, layers: &[u8]) -> Result<PathBuf, KeeperError> {
    unshare(libc::CLONE_NEWNS).map_err(at("a mount namespace"))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(at("making mounts private"))?;
    let bind = job.settings.binds.first().ok_or(KeeperError::NoInput)?;
    let place = Path::new(&bind.source)
        .parent()
        .ok_or(KeeperError::NoParent)?;
    let base = Folder::open(place).map_err(at("the run's directory"))?;
    let mut shown = Vec::new();
    for bind in &job.settings.binds {
        let source = Path::new(&bind.source);
        if source.parent() == Some(place)
            && let Some(name) = source.file_name()
        {
            shown.push((name, base.enter(name).map_err(at("a directory to bind"))?));
        }
    }
    let options = CString::new(format!("size={},mode=0711", rootfs::MAX_BYTES)).unwrap_or_default();
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let options = Some(options.as_c_str());
    mount("tki-attest", base.alias(), "tmpfs", flags, options)
        .map_err(at("a memory file system"))?;
    let over = Folder::open(place).map_err(at("the keeper's directory"))?;
    for (name, held) in shown {
        let point = over.make(name).map_err(at("a mount point"))?;
        mount_bind(held.alias(), point.alias()).map_err(at("binding a directory"))?;
    }
    let root = over.make("rootfs").map_err(at("the root directory"))?;
    root.set_mode(0o755).map_err(at("the root directory"))?;
    rootfs::unpack(layers, &job.layers, &root).map_err(at("unpacking the image"))?;
    Ok(place.to_owned())
}

/// The profile as a program; none if the container has no profile.
pub fn compiled(job: &Job) -> Result<Option<Vec<libc::sock_filter>>, KeeperError> {
    if job.settings.seccomp == "unconfined" {
        return Ok(None);
    }
    if sha256_hex(job.seccomp.as_bytes()) != job.settings.seccomp {
        return Err(KeeperError::OtherProfile);
    }
    Ok(Some(filter::compile(&job.seccomp)?))
}

/// What the profile that was compiled is called afterwards.
pub fn profile_digest(job: &Job) -> String {
    match job.settings.seccomp.as_str() {
        "unconfined" => "unconfined".into(),
        _ => sha256_hex(job.seccomp.as_bytes()),
    }
}

/// Waits for the end, answers the gate's questions, and ends everything when
/// the tool is gone. `child` is our own child, `first` the container's process 1.
pub fn supervise(
    child: i32,
    first: i32,
    gate_socket: Option<&UnixStream>,
    socket: &UnixStream,
) -> Result<(i64, Closed), KeeperError> {
    let pid = Pid::from_raw(child).ok_or(KeeperError::NoProcess)?;
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(at("watching the container"))?;
    let end = || {
        let _ = pidfd_send_signal(&process, Signal::KILL);
        if let Some(first) = Pid::from_raw(first) {
            let _ = rustix::process::kill_process(first, Signal::KILL);
        }
    };
    let mut gate: Option<Gate> = None;
    let mut gate_stands = true;
    let mut waiting_for_gate = gate_socket;
    let mut tool_is_there = true;
    loop {
        let mut fds = vec![PollFd::new(&process, PollFlags::IN)];
        let listener = gate.as_ref().filter(|_| gate_stands);
        let listener = listener.map(|gate| gate.listener());
        let places = [
            tool_is_there.then(|| socket.as_fd()),
            waiting_for_gate.map(|socket| socket.as_fd()),
            listener,
        ];
        fds.extend(
            places
                .iter()
                .flatten()
                .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)),
        );
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                end();
                return Err(at("waiting")(error));
            }
        }
        let mut events = fds
            .iter()
            .map(|fd| !fd.revents().is_empty())
            .collect::<Vec<_>>()
            .into_iter();
        let ended = events.next().unwrap_or(false);
        let mut ready = places.map(|place| place.is_some() && events.next().unwrap_or(false));
        drop(fds);
        if ended {
            break;
        }
        if ready[0] {
            // The tool never speaks a second time: it has hung up.
            tool_is_there = false;
            end();
        }
        if std::mem::take(&mut ready[1]) {
            let received = waiting_for_gate
                .take()
                .map(|socket| descriptors::receive(socket, 1));
            if let Some(Ok((_, mut found))) = received
                && let (Some(listener), Ok(first)) = (found.pop(), u32::try_from(first))
            {
                gate = Some(Gate::new(listener, first));
            }
        } else if ready[2]
            && let Some(watching) = &mut gate
        {
            // The end is waited for here and nowhere else: the tool may still hang up.
            match watching.answer() {
                State::Standing => {}
                State::Over => gate_stands = false,
                State::Broken => {
                    gate_stands = false;
                    end();
                }
            }
        }
    }
    let found =
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).map_err(at("the container's end"))?;
    let status = found.as_ref().map_or(-1, |found| {
        let killed = found
            .terminating_signal()
            .map(|signal| 128 + i64::from(signal));
        let ended = found.exit_status().map(i64::from);
        killed.or(ended).unwrap_or(-1)
    });
    let closed = match (&gate, gate_socket) {
        (Some(gate), _) => gate.closed("a filter of the keeper's own asks it"),
        (None, Some(_)) => Closed::none("the container ended before the gate stood"),
        (None, None) => Closed::none("no gate was asked for"),
    };
    Ok((status, closed))
}
