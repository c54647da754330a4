//! The send as an operation.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use futures_core::FusedFuture;
use tidegate_wait::op::{self, Limits, Outbox, RawOperation, Unlimited};
use tidegate_wait::waiter::{Head, Kind, State};

use crate::error::SendError;
use crate::flavor::bounded::{Channel, Core, Handle, Sent};
use crate::hold::{Borrowed, Hold, Owned};
use crate::sender::Sender;

/// A send with a half of its own; made by [`Sender::into_send`].
pub type OwnedSending<T, L = Unlimited> = Sending<'static, T, L, Owned>;

/// A send; made by [`Sender::send`]. `T` + 40 bytes, and 24 for each limit.
#[must_use = "a send does nothing unless it is awaited or waited for"]
pub struct Sending<'a, T, L: Limits = Unlimited, H: Hold = Borrowed<'a>> {
    outbox: Outbox<T, L>,
    _half: PhantomData<(&'a (), Sender<T>, H)>,
}

// SAFETY: node and value move between threads under the channel's lock only.
unsafe impl<T: Send, L: Limits + Send, H: Hold> Send for Sending<'_, T, L, H> {}
// SAFETY: a shared reference reads the state word only.
unsafe impl<T: Send, L: Limits + Sync, H: Hold> Sync for Sending<'_, T, L, H> {}

impl<T, H: Hold> Sending<'_, T, Unlimited, H> {
    #[inline(always)]
    pub(crate) fn new(channel: NonNull<Channel<T>>, value: T) -> Self {
        let head = Head::new(channel.as_ptr().cast_const().cast());
        Sending { outbox: Outbox::new(head, Unlimited, MaybeUninit::new(value)), _half: PhantomData }
    }
}

impl<T, H: Hold> Sending<'_, T, Unlimited, H> {
    /// A send whose value comes later ([`Sending::fill`]): in state Spent it has none, to send or to drop.
    #[inline(always)]
    pub(crate) fn without_value(channel: NonNull<Channel<T>>) -> Self {
        let head = Head::new(channel.as_ptr().cast_const().cast());
        head.node.set_quiet(State::Spent);
        Sending { outbox: Outbox::new(head, Unlimited, MaybeUninit::uninit()), _half: PhantomData }
    }
}

impl<T, L: Limits, H: Hold> Sending<'_, T, L, H> {
    /// Gives a send without a value one, in its place: it can be polled from the start.
    ///
    /// # Safety
    /// In state Spent: made by `without_value`, or over.
    #[inline(always)]
    pub(crate) unsafe fn fill(this: *mut Self, build: impl FnOnce() -> T) {
        // SAFETY: nobody else knows the operation yet. The state says that there is a value once there is one.
        unsafe {
            (*Outbox::value(&raw mut (*this).outbox)).with_mut(|place| (*place).write(build()));
            (*Self::head(this)).node.set_quiet(State::Init);
        }
    }

    /// Takes the value back. `None`: it is gone, either delivered or returned by a poll.
    ///
    /// The operation is over afterwards; polled again it stays pending.
    pub fn withdraw(self: Pin<&mut Self>) -> Option<T> {
        // SAFETY: pinned; only the value is moved, which nobody else looks at any more.
        unsafe {
            let this = core::ptr::from_mut(self.get_unchecked_mut());
            match op::withdraw(this) {
                State::Init | State::Closed | State::TimedOut | State::Cancelled => Some(Self::take(this)),
                State::Done(_) => {
                    (*Self::head(this)).node.set_quiet(State::Spent);
                    None
                }
                State::Spent | State::Waiting => None,
            }
        }
    }

    /// Takes the value out and ends the operation.
    ///
    /// # Safety
    /// The value has not been moved, and nobody else knows the node.
    #[inline(always)]
    unsafe fn take(this: *mut Self) -> T {
        // SAFETY: the caller's promise.
        unsafe {
            (*Self::head(this)).node.set_quiet(State::Spent);
            (*Outbox::value(&raw mut (*this).outbox)).with(|value| (*value).assume_init_read())
        }
    }

    /// # Safety
    /// `this` is alive.
    #[inline(always)]
    unsafe fn channel(this: *mut Self) -> Handle<T> {
        // SAFETY: the operation borrows or has a half, and began with the half's pointer.
        unsafe { Handle::new(NonNull::new_unchecked((*Self::head(this)).owner().cast_mut().cast())) }
    }
}

