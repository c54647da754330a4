//! Timers: a hierarchical wheel with a clock, a lock and somebody who turns it.
//!
//! Outside a Tidegate runtime one *driver* thread serves the process ([`driver`](self)); it starts with the first timer
//! and sleeps while nothing is armed. A runtime's worker registers a [`Wheel`] of its own and turns it
//! itself; [`ManualClock`] is a wheel that a test turns.
//!
//! # Firing
//! Under the wheel's lock an entry is unlinked, then its operation is settled through its owner's table, which takes
//! the owner's lock: **wheel before owner**, never the reverse, and never two wheels. The settling store is the last
//! touch of the operation. Wakers run and references are given back after the lock; what an owner still owes then (O4)
//! is the driver thread's to pay, a part between two turns of its own wheel.
//!
//! - **T4** An operation that was armed takes the wheel's lock once more before it ends (`disarm`), so nobody is still
//!   looking at it when its memory goes.
//! - **T5** A wheel's cell (its lock and its slots) is never freed, only reused: `disarm` may find it in its next life,
//!   where the entry is unlinked.

mod clock;
pub(crate) mod driver;
pub(crate) mod entry;
mod interval;
mod registry;
mod sleep;
mod timeout;
mod wheel;

use std::sync::Arc;

pub use clock::ManualClock;
pub use driver::is_settling;
pub use interval::{interval, interval_at, Interval, MissedTicks, Tick, ZeroPeriod};
pub use sleep::{sleep, sleep_until, Sleep};
pub use timeout::{timeout, timeout_at, Elapsed, Timeout};

pub(crate) use clock::{duration_ns, instant_ns, Clock};

use core::ptr::NonNull;
use core::task::Waker;

use crate::debt::Debt;
use crate::op::entry::head_of;
use crate::owner::{Held, Owner, OwnerHeader};
use crate::shim::{Guard, Lock};
use crate::waiter::{Head, Kind, Node, State};
use crate::wake_batch::{WakeBatch, BATCH};
use entry::{TimerEntry, FOREVER};
#[doc(hidden)]
pub use wheel::WheelCore;

/// What [`Wheel::turn`] left to do.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Something is left to do now: turn again, after letting others at the processor.
    More,
    /// Nothing to do before this time, in nanoseconds on the wheel's clock ([`Wheel::now_ns`]).
    At(u64),
    /// Nothing is armed.
    Idle,
}

/// Somebody who turns a wheel and sleeps in between: the driver thread, or a runtime's worker.
///
/// Wakers run on the thread that turns. One that blocks holds up every timer that this thread turns; one that blocks on
/// such a timer waits for ever.
pub trait Turner: Send + Sync {
    /// A timer was armed that is due before the turner planned to look: it should turn the wheel, soon. Called outside
    /// all locks, from any thread; must not block or panic.
    fn earlier(&self);
}

/// The part of a wheel that operations may reach after its turner has gone (T5).
#[doc(hidden)]
#[repr(C)]
#[derive(Debug)]
pub struct WheelCell {
    header: OwnerHeader,
    id: u16,
    core: Lock<WheelCore>,
}

// SAFETY: `header` comes first; the lock is a mutex; the memory is never freed while anything is linked (T5).
unsafe impl Owner for WheelCell {
    type Hold<'a> = Guard<'a, WheelCore>;
    const NAME: &'static str = "sleep";

    #[inline]
    fn lock(&self) -> Guard<'_, WheelCore> {
        self.core.lock()
    }

    #[inline]
    fn unlock(&self, hold: Guard<'_, WheelCore>) {
        drop(hold);
    }

    #[inline]
    unsafe fn detach(&self, hold: &mut Guard<'_, WheelCore>, node: *const Node, _: &mut WakeBatch) {
        // SAFETY: only a `Sleep` is owned by a wheel, and its entry stands right in front of its head.
        let _was_linked = unsafe { hold.remove(sleep::entry_of(node)) };
    }

    unsafe fn retain(&self) {}

    unsafe fn release(_: *const WheelCell) -> Option<NonNull<Debt>> {
        None
    }
}

