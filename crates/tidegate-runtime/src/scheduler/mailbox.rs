//! What other threads leave for a runtime: woken tasks, and requests.
//!
//! # Shape
//! Woken tasks stand in a stack, linked through their headers: pushed by anybody, taken as a whole by the runtime's
//! thread, which reverses it. Nothing is allocated. Requests (rare: a dump) are boxes behind a mutex.
//!
//! ```text
//! head   null        empty: whoever pushes next wakes the thread
//!        a task      and what was pushed before it
//!        CLOSED      no runtime: what is pushed is given back
//! ```
//! - **X1** Whoever makes the stack non-empty wakes the thread, after the push; the thread empties it before it parks, and
//!   its parker remembers a wake. So no push is slept over.
//! - **X2** Each task in a local runtime's stack has a reference there; whoever takes it out has it then. In a pool's, for
//!   its pinned tasks, it has none: W2.
//! - **X3** A mailbox is never freed, only reused: a waker may come at any time, in particular between its task's
//!   SCHEDULED and the push, while the runtime is dropped. What it pushes then is COMPLETE, and whoever takes it out, be it
//!   the next runtime, gives the reference back. It may also be woken, by a thread of its last runtime: for nothing.
//!
//! Tests: `tests/loom_task.rs`.

use core::ptr;
use std::sync::{Mutex, MutexGuard};

use tidegate_wait::parker::Parker;
use tidegate_wait::shim::{AtomicBool, AtomicPtr, Ordering};

use super::local::Local;
use crate::task::Header;

/// Something to be done on the runtime's thread.
pub(crate) type Request = Box<dyn FnOnce(&Local) + Send>;

/// See the module.
pub(crate) struct Mailbox {
    head: AtomicPtr<Header>,
    /// Another thread has armed a timer that is due before the next look.
    has_timer: AtomicBool,
    has_requests: AtomicBool,
    requests: Mutex<Vec<Request>>,
    /// Parked on by the runtime's thread only; woken by anybody.
    parker: Parker,
    /// X2.
    is_of_pool: bool,
}

// SAFETY: tasks in the stack are only reached by whoever took them out; `parker` is parked on by one thread, the one that
// took this mailbox, and its waker is for everybody.
unsafe impl Send for Mailbox {}
// SAFETY: as above.
unsafe impl Sync for Mailbox {}

impl core::fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Mailbox").finish_non_exhaustive()
    }
}

const CLOSED: *mut Header = ptr::without_provenance_mut(1);

/// Mailboxes without a runtime.
static FREE: Mutex<Vec<&'static Mailbox>> = Mutex::new(Vec::new());

