//! Tracing another process and reading its memory. The other process is always
//! a fork of the probe itself, so that nothing else is disturbed if it works.

use super::{Context, Operation};
use crate::outcome::Outcome;
use crate::sys::{self, Result};

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

/// Should it work, this process is a tracee from here on: it makes no signal
/// and ends, so it never stops.
fn trace_me(_: &Context) -> Outcome {
    Outcome::attempt(sys::ptrace_traceme(), &[])
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
