//! The visitor: this tool, executed again as a process with one thread, because
//! no other may enter a user namespace. Where the engine is a user's own, that
//! user owns the container's user namespace, and has there what root has on the
//! host: it may look at the container's descriptors, and put an interface into its
//! network namespace.

use crate::attest::{interface, outside};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// The first argument that makes this tool a visitor. Not for people.
pub const ARGUMENT: &str = "internal-visitor";

/// What a visitor is sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// Put two ends of an interface into the container's network namespace.
    Interface,
    /// Read which descriptors the container's first process holds.
    Descriptors,
}

const ERRANDS: [(&str, Errand); 2] = [
    ("interface", Errand::Interface),
    ("descriptors", Errand::Descriptors),
];

/// Whether a visitor can do more than this process: root needs none.
pub fn is_needed() -> bool {
    !rustix::process::geteuid().is_root()
}

/// Sends a visitor to the container with this first process; gives what it read.
pub fn send(errand: Errand, pid: i32) -> Result<String> {
    let name = ERRANDS.iter().find(|(_, known)| *known == errand);
    let name = name.map_or("", |(name, _)| *name);
    let output = Command::new("/proc/self/exe")
        .args([ARGUMENT, name, &pid.to_string()])
        .stdin(Stdio::null())
        .output()?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(said(&output.stdout))
    } else {
        Err(Error::other(said(&output.stderr)))
    }
}

/// The visitor's whole life.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(2).take(3).collect();
    let [name, pid] = arguments.as_slice() else {
        return ExitCode::from(2);
    };
    let errand = ERRANDS.iter().find(|(known, _)| known == name);
    let (Some((_, errand)), Ok(pid)) = (errand, pid.parse::<u32>()) else {
        return ExitCode::from(2);
    };
    match visit(*errand, pid) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}

fn visit(errand: Errand, pid: u32) -> Result<String> {
    let process = Path::new("/proc").join(pid.to_string());
    let user = File::open(process.join("ns/user"))?;
    let network = File::open(process.join("ns/net"))?;
    move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
    match errand {
        Errand::Interface => {
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            interface::make().map(|()| String::new())
        }
        Errand::Descriptors => outside::descriptors(&process).map_err(Error::other),
    }
}
