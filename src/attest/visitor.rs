//! The visitor: this tool, executed again as a process with one thread, because
//! no other may enter a user namespace. Where the engine is a user's own, that
//! user owns the container's user namespace, and has there what root has on the
//! host: it may look at the container's descriptors, and put an interface into its
//! network namespace.

use crate::attest::first::{First, Input};
use crate::attest::{interface, outside};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsFd;
use std::process::{Command, ExitCode};

/// The first argument that makes this tool a visitor. Not for people.
pub const ARGUMENT: &str = "internal-visitor";

/// How a visitor ends that has no right to do its errand.
const NO_RIGHT: u8 = 4;

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

/// Sends a visitor to the container with this first process; gives what it read. It gets
/// the process as it is held, so that it cannot come to another one's. Its error is
/// `PermissionDenied` if it had no right to go there or to look: the engine is root's.
pub fn send(errand: Errand, first: &First) -> Result<String> {
    let name = ERRANDS.iter().find(|(_, known)| *known == errand);
    let name = name.map_or("", |(name, _)| *name);
    let output = Command::new("/proc/self/exe")
        .args([ARGUMENT, name])
        .args([first.pid().to_string(), first.input.to_string()])
        .stdin(first.as_fd().try_clone_to_owned()?)
        .output()?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.code() {
        Some(0) => Ok(said(&output.stdout)),
        Some(code) if code == i32::from(NO_RIGHT) => Err(Error::new(
            ErrorKind::PermissionDenied,
            said(&output.stderr),
        )),
        _ => Err(Error::other(said(&output.stderr))),
    }
}

/// The visitor's whole life.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(2).take(4).collect();
    let [name, pid, input] = arguments.as_slice() else {
        return ExitCode::from(2);
    };
    let errand = ERRANDS.iter().find(|(known, _)| known == name);
    let (Some((_, errand)), Ok(pid)) = (errand, pid.parse()) else {
        return ExitCode::from(2);
    };
    let Some(input) = Input::parse(input) else {
        return ExitCode::from(2);
    };
    match visit(*errand, pid, input) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            match error.kind() {
                ErrorKind::PermissionDenied => ExitCode::from(NO_RIGHT),
                _ => ExitCode::from(3),
            }
        }
    }
}

fn visit(errand: Errand, pid: i32, input: Input) -> Result<String> {
    let first = First::handed(pid, rustix::stdio::stdin(), input)?;
    let user = first.namespace("user")?;
    let network = first.network();
    move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
    // From here on this process may look.
    first.has_our_input()?;
    match errand {
        Errand::Interface => {
            let network = network?;
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            interface::make().map(|()| String::new())
        }
        Errand::Descriptors => outside::descriptors(&first.folder()),
    }
}
