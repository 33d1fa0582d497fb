//! A network interface inside a container's network namespace, for the control
//! that must see one, put there from the host. What it is, and the requests that make
//! it, is in `tki_evidence::netlink`.

use crate::host::first::First;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use tki_evidence::netlink;

/// Puts the pair into the network namespace of a container. Only a thread of its
/// own goes there; this one stays where it is.
pub fn add(first: &First) -> io::Result<()> {
    add_to(first.network()?)
}

/// Puts the pair into a network namespace.
pub fn add_to(namespace: File) -> io::Result<()> {
    let made = std::thread::spawn(move || -> io::Result<()> {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        make()
    });
    made.join()
        .unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
}

/// Makes the pair in the network namespace that this thread is in.
pub fn make() -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let modules = std::fs::read_to_string("/proc/modules").ok();
    let is_known = Path::new(netlink::MODULE_FOLDER).exists();
    let loads_module = netlink::loads_module(modules.as_deref(), is_known);
    let made = netlink::make_way(loads_module, |request, answer| {
        let exchange = || {
            send(&socket, request, SendFlags::empty())?;
            recv(&socket, answer, RecvFlags::empty())
        };
        let (count, _) = exchange().map_err(Errno::raw_os_error)?;
        Ok(count)
    });
    made.map_err(|refusal| io::Error::from_raw_os_error(refusal.errno))
}
