//! Heap memory of the current thread. Unsafe code is needed because an allocator is unsafe by its interface.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

struct Counting;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: all calls go to the system's allocator unchanged. Counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(NOW.get().wrapping_add(layout.size()));
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(NOW.get().wrapping_sub(layout.size()));
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn count(now: usize) {
    NOW.set(now);
    PEAK.set(PEAK.get().max(now));
}

/// Returns the number of bytes in use, and resets the peak.
pub(crate) fn start() -> usize {
    PEAK.set(NOW.get());
    NOW.get()
}

/// Returns the number of bytes in use.
pub(crate) fn now() -> usize {
    NOW.get()
}

/// Returns the maximum number of bytes in use since the last call of `start`.
pub(crate) fn peak() -> usize {
    PEAK.get()
}
