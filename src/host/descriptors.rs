//! Descriptors over a socket.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The most descriptors that go with one message.
const MOST: usize = 4;

/// Sends descriptors, with a single byte to carry them.
pub fn send(socket: impl AsFd, descriptors: &[BorrowedFd]) -> Result<()> {
    send_with(socket, b".", descriptors)
}

/// Sends descriptors with these bytes. Allocates nothing.
pub fn send_with(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd]) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Error::from(ErrorKind::InvalidInput));
    }
    sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives descriptors, which are closed on exec, and up to so many bytes that
/// carry them.
pub fn receive(socket: impl AsFd, bytes: usize) -> Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut carried = vec![0; bytes];
    let got = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut carried)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if got.bytes == 0 {
        return Err(Error::from(ErrorKind::UnexpectedEof));
    }
    carried.truncate(got.bytes);
    let mut found = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            found.extend(descriptors);
        }
    }
    Ok((carried, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn descriptors_arrive() {
        let (here, there) = UnixStream::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        send(&here, &[reader.as_fd(), writer.as_fd()]).unwrap();
        let (bytes, found) = receive(&there, 1).unwrap();
        assert_eq!((bytes.as_slice(), found.len()), (b".".as_slice(), 2));
        drop(writer);
        std::fs::File::from(found[1].try_clone().unwrap())
            .write_all(b"through")
            .unwrap();
        drop(found);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        drop(here);
        assert!(receive(&there, 1).is_err());
    }
}
