//! An allocator that gives memory back to itself. What it hands out comes from one area: a static
//! one, which needs nothing from the kernel, or one that is mapped when the program begins.

use crate::sys;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::{Cell, UnsafeCell};
use core::ptr;

/// Memory comes from one static area, in pieces whose sizes are powers of two. A piece that is
/// given back is the next one of its size to be handed out; a page that was never touched
/// costs nothing, and one that was is used again.
#[derive(Debug)]
pub struct Heap<const ARENA: usize> {
    arena: UnsafeCell<[u8; ARENA]>,
    pieces: Pieces,
}

/// The same from an area that is mapped when the first piece is asked for: of `MOST` bytes, or as
/// large as the limit of the address space lets it be. A program with a static area of that size
/// could not be executed below such a limit.
#[derive(Debug)]
pub struct Mapped<const MOST: usize> {
    start: Cell<*mut u8>,
    size: Cell<usize>,
    pieces: Pieces,
}

/// Which part of an area is used, and what of it was given back.
#[derive(Debug)]
struct Pieces {
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

// SAFETY: as above.
unsafe impl<const MOST: usize> Sync for Mapped<MOST> {}

impl<const ARENA: usize> Heap<ARENA> {
    /// A heap of which nothing is in use.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self {
            arena: UnsafeCell::new([0; ARENA]),
            pieces: Pieces::new(),
        }
    }
}

impl<const MOST: usize> Mapped<MOST> {
    /// A heap of which nothing is mapped.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self {
            start: Cell::new(ptr::null_mut()),
            size: Cell::new(0),
            pieces: Pieces::new(),
        }
    }

    /// The area; of no size if there is no address space at all.
    fn area(&self) -> (*mut u8, usize) {
        const LEAST: usize = 1 << 20;
        let mut size = MOST;
        while self.size.get() == 0 && size >= LEAST {
            match sys::map(size) {
                Ok(start) => {
                    self.start.set(start);
                    self.size.set(size);
                }
                Err(_) => size = (size - size / 8) & !(PAGE - 1),
            }
        }
        (self.start.get(), self.size.get())
    }
}

impl Pieces {
    const fn new() -> Self {
        Self {
            used: Cell::new(0),
            free: [const { Cell::new(ptr::null_mut()) }; usize::BITS as usize],
        }
    }

    /// The size of the piece for a layout, if there can be one, and the list that it is in.
    fn piece(&self, layout: Layout) -> Option<(usize, &Cell<*mut u8>)> {
        let least = layout.size().max(layout.align()).max(SMALLEST);
        let size = least.checked_next_power_of_two()?;
        Some((size, &self.free[size.trailing_zeros() as usize]))
    }

    /// A piece of the area.
    ///
    /// # Safety
    /// It is the same area each time, and nothing else uses it.
    unsafe fn take(&self, (area, length): (*mut u8, usize), layout: Layout) -> *mut u8 {
        let Some((size, free)) = self.piece(layout).filter(|_| layout.align() <= PAGE) else {
            return ptr::null_mut();
        };
        let newest = free.get();
        if !newest.is_null() {
            // SAFETY: a piece in the list begins with the address of the one before it.
            free.set(unsafe { *newest.cast::<*mut u8>() });
            return newest;
        }
        let base = area as usize;
        let start = (base + self.used.get()).next_multiple_of(size.min(PAGE)) - base;
        match start.checked_add(size).filter(|end| *end <= length) {
            None => ptr::null_mut(),
            Some(end) => {
                self.used.set(end);
                // SAFETY: `start` is inside the area.
                unsafe { area.add(start) }
            }
        }
    }

    /// Takes a piece back.
    ///
    /// # Safety
    /// It was handed out for this layout, and nobody uses it any more.
    unsafe fn give_back(&self, pointer: *mut u8, layout: Layout) {
        if let Some((_, free)) = self.piece(layout) {
            // SAFETY: nobody uses the piece any more; it is large and aligned enough.
            unsafe { *pointer.cast::<*mut u8>() = free.get() };
            free.set(pointer);
        }
    }
}

// SAFETY: a piece is inside the arena, aligned to its own size or, if that is larger, to a
// page, and in use once: it is either cut off the unused rest or taken out of a list.
unsafe impl<const ARENA: usize> GlobalAlloc for Heap<ARENA> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the arena is this heap's alone.
        unsafe { self.pieces.take((self.arena.get().cast(), ARENA), layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller vouches for it.
        unsafe { self.pieces.give_back(pointer, layout) }
    }
}

// SAFETY: as above; what is mapped stays mapped, and is this heap's alone.
unsafe impl<const MOST: usize> GlobalAlloc for Mapped<MOST> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: it is mapped once.
        unsafe { self.pieces.take(self.area(), layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller vouches for it.
        unsafe { self.pieces.give_back(pointer, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    /// Takes a piece, fills it and looks whether it is aligned.
    fn take(heap: &impl GlobalAlloc, layout: Layout) -> *mut u8 {
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
            let first = take(&*heap, layout(size, 1));
            let second = take(&*heap, layout(size, 1));
            assert!(!first.is_null() && !second.is_null() && first != second);
            // SAFETY: both were handed out with this layout.
            unsafe {
                heap.dealloc(first, layout(size, 1));
                heap.dealloc(second, layout(size, 1));
            }
            assert_eq!(take(&*heap, layout(size, 1)), second);
            assert_eq!(take(&*heap, layout(size, 1)), first);
        }
    }

    #[test]
    fn growing_for_ever_is_refused_and_churning_is_not() {
        let heap = Box::new(Heap::<{ 1 << 16 }>::new());
        for _ in 0..10_000 {
            let piece = take(&*heap, layout(1000, 8));
            assert!(!piece.is_null());
            // SAFETY: it was handed out with this layout.
            unsafe { heap.dealloc(piece, layout(1000, 8)) };
        }
        let pieces = (0..1000).map(|_| take(&*heap, layout(1000, 8)));
        let there = pieces.take_while(|piece| !piece.is_null()).count();
        assert!((32..64).contains(&there), "{there}");
        assert!(take(&*heap, layout(1 << 17, 1)).is_null());
        assert!(take(&*heap, layout(usize::MAX >> 1, 1)).is_null());
        assert!(take(&*heap, layout(8, 8192)).is_null());
    }

    #[test]
    fn pieces_do_not_overlap() {
        let heap = Box::new(Heap::<{ 1 << 16 }>::new());
        let mut taken: Vec<(usize, usize)> = Vec::new();
        for (size, align) in [(3, 1), (64, 64), (5000, 4096), (24, 8), (1, 1), (300, 256)] {
            let start = take(&*heap, layout(size, align)) as usize;
            assert_ne!(start, 0);
            for (other, length) in &taken {
                assert!(start + size <= *other || other + length <= start);
            }
            taken.push((start, size));
        }
    }

    #[test]
    fn a_mapped_area_is_as_large_as_there_is_address_space() {
        let heap = Mapped::<{ 1 << 20 }>::new();
        let first = take(&heap, layout(1 << 19, 8));
        assert!(!first.is_null());
        assert!(take(&heap, layout(1 << 20, 8)).is_null());
        // No processor has so much: the area is smaller, and there is one.
        let heap = Mapped::<{ 1 << 50 }>::new();
        assert!(!take(&heap, layout(1000, 8)).is_null());
        assert!((1 << 20..1 << 50).contains(&heap.size.get()));
    }
}
