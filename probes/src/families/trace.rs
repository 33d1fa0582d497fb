//! Tracing another process and reading its memory. The other process is always
//! a fork of the probe itself, so that nothing else is disturbed if it works.

use super::{Context, Operation};
use crate::outcome::Outcome;
use crate::sys::{self, Ended, Errno, Result};

/// PR-PTRACE-1.
pub const TRACING: &[Operation] = &[
    ("ptrace(PTRACE_TRACEME)", trace_me),
    ("ptrace(PTRACE_ATTACH)", |_| {
        with_sleeper(sys::ptrace_attach)
    }),
    ("process_vm_readv", |_| {
        with_sleeper(|pid| sys::process_vm_readv(pid, &mut [0; 8]))
    }),
];

/// Should it work, the process is a tracee from then on, and would stop at its
/// next signal: so it is a fork that ends at once and tells by its status.
fn trace_me(_: &Context) -> Outcome {
    let pid = match sys::fork() {
        Err(errno) => return Outcome::not_reached("fork", errno),
        Ok(None) => sys::exit(sys::ptrace_traceme().err().map_or(0, |errno| errno.0)),
        Ok(Some(pid)) => pid,
    };
    match sys::wait(pid) {
        Err(errno) => Outcome::not_reached("wait", errno),
        Ok(Ended::Exit(0)) => Outcome::attempt(Ok(0), &[]),
        Ok(Ended::Exit(errno)) => Outcome::attempt(Err::<i64, _>(Errno(errno)), &[]),
        Ok(Ended::Signal(number)) => Outcome::signal(number),
    }
}

fn with_sleeper(attempt: impl Fn(i32) -> Result) -> Outcome {
    match sys::fork() {
        Err(errno) => Outcome::not_reached("fork", errno),
        Ok(None) => {
            let _ = sys::poll(&mut [], 10_000);
            sys::exit(0)
        }
        Ok(Some(pid)) => {
            let result = attempt(pid);
            if let Err(errno) = sys::kill(pid) {
                return Outcome::not_reached("kill", errno);
            }
            let _ = sys::wait(pid);
            Outcome::attempt(result, &[])
        }
    }
}