/// A timer wheel with its clock, for whoever turns it: the driver thread, a runtime's worker, a test's clock.
///
/// Dropping it wakes everything that is still armed here; those operations arm again on the wheel of the thread that
/// polls them next.
pub struct Wheel {
    cell: &'static WheelCell,
    clock: Clock,
    turner: Option<Arc<dyn Turner>>,
}

// A panic that unwinds through a holder of a wheel leaves it whole: nothing of the user's runs under its lock.
impl core::panic::UnwindSafe for Wheel {}
impl core::panic::RefUnwindSafe for Wheel {}

impl core::fmt::Debug for Wheel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Wheel").field("id", &self.cell.id).field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Wheel {
    /// A wheel on the system's clock. `None`: as many wheels as there can be (511) are alive; share one, or leave the
    /// timers to the driver thread.
    #[must_use]
    pub fn register(turner: Arc<dyn Turner>) -> Option<Wheel> {
        Wheel::with_clock(Clock::System, Some(turner))
    }

    pub(crate) fn with_clock(clock: Clock, turner: Option<Arc<dyn Turner>>) -> Option<Wheel> {
        Some(Wheel { cell: registry::take(clock.now())?, clock, turner })
    }

    /// The time on this wheel's clock.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.clock.now()
    }

    /// How many timers are armed here.
    #[must_use]
    pub fn armed(&self) -> usize {
        self.cell.core.lock().len()
    }

    /// One bounded step: fires at most one batch of what is due, moves at most 256 timers down a level, wakes outside
    /// the lock. Any thread may turn any wheel.
    ///
    /// A timer that takes a heavy send out of a line makes room for many behind it. A few of them go on within the turn;
    /// the others are let in by the driver thread, or at once if the clock is a manual one.
    pub fn turn(&self) -> Next {
        self.turn_counting().0
    }

    /// [`Wheel::turn`], and how many timers it fired.
    pub fn turn_counting(&self) -> (Next, usize) {
        let mut fired = 0;
        let now = self.clock.now();
        let mut batch = WakeBatch::new();
        let core = self.cell.core.lock();
        let next = core.turn(now, BATCH, self.clock.runs(), |entry| {
            fired += 1;
            // SAFETY: the entry was linked here and the lock is held: its operation is alive (T4).
            unsafe { self.cell.fire(entry, &mut batch) }
        });
        drop(core);
        match self.clock {
            // Who is woken first may look whether anything is left to settle, on another thread, before it is owed.
            Clock::System if batch.holds() => driver::settling(|| batch.run_keeping(driver::owe)),
            Clock::System => batch.run(),
            Clock::Manual(_) => batch.run(),
        }
        let next = match next {
            wheel::Next::More => Next::More,
            wheel::Next::At(at) => Next::At(at),
            wheel::Next::Idle => Next::Idle,
        };
        (next, fired)
    }

    /// Arms an entry, pinned and unarmed, for `deadline`.
    ///
    /// # Safety
    /// `entry` stands `depth` entries in front of an operation's head and is derived from a pointer to the whole; its
    /// task takes it out again by [`disarm`] before the memory goes.
    #[inline]
    pub(crate) unsafe fn arm(&self, entry: *mut TimerEntry, deadline: u64, depth: usize) {
        // SAFETY: the caller's promise.
        let earlier = unsafe {
            (*entry).arm(deadline, self.cell.id, depth);
            self.cell.core.lock().insert(entry)
        };
        if earlier {
            self.notify(deadline);
        }
    }

    /// Who owns the sleeps on this wheel.
    #[inline]
    pub(crate) fn owner(&self) -> *const OwnerHeader {
        // Not `&raw const self.cell.header`: a pointer made from that must not leave the header.
        core::ptr::from_ref(self.cell).cast()
    }

    /// The time, if it costs next to nothing to know.
    #[inline]
    pub(crate) fn cheap_now(&self) -> Option<u64> {
        match &self.clock {
            Clock::System => None,
            manual @ Clock::Manual(_) => Some(manual.now()),
        }
    }

    /// Parks a sleep. With `look`, whether `due` is past is not known yet: the clock is read if the sleep would be the
    /// first on this wheel, and false says that it is past, and nothing has happened. Any other sleep that is past fires
    /// with the one before it, at once.
    ///
    /// # Safety
    /// As for [`Wheel::arm`]; `entry` stands right in front of the head of `node`, which is in state Init.
    #[inline]
    pub(crate) unsafe fn arm_sleep(
        &self,
        entry: *mut TimerEntry,
        node: *const Node,
        due: u64,
        kind: Kind,
        waker: Waker,
        look: bool,
    ) -> bool {
        let mut core = self.cell.core.lock();
        if look && core.would_be_first(due) {
            drop(core);
            if due <= self.clock.now() {
                crate::wake_batch::discard(Some(waker));
                return false;
            }
            core = self.cell.core.lock();
        }
        // SAFETY: the caller's promise; the lock is held.
        let earlier = unsafe {
            (*entry).arm(due, self.cell.id, 1);
            (*node).wait_unlinked(kind, waker);
            due != FOREVER && core.insert(entry)
        };
        drop(core);
        if earlier {
            self.notify(due);
        }
        true
    }

    /// Something was armed for `due`, which is earlier than the turner knows.
    fn notify(&self, due: u64) {
        match &self.turner {
            Some(turner) => turner.earlier(),
            // A manual clock that another thread has moved between our look at it and the insertion: nobody would turn
            // the wheel before the next move.
            None if due <= self.clock.now() => while self.turn() == Next::More {},
            None => {}
        }
    }
}