fn free() -> MutexGuard<'static, Vec<&'static Mailbox>> {
    FREE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Mailbox {
    fn new(is_of_pool: bool) -> Mailbox {
        Mailbox {
            is_of_pool,
            head: AtomicPtr::new(CLOSED),
            has_timer: AtomicBool::new(false),
            has_requests: AtomicBool::new(false),
            requests: Mutex::new(Vec::new()),
            parker: Parker::new(),
        }
    }

    /// An open one, for a place in a pool.
    pub(crate) fn of_pool() -> Mailbox {
        let mailbox = Mailbox::new(true);
        mailbox.open();
        mailbox
    }

    /// An open, empty mailbox for the calling thread.
    pub(crate) fn take() -> &'static Mailbox {
        let known = if cfg!(loom) { None } else { free().pop() };
        let mailbox = known.unwrap_or_else(|| Box::leak(Box::new(Mailbox::new(false))));
        mailbox.open();
        mailbox
    }

    /// Opens one that is closed, or leaves it open.
    pub(crate) fn open(&self) {
        // Ordering: Relaxed; a late thread of its last runtime only looks for CLOSED.
        if self.head.load(Ordering::Relaxed) == CLOSED {
            self.head.store(ptr::null_mut(), Ordering::Relaxed);
            // Left by late threads of its last runtime.
            self.has_timer.store(false, Ordering::Relaxed);
            self.has_requests.store(false, Ordering::Relaxed);
        }
    }

    /// Closes it; what stood there is given back.
    pub(crate) fn close(&self) {
        self.empty(CLOSED, |task| self.give_up(task));
        self.requests().clear();
    }

    /// Leaves it to the next runtime. (Loom's objects must not be used in a later execution: there it is forgotten.)
    pub(crate) fn give_back(&'static self) {
        if !cfg!(loom) {
            free().push(self);
        }
    }

    /// An entry that goes without being run.
    fn give_up(&self, task: *const Header) {
        // SAFETY: X2; the entry is the caller's.
        unsafe {
            match self.is_of_pool {
                true => Header::drop_entry(task),
                false => Header::release(task),
            }
        }
    }

    /// Leaves a task, with a reference if this is a local runtime's.
    ///
    /// # Safety
    /// The caller has set SCHEDULED, and its reference goes along; in a pool, W2.
    pub(crate) unsafe fn push(&self, task: *const Header) {
        // Ordering: Relaxed to look; the exchange has the Release.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head == CLOSED {
                self.give_up(task);
                return;
            }
            // SAFETY: who set SCHEDULED may link the task (S1).
            unsafe { (*task).next.set(head) };
            // Ordering: Release pairs with Acquire in `empty`; makes the link visible.
            match self.head.compare_exchange_weak(head, task.cast_mut(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        if head.is_null() {
            self.wake();
        }
    }

    /// Wakes the runtime's thread.
    pub(crate) fn wake(&self) {
        self.parker.waker().wake_by_ref();
    }

    /// Is there anything? A hint: what comes later wakes the parker.
    #[inline(always)]
    pub(crate) fn has_tasks(&self) -> bool {
        // Ordering: Relaxed; `empty` has the Acquire.
        !self.head.load(Ordering::Relaxed).is_null()
    }

    /// Takes all tasks out, in the order in which they came.
    pub(crate) fn drain(&self, f: impl FnMut(*const Header)) {
        self.empty(ptr::null_mut(), f);
    }

    fn empty(&self, leave: *mut Header, mut f: impl FnMut(*const Header)) {
        // Ordering: Acquire pairs with Release in `push`, for every task in the stack: each push is a read-modify-write of
        // the same word.
        let mut last = self.head.swap(leave, Ordering::Acquire).cast_const();
        let mut first: *const Header = ptr::null();
        // SAFETY: the tasks are alive (X2), and their links are ours now.
        unsafe {
            while !last.is_null() && last != CLOSED {
                let before = (*last).next.replace(first);
                first = last;
                last = before;
            }
            while !first.is_null() {
                let next = (*first).next.get();
                f(first);
                first = next;
            }
        }
    }

    /// A timer was armed that the thread does not know of.
    pub(crate) fn notice_timer(&self) {
        // Ordering: Release pairs with Acquire in `take_timer`.
        self.has_timer.store(true, Ordering::Release);
        self.wake();
    }

    /// Has one been armed since the last call?
    #[inline(always)]
    pub(crate) fn take_timer(&self) -> bool {
        // Ordering: Relaxed to look; the swap's Acquire pairs with Release in `notice_timer`. What comes later wakes the
        // parker.
        self.has_timer.load(Ordering::Relaxed) && self.has_timer.swap(false, Ordering::Acquire)
    }

    /// Has one been armed? A hint, as [`Mailbox::has_tasks`].
    pub(crate) fn has_timer(&self) -> bool {
        // Ordering: Relaxed; `take_timer` has the Acquire.
        self.has_timer.load(Ordering::Relaxed)
    }

    /// Leaves a request and wakes the thread.
    pub(crate) fn request(&self, request: Request) {
        self.requests().push(request);
        // Ordering: Release pairs with Acquire in `serve`; the mutex orders the requests themselves.
        self.has_requests.store(true, Ordering::Release);
        self.wake();
    }

    /// Does what was requested.
    #[inline]
    pub(crate) fn serve(&self, local: &Local) {
        // Ordering: Relaxed to look, Acquire on the swap; a request that comes later sets it again.
        if self.has_requests.load(Ordering::Relaxed) && self.has_requests.swap(false, Ordering::Acquire) {
            let requests = core::mem::take(&mut *self.requests());
            requests.into_iter().for_each(|request| request(local));
        }
    }

    /// Are there requests? A hint, as [`Mailbox::has_tasks`].
    pub(crate) fn has_requests(&self) -> bool {
        // Ordering: Relaxed; `serve` has the Acquire.
        self.has_requests.load(Ordering::Relaxed)
    }

    fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// For the thread that took this mailbox.
    pub(crate) fn parker(&self) -> &Parker {
        &self.parker
    }
}
