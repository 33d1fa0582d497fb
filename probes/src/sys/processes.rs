//! Children, signals, threads, and what the two ends of a pipe say.

use super::{CLOEXEC, Errno, Result, nr};
use core::arch::asm;
use tki_inside::call;

/// Takes the limit of this process's core dumps to nothing.
pub fn lower_core_limit() -> Result {
    const RLIMIT_CORE: usize = 4;
    let nothing = [0u64; 2];
    call!(nr::PRLIMIT64, 0, RLIMIT_CORE, nothing.as_ptr() as usize, 0)
}

/// Asks whether any other process but the first could be sent a signal. None is.
pub fn signal_nothing_to_all() -> Result {
    const ALL: usize = usize::MAX;
    call!(nr::KILL, ALL, 0)
}

/// Starts a thread that waits until this process ends, and does nothing else.
pub fn start_idle_thread() -> Result<()> {
    /// Memory, file system, files, signal handlers, process, System V semaphores.
    const A_THREAD: usize = 0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000 | 0x4_0000;
    let result: isize;
    // SAFETY: the new thread shares this one's stack pointer and never uses it: until the
    // process ends it makes one system call, with numbers for arguments, and should that
    // ever return, ends itself. Registers that it changes are its own.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov eax, {wait}",
            "xor edi, edi",
            "xor esi, esi",
            "xor edx, edx",
            "xor r10d, r10d",
            "mov r8d, 8",
            "syscall",
            "mov eax, {exit}",
            "xor edi, edi",
            "syscall",
            "2:",
            wait = const nr::PPOLL,
            exit = const nr::EXIT,
            inlateout("rax") nr::CLONE => result,
            in("rdi") A_THREAD, in("rsi") 0, in("rdx") 0, in("r10") 0, in("r8") 0,
            lateout("rcx") _, lateout("r11") _, options(nostack),
        );
    }
    match result {
        0.. => Ok(()),
        errno => Err(Errno(-errno as i32)),
    }
}

/// A pipe: the end to read from and the end to write to.
pub fn pipe() -> Result<(i32, i32)> {
    let mut ends = [0i32; 2];
    call!(nr::PIPE2, ends.as_mut_ptr() as usize, CLOEXEC)?;
    Ok((ends[0], ends[1]))
}

/// A descriptor to wait for, and what happened to it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PollFd {
    /// The descriptor.
    pub fd: i32,
    /// What to wait for.
    pub events: i16,
    /// What happened.
    pub revents: i16,
}

/// There is something to read.
pub const POLLIN: i16 = 1;

/// Waits for descriptors, at most this long.
pub fn poll(fds: &mut [PollFd], milliseconds: u64) -> Result {
    let timeout = [milliseconds / 1000, milliseconds % 1000 * 1_000_000];
    call!(
        nr::PPOLL,
        fds.as_mut_ptr() as usize,
        fds.len(),
        timeout.as_ptr() as usize
    )
}

/// Makes a copy of this process. The copy sees `None`; it dies with its parent.
pub fn fork() -> Result<Option<i32>> {
    const SIGCHLD: usize = 17;
    const PR_SET_PDEATHSIG: usize = 1;
    const SIGKILL: usize = 9;
    match call!(nr::CLONE, SIGCHLD)? {
        0 => {
            let _ = call!(nr::PRCTL, PR_SET_PDEATHSIG, SIGKILL);
            Ok(None)
        }
        pid => Ok(Some(pid as i32)),
    }
}

/// Whatever ends this process leaves no core dump. A limit of 0 does not stop a handler
/// that the host has for them.
pub fn leave_no_core() {
    const PR_SET_DUMPABLE: usize = 4;
    let _ = call!(nr::PRCTL, PR_SET_DUMPABLE, 0);
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

/// Waits for a child to end.
pub fn wait(pid: i32) -> Result<Ended> {
    loop {
        let mut status = 0i32;
        match call!(nr::WAIT4, pid as usize, &raw mut status as usize, 0, 0) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
            Ok(_) if status & 0x7f == 0 => return Ok(Ended::Exit((status >> 8) & 0xff)),
            // A stopped child is one that became a tracee: it has not ended.
            Ok(_) if status & 0xff == 0x7f => kill(pid)?,
            Ok(_) => return Ok(Ended::Signal(status & 0x7f)),
        }
    }
}

/// Waits for a child to end; gives the CPU time that it used, in microseconds.
pub fn wait_for_usage(pid: i32) -> Result<u64> {
    // struct rusage begins with two pairs of seconds and microseconds.
    let mut usage = [0u64; 18];
    loop {
        match call!(nr::WAIT4, pid as usize, 0, 0, usage.as_mut_ptr() as usize) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
            Ok(_) => return Ok((usage[0] + usage[2]) * 1_000_000 + usage[1] + usage[3]),
        }
    }
}

/// Kills a child of ours.
pub fn kill(pid: i32) -> Result<()> {
    const SIGKILL: usize = 9;
    if pid <= 1 {
        return Err(Errno::EINVAL);
    }
    call!(nr::KILL, pid as usize, SIGKILL).map(|_| ())
}
