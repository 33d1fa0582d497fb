//! An allocator, and the memory functions that the compiler calls.

use core::alloc::{GlobalAlloc, Layout};
use core::arch::asm;
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_int;

/// Pages that are never touched cost nothing.
const ARENA: usize = 512 * 1024 * 1024;

/// Memory is cut off one static area and never given back: the process verifies one bundle.
struct Heap {
    arena: UnsafeCell<[u8; ARENA]>,
    used: Cell<usize>,
}

// SAFETY: the process has one thread.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap {
    arena: UnsafeCell::new([0; ARENA]),
    used: Cell::new(0),
};

// SAFETY: each piece is inside the arena, aligned as asked for, and handed out once.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.arena.get() as usize;
        let start = (base + self.used.get()).next_multiple_of(layout.align()) - base;
        match start.checked_add(layout.size()).filter(|end| *end <= ARENA) {
            None => core::ptr::null_mut(),
            Some(end) => {
                self.used.set(end);
                // SAFETY: `start` is inside the arena.
                unsafe { self.arena.get().cast::<u8>().add(start) }
            }
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
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
    let mut index = 0;
    while index < count {
        // SAFETY: the caller vouches for both areas, as in C.
        let (left, right) = unsafe { (*left.add(index), *right.add(index)) };
        if left != right {
            return c_int::from(left) - c_int::from(right);
        }
        index += 1;
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn bcmp(left: *const u8, right: *const u8, count: usize) -> c_int {
    memcmp(left, right, count)
}
