//! Sockets and routes. Nothing is ever sent: connecting a datagram socket is a
//! route lookup, and the addresses are reserved for documentation.

use super::{Operation, abi};
use crate::outcome::Outcome;
use crate::sys::{self, Errno};
use core::ffi::CStr;
use tki_evidence::facts;
use tki_inside::io;

const AF_UNIX: usize = 1;
const AF_INET: usize = 2;
const AF_INET6: usize = 10;
const AF_NETLINK: usize = 16;
const AF_PACKET: usize = 17;
const AF_ALG: usize = 38;
const AF_VSOCK: usize = 40;

const STREAM: usize = 1;
const DGRAM: usize = 2;
const RAW: usize = 3;
const SEQPACKET: usize = 5;

const IPPROTO_ICMP: usize = 1;
const IPPROTO_ICMPV6: usize = 58;

fn socket(family: usize, kind: usize, protocol: usize) -> Outcome {
    let result = sys::socket(family, kind, protocol);
    if let Ok(fd) = result {
        sys::close(fd);
    }
    Outcome::attempt(result, &[])
}

/// PR-NET-1.
pub const INTERNET_SOCKETS: &[Operation] = &[
    ("socket(AF_INET, SOCK_STREAM)", |_| {
        socket(AF_INET, STREAM, 0)
    }),
    ("socket(AF_INET, SOCK_DGRAM)", |_| socket(AF_INET, DGRAM, 0)),
    ("socket(AF_INET6, SOCK_STREAM)", |_| {
        socket(AF_INET6, STREAM, 0)
    }),
    ("socket(AF_INET6, SOCK_DGRAM)", |_| {
        socket(AF_INET6, DGRAM, 0)
    }),
];

/// PR-SOCK-1.
pub const OTHER_SOCKETS: &[Operation] = &[
    ("socket(AF_UNIX, SOCK_STREAM)", |_| {
        socket(AF_UNIX, STREAM, 0)
    }),
    ("socket(AF_NETLINK, SOCK_RAW)", |_| {
        socket(AF_NETLINK, RAW, 0)
    }),
    ("socket(AF_PACKET, SOCK_RAW)", |_| {
        without_module("PACKET", AF_PACKET, RAW, 0)
    }),
    ("socket(AF_VSOCK, SOCK_STREAM)", |_| {
        without_module("AF_VSOCK", AF_VSOCK, STREAM, 0)
    }),
    ("socket(AF_ALG, SOCK_SEQPACKET)", |_| {
        without_module("ALG", AF_ALG, SEQPACKET, 0)
    }),
    ("socket(AF_INET, SOCK_RAW)", |_| {
        socket(AF_INET, RAW, IPPROTO_ICMP)
    }),
    ("socket(AF_INET6, SOCK_RAW)", |_| {
        socket(AF_INET6, RAW, IPPROTO_ICMPV6)
    }),
];

/// The kernel refuses this type before it looks for the family's module, so that nothing is
/// loaded by asking. It has eleven types.
const NO_TYPE: usize = 15;

/// XP-FAMILIES.
pub const FAMILIES: &[Operation] = &[
    ("socket(0..63, 15)", |_| {
        abi::all_answers(64, &[], |family| {
            sys::socket(family as usize, NO_TYPE, 0).map(|fd| fd as usize)
        })
    }),
    ("socket(AF_NETLINK, 15, 0..31)", |_| {
        abi::all_answers(32, &[], |protocol| {
            sys::socket(AF_NETLINK, NO_TYPE, protocol as usize).map(|fd| fd as usize)
        })
    }),
];

/// A socket of a family that may be a module: one that succeeds would load it, and it would
/// stay. So it is tried with a type that does not exist, which shows a filter that looks at
/// the family alone; with the real one only where that was refused and the kernel has the
/// family already, because a filter may look at the type as well.
fn without_module(name: &str, family: usize, kind: usize, protocol: usize) -> Outcome {
    let asked = sys::socket(family, NO_TYPE, protocol);
    match asked {
        Err(Errno::EPERM | Errno::EACCES | Errno::EAFNOSUPPORT) if has_protocol(name) => {
            socket(family, kind, protocol)
        }
        Err(Errno::EPERM | Errno::EACCES | Errno::EAFNOSUPPORT) => Outcome::attempt(asked, &[]),
        // It came as far as the kernel.
        Err(errno) => Outcome::attempt(asked, &[errno]),
        Ok(fd) => {
            sys::close(fd);
            Outcome::attempt(asked, &[])
        }
    }
}

/// The kernel has this protocol, built in or as a module that is loaded.
fn has_protocol(name: &str) -> bool {
    let table = io::read_text(c"/proc/net/protocols").unwrap_or_default();
    let mut rows = table.lines().skip(1);
    rows.any(|row| row.split_whitespace().next() == Some(name))
}

