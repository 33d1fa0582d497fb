//! The network interface that a control must see: two virtual ends that lead to each
//! other and to nowhere else, with an address reserved for documentation and a route to
//! everywhere. It goes with its network namespace. Where the kernel would have to load a
//! module for the pair, which would stay, `lo` gets the address and the route. Here are the requests to the kernel, in netlink, and the
//! order in which they are made; the process in the namespace exchanges them.

use alloc::vec;
use alloc::vec::Vec;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
const NLMSG_ERROR: u16 = 2;

const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const CREATE_EXCLUSIVE: u16 = 0x400 | 0x200;

const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const RTA_OIF: u16 = 4;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFF_UP: u32 = 1;

const HEADER: usize = 16;
const EPROTO: i32 = 71;
const EOPNOTSUPP: i32 = 95;

/// The end that has the address.
pub const NEAR: &str = "tki0";
/// The other end.
pub const FAR: &str = "tki1";
/// What every network namespace has.
const LOOPBACK: &str = "lo";
/// The address, from a block that is reserved for documentation.
pub const ADDRESS: [u8; 4] = [192, 0, 2, 2];
const PREFIX: u8 = 24;

/// A request that was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was asked for.
    pub step: &'static str,
    /// Why not.
    pub errno: i32,
}

/// The module that makes pairs.
const MODULE: &str = "veth";

/// Whether a kernel would have to load a module for a pair: it can load any, which it tells
/// by a list of those that it has, and has not this one, built in or loaded. `modules` is
/// `/proc/modules`, and `is_known` whether /sys/module has a directory of that name.
pub fn loads_module(modules: Option<&str>, is_known: bool) -> bool {
    let is_veth = |line: &str| line.split_whitespace().next() == Some(MODULE);
    modules.is_some_and(|list| !is_known && !list.lines().any(is_veth))
}

/// Where /sys tells of that module.
pub const MODULE_FOLDER: &str = "/sys/module/veth";

/// Makes the pair, or, if it must not or cannot be made, makes do with `lo`. `exchange` sends
/// one request on a netlink socket of the network namespace, puts the kernel's answer into
/// the buffer and gives its length, or an errno.
pub fn make_way(
    loads_module: bool,
    mut exchange: impl FnMut(&[u8], &mut [u8]) -> Result<usize, i32>,
) -> Result<(), Refusal> {
    let mut ask = |step, request: Vec<u8>, read: fn(&[u8]) -> Result<u32, i32>| {
        let mut buffer = [0; 4096];
        exchange(&request, &mut buffer)
            .and_then(|length| read(buffer.get(..length).unwrap_or_default()))
            .map_err(|errno| Refusal { step, errno })
    };
    let made = match loads_module {
        true => Err(EOPNOTSUPP),
        false => match ask("make the pair", new_pair(), acknowledged) {
            Err(refusal) if refusal.errno != EOPNOTSUPP => return Err(refusal),
            made => made.map_err(|refusal| refusal.errno),
        },
    };
    let near = match made {
        Ok(_) => {
            ask("set the far end up", set_up(FAR), acknowledged)?;
            NEAR
        }
        Err(_) => LOOPBACK,
    };
    ask("set the near end up", set_up(near), acknowledged)?;
    let index = ask("look the near end up", look_up(near), index)?;
    ask("give it an address", new_address(index), acknowledged)?;
    ask("give it a route", new_route(index), acknowledged).map(drop)
}

/// struct nlmsghdr, and what follows it.
fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + payload.len()).unwrap_or(u32::MAX);
    let mut out = Vec::new();
    out.extend(length.to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend((REQUEST | flags).to_ne_bytes());
    out.extend(1u32.to_ne_bytes());
    out.extend(0u32.to_ne_bytes());
    out.extend(payload);
    out
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
    let flags = ACKNOWLEDGE | CREATE_EXCLUSIVE;
    message(RTM_NEWLINK, flags, &parts.concat())
}

