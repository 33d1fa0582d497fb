//! A key that ssh-agent holds: two messages of its protocol, over the socket in
//! `SSH_AUTH_SOCK`.

use ssh_key::PublicKey;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;

/// The largest answer that is read, in bytes; as in OpenSSH.
const MAX_ANSWER: u32 = 256 * 1024;

/// How long an agent may think. It may have to ask a person.
const PATIENCE: Duration = Duration::from_secs(120);

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

/// Whether the agent holds the private half.
pub fn holds(public: &PublicKey) -> Result<(), AgentError> {
    let wanted = public.to_bytes().map_err(|_| AgentError::Garbled)?;
    let answer = ask(&[REQUEST_IDENTITIES])?;
    let mut answer = Reader(&answer);
    if answer.byte()? != IDENTITIES_ANSWER {
        return Err(AgentError::Garbled);
    }
    for _ in 0..answer.number()? {
        let blob = answer.string()?;
        answer.string()?;
        if blob == wanted {
            return Ok(());
        }
    }
    Err(AgentError::Unknown)
}

/// Has the agent sign bytes: a plain Ed25519 signature over them.
pub fn sign(public: &PublicKey, message: &[u8]) -> Result<Vec<u8>, AgentError> {
    let blob = public.to_bytes().map_err(|_| AgentError::Garbled)?;
    let mut request = vec![SIGN_REQUEST];
    for part in [&blob[..], message] {
        let length = u32::try_from(part.len()).map_err(|_| AgentError::Garbled)?;
        request.extend(length.to_be_bytes());
        request.extend(part);
    }
    request.extend([0; 4]);
    let answer = ask(&request)?;
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

fn ask(request: &[u8]) -> Result<Vec<u8>, AgentError> {
    let socket = std::env::var_os("SSH_AUTH_SOCK").filter(|socket| !socket.is_empty());
    let socket = socket.ok_or(AgentError::None)?;
    let unreachable = |error| AgentError::Unreachable {
        socket: socket.to_string_lossy().into_owned(),
        error,
    };
    let exchange = || -> io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(&socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let length = u32::try_from(request.len()).map_err(io::Error::other)?;
        stream.write_all(&length.to_be_bytes())?;
        stream.write_all(request)?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length);
        if length > MAX_ANSWER {
            return Err(io::Error::other(format!("an answer of {length} bytes")));
        }
        let mut answer = vec![0; length as usize];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    };
    exchange().map_err(unreachable)
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