/// PR-NET-2.
pub const ROUTES: &[Operation] = &[
    ("connect(192.0.2.1:53/udp)", |_| {
        look_up_ipv4([192, 0, 2, 1])
    }),
    ("connect([2001:db8::1]:53/udp)", |_| {
        look_up_ipv6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])
    }),
    ("interfaces", |_| {
        table(c"/proc/net/dev", |text| facts::interfaces(text).join(","))
    }),
    ("routes-ipv4", |_| {
        table(c"/proc/net/route", |text| {
            facts::ipv4_routes(text).join(",")
        })
    }),
    ("routes-ipv6", |_| {
        table(c"/proc/net/ipv6_route", |text| {
            facts::ipv6_routes(text).join(",")
        })
    }),
];

/// XP-REACH: where clouds and engines answer. The metadata services of most clouds, that of
/// tasks on AWS, of Azure's hosts, Alibaba's and Oracle's; Docker Desktop's host, twice; the
/// bridge that Docker makes by itself; AWS once more, by IPv6; and the gateway.
pub const REACH: &[Operation] = &[
    ("connect(169.254.169.254/udp)", |_| {
        look_up_ipv4([169, 254, 169, 254])
    }),
    ("connect(169.254.170.2/udp)", |_| {
        look_up_ipv4([169, 254, 170, 2])
    }),
    ("connect(168.63.129.16/udp)", |_| {
        look_up_ipv4([168, 63, 129, 16])
    }),
    ("connect(100.100.100.200/udp)", |_| {
        look_up_ipv4([100, 100, 100, 200])
    }),
    ("connect(192.0.0.192/udp)", |_| {
        look_up_ipv4([192, 0, 0, 192])
    }),
    ("connect(192.168.65.7/udp)", |_| {
        look_up_ipv4([192, 168, 65, 7])
    }),
    ("connect(192.168.65.254/udp)", |_| {
        look_up_ipv4([192, 168, 65, 254])
    }),
    ("connect(172.17.0.1/udp)", |_| look_up_ipv4([172, 17, 0, 1])),
    ("connect([fd00:ec2::254]/udp)", |_| {
        look_up_ipv6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254])
    }),
    ("connect(gateway/udp)", |_| look_up_ipv4(gateway())),
];

/// The gateway; where there is none, an address that only one would lead to.
fn gateway() -> [u8; 4] {
    let table = io::read_text(c"/proc/net/route").unwrap_or_default();
    facts::ipv4_gateway(&table).unwrap_or([10, 0, 0, 1])
}

fn look_up_ipv4(host: [u8; 4]) -> Outcome {
    // struct sockaddr_in: family, port, address, padding.
    let mut address = [0u8; 16];
    address[..2].copy_from_slice(&(AF_INET as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&53u16.to_be_bytes());
    address[4..8].copy_from_slice(&host);
    look_up_route(AF_INET, &address)
}

fn look_up_ipv6(host: [u16; 8]) -> Outcome {
    // struct sockaddr_in6: family, port, flow, address, scope.
    let mut address = [0u8; 28];
    address[..2].copy_from_slice(&(AF_INET6 as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&53u16.to_be_bytes());
    for (place, part) in host.into_iter().enumerate() {
        address[8 + 2 * place..10 + 2 * place].copy_from_slice(&part.to_be_bytes());
    }
    look_up_route(AF_INET6, &address)
}

/// Connects to a socket that has a name and no file, if there is one.
pub fn connect_abstract(name: &str) -> Outcome {
    /// A socket has that name, with a socket of another type.
    const EPROTOTYPE: Errno = Errno(91);
    let fd = match sys::socket(AF_UNIX, STREAM, 0) {
        Err(errno) => return Outcome::denied_at("socket", errno),
        Ok(fd) => fd,
    };
    let result = sys::connect(fd, &sys::abstract_address(name));
    sys::close(fd);
    Outcome::attempt(result, &[EPROTOTYPE])
}

fn look_up_route(family: usize, address: &[u8]) -> Outcome {
    match sys::socket(family, DGRAM, 0) {
        Err(errno) => Outcome::denied_at("socket", errno),
        Ok(fd) => {
            let result = sys::connect(fd, address);
            sys::close(fd);
            Outcome::attempt(result, &[])
        }
    }
}

fn table(path: &CStr, read: fn(&str) -> alloc::string::String) -> Outcome {
    match io::read_text(path) {
        Ok(text) => Outcome::fact(read(&text)),
        Err(errno) => Outcome::unreadable(errno),
    }
}
