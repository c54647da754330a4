//! The two lists of the runtime's thread: what is to be polled, and what lives. Both intrusive, neither locked.

use core::cell::Cell;
use core::ptr;

use super::pool::List;
use super::wait::REGISTERED;
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
        }
        Some(task)
    }
}

/// All tasks that have not completed, in the order in which they were spawned.
#[derive(Debug, Default)]
pub(crate) struct Registry(Cell<List>);

impl Registry {
    pub(crate) fn len(&self) -> usize {
        self.0.get().len()
    }

    pub(crate) fn first(&self) -> Option<*const Header> {
        self.0.get().first()
    }

    /// # Safety
    /// Not registered, and alive until it is removed.
    #[inline(always)]
    pub(crate) unsafe fn insert(&self, task: *const Header) {
        // SAFETY: the caller's promise.
        unsafe {
            (*task).wait.set(REGISTERED);
            let mut list = self.0.get();
            list.insert(task);
            self.0.set(list);
        }
    }

    /// # Safety
    /// Registered here.
    #[inline(always)]
    pub(crate) unsafe fn remove(&self, task: *const Header) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut list = self.0.get();
            list.remove(task);
            self.0.set(list);
            (*task).wait.clear(REGISTERED);
        }
    }

    /// All of them. `f` must not end or begin any.
    pub(crate) fn for_each(&self, f: impl FnMut(&Header)) {
        self.0.get().for_each(f);
    }
}
