//! The word that everybody who knows a task moves: wakers, its handle, its runtime's thread.
//!
//! # Layout
//! ```text
//! bit   63 ............. 7 | 6      5      4      3      2        1       0
//!       references         | LOCK   JOINED ABORT  HANDLE COMPLETE RUNNING SCHEDULED
//! ```
//! # Transitions
//! | call | by whom | from | to | returns |
//! | --- | --- | --- | --- | --- |
//! | [`State::schedule`] | anybody | idle | + SCHEDULED | true: the caller queues the task |
//! | | | RUNNING | + SCHEDULED | false: whoever has RUNNING queues it (W1) |
//! | | | SCHEDULED or COMPLETE | unchanged (but ordered) | false |
//! | [`State::wake`] | a waker, by value | idle | + SCHEDULED, perhaps − a reference | [`Woken::Queue`] |
//! | | | RUNNING | + SCHEDULED − a reference | [`Woken::Kept`] |
//! | | | SCHEDULED or COMPLETE | − a reference | [`Woken::Kept`], [`Woken::Last`] |
//! | [`State::abort`] | anybody | idle | + ABORT, SCHEDULED | true: the caller queues the task |
//! | | | RUNNING | + ABORT, SCHEDULED | false, as a wake |
//! | [`State::start`] | the local scheduler, which took it from a queue | SCHEDULED | − SCHEDULED | [`Start`] |
//! | [`State::claim_queued`] | a pool's worker, which took it from a queue | SCHEDULED | − SCHEDULED + RUNNING | [`Start`] |
//! | | | COMPLETE | unchanged | [`Start::Gone`] |
//! | [`State::pause`] | who has RUNNING | RUNNING | − RUNNING | true: SCHEDULED: the caller queues the task |
//! | [`State::claim_idle`] | a report | idle | + RUNNING | true |
//! | [`State::seize`] | who ends a pool's task that it is not polling | idle | + RUNNING | |
//! | | | SCHEDULED | + RUNNING + a reference, the entry's (W2) | |
//! | [`State::unqueue`] | who takes an entry that is not to be run | SCHEDULED | − SCHEDULED | true: a reference came with it: W2 |
//! | [`State::complete`] | the runtime's thread; in a pool, who has RUNNING | any but COMPLETE | + COMPLETE | [`Completed`] |
//! | [`State::park_join`] | the handle's task, under LOCK | LOCK | + JOINED − LOCK | true: COMPLETE came first |
//! | [`State::give_up_output`] | the handle, once | HANDLE | − HANDLE | true: COMPLETE: the output is the caller's to drop |
//!
//! - **S1** A task is in at most one queue: whoever sets SCHEDULED queues it, and only who took it from a queue clears it.
//!   A wake that finds SCHEDULED does nothing, so a task's place in the order is that of the first one, and while the thread
//!   of that one stands between the two steps, the task is not yet in any queue.
//! - **S2** A local scheduler's tasks are polled by its thread only, so a wake during the poll just queues the task again:
//!   no bit says RUNNING.
//! - **S3** The output is written before COMPLETE and read after it. While COMPLETE is clear it is the runtime's; from
//!   then on the handle's, if HANDLE was set at that moment, and otherwise the runtime's, which drops it.
//! - **S4** References: one of the registry while the task lives, one of the handle, one a waker, one of the mailbox while
//!   the task stands in it. The local queue has none: a task that completes while it stands there leaves the registry's.
//!
//! In a pool, which has many threads (`scheduler::pool`):
//! - **W1** RUNNING is exclusive: whoever has it polls the task, ends it, or reads its note. A wake meanwhile only leaves
//!   SCHEDULED, and who gives RUNNING up finds it there and queues the task. So a task is never polled twice at once,
//!   and no wake is lost.
//! - **W2** An entry in a pool's queue, or on its way there (a thread that has set SCHEDULED on an idle task), has no
//!   reference of its own: the registry's keeps the task alive. If the task is seized meanwhile, to be ended from elsewhere, the
//!   entry gets one in the same step, and whoever takes the entry gives it back: it finds the task RUNNING or COMPLETE, which no
//!   entry without a reference ever is.
//!
//! Tests: `tests/loom_task.rs`, `scheduler/pool/loom_models.rs`.

use tidegate_wait::shim::{AtomicUsize, Ordering, Patience};

const SCHEDULED: usize = 1;
const RUNNING: usize = 1 << 1;
const COMPLETE: usize = 1 << 2;
const HANDLE: usize = 1 << 3;
const ABORT: usize = 1 << 4;
const JOINED: usize = 1 << 5;
const LOCK: usize = 1 << 6;
const REFERENCE: usize = 1 << 7;

/// Somebody queues the task already, or will, or it has ended.
const TAKEN: usize = SCHEDULED | RUNNING | COMPLETE;

