//! Operations: what every blocking thing in the workspace is, and the limits that may be put on it.
//!
//! # Layout
//! An operation is one pinned value; its limits stand in front of its [`Head`], its payload behind it:
//! ```text
//! [limit 24]* [owner 8] [state 8] [next 8] [waker 16] [payload]
//!  outermost  └──────────── Head ─────────────────┘
//!  first
//! ```
//! All limits are entries of 24 bytes, so a timer or a token finds the head from its entry by a count of entries, and
//! neither the payload's size nor its alignment moves anything in front of it. (As wrapper futures around the operation,
//! limits would stand at a distance that depends on the payload's alignment.)
//!
//! # One poll
//! ```text
//! state      what happens                                                                → state
//! Init       a cancelled token wins; else one try; else (clock) an expired limit wins;
//!            else park, then arm the limits                                              Waiting, or an end
//! Waiting    keep the waker up to date                                                   Waiting, or an end
//! an end     take the limits out of wheel and tokens, return the result                  Spent, or the same end
//! ```
//! - **P1** A ready operation reads no clock, arms nothing, allocates nothing.
//! - **P2** Limits are armed only while the node is or was parked, and are disarmed before the operation's memory goes.
//! - **P3** An operation that ended says so again when it is polled again, or, if its result cannot be given twice,
//!   stays pending for ever, like a fused future.

#[cfg(feature = "std")]
mod blocking;
mod cancellable;
pub(crate) mod entry;
mod inbox;
mod limits;
#[cfg(feature = "std")]
mod timed;

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

#[cfg(feature = "std")]
pub use blocking::block_on;
pub use cancellable::Cancellable;
pub use inbox::{Inbox, Outbox, Place, Word};
pub use limits::{Arming, Limit, Limits, Unlimited};
#[cfg(feature = "std")]
pub use timed::Timed;

use crate::cancel::CancelToken;
use crate::owner::{take_out, Owner, Refreshed};
use crate::waiter::{Head, Kind, State};
use crate::wake_batch::{discard, WakeBatch};

/// How an operation is built; implemented by the operations of this workspace only.
///
/// # Safety
/// `head` and `limits` return the places inside `*this`, laid out as the module says; the pointers are derived from
/// `this`. The head's owner is an `Owner`, alive as long as the operation.
#[doc(hidden)]
pub unsafe trait RawOperation: Future + Sized {
    /// The limits on it.
    type Limits: Limits;
    /// Whom it waits for.
    type Owner: Owner;
    /// The same operation under other limits.
    type With<M: Limits>: RawOperation<Limits = M, Owner = Self::Owner>;

    /// What it waits as.
    const KIND: Kind;
    /// What a dump calls it.
    const OPERATION: &'static str = match Self::KIND {
        Kind::Send => "send",
        Kind::Receive => "receive",
        Kind::Permit => "reserve",
        Kind::Batch => "batch",
        Kind::Arm => "select",
        Kind::Wait | Kind::Sleep | Kind::Sentinel => "wait",
    };
    /// Its own timer stands between its limits and its head, and settles with the earliest limit in time (`Sleep`).
    const OWN_TIMER: bool = false;

    /// # Safety
    /// `this` points at an operation of this type.
    unsafe fn head(this: *mut Self) -> *mut Head;
    /// # Safety
    /// As above.
    unsafe fn limits(this: *mut Self) -> *mut Self::Limits;
    /// Exchanges the limits of an operation that has not been polled.
    fn map_limits<M: Limits>(self, f: impl FnOnce(Self::Limits) -> M) -> Self::With<M>;

    /// The short way: done at once, or `None`. Also before the first poll: who builds a part of the operation there keeps it
    /// in another state until then.
    ///
    /// # Safety
    /// Pinned, in state Init, as all below unless they say otherwise.
    unsafe fn attempt(this: *mut Self) -> Option<Self::Output>;
    /// One whole try without parking.
    ///
    /// # Safety
    /// As above.
    unsafe fn try_once(this: *mut Self) -> Option<Self::Output>;
    /// The long way: done, or parked (`None`).
    ///
    /// # Safety
    /// As above.
    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output>;
    /// The result of an end: the state as read, or one that a limit imposes before anything moved.
    ///
    /// # Safety
    /// Not Waiting, limits disarmed.
    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output>;
    /// A roused operation that was taken back to Init: whatever its own timer needs.
    ///
    /// # Safety
    /// As above.
    unsafe fn restart(_this: *mut Self, _waker: &Waker) {}
}

