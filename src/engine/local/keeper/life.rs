//! A keeper's life, from its job to its report, and what is done after one that was killed.

use super::common::Streams;
use super::{bwrap, embedded};
use crate::engine::local::job::{Job, Maker, News};
use crate::engine::local::{cgroup, orphans, rootfs, wire};
use crate::engine::support::Support;
use crate::host::descriptors;
use rustix::process::setsid;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// The first argument that makes this tool a keeper. Not for people.
pub const ARGUMENT: &str = "internal-keeper";

/// The keeper's whole life. Standard input is the socket to the tool.
pub fn main() -> ExitCode {
    let Ok(socket) = rustix::stdio::stdin().try_clone_to_owned() else {
        return ExitCode::from(2);
    };
    let socket = UnixStream::from(socket);
    // Ctrl-C is for the tool, which then hangs up.
    let _ = setsid();
    // Nothing that the tool's caller left open may reach a container.
    // SAFETY: a system call on this process's own descriptors.
    let closed = unsafe { libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32) };
    if closed != 0 {
        return ExitCode::from(2);
    }
    if orphans::adopt().is_err() {
        return ExitCode::from(2);
    }
    let Ok((job, streams, layers)) = receive(&socket) else {
        return ExitCode::from(2);
    };
    let kept = match job.maker {
        Maker::Embedded => embedded::keep(&job, streams, &layers, &socket),
        Maker::Bwrap => bwrap::keep(&job, streams, &layers, &socket),
    };
    let news = match kept {
        Ok((status, gate)) => News::Ended { status, gate },
        Err(error) => News::Failed {
            reason: error.to_string(),
        },
    };
    let _ = wire::send(&socket, &news);
    ExitCode::SUCCESS
}

fn receive(socket: &UnixStream) -> std::io::Result<(Job, Streams, Vec<u8>)> {
    let (_, descriptors) = descriptors::receive(socket, 1)?;
    let [input, output, error, layers] =
        <[OwnedFd; 4]>::try_from(descriptors).map_err(|_| std::io::ErrorKind::InvalidData)?;
    let job = wire::receive(socket)?;
    let mut content = Vec::new();
    let mut file = File::from(layers);
    file.rewind()?;
    file.take(rootfs::MAX_BYTES).read_to_end(&mut content)?;
    let streams = Streams {
        input,
        output,
        error,
    };
    Ok((job, streams, content))
}

/// Takes away what a keeper that was killed has left on the host: processes that
/// had not come so far as to go with it, and groups.
pub fn clean_after(name: &str, support: &Support) {
    let has = |line: &[u8], word: &str| line.windows(word.len()).any(|w| w == word.as_bytes());
    orphans::end(|line| has(line, ARGUMENT) || has(line, name));
    let groups = cgroup::named(name, support);
    cgroup::remove_all(&groups);
}