/// See the module.
#[derive(Debug)]
pub(crate) struct State(AtomicUsize);

/// What a waker that gives itself up has to do.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Queue the task.
    Queue,
    /// Nothing.
    Kept,
    /// Free it: this was the last reference.
    Last,
}

/// What is to be done with a task that was taken from a queue.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Poll it.
    Poll,
    /// Drop its future: somebody has aborted it.
    Cancel,
    /// It has completed while it stood there.
    Gone,
}

/// Who is there at the end of a task.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    /// The output is the handle's now; otherwise the runtime drops it.
    pub(crate) has_handle: bool,
    /// A join may be parked: look under the lock.
    pub(crate) is_joined: bool,
}

impl State {
    /// A new task: in a queue already, with a handle and so many references.
    pub(crate) fn new(references: usize) -> State {
        State(AtomicUsize::new(SCHEDULED | HANDLE | (references * REFERENCE)))
    }

    /// A wake by reference.
    #[inline(always)]
    pub(crate) fn schedule(&self) -> bool {
        // Ordering: AcqRel: Release pairs with Acquire in `start`, so the poll sees what was done before the wake, also when
        // the task stands in a queue already; Acquire for whoever queues it, with `start`'s Release.
        self.0.fetch_or(SCHEDULED, Ordering::AcqRel) & TAKEN == 0
    }

