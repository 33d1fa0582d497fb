//! Brings `lo` up in a container's network namespace, as every engine does: a
//! namespace in which it is down has not even an empty route table to read.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{AsFd, AsRawFd};

/// In the network namespace of this process. Only a thread goes there.
pub fn bring_up(pid: i32) -> Result<()> {
    let namespace = File::open(format!("/proc/{pid}/ns/net"))?;
    let thread = std::thread::spawn(move || -> Result<()> {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        let socket = socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        // SAFETY: a structure of plain numbers, for which zero is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        // SAFETY: the kernel reads one ifreq.
        let done =
            unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
        if done == 0 {
            Ok(())
        } else {
            Err(Error::last_os_error())
        }
    });
    thread
        .join()
        .unwrap_or_else(|_| Err(Error::other("the thread panicked")))
}
