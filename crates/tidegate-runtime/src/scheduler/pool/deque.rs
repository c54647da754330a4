//! What a worker has to do next, and what others may take from it: crossbeam's deque, as a FIFO.
//!
//! A queue under a lock stands in for it under loom, whose atomics crossbeam does not use, and under Miri, where
//! crossbeam's list of threads breaks Stacked Borrows: what they check is what happens around it. ThreadSanitizer runs with the
//! real one, and is told that a thief of crossbeam's reads an entry before it knows that it is the one to get it.
//!
//! Entries have no reference: W2.

use crate::task::Header;

/// A task in a queue.
#[derive(Clone, Copy, Debug)]
struct Entry(*const Header);

// SAFETY: whoever takes it out may poll the task: a task in here is shared, so its future is `Send`.
unsafe impl Send for Entry {}

#[cfg(not(any(loom, miri)))]
mod real {
    use super::{Entry, Header};
    use crossbeam_deque::{Steal, Stealer, Worker};

    /// The owner's side.
    #[derive(Debug)]
    pub(crate) struct Deque(Worker<Entry>);

    /// Everybody's side.
    #[derive(Debug)]
    pub(crate) struct Thief(Stealer<Entry>);

    impl Deque {
        pub(crate) fn new() -> (Deque, Thief) {
            let worker = Worker::new_fifo();
            let stealer = worker.stealer();
            (Deque(worker), Thief(stealer))
        }

        #[inline(always)]
        pub(crate) fn push(&self, task: *const Header) {
            self.0.push(Entry(task));
        }

        #[inline(always)]
        pub(crate) fn pop(&self) -> Option<*const Header> {
            self.0.pop().map(|entry| entry.0)
        }

        #[inline(always)]
        pub(crate) fn is_empty(&self) -> bool {
            self.0.is_empty()
        }

        #[inline(always)]
        pub(crate) fn len(&self) -> usize {
            self.0.len()
        }
    }

    impl Thief {
        pub(crate) fn is_empty(&self) -> bool {
            self.0.is_empty()
        }

        /// Takes one task.
        pub(crate) fn steal(&self) -> Option<*const Header> {
            loop {
                match self.0.steal() {
                    Steal::Success(entry) => return Some(entry.0),
                    Steal::Empty => return None,
                    Steal::Retry => core::hint::spin_loop(),
                }
            }
        }

        /// Takes up to half of what is there: one task for now, the others to `to`.
        pub(crate) fn steal_half(&self, to: &Deque) -> Option<*const Header> {
            loop {
                match self.0.steal_batch_and_pop(&to.0) {
                    Steal::Success(entry) => return Some(entry.0),
                    Steal::Empty => return None,
                    Steal::Retry => core::hint::spin_loop(),
                }
            }
        }
    }
}

#[cfg(any(loom, miri))]
mod stand_in {
    use super::{Entry, Header};
    use std::collections::VecDeque;
    use std::sync::Arc;
    use tidegate_wait::shim::Lock;

    #[derive(Debug)]
    pub(crate) struct Deque(Arc<Lock<VecDeque<Entry>>>);

    #[derive(Debug)]
    pub(crate) struct Thief(Arc<Lock<VecDeque<Entry>>>);

    impl Deque {
        pub(crate) fn new() -> (Deque, Thief) {
            let line = Arc::new(Lock::new(VecDeque::new()));
            (Deque(line.clone()), Thief(line))
        }

        pub(crate) fn push(&self, task: *const Header) {
            self.0.lock().push_back(Entry(task));
        }

        pub(crate) fn pop(&self) -> Option<*const Header> {
            self.0.lock().pop_front().map(|entry| entry.0)
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.0.lock().is_empty()
        }

        pub(crate) fn len(&self) -> usize {
            self.0.lock().len()
        }
    }

    impl Thief {
        pub(crate) fn is_empty(&self) -> bool {
            self.0.lock().is_empty()
        }

        pub(crate) fn steal(&self) -> Option<*const Header> {
            self.0.lock().pop_front().map(|entry| entry.0)
        }

        pub(crate) fn steal_half(&self, to: &Deque) -> Option<*const Header> {
            let mut taken: Vec<Entry> = Vec::new();
            let mut line = self.0.lock();
            for _ in 0..line.len().div_ceil(2) {
                taken.extend(line.pop_front());
            }
            drop(line);
            let mut taken = taken.into_iter();
            let first = taken.next();
            taken.for_each(|entry| to.push(entry.0));
            first.map(|entry| entry.0)
        }
    }
}

#[cfg(not(any(loom, miri)))]
pub(crate) use real::{Deque, Thief};
#[cfg(any(loom, miri))]
pub(crate) use stand_in::{Deque, Thief};
