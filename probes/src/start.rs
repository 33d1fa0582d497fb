//! What the standard library and the C library would have brought: an entry
//! point, an allocator, a panic handler and the five memory functions that the
//! compiler calls.

use core::alloc::{GlobalAlloc, Layout};
use core::arch::{asm, global_asm};
use core::cell::{Cell, UnsafeCell};
use core::ffi::{CStr, c_char, c_int};
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

/// Memory comes from one static area, in pieces whose sizes are powers of two. A piece that is
/// given back is the next one of its size to be handed out; a page that was never touched
/// costs nothing, and one that was is used again.
struct Heap {
    arena: UnsafeCell<[u8; ARENA]>,
    used: Cell<usize>,
    /// For each size the newest piece that was given back. It holds the address of the one
    /// before it.
    free: [Cell<*mut u8>; usize::BITS as usize],
}

const ARENA: usize = 24 * 1024 * 1024;

/// The smallest piece: it must hold an address.
const SMALLEST: usize = 16;

// SAFETY: one thread of the process uses it; the other one that there may be never does
// anything but wait.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap {
    arena: UnsafeCell::new([0; ARENA]),
    used: Cell::new(0),
    free: [const { Cell::new(core::ptr::null_mut()) }; usize::BITS as usize],
};

impl Heap {
    /// The size of the piece for a layout, if there can be one, and the list that it is in.
    fn piece(&self, layout: Layout) -> Option<(usize, &Cell<*mut u8>)> {
        let least = layout.size().max(layout.align()).max(SMALLEST);
        let size = least.checked_next_power_of_two()?;
        Some((size, &self.free[size.trailing_zeros() as usize]))
    }
}

// SAFETY: a piece is inside the arena, aligned to its own size or, if that is larger, to a
// page, and in use once: it is either cut off the unused rest or taken out of a list.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        const PAGE: usize = 4096;
        let Some((size, free)) = self.piece(layout).filter(|_| layout.align() <= PAGE) else {
            return core::ptr::null_mut();
        };
        let newest = free.get();
        if !newest.is_null() {
            // SAFETY: a piece in the list begins with the address of the one before it.
            free.set(unsafe { *newest.cast::<*mut u8>() });
            return newest;
        }
        let base = self.arena.get() as usize;
        let start = (base + self.used.get()).next_multiple_of(size.min(PAGE)) - base;
        match start.checked_add(size).filter(|end| *end <= ARENA) {
            None => core::ptr::null_mut(),
            Some(end) => {
                self.used.set(end);
                // SAFETY: `start` is inside the arena.
                unsafe { self.arena.get().cast::<u8>().add(start) }
            }
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if let Some((_, free)) = self.piece(layout) {
            // SAFETY: nobody uses the piece any more; it is large and aligned enough.
            unsafe { *pointer.cast::<*mut u8>() = free.get() };
            free.set(pointer);
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