    /// A wake by value. With `hands_on`, the queue gets the waker's reference; else it is given up in the same step (the
    /// local queue has none, nor has a pool's, and the registry's keeps the task alive).
    #[inline(always)]
    pub(crate) fn wake(&self, hands_on: bool) -> Woken {
        // Ordering: Relaxed to look; AcqRel as in `schedule`, and as in `release`.
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let (next, woken) = match seen & TAKEN {
                0 if hands_on => (seen | SCHEDULED, Woken::Queue),
                0 => ((seen | SCHEDULED) - REFERENCE, Woken::Queue),
                // The registry has a reference, so this is not the last.
                RUNNING => ((seen | SCHEDULED) - REFERENCE, Woken::Kept),
                _ if seen / REFERENCE == 1 => (seen - REFERENCE, Woken::Last),
                _ => (seen - REFERENCE, Woken::Kept),
            };
            match self.0.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return woken,
                Err(now) => seen = now,
            }
        }
    }

    /// Asks for the task's end.
    pub(crate) fn abort(&self) -> bool {
        // Ordering: AcqRel as in `schedule`.
        self.0.fetch_or(ABORT | SCHEDULED, Ordering::AcqRel) & TAKEN == 0
    }

    /// The task leaves its queue.
    #[inline(always)]
    pub(crate) fn start(&self) -> Start {
        // Ordering: AcqRel: Acquire pairs with Release in every wake since the last poll; Release makes the last poll's
        // writes visible to whoever queues it next.
        match self.0.fetch_and(!SCHEDULED, Ordering::AcqRel) & (COMPLETE | ABORT) {
            0 => Start::Poll,
            ABORT => Start::Cancel,
            _ => Start::Gone,
        }
    }

    /// The task leaves a pool's queue. With anything but [`Start::Gone`] the caller has RUNNING.
    #[inline(always)]
    pub(crate) fn claim_queued(&self) -> Start {
        // Who is SCHEDULED and not COMPLETE is not RUNNING: a report claims only what is idle, and whoever seizes a task
        // ends it on the thread that takes its entry, or when no worker is left. So the sum moves the one bit to the other.
        const { assert!(RUNNING == 2 * SCHEDULED) };
        if self.is_complete() {
            return Start::Gone;
        }
        // Ordering: AcqRel as in `start`; Acquire pairs also with Release in `pause`: the last poll's writes are visible.
        match self.0.fetch_add(SCHEDULED, Ordering::AcqRel) & ABORT {
            0 => Start::Poll,
            _ => Start::Cancel,
        }
    }

    /// The poll, or the report, is over.
    #[inline(always)]
    pub(crate) fn pause(&self) -> bool {
        // Ordering: AcqRel: Release pairs with Acquire in whoever has RUNNING next; Acquire with the wakes since.
        self.0.fetch_sub(RUNNING, Ordering::AcqRel) & SCHEDULED != 0
    }

    /// RUNNING for a report, if nobody has it, and the task waits.
    pub(crate) fn claim_idle(&self) -> bool {
        // Ordering: Relaxed to look; Acquire pairs with Release in `pause`.
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen & TAKEN == 0 {
            match self.0.compare_exchange_weak(seen, seen | RUNNING, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// RUNNING for the task's end. An entry in a queue, or on its way there, gets a reference (W2).
    pub(crate) fn seize(&self) {
        let mut patience = Patience::new();
        // Ordering: Relaxed to look; Acquire as in `claim_idle`.
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            if seen & RUNNING != 0 {
                // A report has it, for a moment.
                patience.a_little();
                seen = self.0.load(Ordering::Relaxed);
                continue;
            }
            let entry = if seen & SCHEDULED != 0 { REFERENCE } else { 0 };
            let next = (seen | RUNNING) + entry;
            match self.0.compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// An entry goes without being run. True: with the reference that `seize` gave it.
    pub(crate) fn unqueue(&self) -> bool {
        // Ordering: AcqRel as in `start`.
        self.0.fetch_and(!SCHEDULED, Ordering::AcqRel) & (RUNNING | COMPLETE) != 0
    }

    /// The task ends; its output has been written (S3).
    #[inline(always)]
    pub(crate) fn complete(&self) -> Completed {
        // Ordering: AcqRel: Release pairs with Acquire in `is_complete`, `park_join` and `give_up_output`; Acquire, with
        // the handle's last steps if it is gone.
        let before = self.0.fetch_or(COMPLETE, Ordering::AcqRel);
        Completed { has_handle: before & HANDLE != 0, is_joined: before & JOINED != 0 }
    }

    /// Has it ended? True: the output may be read by its owner (S3).
    #[inline(always)]
    pub(crate) fn is_complete(&self) -> bool {
        // Ordering: Acquire pairs with Release in `complete`.
        self.0.load(Ordering::Acquire) & COMPLETE != 0
    }

    /// Has somebody asked for the end?
    pub(crate) fn is_aborted(&self) -> bool {
        // Ordering: Relaxed; a report.
        self.0.load(Ordering::Relaxed) & ABORT != 0
    }

    /// Does somebody poll it, or report on it?
    pub(crate) fn is_running(&self) -> bool {
        // Ordering: Relaxed; a report.
        self.0.load(Ordering::Relaxed) & RUNNING != 0
    }

    /// Does it stand in a queue?
    pub(crate) fn is_scheduled(&self) -> bool {
        // Ordering: Relaxed; a report.
        self.0.load(Ordering::Relaxed) & SCHEDULED != 0
    }

    /// The join's lock: held for a handful of steps.
    #[inline]
    pub(crate) fn lock(&self) {
        let mut patience = Patience::new();
        // Ordering: Acquire pairs with Release in `unlock` and `park_join`.
        while self.0.fetch_or(LOCK, Ordering::Acquire) & LOCK != 0 {
            patience.a_little();
        }
    }

    /// Gives the join's lock back.
    #[inline]
    pub(crate) fn unlock(&self) {
        // Ordering: Release pairs with Acquire in `lock`.
        self.0.fetch_and(!LOCK, Ordering::Release);
    }

    /// Gives the lock back with a join parked. True: the task had completed before JOINED was there to be seen, so
    /// nobody will end the join.
    #[inline]
    pub(crate) fn park_join(&self) -> bool {
        // Ordering: Relaxed to look; AcqRel: Release as in `unlock`, Acquire with `complete`.
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            match self.0.compare_exchange_weak(seen, (seen | JOINED) & !LOCK, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return seen & COMPLETE != 0,
                Err(now) => seen = now,
            }
        }
    }

    /// The handle wants no output any more, or has taken it.
    #[inline]
    pub(crate) fn give_up_output(&self) -> bool {
        // Ordering: AcqRel: Acquire as in `is_complete`; Release pairs with Acquire in `complete`.
        self.0.fetch_and(!HANDLE, Ordering::AcqRel) & COMPLETE != 0
    }

    /// Is there a handle that has not given the output up? For the handle itself.
    #[inline]
    pub(crate) fn has_handle(&self) -> bool {
        // Ordering: Relaxed; only the handle clears the bit.
        self.0.load(Ordering::Relaxed) & HANDLE != 0
    }

    /// How many references there are, for the search for cycles.
    pub(crate) fn references(&self) -> usize {
        // Ordering: Relaxed; a snapshot.
        self.0.load(Ordering::Relaxed) / REFERENCE
    }

    /// One more reference.
    ///
    /// # Panics
    /// Aborts the process beyond a quarter of what fits: so many leaked wakers would wrap the count.
    #[inline(always)]
    pub(crate) fn retain(&self) {
        // Ordering: Relaxed; the caller has a reference already.
        if self.0.fetch_add(REFERENCE, Ordering::Relaxed) > usize::MAX / 4 {
            std::process::abort();
        }
    }

    /// One reference less. True: it was the last; everything done under the others is visible.
    #[inline(always)]
    pub(crate) fn release(&self) -> bool {
        // Ordering: AcqRel: Release pairs with Acquire in whoever gives the last one up.
        self.0.fetch_sub(REFERENCE, Ordering::AcqRel) / REFERENCE == 1
    }
}
