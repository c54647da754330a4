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
use crate::weight::{Weighed, Weight};

/// A send with a half of its own; made by [`Sender::into_send`].
pub type OwnedSending<T, L = Unlimited> = Sending<'static, T, L, Owned>;

/// A send; made by [`Sender::send`]. `T` + 40 bytes, and 24 for each limit. Into a weighted channel, with `W` =
/// [`Weighed`]: 8 bytes more.
#[must_use = "a send does nothing unless it is awaited or waited for"]
pub struct Sending<'a, T, L: Limits = Unlimited, H: Hold = Borrowed<'a>, W: Weight = ()> {
    outbox: Outbox<T, L, W>,
    _half: PhantomData<(&'a (), Sender<T>, H)>,
}

// SAFETY: node and value move between threads under the channel's lock only.
unsafe impl<T: Send, L: Limits + Send, H: Hold, W: Weight> Send for Sending<'_, T, L, H, W> {}
// SAFETY: a shared reference reads the state word only.
unsafe impl<T: Send, L: Limits + Sync, H: Hold, W: Weight> Sync for Sending<'_, T, L, H, W> {}

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

impl<T, H: Hold> Sending<'_, T, Unlimited, H, Weighed> {
    /// A send into a weighted channel.
    pub(crate) fn weighed(channel: NonNull<Channel<T>>, value: T, weight: u64) -> Self {
        let head = Head::new(channel.as_ptr().cast_const().cast());
        let outbox = Outbox::with_word(head, Unlimited, Weighed::new(weight), MaybeUninit::new(value));
        Sending { outbox, _half: PhantomData }
    }
}

