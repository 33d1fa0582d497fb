//! Messages over the socket between the tool and the keeper.

use super::job::MAX_MESSAGE;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;

/// A message as a line.
pub fn encode(message: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Sends a message.
pub fn send(mut socket: &UnixStream, message: &impl Serialize) -> Result<()> {
    socket.write_all(&encode(message)?)
}

/// Receives a message, which is a line.
pub fn receive<T: DeserializeOwned>(mut socket: &UnixStream) -> Result<T> {
    let mut line = Vec::new();
    let mut piece = [0; 4096];
    while line.last() != Some(&b'\n') {
        match socket.read(&mut piece)? {
            0 => return Err(Error::from(ErrorKind::UnexpectedEof)),
            count => line.extend_from_slice(&piece[..count]),
        }
        if line.len() as u64 > MAX_MESSAGE {
            return Err(Error::from(ErrorKind::InvalidData));
        }
    }
    Ok(serde_json::from_slice(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive() {
        let (here, there) = UnixStream::pair().unwrap();
        send(&here, &vec!["a", "b"]).unwrap();
        let words: Vec<String> = receive(&there).unwrap();
        assert_eq!(words, ["a", "b"]);
        drop(here);
        assert!(receive::<Vec<String>>(&there).is_err());
    }
}
