//! An allocator that needs nothing from the kernel and gives memory back to itself.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::{Cell, UnsafeCell};

/// Memory comes from one static area, in pieces whose sizes are powers of two. A piece that is
/// given back is the next one of its size to be handed out; a page that was never touched
/// costs nothing, and one that was is used again.
#[derive(Debug)]
pub struct Heap<const ARENA: usize> {
    arena: UnsafeCell<[u8; ARENA]>,
    used: Cell<usize>,
    /// For each size the newest piece that was given back. It holds the address of the one
    /// before it.
    free: [Cell<*mut u8>; usize::BITS as usize],
}

/// The smallest piece: it must hold an address.
const SMALLEST: usize = 16;

/// The largest alignment that a piece has.
const PAGE: usize = 4096;

// SAFETY: one thread of the process uses it; the other one that the prober may have never does
// anything but wait.
unsafe impl<const ARENA: usize> Sync for Heap<ARENA> {}

impl<const ARENA: usize> Heap<ARENA> {
    /// A heap of which nothing is in use.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self {
            arena: UnsafeCell::new([0; ARENA]),
            used: Cell::new(0),
            free: [const { Cell::new(core::ptr::null_mut()) }; usize::BITS as usize],
        }
    }

    /// The size of the piece for a layout, if there can be one, and the list that it is in.
    fn piece(&self, layout: Layout) -> Option<(usize, &Cell<*mut u8>)> {
        let least = layout.size().max(layout.align()).max(SMALLEST);
        let size = least.checked_next_power_of_two()?;
        Some((size, &self.free[size.trailing_zeros() as usize]))
    }
}

// SAFETY: a piece is inside the arena, aligned to its own size or, if that is larger, to a
// page, and in use once: it is either cut off the unused rest or taken out of a list.
unsafe impl<const ARENA: usize> GlobalAlloc for Heap<ARENA> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    /// Takes a piece, fills it and looks whether it is aligned.
    fn take<const ARENA: usize>(heap: &Heap<ARENA>, layout: Layout) -> *mut u8 {
        // SAFETY: the layouts here are not empty.
        let piece = unsafe { heap.alloc(layout) };
        if !piece.is_null() {
            assert_eq!(piece as usize % layout.align(), 0);
            // SAFETY: the piece is as long as was asked for.
            unsafe { piece.write_bytes(0xff, layout.size()) };
        }
        piece
    }

    #[test]
    fn what_is_given_back_is_handed_out_again() {
        let heap = Box::new(Heap::<{ 1 << 16 }>::new());
        for size in [1, 16, 17, 100, 4000] {
            let first = take(&heap, layout(size, 1));
            let second = take(&heap, layout(size, 1));
            assert!(!first.is_null() && !second.is_null() && first != second);
            // SAFETY: both were handed out with this layout.
            unsafe {
                heap.dealloc(first, layout(size, 1));
                heap.dealloc(second, layout(size, 1));
            }
            assert_eq!(take(&heap, layout(size, 1)), second);
            assert_eq!(take(&heap, layout(size, 1)), first);
        }
    }

    #[test]
    fn growing_for_ever_is_refused_and_churning_is_not() {
        let heap = Box::new(Heap::<{ 1 << 16 }>::new());
        for _ in 0..10_000 {
            let piece = take(&heap, layout(1000, 8));
            assert!(!piece.is_null());
            // SAFETY: it was handed out with this layout.
            unsafe { heap.dealloc(piece, layout(1000, 8)) };
        }
        let pieces = (0..1000).map(|_| take(&heap, layout(1000, 8)));
        let there = pieces.take_while(|piece| !piece.is_null()).count();
        assert!((32..64).contains(&there), "{there}");
        assert!(take(&heap, layout(1 << 17, 1)).is_null());
        assert!(take(&heap, layout(usize::MAX >> 1, 1)).is_null());
        assert!(take(&heap, layout(8, 8192)).is_null());
    }

    #[test]
    fn pieces_do_not_overlap() {
        let heap = Box::new(Heap::<{ 1 << 16 }>::new());
        let mut taken: Vec<(usize, usize)> = Vec::new();
        for (size, align) in [(3, 1), (64, 64), (5000, 4096), (24, 8), (1, 1), (300, 256)] {
            let start = take(&heap, layout(size, align)) as usize;
            assert_ne!(start, 0);
            for (other, length) in &taken {
                assert!(start + size <= *other || other + length <= start);
            }
            taken.push((start, size));
        }
    }
}
