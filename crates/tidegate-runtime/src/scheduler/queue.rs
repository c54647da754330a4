//! The two lists of the runtime's thread: what is to be polled, and what lives. Both intrusive, neither locked.

use core::cell::Cell;
use core::ptr;

use super::wait::{QUEUED, REGISTERED};
use crate::task::Header;

/// A FIFO through `Header::next`.
#[derive(Debug)]
pub(crate) struct RunQueue {
    first: Cell<*const Header>,
    last: Cell<*const Header>,
}

impl RunQueue {
    pub(crate) const fn new() -> RunQueue {
        RunQueue { first: Cell::new(ptr::null()), last: Cell::new(ptr::null()) }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.get().is_null()
    }

    /// # Safety
    /// Alive until it is popped, and in no queue (S1).
    #[inline(always)]
    pub(crate) unsafe fn push(&self, task: *const Header) {
        // SAFETY: the caller's promise; the last task stands in this queue, so it is alive.
        unsafe {
            (*task).wait.set(QUEUED);
            (*task).next.set(ptr::null());
            let last = self.last.replace(task);
            match last.is_null() {
                true => self.first.set(task),
                false => (*last).next.set(task),
            }
        }
    }

    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<*const Header> {
        let task = self.first.get();
        if task.is_null() {
            return None;
        }
        // SAFETY: it stands in the queue, so it is alive.
        unsafe {
            let next = (*task).next.get();
            self.first.set(next);
            if next.is_null() {
                self.last.set(ptr::null());
            }
            (*task).wait.clear(QUEUED);
        }
        Some(task)
    }
}

/// All tasks that have not completed, in the order in which they were spawned.
#[derive(Debug)]
pub(crate) struct Registry {
    first: Cell<*const Header>,
    last: Cell<*const Header>,
    len: Cell<usize>,
}

impl Registry {
    pub(crate) const fn new() -> Registry {
        Registry { first: Cell::new(ptr::null()), last: Cell::new(ptr::null()), len: Cell::new(0) }
    }

    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    pub(crate) fn first(&self) -> Option<*const Header> {
        (!self.first.get().is_null()).then(|| self.first.get())
    }

    /// # Safety
    /// Not registered, and alive until it is removed.
    #[inline(always)]
    pub(crate) unsafe fn insert(&self, task: *const Header) {
        // SAFETY: the caller's promise; what is registered is alive.
        unsafe {
            let last = self.last.replace(task);
            (*task).wait.set(REGISTERED);
            (*task).links.prev.set(last);
            (*task).links.next.set(ptr::null());
            match last.is_null() {
                true => self.first.set(task),
                false => (*last).links.next.set(task),
            }
        }
        self.len.set(self.len.get() + 1);
    }

    /// # Safety
    /// Registered here.
    #[inline(always)]
    pub(crate) unsafe fn remove(&self, task: *const Header) {
        // SAFETY: the caller's promise; what is registered is alive.
        unsafe {
            let (prev, next) = ((*task).links.prev.get(), (*task).links.next.get());
            match prev.is_null() {
                true => self.first.set(next),
                false => (*prev).links.next.set(next),
            }
            match next.is_null() {
                true => self.last.set(prev),
                false => (*next).links.prev.set(prev),
            }
            (*task).wait.clear(REGISTERED);
        }
        self.len.set(self.len.get() - 1);
    }

    /// All of them. `f` must not end any.
    pub(crate) fn for_each(&self, mut f: impl FnMut(&Header)) {
        let mut task = self.first.get();
        while !task.is_null() {
            // SAFETY: what is registered is alive.
            unsafe {
                f(&*task);
                task = (*task).links.next.get();
            }
        }
    }
}
