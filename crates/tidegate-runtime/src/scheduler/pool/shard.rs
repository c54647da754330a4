//! A part of a pool's registry: the tasks that were spawned at one place and live.
//!
//! One lock a worker's place, so that spawns on different workers do not meet. A task leaves the registry after COMPLETE, so
//! an empty registry says that every task has ended.

use core::ptr;

use crate::scheduler::Kind;
use crate::task::Header;

/// A list through [`Header::links`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: *const Header,
    last: *const Header,
    len: usize,
}

/// See the module. Under the lock of its mailbox.
#[derive(Debug, Default)]
pub(crate) struct Shard {
    /// Those that stay with this place's thread.
    pub(crate) pinned: List,
    pub(crate) shared: List,
}

// SAFETY: what is registered is alive, and its links are reached under the shard's lock only.
unsafe impl Send for List {}

impl Default for List {
    fn default() -> List {
        List { first: ptr::null(), last: ptr::null(), len: 0 }
    }
}

impl Shard {
    /// Where a task of this place stands.
    ///
    /// # Safety
    /// It is alive.
    #[inline(always)]
    pub(crate) unsafe fn list_of(&mut self, task: *const Header) -> &mut List {
        // SAFETY: the caller's promise; constant.
        match unsafe { (*task).home }.kind() {
            Kind::Shared => &mut self.shared,
            _ => &mut self.pinned,
        }
    }
}

impl List {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn first(&self) -> Option<*const Header> {
        (!self.first.is_null()).then_some(self.first)
    }

    /// # Safety
    /// Not registered, and alive until it is removed.
    #[inline]
    pub(crate) unsafe fn insert(&mut self, task: *const Header) {
        // SAFETY: the caller's promise; what is registered is alive.
        unsafe {
            (*task).links.prev.set(self.last);
            (*task).links.next.set(ptr::null());
            match self.last.is_null() {
                true => self.first = task,
                false => (*self.last).links.next.set(task),
            }
        }
        self.last = task;
        self.len += 1;
    }

    /// # Safety
    /// Registered here.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, task: *const Header) {
        // SAFETY: the caller's promise; what is registered is alive.
        unsafe {
            let (prev, next) = ((*task).links.prev.get(), (*task).links.next.get());
            match prev.is_null() {
                true => self.first = next,
                false => (*prev).links.next.set(next),
            }
            match next.is_null() {
                true => self.last = prev,
                false => (*next).links.prev.set(prev),
            }
        }
        self.len -= 1;
    }

    pub(crate) fn for_each(&self, mut f: impl FnMut(&Header)) {
        let mut task = self.first;
        while !task.is_null() {
            // SAFETY: what is registered is alive.
            unsafe {
                f(&*task);
                task = (*task).links.next.get();
            }
        }
    }
}
