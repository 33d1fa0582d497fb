//! A key that ssh-agent holds: two messages of its protocol, over the socket in
//! `SSH_AUTH_SOCK`. However slowly an agent answers, the deadline, Ctrl-C and SIGTERM
//! end the wait.

use crate::deadline::{Deadline, Stopped, TICK};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use ssh_key::PublicKey;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;

/// The largest answer that is read, in bytes; as in OpenSSH.
const MAX_ANSWER: u32 = 256 * 1024;

/// How long an agent may think where no other limit is given. It may have to ask a
/// person.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Why the agent could not be used.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// There is none.
    #[error("only the public key is given, and SSH_AUTH_SOCK names no agent")]
    None,
    /// It cannot be spoken to.
    #[error("ssh-agent at {socket}: {error}")]
    Unreachable {
        /// Its socket.
        socket: String,
        /// What went wrong.
        error: io::Error,
    },
    /// It took too long, or was interrupted.
    #[error("ssh-agent at {socket}: {stopped}")]
    Stopped {
        /// Its socket.
        socket: String,
        /// Why waiting ended.
        stopped: Stopped,
    },
    /// It does not speak its protocol.
    #[error("ssh-agent gave an answer that cannot be read")]
    Garbled,
    /// It does not hold the key.
    #[error("ssh-agent does not hold this key")]
    Unknown,
    /// It does not want to.
    #[error("ssh-agent refused to sign")]
    Refused,
}

/// An agent that holds the private half of a key. Signals that come after it was
/// found count when it signs.
#[derive(Clone, Debug)]
pub struct Agent {
    deadline: Deadline,
}

impl Agent {
    /// Finds out, before the deadline, whether the agent holds the private half.
    pub fn find(public: &PublicKey, deadline: Instant) -> Result<Self, AgentError> {
        let wanted = public.to_bytes().map_err(|_| AgentError::Garbled)?;
        let limit = deadline.saturating_duration_since(Instant::now());
        let deadline = Deadline::start(limit).map_err(|error| AgentError::Unreachable {
            socket: "SSH_AUTH_SOCK".into(),
            error,
        })?;
        let answer = ask(&[REQUEST_IDENTITIES], &deadline)?;
        let mut answer = Reader(&answer);
        if answer.byte()? != IDENTITIES_ANSWER {
            return Err(AgentError::Garbled);
        }
        for _ in 0..answer.number()? {
            let blob = answer.string()?;
            answer.string()?;
            if blob == wanted {
                return Ok(Self { deadline });
            }
        }
        Err(AgentError::Unknown)
    }

    /// Has the agent sign bytes before the deadline: a plain Ed25519 signature over
    /// them.
    pub fn sign(
        &self,
        public: &PublicKey,
        message: &[u8],
        deadline: Instant,
    ) -> Result<Vec<u8>, AgentError> {
        let blob = public.to_bytes().map_err(|_| AgentError::Garbled)?;
        let mut request = vec![SIGN_REQUEST];
        for part in [&blob[..], message] {
            let length = u32::try_from(part.len()).map_err(|_| AgentError::Garbled)?;
            request.extend(length.to_be_bytes());
            request.extend(part);
        }
        request.extend([0; 4]);
        let answer = ask(&request, &self.deadline.until(deadline))?;
        let mut answer = Reader(&answer);
        if answer.byte()? != SIGN_RESPONSE {
            return Err(AgentError::Refused);
        }
        let mut signature = Reader(answer.string()?);
        if signature.string()? != b"ssh-ed25519" {
            return Err(AgentError::Garbled);
        }
        Ok(signature.string()?.to_vec())
    }
}

/// Why an exchange came to nothing.
enum Trouble {
    Lost(io::Error),
    Stopped(Stopped),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl From<Stopped> for Trouble {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

fn ask(request: &[u8], deadline: &Deadline) -> Result<Vec<u8>, AgentError> {
    let socket = std::env::var_os("SSH_AUTH_SOCK").filter(|socket| !socket.is_empty());
    let path = socket.ok_or(AgentError::None)?;
    let socket = path.to_string_lossy().into_owned();
    exchange(Path::new(&path), request, deadline).map_err(|trouble| match trouble {
        Trouble::Lost(error) => AgentError::Unreachable { socket, error },
        Trouble::Stopped(stopped) => AgentError::Stopped { socket, stopped },
    })
}

fn exchange(socket: &Path, request: &[u8], deadline: &Deadline) -> Result<Vec<u8>, Trouble> {
    let mut stream = connect(socket, deadline)?;
    stream.set_read_timeout(Some(TICK))?;
    stream.set_write_timeout(Some(TICK))?;
    let length = u32::try_from(request.len()).map_err(io::Error::other)?;
    let request = [&length.to_be_bytes()[..], request].concat();
    let mut sent = 0;
    while sent < request.len() {
        sent += step(stream.write(&request[sent..]), deadline)?;
    }
    let mut read = |bytes: &mut [u8]| -> Result<(), Trouble> {
        let mut heard = 0;
        while heard < bytes.len() {
            heard += step(stream.read(&mut bytes[heard..]), deadline)?;
        }
        Ok(())
    };
    let mut length = [0; 4];
    read(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > MAX_ANSWER {
        return Err(io::Error::other(format!("an answer of {length} bytes")).into());
    }
    let mut answer = vec![0; length as usize];
    read(&mut answer)?;
    Ok(answer)
}

/// A connection. An agent whose queue is full is tried again: to wait in the kernel
/// for it would have no end.
fn connect(socket: &Path, deadline: &Deadline) -> Result<UnixStream, Trouble> {
    let address = SocketAddrUnix::new(socket).map_err(io::Error::from)?;
    loop {
        let tick = deadline.tick()?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(io::Error::from)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(rustix::io::Errno::AGAIN) => std::thread::sleep(tick),
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
}

/// How many bytes went over, if the time is not up.
fn step(result: io::Result<usize>, deadline: &Deadline) -> Result<usize, Trouble> {
    deadline.left()?;
    match result {
        Ok(0) => Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
        Ok(count) => Ok(count),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(0),
            _ => Err(error.into()),
        },
    }
}

/// Reads SSH's wire format; nothing is read beyond the end.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], AgentError> {
        if count > self.0.len() {
            return Err(AgentError::Garbled);
        }
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, AgentError> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u32, AgentError> {
        let bytes = self.take(4)?;
        Ok(bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
    }

    fn string(&mut self) -> Result<&'a [u8], AgentError> {
        let length = self.number()?;
        self.take(length as usize)
    }
}
