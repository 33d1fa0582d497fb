//! What the standard library and the C library would have brought: an entry point, an
//! allocator, a panic handler and the memory functions that the compiler calls.

use crate::{io, sys};
use alloc::vec::Vec;
use core::arch::asm;
use core::ffi::{CStr, c_char, c_int};

/// The entry point, the allocator and the panic handler of a freestanding program: its name for
/// messages, how many bytes it may have in use at the most, and a function that takes its
/// arguments without the program's own name, and its environment.
#[macro_export]
macro_rules! program {
    // Its memory is mapped when it begins.
    ($name:literal, mapped $memory:expr, $run:path) => {
        $crate::program!(@ $name, Mapped, $memory, $run);
    };
    (@ $name:literal, $heap:ident, $memory:expr, $run:path) => {
        #[global_allocator]
        static HEAP: $crate::heap::$heap<{ $memory }> = $crate::heap::$heap::new();

        core::arch::global_asm!(
            ".globl _start",
            "_start:",
            "xor ebp, ebp",
            "mov rdi, rsp",
            "and rsp, -16",
            "call {entry}",
            "ud2",
            entry = sym entry,
        );

        /// Called once by `_start` with the stack pointer that the kernel left.
        extern "C" fn entry(stack: *const usize) -> ! {
            // SAFETY: it is the stack pointer of a new process.
            unsafe { $crate::start::begin(stack, $run) }
        }

        #[panic_handler]
        fn panic(info: &core::panic::PanicInfo) -> ! {
            $crate::start::give_up($name, info)
        }
    };
    ($name:literal, $memory:expr, $run:path) => {
        $crate::program!(@ $name, Heap, $memory, $run);
    };
}

/// What a program does: its arguments and its environment become an exit status.
pub type Run = fn(&[&[u8]], &[&[u8]]) -> i32;

/// Runs the program and ends the process.
///
/// # Safety
/// `stack` must be the stack pointer that the kernel left to a new process.
pub unsafe fn begin(stack: *const usize, run: Run) -> ! {
    // SAFETY: the kernel puts argc, argv, a null, envp and a null at the stack
    // pointer of a new process, all valid until it ends.
    let (arguments, environment) = unsafe {
        let argc = *stack;
        let argv = stack.add(1).cast::<*const c_char>();
        let arguments = core::slice::from_raw_parts(argv, argc);
        let envp = argv.add(argc + 1);
        let mut count = 0;
        while !(*envp.add(count)).is_null() {
            count += 1;
        }
        (arguments, core::slice::from_raw_parts(envp, count))
    };
    // SAFETY: every pointer in both lists is to a NUL-terminated string.
    let bytes = |pointer: &*const c_char| unsafe { CStr::from_ptr(*pointer) }.to_bytes();
    let arguments: Vec<&[u8]> = arguments.iter().skip(1).map(bytes).collect();
    let environment: Vec<&[u8]> = environment.iter().map(bytes).collect();
    sys::exit(run(&arguments, &environment))
}

/// Says what went wrong inside the program and ends it.
pub fn give_up(name: &str, info: &core::panic::PanicInfo) -> ! {
    io::print(2, &alloc::format!("{name}: internal error: {info}\n"));
    sys::exit(4)
}

#[unsafe(no_mangle)]
extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the caller vouches for both areas, as in C.
    unsafe {
        asm!("rep movsb", inout("rcx") count => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
    }
    to
}

#[unsafe(no_mangle)]
extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= count {
        return memcpy(to, from, count);
    }
    // SAFETY: the areas overlap with `to` behind `from`, so it is copied from
    // the end; the direction flag is restored at once.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") count => _,
            inout("rdi") to.wrapping_add(count).wrapping_sub(1) => _,
            inout("rsi") from.wrapping_add(count).wrapping_sub(1) => _, options(nostack));
    }
    to
}

#[unsafe(no_mangle)]
extern "C" fn memset(to: *mut u8, value: c_int, count: usize) -> *mut u8 {
    // SAFETY: the caller vouches for the area, as in C.
    unsafe {
        asm!("rep stosb", inout("rcx") count => _, inout("rdi") to => _, in("al") value as u8,
            options(nostack, preserves_flags));
    }
    to
}

#[unsafe(no_mangle)]
extern "C" fn memcmp(left: *const u8, right: *const u8, count: usize) -> c_int {
    for index in 0..count {
        // SAFETY: the caller vouches for both areas, as in C.
        let (left, right) = unsafe { (*left.add(index), *right.add(index)) };
        if left != right {
            return c_int::from(left) - c_int::from(right);
        }
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn bcmp(left: *const u8, right: *const u8, count: usize) -> c_int {
    memcmp(left, right, count)
}

#[unsafe(no_mangle)]
extern "C" fn strlen(text: *const c_char) -> usize {
    let mut length = 0;
    // SAFETY: the caller vouches that the string ends, as in C.
    while unsafe { *text.add(length) } != 0 {
        length += 1;
    }
    length
}

/// The precompiled `alloc` names these two; nothing ever unwinds here, because
/// a panic ends the process.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    sys::exit(4)
}

#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() -> ! {
    sys::exit(4)
}