// SAFETY: an `Outbox` is laid out as the module says; the half keeps the channel alive.
unsafe impl<'a, T, L: Limits, H: Hold> RawOperation for Sending<'a, T, L, H> {
    type Limits = L;
    type Owner = Core;
    type With<M: Limits> = Sending<'a, T, M, H>;
    const KIND: Kind = Kind::Send;

    #[inline(always)]
    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { Outbox::head(&raw mut (*this).outbox) }
    }

    #[inline(always)]
    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: the caller's promise.
        unsafe { Outbox::limits(&raw mut (*this).outbox) }
    }

    #[inline(always)]
    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Sending<'a, T, M, H> {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once, and `this` is not dropped.
        let outbox = unsafe { core::ptr::read(&this.outbox) };
        Sending { outbox: outbox.map_limits(f), _half: PhantomData }
    }

    #[inline(always)]
    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init: the value is there.
        unsafe {
            let sent = Self::channel(this).send_fast(Outbox::value(&raw mut (*this).outbox));
            sent.then(|| {
                (*Self::head(this)).node.set_quiet(State::Spent);
                Ok(())
            })
        }
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe {
            match Self::channel(this).try_send_slow(Outbox::value(&raw mut (*this).outbox)) {
                Sent::Done => {
                    (*Self::head(this)).node.set_quiet(State::Spent);
                    Some(Ok(()))
                }
                Sent::Closed => Some(Err(SendError::Closed(Self::take(this)))),
                Sent::Full => None,
            }
        }
    }

    #[inline(always)]
    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe {
            let value = Outbox::value(&raw mut (*this).outbox);
            match Self::channel(this).send_or_park(value, Self::head(this), waker) {
                Sent::Done => {
                    (*Self::head(this)).node.set_quiet(State::Spent);
                    Some(Ok(()))
                }
                Sent::Closed => Some(Err(SendError::Closed(Self::take(this)))),
                Sent::Full => None,
            }
        }
    }

    #[inline(always)]
    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the node has left Waiting, or never was there: it is the task's.
        unsafe {
            Poll::Ready(match end {
                State::Done(_) => {
                    (*Self::head(this)).node.set_quiet(State::Spent);
                    Ok(())
                }
                State::Closed => Err(SendError::Closed(Self::take(this))),
                State::TimedOut => Err(SendError::TimedOut(Self::take(this))),
                State::Cancelled => Err(SendError::Cancelled(Self::take(this))),
                State::Init | State::Waiting | State::Spent => return Poll::Pending,
            })
        }
    }
}

impl<T, L: Limits, H: Hold> Future for Sending<'_, T, L, H> {
    type Output = Result<(), SendError<T>>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it but a value that comes back.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<T, L: Limits, H: Hold> FusedFuture for Sending<'_, T, L, H> {
    fn is_terminated(&self) -> bool {
        self.outbox.state() == State::Spent
    }
}

impl<T, L: Limits, H: Hold> Drop for Sending<'_, T, L, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the half that `into_send` took over. It goes last, and also if the value's destructor panics.
        let _half = H::OWNED.then(|| unsafe { Sender::from_raw(Self::channel(self).as_ptr()) });
        if self.outbox.state() != State::Spent {
            abandon(self);
        }
    }
}

/// The drop of a send that has not ended: takes it back, and drops the value where it stands.
#[inline(never)]
fn abandon<T, L: Limits, H: Hold>(sending: &mut Sending<'_, T, L, H>) {
    let this = core::ptr::from_mut(sending);
    // SAFETY: a send that was polled is pinned and stays where it is until its drop is over; the value is dropped once.
    unsafe {
        match op::withdraw(this) {
            State::Init | State::Closed | State::TimedOut | State::Cancelled => {
                (*Sending::head(this)).node.set_quiet(State::Spent);
                (*Outbox::value(&raw mut (*this).outbox)).with_mut(|value| (*value).assume_init_drop());
            }
            State::Done(_) | State::Spent | State::Waiting => {}
        }
    }
}

impl<T, L: Limits, H: Hold> fmt::Debug for Sending<'_, T, L, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("state", &self.outbox.state()).finish_non_exhaustive()
    }
}