impl Drop for Wheel {
    fn drop(&mut self) {
        let mut batch = WakeBatch::new();
        loop {
            let core = self.cell.core.lock();
            let mut left = true;
            while left && batch.has_room() {
                match core.pop_any() {
                    // SAFETY: the entry was linked here and the lock is held.
                    Some(entry) => unsafe { self.cell.rouse(entry, &mut batch) },
                    None => left = false,
                }
            }
            drop(core);
            batch.run();
            if !left {
                break;
            }
        }
        registry::give_back(self.cell);
    }
}

impl WheelCell {
    /// Ends the wait of the operation that `entry` limits. The last touch of its memory.
    ///
    /// # Safety
    /// Under this cell's lock; `entry` has just been unlinked.
    #[inline]
    unsafe fn fire(&self, entry: *mut TimerEntry, batch: &mut WakeBatch) {
        // SAFETY: the operation is alive: its task would have to take this lock first (T4).
        unsafe {
            let head = head_of(entry.cast());
            let owner = (*head).owner();
            if owner == &raw const self.header {
                // A sleep: this lock is its owner's.
                if (*head).node.is_waiting() {
                    let end = sleep::end_of((*head).node.kind());
                    batch.push((*head).node.take_waker());
                    (*head).node.finish(end);
                }
            } else {
                let _either = Head::settle(head, State::TimedOut, batch);
                batch.release_later(Held::from_raw(owner));
            }
        }
    }

    /// Wakes the operation of an entry whose wheel dies, without ending its wait.
    ///
    /// # Safety
    /// As for [`WheelCell::fire`].
    unsafe fn rouse(&self, entry: *mut TimerEntry, batch: &mut WakeBatch) {
        // SAFETY: as there.
        unsafe {
            let head = head_of(entry.cast());
            let owner = (*head).owner();
            if owner == &raw const self.header {
                if (*head).node.is_waiting() {
                    batch.push((*head).node.exchange_waker(None));
                }
            } else {
                Head::rouse(head, batch);
                batch.release_later(Held::from_raw(owner));
            }
        }
    }
}

/// Takes an armed entry out of its wheel, if it still stands there. True: it did, and its reference on the owner is the
/// caller's now. Afterwards no wheel touches the operation (T4).
///
/// # Safety
/// By the operation's own task; `entry` is armed.
#[inline]
pub(crate) unsafe fn disarm(entry: *mut TimerEntry) -> bool {
    // SAFETY: the caller's promise; T1 lets the task read the wheel's number.
    unsafe { registry::cell((*entry).wheel()).core.lock().remove(entry) }
}

/// Runs `f` with the wheel of this thread: its runtime's, its manual clock's, or the driver's.
#[inline]
pub(crate) fn with_current<R>(f: impl FnOnce(&Wheel) -> R) -> R {
    crate::context::with_current_wheel(|wheel| match wheel {
        Some(wheel) => f(wheel),
        None => f(driver::wheel()),
    })
}