fn set_up(name: &str) -> Vec<u8> {
    let parts = [link_header(IFF_UP, IFF_UP), name_attribute(name)];
    message(RTM_NEWLINK, ACKNOWLEDGE, &parts.concat())
}

fn look_up(name: &str) -> Vec<u8> {
    let parts = [link_header(0, 0), name_attribute(name)];
    message(RTM_GETLINK, 0, &parts.concat())
}

/// struct ifaddrmsg: family, prefix, flags, scope, index.
fn new_address(index: u32) -> Vec<u8> {
    const AF_INET: u8 = 2;
    let mut out = vec![AF_INET, PREFIX, 0, 0];
    out.extend(index.to_ne_bytes());
    out.extend(attribute(IFA_LOCAL, &ADDRESS));
    out.extend(attribute(IFA_ADDRESS, &ADDRESS));
    message(RTM_NEWADDR, ACKNOWLEDGE | CREATE_EXCLUSIVE, &out)
}

/// struct rtmsg: family, two prefixes, service, table, origin, scope, type, flags. To
/// everywhere, by this interface, and by nobody.
fn new_route(index: u32) -> Vec<u8> {
    const AF_INET: u8 = 2;
    const MAIN: u8 = 254;
    const STATIC: u8 = 4;
    const LINK: u8 = 253;
    const UNICAST: u8 = 1;
    let mut out = vec![AF_INET, 0, 0, 0, MAIN, STATIC, LINK, UNICAST];
    out.extend(0u32.to_ne_bytes());
    out.extend(attribute(RTA_OIF, &index.to_ne_bytes()));
    message(RTM_NEWROUTE, ACKNOWLEDGE | CREATE_EXCLUSIVE, &out)
}

/// Four bytes of an answer.
fn word(answer: &[u8], at: usize) -> Option<[u8; 4]> {
    answer.get(at..at + 4)?.try_into().ok()
}

/// The kind of an answer, which follows its length.
fn kind(answer: &[u8]) -> Option<u16> {
    word(answer, 4).map(|[low, high, ..]| u16::from_ne_bytes([low, high]))
}

/// An acknowledgement is an error of number 0.
fn acknowledged(answer: &[u8]) -> Result<u32, i32> {
    match (kind(answer), word(answer, HEADER)) {
        (Some(NLMSG_ERROR), Some(code)) => match i32::from_ne_bytes(code) {
            0 => Ok(0),
            code => Err(code
                .checked_neg()
                .filter(|code| *code > 0)
                .unwrap_or(EPROTO)),
        },
        _ => Err(EPROTO),
    }
}

