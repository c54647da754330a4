//! The list in which limit entries stand: a wheel's slot, a token's registrations.
//!
//! Circular, with a sentinel, both links, like the [list of waiters](crate::list), but of entries: the low bits of an
//! entry's own `next` say how many entries lie between it and the head of its operation (its *depth*).

use core::cell::Cell;
use core::marker::{PhantomData, PhantomPinned};
use core::ptr;

use crate::waiter::Head;

/// The size of every entry: two links and a word. On targets with 32-bit pointers the timer's wish needs more.
pub(crate) const ENTRY_SIZE: usize = 24;
const DEPTH_MASK: usize = 7;

/// What an entry begins with, and all of a list's sentinel. Under the lock of the list's owner only.
#[repr(C, align(8))]
#[derive(Debug)]
pub(crate) struct EntryLinks {
    /// Null: not linked.
    prev: Cell<*mut EntryLinks>,
    next: Cell<*mut EntryLinks>,
}

impl EntryLinks {
    /// The links of an entry `depth` entries in front of its head, in no list.
    #[inline(always)]
    pub(crate) fn new(depth: usize) -> EntryLinks {
        debug_assert!(depth <= DEPTH_MASK);
        EntryLinks { prev: Cell::new(ptr::null_mut()), next: Cell::new(ptr::without_provenance_mut(depth)) }
    }

    #[inline(always)]
    pub(crate) fn next(&self) -> *mut EntryLinks {
        self.next.get().map_addr(|addr| addr & !DEPTH_MASK)
    }

    #[inline(always)]
    fn set_next(&self, to: *mut EntryLinks) {
        let depth = self.next.get().addr() & DEPTH_MASK;
        self.next.set(to.map_addr(|addr| addr | depth));
    }

    #[inline(always)]
    fn depth(&self) -> usize {
        self.next.get().addr() & DEPTH_MASK
    }
}

/// The head of the operation that the entry at `links` limits.
///
/// # Safety
/// Under the list's lock; the links are an operation's, derived from a pointer to the whole of it.
#[inline(always)]
pub(crate) unsafe fn head_of(links: *mut EntryLinks) -> *mut Head {
    // SAFETY: limits are `repr(C)` in front of the head, all of them of this size.
    unsafe { links.byte_add((*links).depth() * ENTRY_SIZE).cast() }
}

/// Unlinks an entry from whichever list it stands in; returns its former neighbours, the same one twice if the list is
/// empty now. `None`: it stood in none.
///
/// # Safety
/// Under the list's lock.
#[inline(always)]
pub(crate) unsafe fn unlink(links: *mut EntryLinks) -> Option<(*mut EntryLinks, *mut EntryLinks)> {
    // SAFETY: a linked entry's neighbours are alive.
    unsafe {
        let prev = (*links).prev.replace(ptr::null_mut());
        if prev.is_null() {
            return None;
        }
        let next = (*links).next();
        (*prev).set_next(next);
        (*next).prev.set(prev);
        Some((prev, next))
    }
}

/// A FIFO list of entries of type `E`, which begin with their [`EntryLinks`] (`repr(C)`). It must not move once
/// [`EntryList::init`] has run; all methods are for the holder of its lock.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct EntryList<E> {
    sentinel: EntryLinks,
    _entries: PhantomData<*mut E>,
    /// Entries point at the sentinel, so even a box that is moved must not claim it.
    _pinned: PhantomPinned,
}

impl<E> EntryList<E> {
    pub(crate) fn new() -> Self {
        EntryList { sentinel: EntryLinks::new(0), _entries: PhantomData, _pinned: PhantomPinned }
    }

    #[inline(always)]
    pub(crate) fn end(&self) -> *mut EntryLinks {
        ptr::from_ref(&self.sentinel).cast_mut()
    }

    /// Closes the circle, at the final place.
    pub(crate) fn init(&self) {
        self.sentinel.prev.set(self.end());
        self.sentinel.next.set(self.end());
    }

    #[inline(always)]
    pub(crate) fn front(&self) -> Option<*mut E> {
        let first = self.sentinel.next();
        (first != self.end()).then_some(first.cast())
    }

    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn back(&self) -> Option<*mut E> {
        let last = self.sentinel.prev.get();
        (last != self.end()).then_some(last.cast())
    }

    /// Appends an entry.
    ///
    /// # Safety
    /// `entry` is pinned until it is unlinked, and stands in no list.
    #[inline(always)]
    pub(crate) unsafe fn push_back(&self, entry: *mut E) {
        // SAFETY: the sentinel is a place like any other.
        unsafe { insert_before(entry.cast(), self.end()) }
    }

    /// Moves everything to the end of `to`, in O(1).
    #[cfg(feature = "std")]
    pub(crate) fn splice(&self, to: &EntryList<E>) {
        let first = self.sentinel.next();
        if first == self.end() {
            return;
        }
        let (last, end) = (self.sentinel.prev.get(), to.sentinel.prev.get());
        // SAFETY: sentinels and linked entries are alive under the lock.
        unsafe {
            (*end).set_next(first);
            (*first).prev.set(end);
            (*last).set_next(to.end());
        }
        to.sentinel.prev.set(last);
        self.init();
    }
}

/// Links `links` in front of `at`, which may be a sentinel.
///
/// # Safety
/// Under the list's lock; `links` stand in no list, `at` does.
#[inline(always)]
pub(crate) unsafe fn insert_before(links: *mut EntryLinks, at: *mut EntryLinks) {
    // SAFETY: the caller's promise.
    unsafe {
        let before = (*at).prev.get();
        (*links).prev.set(before);
        (*links).set_next(at);
        (*before).set_next(links);
        (*at).prev.set(links);
    }
}
