//! What comes to a pool from outside of its workers: a FIFO of tasks, linked through their headers, under a small lock.
//!
//! ```text
//! open    push appends; any worker takes a few from the front
//! closed  nothing stands in it; what comes is handed back to whoever pushed it
//! ```
//! - **J1** `len` is written under the lock only. Whoever pushes wakes a worker after the push, and a worker looks at `len`
//!   after it has gone to bed (`idle`), so no push is slept over.
//! - **J2** Entries have no reference: W2.
//!
//! Test: `scheduler/pool/loom_models.rs`.

use core::ptr;

use tidegate_wait::shim::{AtomicUsize, Lock, Ordering};

use crate::task::Header;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Injector {
    len: AtomicUsize,
    line: Lock<Line>,
}

#[derive(Debug)]
struct Line {
    first: *const Header,
    last: *const Header,
    is_open: bool,
}

// SAFETY: the tasks are reached under the lock only, and by whoever took them out.
unsafe impl Send for Line {}

impl Default for Line {
    fn default() -> Line {
        Line { first: ptr::null(), last: ptr::null(), is_open: false }
    }
}

impl Injector {
    pub(crate) fn open(&self) {
        self.line.lock().is_open = true;
    }

    /// Appends a task. False: it is closed, and nothing has happened.
    ///
    /// # Safety
    /// The caller has set SCHEDULED (S1), and the task is alive until it is taken out (W2).
    pub(crate) unsafe fn push(&self, task: *const Header) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.append(core::iter::once(task)) }
    }

    /// Appends tasks, in order, and takes them from `tasks` under the lock. False: it is closed, and none was taken.
    ///
    /// # Safety
    /// As for [`Injector::push`], for each.
    pub(crate) unsafe fn append(&self, tasks: impl Iterator<Item = *const Header>) -> bool {
        let mut line = self.line.lock();
        if !line.is_open {
            return false;
        }
        // Ordering: Relaxed; J1: the fences are in `Idle`.
        let mut len = self.len.load(Ordering::Relaxed);
        for task in tasks {
            // SAFETY: the caller's promise; what stands in the line is alive.
            unsafe {
                (*task).next.set(ptr::null());
                match line.last.is_null() {
                    true => line.first = task,
                    false => (*line.last).next.set(task),
                }
            }
            line.last = task;
            len += 1;
        }
        self.len.store(len, Ordering::Relaxed);
        true
    }

    /// Is there anything? A hint: J1.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // Ordering: Acquire pairs with Release in `take`: who sees that tasks have gone sees the deque that they went to.
        self.len.load(Ordering::Acquire) == 0
    }

    /// Takes the first task out, and gives `rest` those behind it: a `share`-th of the line in all, `most` at most.
    pub(crate) fn take(&self, share: usize, most: usize, mut rest: impl FnMut(*const Header)) -> Option<*const Header> {
        if self.is_empty() {
            return None;
        }
        let mut line = self.line.lock();
        // Ordering: Relaxed; only moved under the lock.
        let len = self.len.load(Ordering::Relaxed);
        let count = len.div_ceil(share).min(most);
        let first = line.first;
        let mut next = first;
        for index in 0..count {
            let task = next;
            // SAFETY: it stands in the line: alive, and its link is ours.
            next = unsafe { (*task).next.get() };
            if index > 0 {
                rest(task);
            }
        }
        line.first = next;
        if next.is_null() {
            line.last = ptr::null();
        }
        // Ordering: Release: see `is_empty`.
        self.len.store(len - count, Ordering::Release);
        drop(line);
        (!first.is_null()).then_some(first)
    }

    /// Closes it and takes everything out.
    pub(crate) fn close(&self, mut each: impl FnMut(*const Header)) {
        self.line.lock().is_open = false;
        while let Some(task) = self.take(1, 1, |_| {}) {
            each(task);
        }
    }
}
