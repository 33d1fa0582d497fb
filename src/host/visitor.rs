//! The visitor: this tool, executed again as a process with one thread, because
//! no other may enter a user namespace. Where the engine is a user's own, that
//! user owns the container's user namespace, and has there what root has on the
//! host: it may look at the container's descriptors.

use crate::host::first::{First, Input};
use crate::host::proc;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsFd;
use std::process::{Command, ExitCode};

/// The first argument that makes this tool a visitor. Not for people.
pub const ARGUMENT: &str = "internal-visitor";

/// How a visitor ends that has no right to do its errand.
const NO_RIGHT: u8 = 4;

/// Whether a visitor can do more than this process: root needs none.
pub fn is_needed() -> bool {
    !rustix::process::geteuid().is_root()
}

/// Sends a visitor to the container with this first process; gives which descriptors that
/// holds. It gets the process as it is held, so that it cannot come to another one's. Its error is
/// `PermissionDenied` if it had no right to go there or to look: the engine is root's.
pub fn send(first: &First) -> Result<String> {
    let output = Command::new("/proc/self/exe")
        .arg(ARGUMENT)
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
    let arguments: Vec<String> = std::env::args().skip(2).take(3).collect();
    let [pid, input] = arguments.as_slice() else {
        return ExitCode::from(2);
    };
    let (Ok(pid), Some(input)) = (pid.parse(), Input::parse(input)) else {
        return ExitCode::from(2);
    };
    match visit(pid, input) {
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

fn visit(pid: i32, input: Input) -> Result<String> {
    let first = First::handed(pid, rustix::stdio::stdin(), input)?;
    let user = first.namespace("user")?;
    move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
    // From here on this process may look.
    first.has_our_input()?;
    proc::descriptors(&first.folder())
}
