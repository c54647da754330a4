//! An allocator that counts while somebody asks.
//!
//! Off, it costs one load a call, the same for every peer. It counts the whole process: a load that counts runs nothing
//! beside what it counts.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The system's allocator, counted.
pub(crate) struct CountingAllocator;

// Relaxed throughout: figures, read by the thread that did (or has joined those that did) the counted work.
static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

fn count(bytes: usize) {
    if COUNTING.load(Relaxed) {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

/// What was asked of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocated {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
}

/// Runs `work` and says what it, and every other thread meanwhile, allocated.
pub(crate) fn counted<R>(work: impl FnOnce() -> R) -> (R, Allocated) {
    let counting = Counting::start();
    let result = work();
    (result, counting.stop())
}

/// A count that is going on. One at a time.
pub(crate) struct Counting(Allocated);

impl Counting {
    pub(crate) fn start() -> Counting {
        let before = Allocated { calls: ALLOCATIONS.load(Relaxed), bytes: BYTES.load(Relaxed) };
        COUNTING.store(true, Relaxed);
        Counting(before)
    }

    pub(crate) fn stop(self) -> Allocated {
        COUNTING.store(false, Relaxed);
        Allocated { calls: ALLOCATIONS.load(Relaxed) - self.0.calls, bytes: BYTES.load(Relaxed) - self.0.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_is_counted() {
        let (place, allocated) = counted(|| std::hint::black_box(vec![0_u8; 4096]));
        assert!(allocated.calls >= 1 && allocated.bytes >= 4096, "{allocated:?} for {} bytes", place.len());
    }
}
