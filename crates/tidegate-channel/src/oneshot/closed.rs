//! The sender's wait for the end of the receiver.

use core::fmt;
use core::future::Future;
use core::marker::{PhantomData, PhantomPinned};
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use futures_core::FusedFuture;
use tidegate_wait::op::{self, Limit, Limits, RawOperation, Unlimited};
use tidegate_wait::waiter::{Head, Kind, State, Ticket};

use super::shared::{Core, Handle, RX_CLOSED};

/// A wait for the receiver's close or drop; made by [`Sender::closed`](super::Sender::closed). 40 bytes, and 24 for each
/// limit.
///
/// Its output is `()`, or `Result<(), Limit>` once a limit is set on it.
///
/// # Cancel safety
/// Nothing is lost when it is dropped; a new one does as well.
#[must_use = "nothing is waited for unless it is awaited"]
#[repr(C)]
pub struct Closed<'a, L: Limits = Unlimited> {
    limits: L,
    head: Head,
    _sender: PhantomData<&'a ()>,
    _pinned: PhantomPinned,
}

// SAFETY: the node moves between threads under the channel's lock only.
unsafe impl<L: Limits + Send> Send for Closed<'_, L> {}
// SAFETY: a shared reference reads the state word only.
unsafe impl<L: Limits + Sync> Sync for Closed<'_, L> {}

impl Closed<'_> {
    /// A wait that must not outlive the sender: the caller borrows it for as long.
    pub(super) fn new<T>(channel: Handle<T>) -> Self {
        let head = Head::new(channel.owner());
        Closed { limits: Unlimited, head, _sender: PhantomData, _pinned: PhantomPinned }
    }
}

impl<L: Limits> Closed<'_, L> {
    /// # Safety
    /// `this` is alive.
    unsafe fn core<'c>(this: *mut Self) -> &'c Core {
        // SAFETY: the operation borrows the sender, so the channel, which begins with its core, is alive.
        unsafe { &*(*this).head.owner().cast() }
    }
}

// SAFETY: `repr(C)`: limits, head. The owner is the channel's core, alive as long as the sender that is borrowed.
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
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).limits }
    }

    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Closed<'a, M> {
        let this = ManuallyDrop::new(self);
        // SAFETY: each field is read once, and `this` is not dropped.
        let (limits, head) = unsafe { (core::ptr::read(&this.limits), core::ptr::read(&this.head)) };
        Closed { limits: f(limits), head, _sender: PhantomData, _pinned: PhantomPinned }
    }

    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init.
        unsafe {
            if Self::core(this).word() & RX_CLOSED == 0 {
                return None;
            }
            (*this).head.node.set_quiet(State::Done(Ticket::new(0)));
        }
        Some(L::output(Ok(())))
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe { Self::attempt(this) }
    }

    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: as above. The sender is there, so the one flag that keeps it from parking is RX_CLOSED, for ever (H4).
        unsafe {
            match Self::core(this).park(&raw const (*this).head.node, Kind::Wait, waker) {
                true => None,
                false => Self::attempt(this),
            }
        }
    }

    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the node has left Waiting, or never was there: it is the task's.
        unsafe { (*this).head.node.set_quiet(end) };
        match end {
            State::Done(_) => Poll::Ready(L::output(Ok(()))),
            State::TimedOut => Poll::Ready(L::output(Err(Limit::TimedOut))),
            State::Cancelled => Poll::Ready(L::output(Err(Limit::Cancelled))),
            State::Closed => unreachable!("the sender is borrowed, so it did not go"),
            State::Init | State::Waiting | State::Spent => Poll::Pending,
        }
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