/// The body of every operation's `poll`.
///
/// # Safety
/// `this` is pinned and derived from the pinned reference.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn poll<O: RawOperation>(this: *mut O, cx: &mut Context<'_>) -> Poll<O::Output> {
    // SAFETY: pinned. Init is the task's own: who sees it decides by it; everything else is read once (W3).
    unsafe {
        if !(*O::head(this)).node.is_init() {
            let end = match (*O::head(this)).node.state() {
                State::Waiting => match still_waiting(this, cx) {
                    Some(end) => end,
                    None => return Poll::Pending,
                },
                end => end,
            };
            // Once: a debug build keeps room for a result at each place.
            return end_with(this, end);
        }
        if (*O::limits(this)).is_cancelled() {
            return O::conclude(this, State::Cancelled);
        }
        if !spend(cx) {
            return Poll::Pending;
        }
        match O::attempt(this) {
            Some(output) => Poll::Ready(output),
            None if O::Limits::DEPTH == 0 => wait_unlimited(this, cx),
            None => first_wait(this, cx),
        }
    }
}

#[cfg(feature = "std")]
#[inline(always)]
fn spend(cx: &mut Context<'_>) -> bool {
    let may_go_on = crate::context::spend();
    if !may_go_on {
        cx.waker().wake_by_ref();
    }
    may_go_on
}

#[cfg(not(feature = "std"))]
#[inline(always)]
fn spend(_: &mut Context<'_>) -> bool {
    true
}

/// [`first_wait`] without limits: what is left of it is the park, which is a call already.
#[inline(always)]
unsafe fn wait_unlimited<O: RawOperation>(this: *mut O, cx: &mut Context<'_>) -> Poll<O::Output> {
    // SAFETY: pinned, in state Init.
    unsafe {
        match O::park(this, cx.waker()) {
            Some(output) => Poll::Ready(output),
            None => {
                report_park::<O>(this, true);
                Poll::Pending
            }
        }
    }
}

#[inline(never)]
unsafe fn first_wait<O: RawOperation>(this: *mut O, cx: &mut Context<'_>) -> Poll<O::Output> {
    // SAFETY: pinned, in state Init.
    unsafe {
        if (*O::limits(this)).has_expired() {
            return match O::try_once(this) {
                Some(output) => Poll::Ready(output),
                None => O::conclude(this, State::TimedOut),
            };
        }
        if let Some(output) = O::park(this, cx.waker()) {
            return Poll::Ready(output);
        }
        match arm_parked(this) {
            None => Poll::Pending,
            // A token that is cancelled by now.
            Some(end) => end_with(this, end),
        }
    }
}

/// After the park: tells the runtime, arms the limits. `Some`: how the wait has ended meanwhile; the state stays.
///
/// # Safety
/// Pinned and parked by its own task.
pub(crate) unsafe fn arm_parked<O: RawOperation>(this: *mut O) -> Option<State> {
    // SAFETY: the caller's promise.
    unsafe {
        report_park::<O>(this, true);
        arm_or_end(this)
    }
}

unsafe fn arm_or_end<O: RawOperation>(this: *mut O) -> Option<State> {
    // SAFETY: pinned and parked by its own task.
    unsafe {
        if O::Limits::DEPTH == 0 {
            return None;
        }
        let head = O::head(this);
        let arming = Arming {
            head,
            front: usize::from(O::OWN_TIMER),
            #[cfg(feature = "std")]
            timers: !O::OWN_TIMER,
        };
        if O::Limits::arm(O::limits(this), &arming) {
            return None;
        }
        Some(end_own_wait(this, State::Cancelled))
    }
}

#[cfg(feature = "std")]
#[inline(always)]
unsafe fn report_park<O: RawOperation>(this: *mut O, is_new: bool) {
    // SAFETY: parked by its own task, which keeps it alive.
    let head = unsafe { &*O::head(this) };
    crate::context::parked(|| crate::context::WaitInfo {
        kind: O::KIND,
        operation: O::OPERATION,
        owner: head.owner_name(),
        object: head.owner().addr(),
        origin: head.owner_origin(),
        is_new,
        is_limited: O::Limits::DEPTH != 0,
    });
}

#[cfg(not(feature = "std"))]
#[inline(always)]
unsafe fn report_park<O: RawOperation>(_: *mut O, _: bool) {}

/// A poll of a parked operation. `Some`: how the wait has ended; the state stays. (Not the result: it would have to be in
/// memory in every poll, and a large one be copied once more.)
#[inline(never)]
unsafe fn still_waiting<O: RawOperation>(this: *mut O, cx: &mut Context<'_>) -> Option<State> {
    // SAFETY: pinned and parked by its own task.
    unsafe {
        let head = O::head(this);
        match Head::refresh(head, cx.waker()) {
            Refreshed::Waiting => {
                report_park::<O>(this, false);
                None
            }
            Refreshed::Ended => Some((*head).node.state()),
            Refreshed::Roused => rearm(this, cx),
        }
    }
}

