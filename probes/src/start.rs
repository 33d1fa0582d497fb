//! What the standard library and the C library would have brought: an entry
//! point, an allocator, a panic handler and the five memory functions that the
//! compiler calls.

use core::alloc::{GlobalAlloc, Layout};
use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicUsize, Ordering};
use tki_inspector::{io, sys};

extern crate alloc;

global_asm!(
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
    let environment: alloc::vec::Vec<&[u8]> = environment.iter().map(bytes).collect();
    let status = tki_inspector::run(arguments.iter().skip(1).map(bytes), &environment);
    sys::exit(status)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    io::print(
        2,
        &alloc::format!("tki-inspector: internal error: {info}\n"),
    );
    sys::exit(4)
}

/// Memory is taken from one static area and never given back, except for the
/// newest piece. The inspector lives for milliseconds and every probe runs in a
/// forked copy, so nothing more is needed; pages not touched cost nothing.
struct Bump {
    arena: UnsafeCell<[u8; ARENA]>,
    used: AtomicUsize,
}

const ARENA: usize = 24 * 1024 * 1024;

// SAFETY: the process has one thread; `used` hands out disjoint pieces.
unsafe impl Sync for Bump {}

#[global_allocator]
static HEAP: Bump = Bump {
    arena: UnsafeCell::new([0; ARENA]),
    used: AtomicUsize::new(0),
};

// SAFETY: pieces are aligned, disjoint and inside the arena.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.arena.get() as usize;
        let start = (base + self.used.load(Ordering::Relaxed)).next_multiple_of(layout.align());
        let end = start - base + layout.size();
        if end > ARENA {
            return core::ptr::null_mut();
        }
        self.used.store(end, Ordering::Relaxed);
        start as *mut u8
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let offset = pointer as usize - self.arena.get() as usize;
        if offset + layout.size() == self.used.load(Ordering::Relaxed) {
            self.used.store(offset, Ordering::Relaxed);
        }
    }
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
