//! Hands in other processes.

use super::{Result, nr};
use tki_inside::call;

/// Becomes a tracee of the parent.
pub fn ptrace_traceme() -> Result {
    call!(nr::PTRACE, 0, 0, 0, 0)
}

/// Attaches to another process.
pub fn ptrace_attach(pid: i32) -> Result {
    const PTRACE_ATTACH: usize = 16;
    call!(nr::PTRACE, PTRACE_ATTACH, pid as usize, 0, 0)
}

/// Reads another process's memory at the address of our own buffer, which is
/// valid there too if the process is a fork of this one.
pub fn process_vm_readv(pid: i32, buffer: &mut [u8]) -> Result {
    let area = [buffer.as_mut_ptr() as usize, buffer.len()];
    call!(
        nr::PROCESS_VM_READV,
        pid as usize,
        area.as_ptr() as usize,
        1,
        area.as_ptr() as usize,
        1,
        0
    )
}
