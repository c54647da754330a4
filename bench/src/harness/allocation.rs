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
static FREED: AtomicU64 = AtomicU64::new(0);

fn count(bytes: usize) {
    if COUNTING.load(Relaxed) {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
    }
}

fn count_freed(bytes: usize) {
    if COUNTING.load(Relaxed) {
        FREED.fetch_add(bytes as u64, Relaxed);
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
        count_freed(layout.size().saturating_sub(size));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count_freed(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

/// What was asked of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocated {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
    pub(crate) freed: u64,
}

impl Allocated {
    fn so_far() -> Allocated {
        Allocated { calls: ALLOCATIONS.load(Relaxed), bytes: BYTES.load(Relaxed), freed: FREED.load(Relaxed) }
    }

    /// What is still there of what was asked for; below zero if older things went.
    pub(crate) fn live(&self) -> i64 {
        self.bytes as i64 - self.freed as i64
    }
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
        let before = Allocated::so_far();
        COUNTING.store(true, Relaxed);
        Counting(before)
    }

    /// What it has counted by now.
    pub(crate) fn now(&self) -> Allocated {
        let (now, before) = (Allocated::so_far(), &self.0);
        Allocated { calls: now.calls - before.calls, bytes: now.bytes - before.bytes, freed: now.freed - before.freed }
    }

    pub(crate) fn stop(self) -> Allocated {
        COUNTING.store(false, Relaxed);
        self.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn an_allocation_is_counted() {
        let _one_at_a_time = ONE_AT_A_TIME.lock();
        let (place, allocated) = counted(|| std::hint::black_box(vec![0_u8; 4096]));
        assert!(allocated.calls >= 1 && allocated.bytes >= 4096, "{allocated:?} for {} bytes", place.len());
    }

    #[test]
    fn what_is_dropped_is_not_live() {
        let _one_at_a_time = ONE_AT_A_TIME.lock();
        const MUCH: usize = 1 << 24;
        let counting = Counting::start();
        let place = std::hint::black_box(vec![0_u8; MUCH]);
        let with = counting.now().live();
        drop(place);
        let without = counting.stop().live();
        // Other tests may allocate meanwhile, but not this much.
        assert!(with - without > MUCH as i64 / 2, "{with} with, {without} without");
    }
}
