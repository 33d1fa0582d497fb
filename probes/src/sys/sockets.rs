//! Sockets that are made and connected; nothing is ever sent.

use super::{CLOEXEC, Result, nr};
use alloc::vec::Vec;
use tki_inside::call;

/// Makes a socket.
pub fn socket(family: usize, kind: usize, protocol: usize) -> Result<i32> {
    call!(nr::SOCKET, family, kind | CLOEXEC, protocol).map(|fd| fd as i32)
}

/// Connects a socket. For a datagram socket the kernel only looks for a route.
pub fn connect(fd: i32, address: &[u8]) -> Result {
    call!(
        nr::CONNECT,
        fd as usize,
        address.as_ptr() as usize,
        address.len()
    )
}

/// The address of a unix socket that has a name and no file: family, a NUL, the name.
pub fn abstract_address(name: &str) -> Vec<u8> {
    const AF_UNIX: u16 = 1;
    let mut address = AF_UNIX.to_ne_bytes().to_vec();
    address.push(0);
    address.extend_from_slice(name.as_bytes());
    address
}

/// Gives a socket an address of its own.
pub fn bind(fd: i32, address: &[u8]) -> Result {
    call!(
        nr::BIND,
        fd as usize,
        address.as_ptr() as usize,
        address.len()
    )
}
