//! `sleep`: a waiter whose owner is the timer wheel itself.
//!
//! Its links in the wheel are its entry's; its node stands in no list and only carries state and waker, both under the
//! wheel's lock. It has no outer timer: a limit in time on a sleep is the earlier of two deadlines, and the sleep says
//! afterwards which it was. (With a second entry, one wheel's lock would be taken under another's, or under itself.)

use core::future::Future;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::entry::{TimerEntry, FOREVER};
use super::{duration_ns, instant_ns, with_current, Wheel, WheelCell};
use crate::op::{self, Limit, Limits, RawOperation, Unlimited};
use crate::waiter::{Head, Kind, Node, State, Ticket};

/// What a sleep is parked as: which of its two deadlines is the earlier one.
const ENDS_SLEPT: Kind = Kind::Sleep;
const ENDS_TIMED_OUT: Kind = Kind::Wait;

/// How a sleep parked as `kind` ends when its time has come.
#[inline]
pub(super) fn end_of(kind: Kind) -> State {
    match kind {
        ENDS_SLEPT => State::Done(Ticket::new(0)),
        _ => State::TimedOut,
    }
}

/// A sleep; made by [`sleep`] and [`sleep_until`].
///
/// Its output is `()`, or `Result<(), Limit>` once a limit is set on it.
///
/// # Cancel safety
/// Dropping it takes the timer out in O(1). A new `sleep` starts over; [`sleep_until`] with the same instant goes on.
#[must_use = "a sleep does nothing unless it is awaited or waited for"]
#[repr(C)]
pub struct Sleep<L: Limits = Unlimited> {
    limits: L,
    timer: TimerEntry,
    head: Head,
    _pinned: PhantomPinned,
}

// SAFETY: node and timer move between threads only under the wheel's lock; the rest is the task's.
unsafe impl<L: Limits + Send> Send for Sleep<L> {}
// SAFETY: a shared reference offers nothing but `Debug`, which reads what the task alone writes.
unsafe impl<L: Limits + Sync> Sync for Sleep<L> {}

/// Sleeps for `duration`, counted from the first poll.
///
/// Never early; late by what the system takes to wake a thread. [`Duration::MAX`] sleeps for ever, zero not at all.
///
/// ```
/// use std::time::Duration;
/// use tidegate_wait::{timer::sleep, Operation};
///
/// sleep(Duration::from_millis(2)).wait();
/// ```
pub fn sleep(duration: Duration) -> Sleep {
    Sleep::new(TimerEntry::new(duration_ns(duration), FOREVER))
}

/// Sleeps until `at`; not at all if it has passed.
pub fn sleep_until(at: Instant) -> Sleep {
    Sleep::new(TimerEntry::new(FOREVER, instant_ns(at)))
}

impl Sleep {
    #[inline]
    fn new(timer: TimerEntry) -> Sleep {
        Sleep { limits: Unlimited, timer, head: Head::new(core::ptr::null()), _pinned: PhantomPinned }
    }

    /// A sleep until `ns` on the current clock.
    #[inline]
    pub(super) fn until_ns(ns: u64) -> Sleep {
        Sleep::new(TimerEntry::new(FOREVER, ns))
    }
}

/// The entry in front of a sleep's head.
///
/// # Safety
/// `node` belongs to a `Sleep`, derived from a pointer to the whole of it.
pub(super) unsafe fn entry_of(node: *const Node) -> *mut TimerEntry {
    // SAFETY: `repr(C)`: the entry ends where the head begins.
    unsafe { node.byte_sub(core::mem::offset_of!(Head, node)).cast::<TimerEntry>().sub(1).cast_mut() }
}

impl<L: Limits> Sleep<L> {
    fn outcome(end: State) -> Poll<L::Output<()>> {
        match end {
            State::Done(_) => Poll::Ready(L::output(Ok(()))),
            State::TimedOut => Poll::Ready(L::output(Err(Limit::TimedOut))),
            State::Cancelled => Poll::Ready(L::output(Err(Limit::Cancelled))),
            State::Closed => unreachable!("a wheel is never closed: it rouses its sleeps"),
            State::Init | State::Waiting | State::Spent => Poll::Pending,
        }
    }
}

