//! A thread as a waker: it spins a little, then sleeps.
//!
//! For blocking waits. One parker a thread, shared by reference count, never on the stack: a waker that outlives the
//! operation may still call it. It is not `std::thread::park`, whose token belongs to the user.
//!
//! # States
//! ```text
//! from      to         by        what
//! EMPTY     NOTIFIED   unpark    the next park returns at once
//! EMPTY     PARKED     park      under the mutex; then sleeps
//! PARKED    NOTIFIED   unpark    then takes the mutex once and signals
//! NOTIFIED  EMPTY      park      the token is taken
//! ```
//! - **K1** `unpark` takes the mutex between its swap and its signal. Without it: the parking thread has stored PARKED
//!   and is about to sleep; the signal comes; then it sleeps, for ever.
//!
//! Spinning pays only if the other side runs on another processor and answers soon. So the parker keeps score: a spin
//! that was answered allows a longer one next time, one that was not halves it, down to none; on one processor there is
//! none at all. Test: `tests/loom_parker.rs`.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use crate::shim::{spin_loop, AtomicU32, Ordering};

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard as Guard};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard as Guard};

const EMPTY: u32 = 0;
const NOTIFIED: u32 = 1;
const PARKED: u32 = 2;

/// The longest spin, in hints.
const MAX_SPIN: u32 = if cfg!(loom) { 0 } else { 128 };

#[derive(Debug)]
struct Shared {
    state: AtomicU32,
    mutex: Mutex<()>,
    signal: Condvar,
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Ordering: Release pairs with Acquire in `take`; the woken thread sees what was done before the wake.
        if self.state.swap(NOTIFIED, Ordering::Release) == PARKED {
            // K1.
            drop(self.mutex.lock());
            self.signal.notify_one();
        }
    }
}

/// A thread that can wait. Its waker may go anywhere; the parker itself stays on its thread.
#[derive(Debug)]
pub struct Parker {
    shared: Arc<Shared>,
    waker: Waker,
    spin: core::cell::Cell<u32>,
}

impl Parker {
    /// A parker without a token.
    #[must_use]
    pub fn new() -> Parker {
        let shared = Arc::new(Shared { state: AtomicU32::new(EMPTY), mutex: Mutex::new(()), signal: Condvar::new() });
        Parker { waker: Waker::from(shared.clone()), shared, spin: core::cell::Cell::new(MAX_SPIN / 4) }
    }

    /// Wakes this parker's thread.
    #[must_use]
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    fn take(&self) -> bool {
        // Ordering: Acquire pairs with Release in `wake_by_ref`.
        self.shared.state.compare_exchange(NOTIFIED, EMPTY, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Waits for the waker to be woken since the last `park`; may not return early.
    pub fn park(&self) {
        if !self.spin() {
            self.sleep(None);
        }
    }

    /// [`Parker::park`] for at most `limit`. True: it was woken.
    pub fn park_timeout(&self, limit: Duration) -> bool {
        self.spin() || self.sleep(Some(limit))
    }

    fn spin(&self) -> bool {
        if self.take() {
            return true;
        }
        let budget = if one_processor() { 0 } else { self.spin.get() };
        for _ in 0..budget {
            spin_loop();
            // Ordering: Relaxed to look; `take` has the Acquire.
            if self.shared.state.load(Ordering::Relaxed) == NOTIFIED && self.take() {
                // Zero under loom, where the lint is right.
                #[cfg_attr(loom, allow(clippy::unnecessary_min_or_max))]
                self.spin.set((budget * 2).min(MAX_SPIN));
                return true;
            }
        }
        // One in a while: who never spins never learns that it would pay.
        self.spin.set(match budget {
            0 | 1 => 2,
            _ => budget / 2,
        });
        false
    }

    fn sleep(&self, limit: Option<Duration>) -> bool {
        // Too far for the clock's range: for ever.
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut guard = lock(&self.shared.mutex);
        // Ordering: Acquire on failure pairs with Release in `wake_by_ref`; on success nothing is read.
        if self.shared.state.compare_exchange(EMPTY, PARKED, Ordering::Relaxed, Ordering::Acquire).is_ok() {
            while !self.take() {
                let Some(end) = end else {
                    guard = self.shared.signal.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner());
                    continue;
                };
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    // Ordering: Acquire pairs with Release in `wake_by_ref`: its wake may have come just now.
                    return self.shared.state.swap(EMPTY, Ordering::Acquire) == NOTIFIED;
                }
                guard = wait_timeout(&self.shared.signal, guard, left);
            }
        } else {
            // NOTIFIED: only this thread stores the other two. A second wake may have come since the look above. A plain
            // store would overwrite its token unread: the thread would return without seeing what was done before that
            // wake, and nobody would wake it again.
            // Ordering: Acquire pairs with Release in `wake_by_ref`, the latest one.
            self.shared.state.swap(EMPTY, Ordering::Acquire);
        }
        true
    }
}

fn wait_timeout<'a>(signal: &Condvar, guard: Guard<'a, ()>, left: Duration) -> Guard<'a, ()> {
    match signal.wait_timeout(guard, left) {
        Ok((guard, _)) => guard,
        Err(poisoned) => poisoned.into_inner().0,
    }
}

fn lock(mutex: &Mutex<()>) -> Guard<'_, ()> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

/// Does this machine leave no other processor to the one who is waited for?
pub fn one_processor() -> bool {
    static COUNT: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().is_ok_and(|count| count.get() == 1))
}

std::thread_local! {
    /// The thread's parker, while nobody uses it.
    static CURRENT: core::cell::Cell<Option<Parker>> = const { core::cell::Cell::new(None) };
}

/// Lends the thread's parker to `f`. A wait inside a wait (a waker that blocks) gets one of its own.
pub(crate) fn with_current<R>(f: impl FnOnce(&Parker) -> R) -> R {
    // Loom's objects must not outlive an execution, so nothing is kept there.
    let kept = if cfg!(loom) { None } else { CURRENT.try_with(core::cell::Cell::take).ok().flatten() };
    let parker = kept.unwrap_or_default();
    let result = f(&parker);
    // A token that came too late for the operation would only cost the next one a spurious poll.
    if !cfg!(loom) {
        let _ = CURRENT.try_with(|current| current.set(Some(parker)));
    }
    result
}
