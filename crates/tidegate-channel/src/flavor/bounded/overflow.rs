//! The overflow: values of parked sends that a close let in beyond the capacity (`Parked::Admit`).
//!
//! A FIFO, received after the ring. Each value stands in an entry that the closing thread allocates before it takes the
//! lock and the receiving one frees after: nothing is allocated under it.

use alloc::boxed::Box;
use core::ptr;

use tidegate_wait::op::Place;
use tidegate_wait::wake_batch::contain;

/// Room for one value.
struct Entry<T> {
    next: *mut Entry<T>,
    value: Place<T>,
}

/// Entries without values, for the next hold of the lock.
pub(super) struct Room<T> {
    first: *mut Entry<T>,
    len: usize,
}

impl<T> Room<T> {
    pub(super) const fn new() -> Room<T> {
        Room { first: ptr::null_mut(), len: 0 }
    }

    /// Allocates until there is room for `n` values. Outside the lock.
    pub(super) fn reserve(&mut self, n: usize) {
        while self.len < n {
            // Not through the stack, which a value may be too large for.
            let entry = Box::into_raw(Box::<Entry<T>>::new_uninit()).cast::<Entry<T>>();
            // SAFETY: the entry is ours. Its value is not initialized; loom's cell around it must be.
            unsafe {
                (&raw mut (*entry).next).write(self.first);
                #[cfg(loom)]
                (&raw mut (*entry).value).write(tidegate_wait::shim::UnsafeCell::new(core::mem::MaybeUninit::uninit()));
            }
            self.first = entry;
            self.len += 1;
        }
    }

    /// Is there none?
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    fn pop(&mut self) -> Option<*mut Entry<T>> {
        if self.first.is_null() {
            return None;
        }
        let entry = self.first;
        // SAFETY: an entry of ours, alive.
        self.first = unsafe { (*entry).next };
        self.len -= 1;
        Some(entry)
    }
}

impl<T> Drop for Room<T> {
    fn drop(&mut self) {
        while let Some(entry) = self.pop() {
            // SAFETY: made by `Box::into_raw`; it holds no value.
            drop(unsafe { Box::from_raw(entry) });
        }
    }
}

/// The admitted values. Under the channel's lock.
pub(super) struct Overflow<T> {
    first: *mut Entry<T>,
    /// Not used while `first` is null.
    last: *mut Entry<T>,
    len: usize,
}

impl<T> Overflow<T> {
    pub(super) const fn new() -> Overflow<T> {
        Overflow { first: ptr::null_mut(), last: ptr::null_mut(), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Moves a value to the end. False: `room` has none, and nothing has been moved.
    ///
    /// # Safety
    /// `from` holds a value, which counts as moved if this returns true.
    pub(super) unsafe fn push(&mut self, from: *const Place<T>, room: &mut Room<T>) -> bool {
        let Some(entry) = room.pop() else { return false };
        // SAFETY: the entry is ours, and so are all entries in the list; the caller's promise.
        unsafe {
            (*entry).next = ptr::null_mut();
            (*from).with(|from| (*entry).value.with_mut(|to| ptr::copy_nonoverlapping(from, to, 1)));
            if self.first.is_null() {
                self.first = entry;
            } else {
                (*self.last).next = entry;
            }
        }
        self.last = entry;
        self.len += 1;
        true
    }

    /// Takes the first value.
    pub(super) fn pop(&mut self) -> Option<Admitted<T>> {
        if self.first.is_null() {
            return None;
        }
        let entry = self.first;
        // SAFETY: an entry of ours, alive.
        self.first = unsafe { (*entry).next };
        self.len -= 1;
        Some(Admitted(entry))
    }
}

/// A value that has left the overflow, still in its entry.
pub(super) struct Admitted<T>(*mut Entry<T>);

impl<T> Admitted<T> {
    /// Takes the value out and frees the entry. Outside the lock.
    pub(super) fn take(self) -> T {
        // SAFETY: made by `Box::into_raw`; the entry holds a value, which is moved out once.
        unsafe {
            let entry = Box::from_raw(self.0);
            entry.value.with(|value| (*value).assume_init_read())
        }
    }

    /// Drops the value in its place and frees the entry. Outside the lock.
    pub(super) fn discard(self) {
        // SAFETY: as above; the value is dropped once, past a panic of its destructor.
        unsafe {
            let entry = Box::from_raw(self.0);
            contain(|| entry.value.with_mut(|value| (*value).assume_init_drop()));
        }
    }
}

impl<T> Drop for Overflow<T> {
    fn drop(&mut self) {
        while let Some(admitted) = self.pop() {
            admitted.discard();
        }
    }
}
