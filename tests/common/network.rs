//! A network namespace with an address of its own, which this host alone reaches.

use super::{need, run};
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The first of the addresses for tests of networks (RFC 2544): no public network routes
/// them, so nothing gets out even if the namespace is gone.
const FIRST: u32 = u32::from_be_bytes([198, 18, 0, 0]);

/// How many pairs of addresses there are.
const PAIRS: u32 = 1 << 15;

/// The namespace and the pair of interfaces that leads there; gone when dropped.
pub struct Network {
    name: String,
    near: String,
    far: Ipv4Addr,
}

impl Network {
    /// Makes it.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let own = std::process::id();
        // Other tests on this host may have namespaces of their own.
        let first = FIRST + 4 * (own.wrapping_mul(8).wrapping_add(count) % PAIRS);
        let network = Self {
            name: format!("tki-attest-test-{own}-{count}"),
            // The kernel takes 15 characters.
            near: format!("tki{own}n{count}"),
            far: Ipv4Addr::from(first + 2),
        };
        let (name, near) = (network.name.as_str(), network.near.as_str());
        let here = format!("{}/30", Ipv4Addr::from(first + 1));
        let there = format!("{}/30", network.far);
        ip(&["netns", "add", name]);
        ip(&[
            "link", "add", near, "type", "veth", "peer", "name", "far", "netns", name,
        ]);
        ip(&["address", "add", &here, "dev", near]);
        ip(&["link", "set", near, "up"]);
        ip(&["-n", name, "address", "add", &there, "dev", "far"]);
        ip(&["-n", name, "link", "set", "far", "up"]);
        ip(&["-n", name, "link", "set", "lo", "up"]);
        network
    }

    /// The address in it.
    pub fn address(&self) -> Ipv4Addr {
        self.far
    }

    /// The command that executes a program in it, in the process that was started.
    pub fn command(&self, program: &str) -> Command {
        // `ip netns exec` would mount a /sys without control groups.
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.name));
        command.arg(program);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = run(Command::new("ip").args(["link", "delete", &self.near]));
        let _ = run(Command::new("ip").args(["netns", "delete", &self.name]));
    }
}

#[track_caller]
fn ip(arguments: &[&str]) {
    let said = need("iproute2", Command::new("ip").args(arguments));
    assert_eq!(said.status, 0, "ip {arguments:?}: {said:?}");
}
