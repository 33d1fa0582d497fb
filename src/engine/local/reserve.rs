//! A keeper from the tool's side, until it has its job.

use super::job::Job;
use super::{keeper, orphans, wire};
use crate::host::descriptors;
use crate::image::Stored;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

/// The process, the socket to it, and our ends of the container's streams.
pub type Started = (Child, UnixStream, [OwnedFd; 3]);

/// A keeper that has no job yet.
#[derive(Debug)]
pub struct Keeper {
    child: Child,
    socket: UnixStream,
}

impl Keeper {
    /// Starts one.
    pub fn start() -> std::io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        orphans::adopt()?;
        let mut keepers = orphans::keepers();
        let child = Command::new("/proc/self/exe")
            .arg(keeper::ARGUMENT)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        keepers.push(child.id());
        Ok(Self { child, socket })
    }

    /// Gives it its job.
    pub fn begin(self, job: &Job, layers: &[Stored]) -> std::io::Result<Started> {
        let (input, our_input) = std::io::pipe()?;
        let (our_output, output) = std::io::pipe()?;
        let (our_error, error) = std::io::pipe()?;
        let mut file = File::from(memfd_create("layers", MemfdFlags::CLOEXEC)?);
        for layer in layers {
            file.write_all(layer.bytes)?;
        }
        descriptors::send(
            &self.socket,
            &[input.as_fd(), output.as_fd(), error.as_fd(), file.as_fd()],
        )?;
        wire::send(&self.socket, job)?;
        let ends = [our_input.into(), our_output.into(), our_error.into()];
        Ok((self.child, self.socket, ends))
    }

    /// There is no job for it.
    pub fn dismiss(mut self) {
        drop(self.socket);
        let pid = self.child.id();
        let _ = self.child.wait();
        orphans::keepers().retain(|known| *known != pid);
    }
}
