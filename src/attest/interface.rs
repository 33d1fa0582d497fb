//! A network interface inside a container's network namespace, for the control
//! that must see one: two virtual ends that lead to each other and to nowhere
//! else, with an address reserved for documentation. It goes with the
//! namespace. Spoken in netlink, because no other tool need be installed.

use crate::attest::first::First;
use crate::attest::visitor::{self, Errand};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const REQUEST_ACK: u16 = 1 | 4;
const CREATE_EXCLUSIVE: u16 = 0x400 | 0x200;

const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFF_UP: u32 = 1;

const NEAR: &str = "tki0";
const FAR: &str = "tki1";
const ADDRESS: [u8; 4] = [192, 0, 2, 2];
const PREFIX: u8 = 24;

/// Puts the pair into the network namespace of a container. Only a thread of its
/// own goes there, or a visitor; this one stays where it is.
pub fn add(first: &First) -> io::Result<()> {
    if visitor::is_needed() {
        return visitor::send(Errand::Interface, first).map(drop);
    }
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
    request(&socket, RTM_NEWLINK, CREATE_EXCLUSIVE, &new_pair())?;
    for name in [NEAR, FAR] {
        request(&socket, RTM_NEWLINK, 0, &set_up(name))?;
    }
    let index = name_to_index(&socket, NEAR)?;
    request(&socket, RTM_NEWADDR, CREATE_EXCLUSIVE, &new_address(index))
}

/// struct ifinfomsg: family, padding, type, index, flags, change.
fn link_header(flags: u32, change: u32) -> Vec<u8> {
    let mut out = vec![0u8; 8];
    out.extend(flags.to_ne_bytes());
    out.extend(change.to_ne_bytes());
    out
}

fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + payload.len()).unwrap_or(u16::MAX);
    let mut out = Vec::new();
    out.extend(length.to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(payload);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn name_attribute(name: &str) -> Vec<u8> {
    attribute(IFLA_IFNAME, &[name.as_bytes(), &[0]].concat())
}

fn new_pair() -> Vec<u8> {
    let far = [link_header(0, 0), name_attribute(FAR)].concat();
    let data = attribute(VETH_INFO_PEER, &far);
    let info = [attribute(INFO_KIND, b"veth\0"), attribute(INFO_DATA, &data)].concat();
    let parts = [
        link_header(0, 0),
        name_attribute(NEAR),
        attribute(IFLA_LINKINFO, &info),
    ];
    parts.concat()
}

fn set_up(name: &str) -> Vec<u8> {
    [link_header(IFF_UP, IFF_UP), name_attribute(name)].concat()
}

/// struct ifaddrmsg: family, prefix, flags, scope, index.
fn new_address(index: u32) -> Vec<u8> {
    const AF_INET: u8 = 2;
    let mut out = vec![AF_INET, PREFIX, 0, 0];
    out.extend(index.to_ne_bytes());
    out.extend(attribute(IFA_LOCAL, &ADDRESS));
    out.extend(attribute(IFA_ADDRESS, &ADDRESS));
    out
}

/// Sends a request to the kernel and reads its acknowledgement.
fn request(socket: &OwnedFd, kind: u16, flags: u16, payload: &[u8]) -> io::Result<()> {
    const HEADER: usize = 16;
    const NLMSG_ERROR: u16 = 2;
    let length = u32::try_from(HEADER + payload.len()).map_err(io::Error::other)?;
    let mut message = Vec::new();
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((REQUEST_ACK | flags).to_ne_bytes());
    message.extend(1u32.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend(payload);
    send(socket, &message, SendFlags::empty())?;
    let mut answer = [0u8; 4096];
    let (count, _) = recv(socket, &mut answer[..], RecvFlags::empty())?;
    let kind = answer.get(4..6).map(|b| u16::from_ne_bytes([b[0], b[1]]));
    match (kind, answer.get(HEADER..HEADER + 4)) {
        (Some(NLMSG_ERROR), Some(code)) if count >= HEADER + 4 => {
            match i32::from_ne_bytes([code[0], code[1], code[2], code[3]]) {
                0 => Ok(()),
                code => Err(io::Error::from_raw_os_error(-code)),
            }
        }
        _ => Err(io::Error::other("the kernel did not acknowledge")),
    }
}