// SAFETY: `repr(C)`: limits, own timer, head. The owner is the wheel's cell, which is never freed while the sleep is armed.
unsafe impl<L: Limits> RawOperation for Sleep<L> {
    type Limits = L;
    type Owner = WheelCell;
    type With<M: Limits> = Sleep<M>;
    const KIND: Kind = Kind::Sleep;
    const OWN_TIMER: bool = true;

    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).head }
    }

    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: as above.
        unsafe { &raw mut (*this).limits }
    }

    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Sleep<M> {
        let this = core::mem::ManuallyDrop::new(self);
        // SAFETY: each field is read once, and `this` is not dropped.
        unsafe {
            Sleep {
                limits: f(core::ptr::read(&this.limits)),
                timer: core::ptr::read(&this.timer),
                head: Head::new(core::ptr::null()),
                _pinned: PhantomPinned,
            }
        }
    }

    unsafe fn attempt(_: *mut Self) -> Option<Self::Output> {
        None
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // Only for an expired limit, after `has_expired`, which looks no further than the first one that has: the others
        // may still be relative.
        // SAFETY: pinned, in state Init.
        unsafe {
            let now = with_current(Wheel::now_ns);
            let due = (*this).timer.wanted(|| now);
            if due > now || due == FOREVER {
                return None;
            }
            Self::end_at_once(this, end_of(ENDS_SLEPT))
        }
    }

    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init, and no wheel knows the entry yet.
        unsafe {
            let end = with_current(|wheel| {
                // A clock costs more than all the rest: whoever gave a deadline does not pay for it (`arm_sleep`).
                let mut now = wheel.cheap_now();
                let own = (*this).timer.wanted(|| *now.get_or_insert_with(|| wheel.now_ns()));
                let limit = (*this).limits.earliest();
                let (due, kind) = if own <= limit { (own, ENDS_SLEPT) } else { (limit, ENDS_TIMED_OUT) };
                if due == 0 || now.is_some_and(|now| due <= now && due != FOREVER) {
                    return Some(end_of(kind));
                }
                let parked = Self::arm(this, wheel, due, kind, waker.clone(), now.is_none());
                (!parked).then_some(end_of(kind))
            })?;
            Self::end_at_once(this, end)
        }
    }

    unsafe fn restart(this: *mut Self, waker: &Waker) {
        // SAFETY: pinned, and its former wheel has let go of it: node and entry are the task's.
        unsafe {
            let due = (*this).timer.deadline();
            let kind = (*this).head.node.kind();
            // An unpolled sleep with the same end, in case that the waker's clone panics. (A limit that is the earlier
            // one still knows its deadline.)
            (*this).timer.reset(FOREVER, if kind == ENDS_SLEPT { due } else { FOREVER });
            (*this).head.node.set_quiet(State::Init);
            let waker = waker.clone();
            // If it is due by now, the wheel says so at its next turn.
            let _parked = with_current(|wheel| Self::arm(this, wheel, due, kind, waker, false));
        }
    }

    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the node has left Waiting, or never was there: it is the task's.
        unsafe { (*this).head.node.set_quiet(end) };
        Self::outcome(end)
    }
}

impl<L: Limits> Sleep<L> {
    /// Parks on `wheel`. False: `look`ing at the clock showed that it is due; then nothing has happened.
    ///
    /// # Safety
    /// Pinned, in state Init, in no wheel.
    #[inline]
    unsafe fn arm(this: *mut Self, wheel: &Wheel, due: u64, kind: Kind, waker: Waker, look: bool) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            (*this).head.set_owner(wheel.owner());
            let (entry, node) = (&raw mut (*this).timer, &raw const (*this).head.node);
            wheel.arm_sleep(entry, node, due, kind, waker, look)
        }
    }

    /// Ends without having parked.
    ///
    /// # Safety
    /// Pinned, in state Init.
    unsafe fn end_at_once(this: *mut Self, end: State) -> Option<L::Output<()>> {
        // SAFETY: the caller's promise.
        match unsafe { Self::conclude(this, end) } {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }
}

impl<L: Limits> Future for Sleep<L> {
    type Output = L::Output<()>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<L: Limits> Drop for Sleep<L> {
    #[inline]
    fn drop(&mut self) {
        let this = core::ptr::from_mut(self);
        // SAFETY: pinned if it was ever polled, and gone afterwards.
        let _ended = unsafe { op::withdraw(this) };
    }
}

impl<L: Limits> core::fmt::Debug for Sleep<L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sleep").field("state", &self.head.node.state()).finish_non_exhaustive()
    }
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Sleep>() == 64);