/// The wheel of a timer has died. Takes all limits out, then arms them again, with the deadlines they have; a sleep
/// starts over on another wheel.
#[cold]
unsafe fn rearm<O: RawOperation>(this: *mut O, cx: &mut Context<'_>) -> Option<State> {
    // SAFETY: pinned and parked by its own task.
    unsafe {
        O::Limits::disarm(O::limits(this), (*O::head(this)).owner());
        if O::OWN_TIMER {
            return match end_own_wait(this, State::Spent) {
                State::Spent => {
                    O::restart(this, cx.waker());
                    arm_parked(this)
                }
                end => Some(end),
            };
        }
        match (*O::head(this)).node.state() {
            State::Waiting => arm_parked(this),
            end => Some(end),
        }
    }
}

/// The task ends its own wait as `end`, unless another event was first; returns how it ended.
#[inline]
unsafe fn end_own_wait<O: RawOperation>(this: *mut O, end: State) -> State {
    let mut batch = WakeBatch::new();
    // SAFETY: the operation keeps its owner alive.
    unsafe {
        let head = O::head(this);
        match take_out(&*(*head).owner().cast::<O::Owner>(), &raw const (*head).node, end, &mut batch) {
            Some(own_waker) => {
                discard(own_waker);
                end
            }
            // The second read of the word (W3): the first said Waiting, and under the lock it was no longer so.
            None => (*head).node.state(),
        }
    }
}

#[inline]
unsafe fn end_with<O: RawOperation>(this: *mut O, end: State) -> Poll<O::Output> {
    // SAFETY: the node has left Waiting.
    unsafe {
        O::Limits::disarm(O::limits(this), (*O::head(this)).owner());
        O::conclude(this, end)
    }
}

/// Ends whatever the operation has begun, for its drop or a withdrawal: returns Init if the operation took itself back
/// before anything happened to it, else the state it ended in. Afterwards nobody else knows the node.
///
/// # Safety
/// `this` is pinned (or was never polled), and is the operation's own.
#[doc(hidden)]
#[inline]
pub unsafe fn withdraw<O: RawOperation>(this: *mut O) -> State {
    // SAFETY: the caller's promise.
    unsafe {
        let node = &(*O::head(this)).node;
        let end = match node.state() {
            State::Init => State::Init,
            State::Waiting => match end_own_wait(this, State::Spent) {
                State::Spent => State::Init,
                end => end,
            },
            end => end,
        };
        O::Limits::disarm(O::limits(this), (*O::head(this)).owner());
        end
    }
}

/// Anything that may block: a send, a receive, a sleep, a wait for a token or a queue.
///
/// An operation is a future; nothing happens before its first poll. Limits may be put on it in any number, combination
/// and order; each adds 24 bytes and nothing else, and the earliest event ends it.
///
/// ```
/// use std::time::Duration;
/// use tidegate_wait::{cancel::CancelToken, timer::sleep, Operation};
///
/// let token = CancelToken::new();
/// let nap = sleep(Duration::from_secs(60)).cancel_on(&token).timeout(Duration::from_millis(1));
/// assert!(nap.wait().unwrap_err().is_timeout());
/// ```
pub trait Operation: RawOperation {
    /// Ends the wait after `limit`, counted from the moment at which the operation first has to wait.
    ///
    /// [`Duration::MAX`](core::time::Duration::MAX) means for ever; zero means one try. Never early. An operation that
    /// is done at once reads no clock.
    #[cfg(feature = "std")]
    fn timeout(self, limit: core::time::Duration) -> Self::With<Timed<Self::Limits>> {
        self.map_limits(|limits| Timed::after(limit, limits))
    }

    /// Ends the wait at `at`. A deadline that has passed means one try.
    #[cfg(feature = "std")]
    fn deadline(self, at: std::time::Instant) -> Self::With<Timed<Self::Limits>> {
        self.map_limits(|limits| Timed::at(at, limits))
    }

    /// Ends the wait when `token` is cancelled. If it is already, the operation fails before anything moves.
    fn cancel_on(self, token: &CancelToken) -> Self::With<Cancellable<'_, Self::Limits>> {
        self.map_limits(|limits| Cancellable::borrowed(token, limits))
    }

    /// [`cancel_on`](Operation::cancel_on) with a token of its own, for an operation that is spawned.
    fn cancel_on_owned(self, token: CancelToken) -> Self::With<Cancellable<'static, Self::Limits>> {
        self.map_limits(|limits| Cancellable::owned(token, limits))
    }

    /// Blocks the thread until the operation ends. Not for a thread that runs other tasks: they would wait too.
    #[cfg(feature = "std")]
    #[inline]
    fn wait(self) -> Self::Output {
        blocking::wait(self)
    }
}

impl<O: RawOperation> Operation for O {}

/// Polls once with a waker that does nothing: for tests and for code that only wants to know.
pub fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
