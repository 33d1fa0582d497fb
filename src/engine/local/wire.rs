//! Messages and descriptors over the socket between the tool and the keeper.

use super::job::MAX_MESSAGE;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Read, Result, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The most descriptors that go with one message.
const MOST: usize = 4;

/// Sends descriptors, with a single byte to carry them.
pub fn send_descriptors(socket: impl AsFd, descriptors: &[BorrowedFd]) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Error::from(ErrorKind::InvalidInput));
    }
    sendmsg(
        socket,
        &[IoSlice::new(b".")],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives descriptors; they are closed on exec.
pub fn receive_descriptors(socket: impl AsFd) -> Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let got = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if got.bytes == 0 {
        return Err(Error::from(ErrorKind::UnexpectedEof));
    }
    let mut found = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            found.extend(descriptors);
        }
    }
    Ok(found)
}

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
    fn descriptors_and_messages_arrive() {
        let (here, there) = UnixStream::pair().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        send_descriptors(&here, &[reader.as_fd(), writer.as_fd()]).unwrap();
        send(&here, &vec!["a", "b"]).unwrap();
        let found = receive_descriptors(&there).unwrap();
        assert_eq!(found.len(), 2);
        drop(writer);
        std::fs::File::from(found[1].try_clone().unwrap())
            .write_all(b"through")
            .unwrap();
        drop(found);
        let mut text = String::new();
        std::io::BufReader::new(reader)
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "through");
        let words: Vec<String> = receive(&there).unwrap();
        assert_eq!(words, ["a", "b"]);
        drop(here);
        assert!(receive::<Vec<String>>(&there).is_err());
    }
}