impl<T, L: Limits, H: Hold, W: Weight> Sending<'_, T, L, H, W> {
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
            let end = op::withdraw(this);
            Self::leave(this);
            match end {
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

    /// Those behind a send that left the line of a weighted channel may fit now (A5 in `flavor/weighted/`).
    ///
    /// # Safety
    /// `this` is alive, and its node does not wait.
    #[inline(always)]
    unsafe fn leave(this: *mut Self) {
        if W::WEIGHED {
            // SAFETY: the caller's promise.
            unsafe { Self::channel(this).pass_on() };
        }
    }

    /// One try without parking; too heavy counts as closed ([`Sending::fail`] knows better).
    ///
    /// # Safety
    /// Pinned, in state Init.
    unsafe fn try_weighed(this: *mut Self) -> Sent {
        // SAFETY: the caller's promise: the value is there, and the word the task's.
        unsafe {
            if Self::overweight(this).is_some() {
                return Sent::Closed;
            }
            let weight = (*Outbox::word(&raw mut (*this).outbox)).weight();
            Self::channel(this).try_send_weighed(Outbox::value(&raw mut (*this).outbox), weight)
        }
    }

    /// Weight and limit, if it weighs more.
    ///
    /// # Safety
    /// `this` is alive, and its node does not wait.
    unsafe fn overweight(this: *mut Self) -> Option<(u64, u64)> {
        if !W::WEIGHED {
            return None;
        }
        // SAFETY: the caller's promise.
        let (weight, limit) =
            unsafe { ((*Outbox::word(&raw mut (*this).outbox)).weight(), Self::channel(this).limit()) };
        (weight > limit).then_some((weight, limit))
    }

    /// What the channel said.
    ///
    /// # Safety
    /// In state Init; the value has been moved if it was sent.
    #[inline(always)]
    unsafe fn outcome(this: *mut Self, sent: Sent) -> Option<Result<(), W::Error<T>>> {
        // SAFETY: the caller's promise.
        unsafe {
            match sent {
                Sent::Done => {
                    (*Self::head(this)).node.set_quiet(State::Spent);
                    Some(Ok(()))
                }
                Sent::Closed => Some(Err(Self::fail(this, State::Closed))),
                Sent::Full => None,
            }
        }
    }

    /// Ends the operation with its value, and the reason. Not inlined: a debug build would keep room for the value at each
    /// place.
    ///
    /// # Safety
    /// The value has not been moved, and nobody else knows the node.
    #[inline(never)]
    unsafe fn fail(this: *mut Self, end: State) -> W::Error<T> {
        // SAFETY: the caller's promise.
        unsafe {
            Self::leave(this);
            W::error(match (end, Self::overweight(this)) {
                (State::TimedOut, _) => SendError::TimedOut(Self::take(this)),
                (State::Cancelled, _) => SendError::Cancelled(Self::take(this)),
                (_, Some((weight, limit))) => return W::too_heavy(Self::take(this), weight, limit),
                _ => SendError::Closed(Self::take(this)),
            })
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
unsafe impl<'a, T, L: Limits, H: Hold, W: Weight> RawOperation for Sending<'a, T, L, H, W> {
    type Limits = L;
    type Owner = Core;
    type With<M: Limits> = Sending<'a, T, M, H, W>;
    const KIND: Kind = if W::WEIGHED { Kind::Batch } else { Kind::Send };
    const OPERATION: &'static str = "send";

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
    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Sending<'a, T, M, H, W> {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once, and `this` is not dropped.
        let outbox = unsafe { core::ptr::read(&this.outbox) };
        Sending { outbox: outbox.map_limits(f), _half: PhantomData }
    }

    #[inline(always)]
    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init: the value is there.
        unsafe {
            let sent = match W::WEIGHED {
                true => Self::try_weighed(this) == Sent::Done,
                false => Self::channel(this).send_fast(Outbox::value(&raw mut (*this).outbox)),
            };
            sent.then(|| {
                (*Self::head(this)).node.set_quiet(State::Spent);
                Ok(())
            })
        }
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe {
            let sent = match W::WEIGHED {
                true => Self::try_weighed(this),
                false => Self::channel(this).try_send_slow(Outbox::value(&raw mut (*this).outbox)),
            };
            Self::outcome(this, sent)
        }
    }

    #[inline(always)]
    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe {
            let (channel, head) = (Self::channel(this), Self::head(this));
            let value = Outbox::value(&raw mut (*this).outbox);
            let sent = if !W::WEIGHED {
                channel.send_or_park(value, head, waker)
            } else if Self::overweight(this).is_some() {
                Sent::Closed
            } else {
                let weight = (*Outbox::word(&raw mut (*this).outbox)).weight();
                channel.send_weighed_or_park(value, weight, head, waker)
            };
            Self::outcome(this, sent)
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
                State::Closed | State::TimedOut | State::Cancelled => Err(Self::fail(this, end)),
                State::Init | State::Waiting | State::Spent => return Poll::Pending,
            })
        }
    }
}

impl<T, L: Limits, H: Hold, W: Weight> Future for Sending<'_, T, L, H, W> {
    type Output = Result<(), W::Error<T>>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it but a value that comes back.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<T, L: Limits, H: Hold, W: Weight> FusedFuture for Sending<'_, T, L, H, W> {
    fn is_terminated(&self) -> bool {
        self.outbox.state() == State::Spent
    }
}

impl<T, L: Limits, H: Hold, W: Weight> Drop for Sending<'_, T, L, H, W> {
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
fn abandon<T, L: Limits, H: Hold, W: Weight>(sending: &mut Sending<'_, T, L, H, W>) {
    let this = core::ptr::from_mut(sending);
    // SAFETY: a send that was polled is pinned and stays where it is until its drop is over; the value is dropped once.
    unsafe {
        let end = op::withdraw(this);
        // Before the value's destructor, which may panic.
        Sending::leave(this);
        match end {
            State::Init | State::Closed | State::TimedOut | State::Cancelled => {
                (*Sending::head(this)).node.set_quiet(State::Spent);
                (*Outbox::value(&raw mut (*this).outbox)).with_mut(|value| (*value).assume_init_drop());
            }
            State::Done(_) | State::Spent | State::Waiting => {}
        }
    }
}

impl<T, L: Limits, H: Hold, W: Weight> fmt::Debug for Sending<'_, T, L, H, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("state", &self.outbox.state()).finish_non_exhaustive()
    }
}