/// The index in a link's struct ifinfomsg.
fn index(answer: &[u8]) -> Result<u32, i32> {
    match (kind(answer), word(answer, HEADER + 4)) {
        (Some(RTM_NEWLINK), Some(index)) => Ok(u32::from_ne_bytes(index)),
        // An error is no link, be it of number 0.
        _ => acknowledged(answer).and(Err(EPROTO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel says: an acknowledgement, or an error.
    fn error(errno: i32) -> Vec<u8> {
        message(NLMSG_ERROR, 0, &(-errno).to_ne_bytes())
    }

    /// A link with this index.
    fn link(index: u32) -> Vec<u8> {
        let payload = [&[0; 4][..], &index.to_ne_bytes(), &[0; 8]].concat();
        message(RTM_NEWLINK, 0, &payload)
    }

    /// Makes the pair with a kernel that gives these answers; what it was asked.
    fn with(answers: &[Vec<u8>]) -> (Result<(), Refusal>, Vec<Vec<u8>>) {
        with_module(false, answers)
    }

    fn with_module(loads_module: bool, answers: &[Vec<u8>]) -> (Result<(), Refusal>, Vec<Vec<u8>>) {
        let mut asked = Vec::new();
        let made = make_way(loads_module, |request, buffer| {
            let answer = answers.get(asked.len()).ok_or(11)?;
            asked.push(request.to_vec());
            buffer[..answer.len()].copy_from_slice(answer);
            Ok(answer.len())
        });
        (made, asked)
    }

    #[test]
    fn the_requests_are_these_bytes() {
        let fine = error(0);
        let answers = [&fine, &fine, &fine, &link(7), &fine, &fine].map(Clone::clone);
        let (made, asked) = with(&answers);
        assert_eq!(made, Ok(()));
        let hex = |bytes: &Vec<u8>| -> alloc::string::String {
            bytes
                .iter()
                .map(|byte| alloc::format!("{byte:02x}"))
                .collect()
        };
        let asked: Vec<_> = asked.iter().map(hex).collect();
        let head = |rest: &str| alloc::format!("{rest}0100000000000000");
        let nothing = "00".repeat(16);
        let name = |end: char| {
            alloc::format!(
                "09000300746b69{}00000000",
                if end == '0' { "30" } else { "31" }
            )
        };
        let up = alloc::format!("{}0100000001000000", "00".repeat(8));
        assert_eq!(
            asked,
            [
                // NEWLINK, REQUEST|ACK|CREATE|EXCL; tki0; LINKINFO{veth, DATA{PEER{tki1}}}.
                head("6000000010000506")
                    + &nothing
                    + &name('0')
                    + "34001200"
                    + "0900010076657468000000002400" // KIND, then the head of DATA
                    + "0200"
                    + "20000100"
                    + &nothing
                    + &name('1'),
                head("2c00000010000500") + &up + &name('1'),
                head("2c00000010000500") + &up + &name('0'),
                head("2c00000012000100") + &nothing + &name('0'),
                head("2800000014000506")
                    + "0218000007000000"
                    + "08000200c0000202"
                    + "08000100c0000202",
                head("2400000018000506") + "02000000fe04fd01" + "00000000" + "0800040007000000",
            ]
        );
    }

    /// Nothing is loaded for it, and a kernel that cannot make pairs is asked for none twice.
    #[test]
    fn without_a_pair_it_is_the_loopback_interface() {
        let fine = error(0);
        let rest = [&fine, &link(1), &fine, &fine].map(Clone::clone);
        let (made, asked) = with_module(true, &rest);
        assert_eq!((made, asked.len()), (Ok(()), 4));
        assert_eq!(asked[0], set_up("lo"));
        let refused = [&[error(EOPNOTSUPP)], &rest[..]].concat();
        let (made, asked_again) = with(&refused);
        assert_eq!(made, Ok(()));
        assert_eq!(asked_again[1..], asked);
    }

    #[test]
    fn a_module_is_loaded_if_it_could_be_and_is_not_there() {
        let list = "veth 45056 0 - Live 0x0\nloop 1 0 - Live 0x0\n";
        assert!(!loads_module(None, false));
        assert!(!loads_module(Some(list), false));
        assert!(!loads_module(Some(""), true));
        assert!(loads_module(Some(""), false));
        assert!(loads_module(Some("vethx 1 0 - Live 0x0\n"), false));
    }

    #[test]
    fn a_refusal_names_its_step_and_its_errno() {
        let fine = error(0);
        let refused = |answers: &[Vec<u8>]| with(answers).0.unwrap_err();
        for (answers, step, errno) in [
            (vec![error(1)], "make the pair", 1),
            (vec![fine.clone(), error(19)], "set the far end up", 19),
            (
                vec![fine.clone(), fine.clone(), fine.clone(), error(19)],
                "look the near end up",
                19,
            ),
            (
                vec![fine.clone(), fine.clone(), fine.clone(), fine.clone()],
                "look the near end up",
                EPROTO,
            ),
            (vec![], "make the pair", 11),
            (vec![Vec::new()], "make the pair", EPROTO),
            (vec![fine[..18].to_vec()], "make the pair", EPROTO),
            (vec![link(1)], "make the pair", EPROTO),
            (vec![error(i32::MIN + 1)], "make the pair", EPROTO),
        ] {
            assert_eq!(refused(&answers), Refusal { step, errno }, "{answers:?}");
        }
    }
}
