//! The wait for the close itself.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use futures_core::FusedFuture;
use tidegate_wait::op::{self, Limit, Limits, RawOperation, Unlimited};
use tidegate_wait::owner::Owner;
use tidegate_wait::shim::Ordering;
use tidegate_wait::waiter::{Head, Kind, State, Ticket};
use tidegate_wait::wake_batch::discard;

use super::words::CLOSED;
use super::{Core, Handle};

/// A wait for the close of a channel; made by [`Sender::closed`] and [`Receiver::closed`]. 40 bytes, and 24 for each limit.
///
/// Its output is `()`, or `Result<(), Limit>` once a limit is set on it.
///
/// # Cancel safety
/// Nothing is lost when it is dropped; a new one does as well.
///
/// [`Sender::closed`]: crate::Sender::closed
/// [`Receiver::closed`]: crate::Receiver::closed
#[must_use = "nothing is waited for unless it is awaited"]
#[repr(C)]
pub struct Closed<'a, L: Limits = Unlimited> {
    limits: L,
    head: Head,
    _channel: PhantomData<&'a ()>,
    _pinned: core::marker::PhantomPinned,
}

// SAFETY: the node moves between threads under the channel's lock only.
unsafe impl<L: Limits + Send> Send for Closed<'_, L> {}
// SAFETY: a shared reference reads the state word only.
unsafe impl<L: Limits + Sync> Sync for Closed<'_, L> {}

impl Closed<'_> {
    /// A wait that must not outlive the channel: the caller borrows a half for as long.
    pub(crate) fn new<T>(channel: Handle<T>) -> Self {
        let head = Head::new(channel.as_ptr().as_ptr().cast_const().cast());
        Closed { limits: Unlimited, head, _channel: PhantomData, _pinned: core::marker::PhantomPinned }
    }
}

impl Core {
    fn has_closed(&self) -> bool {
        // Ordering: Acquire pairs with Release in `unlock`; who sees CLOSED sees what was done before the close.
        self.tail.0.load(Ordering::Acquire) & CLOSED != 0
    }
}

impl<L: Limits> Closed<'_, L> {
    unsafe fn core<'c>(this: *mut Self) -> &'c Core {
        // SAFETY: the operation borrows a half, so the channel, which begins with its core, is alive.
        unsafe { &*(*this).head.owner().cast() }
    }

    fn outcome(end: State) -> Poll<L::Output<()>> {
        match end {
            State::Done(_) => Poll::Ready(L::output(Ok(()))),
            State::TimedOut => Poll::Ready(L::output(Err(Limit::TimedOut))),
            State::Cancelled => Poll::Ready(L::output(Err(Limit::Cancelled))),
            State::Closed => unreachable!("a close ends a wait for it as done"),
            State::Init | State::Waiting | State::Spent => Poll::Pending,
        }
    }
}

// SAFETY: `repr(C)`: limits, head. The owner is the channel's core, alive as long as the half that is borrowed.
unsafe impl<'a, L: Limits> RawOperation for Closed<'a, L> {
    type Limits = L;
    type Owner = Core;
    type With<M: Limits> = Closed<'a, M>;
    const KIND: Kind = Kind::Wait;
    const OPERATION: &'static str = "wait for the close";

    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).head }
    }

    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: as above.
        unsafe { &raw mut (*this).limits }
    }

    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Closed<'a, M> {
        let this = ManuallyDrop::new(self);
        // SAFETY: each field is read once, and `this` is not dropped.
        let (limits, head) = unsafe { (core::ptr::read(&this.limits), core::ptr::read(&this.head)) };
        Closed { limits: f(limits), head, _channel: PhantomData, _pinned: core::marker::PhantomPinned }
    }

    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init.
        unsafe {
            if !Self::core(this).has_closed() {
                return None;
            }
            match Self::conclude(this, State::Done(Ticket::new(0))) {
                Poll::Ready(output) => Some(output),
                Poll::Pending => None,
            }
        }
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe { Self::attempt(this) }
    }

    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // Cloned before the lock is taken (G5).
        let waker = waker.clone();
        // SAFETY: pinned, in state Init; linked under the lock only while the channel is open.
        unsafe {
            let core = Self::core(this);
            let tail = core.lock();
            if tail & CLOSED == 0 {
                core.park(&raw const (*this).head.node, Kind::Wait, waker);
                core.unlock(tail);
                return None;
            }
            core.unlock(tail);
            discard(Some(waker));
            Self::attempt(this)
        }
    }

    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the node has left Waiting, or never was there: it is the task's.
        unsafe { (*this).head.node.set_quiet(end) };
        Self::outcome(end)
    }
}

impl<L: Limits> Future for Closed<'_, L> {
    type Output = L::Output<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<L: Limits> FusedFuture for Closed<'_, L> {
    /// Never: it says so again when it is polled again.
    fn is_terminated(&self) -> bool {
        false
    }
}

impl<L: Limits> Drop for Closed<'_, L> {
    fn drop(&mut self) {
        // SAFETY: pinned if it was ever polled, and gone afterwards.
        let _ended = unsafe { op::withdraw(core::ptr::from_mut(self)) };
    }
}

impl<L: Limits> fmt::Debug for Closed<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").field("state", &self.head.node.state()).finish_non_exhaustive()
    }
}
