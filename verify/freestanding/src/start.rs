//! The entry point, the three system calls, and what happens on a panic.

use crate::report::report;
use alloc::format;
use alloc::vec::Vec;
use core::arch::{asm, global_asm};

global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "and rsp, -16",
    "call {entry}",
    "ud2",
    entry = sym entry,
);

const READ: usize = 0;
const WRITE: usize = 1;
const EXIT_GROUP: usize = 231;

extern "C" fn entry() -> ! {
    let mut input = Vec::new();
    let mut piece = [0; 4096];
    loop {
        // SAFETY: the kernel writes into the piece and not beyond it.
        let read = unsafe { call(READ, 0, piece.as_mut_ptr() as usize, piece.len()) };
        match usize::try_from(read) {
            Ok(0) => break,
            Ok(read) => input.extend_from_slice(&piece[..read]),
            Err(_) => exit(2),
        }
    }
    write(1, report(&input).as_bytes());
    exit(0)
}

fn write(to: usize, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the kernel only reads these bytes.
        let written = unsafe { call(WRITE, to, bytes.as_ptr() as usize, bytes.len()) };
        match usize::try_from(written) {
            Ok(written) => bytes = &bytes[written..],
            Err(_) => exit(2),
        }
    }
}

fn exit(status: usize) -> ! {
    loop {
        // SAFETY: it ends the process and touches no memory.
        unsafe { call(EXIT_GROUP, status, 0, 0) };
    }
}

/// One system call.
///
/// # Safety
///
/// The arguments must be what the call expects: memory that it may read or write.
unsafe fn call(number: usize, first: usize, second: usize, third: usize) -> isize {
    let result;
    // SAFETY: the kernel keeps every register but these; the caller vouches for the memory.
    unsafe {
        asm!("syscall", inlateout("rax") number => result, in("rdi") first, in("rsi") second,
            in("rdx") third, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    write(2, format!("{info}\n").as_bytes());
    exit(4)
}

/// The precompiled `alloc` names these two; nothing ever unwinds here, because
/// a panic ends the process.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    exit(4)
}

#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() -> ! {
    exit(4)
}
