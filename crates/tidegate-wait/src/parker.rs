//! A thread as a waker: it looks a little, lets others run, then sleeps.
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
//! # Before the sleep
//! A sleep and its wake cost microseconds on both sides, so two threads that pass values quickly must not sleep at each.
//! 1. *Looks*: the state, again and again, for half a microsecond. They pay if the other side runs on another processor
//!    right now. None where there is one processor.
//! 2. *Turns*: the processor is offered to the system's other threads, and the state looked at after each. Two threads of
//!    which each sleeps until the other wakes it stay so, as a wake takes longer than anything they do in between;
//!    turns bridge it. They pay only while answers come quickly, so the parker keeps score: answered turns allow
//!    `TURNS` the next time, turns in vain a quarter of what they were, down to none; after
//!    `TRIES` waits without any they are tried again. On a channel on which little happens they cost less than a microsecond a message.
//!
//! [`Parker::park_timeout`] takes no turns: on a crowded machine a turn may last longer than its limit. An operation with a
//! limit that blocks its thread does: who ends it is the timer's thread, and it looks after every turn, so on a crowded
//! machine it may be late by a round of the system's scheduler.
//!
//! Test: `tests/loom_parker.rs`; bench: `throughput`, `oversubscribed`, `idle`.

use core::cell::Cell;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use crate::shim::{spin_loop, yield_now, AtomicU32, Ordering};

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard as Guard};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard as Guard};

const EMPTY: u32 = 0;
const NOTIFIED: u32 = 1;
const PARKED: u32 = 2;

/// How long the looks take, in units of 50 ns.
const LOOKS: u32 = 10;
/// The most turns in one wait, and how many waits without one go by before they are tried again.
const TURNS: u32 = match () {
    () if cfg!(loom) => 0,
    () if cfg!(miri) => 2,
    () => 32,
};
const TRIES: u32 = 16;

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

/// Whether turns have paid lately.
#[derive(Debug)]
struct Score {
    turns: Cell<u32>,
    /// Waits without turns since the last with some.
    without: Cell<u32>,
}

impl Default for Score {
    /// Tries them at once.
    fn default() -> Score {
        Score { turns: Cell::new(TURNS), without: Cell::new(0) }
    }
}

impl Score {
    /// How many turns this wait may take.
    fn turns(&self) -> u32 {
        let is_time_to_try = self.without.get() >= TRIES;
        if is_time_to_try {
            TURNS
        } else {
            self.turns.get()
        }
    }

    fn note(&self, turns: u32, answered: bool) {
        self.turns.set(if answered { TURNS } else { turns / 4 });
        self.without.set(if turns == 0 { self.without.get() + 1 } else { 0 });
    }
}

/// A thread that can wait. Its waker may go anywhere; the parker itself stays on its thread.
#[derive(Debug)]
pub struct Parker {
    shared: Arc<Shared>,
    waker: Waker,
    score: Score,
}

impl Parker {
    /// A parker without a token.
    #[must_use]
    pub fn new() -> Parker {
        let shared = Arc::new(Shared { state: AtomicU32::new(EMPTY), mutex: Mutex::new(()), signal: Condvar::new() });
        Parker { waker: Waker::from(shared.clone()), shared, score: Score::default() }
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
        if !self.take() && !self.look() && !self.give_turns() {
            self.sleep(None);
        }
    }

    /// [`Parker::park`] for at most `limit`. True: it was woken.
    pub fn park_timeout(&self, limit: Duration) -> bool {
        self.take() || self.look() || self.sleep(Some(limit))
    }

    fn is_answered(&self) -> bool {
        // Ordering: Relaxed to look; `take` has the Acquire.
        self.shared.state.load(Ordering::Relaxed) == NOTIFIED && self.take()
    }

    fn look(&self) -> bool {
        let looks = if one_processor() { 0 } else { LOOKS * unit() };
        (0..looks).any(|_| {
            spin_loop();
            self.is_answered()
        })
    }

    fn give_turns(&self) -> bool {
        let turns = self.score.turns();
        let answered = (0..turns).any(|_| {
            yield_now();
            self.is_answered()
        });
        self.score.note(turns, answered);
        answered
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

/// Spin hints for about 50 ns: one takes between 5 and 140 ns, by processor.
#[cfg(not(any(loom, miri)))]
pub fn unit() -> u32 {
    use std::sync::OnceLock;

    static UNIT: OnceLock<u32> = OnceLock::new();
    *UNIT.get_or_init(|| {
        const HINTS: u32 = 64;
        let measure = || {
            let start = Instant::now();
            (0..HINTS).for_each(|_| spin_loop());
            start.elapsed().as_nanos()
        };
        // The shortest of a few: an interruption only makes one longer.
        let shortest = (0..8).map(|_| measure()).min().unwrap_or(0).max(1);
        (u128::from(HINTS) * 50 / shortest).clamp(1, 64) as u32
    })
}

/// As above, where time does not pass or cannot be measured.
#[cfg(any(loom, miri))]
pub fn unit() -> u32 {
    u32::from(cfg!(miri))
}

std::thread_local! {
    /// The thread's parker, while nobody uses it.
    static CURRENT: Cell<Option<Parker>> = const { core::cell::Cell::new(None) };
}

std::thread_local! {
    /// The blocking waits that this thread is in: more than one, if a waker blocks.
    static WAITS: Cell<u32> = const { Cell::new(0) };
}

/// Is this thread in a blocking wait, with nothing to do but what it waits for?
#[must_use]
pub fn is_blocking() -> bool {
    WAITS.get() != 0
}

/// A blocking wait of this thread.
struct Blocking;

impl Blocking {
    fn begin() -> Blocking {
        WAITS.set(WAITS.get() + 1);
        Blocking
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        WAITS.set(WAITS.get() - 1);
    }
}

/// Lends the thread's parker to `f`. A wait inside a wait (a waker that blocks) gets one of its own.
pub(crate) fn with_current<R>(f: impl FnOnce(&Parker) -> R) -> R {
    // Loom's objects must not outlive an execution, so nothing is kept there.
    let kept = if cfg!(loom) { None } else { CURRENT.try_with(Cell::take).ok().flatten() };
    let parker = kept.unwrap_or_default();
    let blocking = Blocking::begin();
    let result = f(&parker);
    drop(blocking);
    // A token that came too late for the operation would only cost the next one a spurious poll.
    if !cfg!(loom) {
        let _ = CURRENT.try_with(|current| current.set(Some(parker)));
    }
    result
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    /// The turns of so many waits, none of which is answered in time.
    fn in_vain(score: &Score, waits: usize) -> Vec<u32> {
        let wait = |_| {
            let turns = score.turns();
            score.note(turns, false);
            turns
        };
        (0..waits).map(wait).collect()
    }

    #[test]
    fn turns_in_vain_become_none_and_are_tried_again() {
        let score = Score::default();
        let period = [vec![TURNS, TURNS / 4, TURNS / 16], vec![0; TRIES as usize]].concat();
        assert_eq!(in_vain(&score, 3 * period.len()), [&period[..], &period, &period].concat());
    }

    #[test]
    fn an_answer_allows_all_of_them_again() {
        let score = Score::default();
        in_vain(&score, 2);
        score.note(score.turns(), true);
        assert_eq!(score.turns(), TURNS);
    }
}
