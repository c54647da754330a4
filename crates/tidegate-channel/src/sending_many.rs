//! The send of many values as one operation.

use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use futures_core::FusedFuture;
use tidegate_wait::op::{self, Limits, Outbox, RawOperation, Unlimited, Word};
use tidegate_wait::waiter::{Head, Kind, State};

use crate::error::{SendError, Unsent};
use crate::flavor::bounded::{Batch, Channel, Core, Handle, Items, Sent};
use crate::sender::Sender;

/// A send of many values; made by [`Sender::send_many`]. 72 bytes and the values' vector, and 24 for each limit.
///
/// Its output is how many values were sent, or the reason why not all of them were, with the [`Unsent`] rest.
#[must_use = "a send does nothing unless it is awaited or waited for"]
pub struct SendingMany<'a, T, L: Limits = Unlimited> {
    outbox: Outbox<Items<T>, L, Word>,
    _half: PhantomData<&'a Sender<T>>,
}

// SAFETY: node and values move between threads under the channel's lock only.
unsafe impl<T: Send, L: Limits + Send> Send for SendingMany<'_, T, L> {}
// SAFETY: a shared reference reads the state word only.
unsafe impl<T: Send, L: Limits + Sync> Sync for SendingMany<'_, T, L> {}

impl<T> SendingMany<'_, T> {
    pub(crate) fn new(channel: NonNull<Channel<T>>, items: impl IntoIterator<Item = T>) -> Self {
        let head = Head::new(channel.as_ptr().cast_const().cast());
        let (items, word) = Batch::new(items).into_parts();
        SendingMany { outbox: Outbox::with_word(head, Unlimited, word, MaybeUninit::new(items)), _half: PhantomData }
    }
}

type Outcome<T> = Result<usize, SendError<Unsent<T>>>;

impl<T, L: Limits> SendingMany<'_, T, L> {
    /// Takes the unsent values back, in order. None are left if the operation has ended.
    ///
    /// The operation is over afterwards; polled again it stays pending.
    pub fn withdraw(self: Pin<&mut Self>) -> Vec<T> {
        // SAFETY: pinned; only values are moved, which nobody else looks at any more.
        unsafe {
            let this = core::ptr::from_mut(self.get_unchecked_mut());
            match op::withdraw(this) {
                State::Spent | State::Waiting => Vec::new(),
                _ => Self::finish(this).rest,
            }
        }
    }

    unsafe fn channel(this: *mut Self) -> Handle<T> {
        // SAFETY: the operation borrows a half, and began with the half's pointer.
        unsafe { Handle::new(NonNull::new_unchecked((*Self::head(this)).owner().cast_mut().cast())) }
    }

    /// Ends the operation: takes the batch.
    ///
    /// # Safety
    /// Nobody else knows the node; the state is not Spent.
    unsafe fn take(this: *mut Self) -> Batch<T> {
        // SAFETY: the batch is there, and is taken once: the state is Spent from now on.
        unsafe {
            (*Self::head(this)).node.set_quiet(State::Spent);
            let outbox = &raw mut (*this).outbox;
            let items = (*Outbox::value(outbox)).with(|items| (*items).assume_init_read());
            Batch::from_parts(items, &*Outbox::word(outbox))
        }
    }

    /// Ends the operation: what is left of the batch is returned.
    ///
    /// # Safety
    /// As for `take`.
    unsafe fn finish(this: *mut Self) -> Unsent<T> {
        // SAFETY: the caller's promise.
        let mut batch = unsafe { Self::take(this) };
        let sent = batch.sent();
        Unsent { sent, rest: batch.take_rest() }
    }

    unsafe fn outcome(this: *mut Self, sent: Sent) -> Option<Outcome<T>> {
        // SAFETY: in state Init: the batch is the operation's.
        unsafe {
            match sent {
                Sent::Done => Some(Ok(Self::finish(this).sent)),
                Sent::Closed => Some(Err(SendError::Closed(Self::finish(this)))),
                Sent::Full => None,
            }
        }
    }
}

// SAFETY: an `Outbox` is laid out as the trait says; the half keeps the channel alive.
unsafe impl<'a, T, L: Limits> RawOperation for SendingMany<'a, T, L> {
    type Limits = L;
    type Owner = Core;
    type With<M: Limits> = SendingMany<'a, T, M>;
    const KIND: Kind = Kind::Batch;
    const OPERATION: &'static str = "send of many";

    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { Outbox::head(&raw mut (*this).outbox) }
    }

    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: the caller's promise.
        unsafe { Outbox::limits(&raw mut (*this).outbox) }
    }

    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> SendingMany<'a, T, M> {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once, and `this` is not dropped.
        let outbox = unsafe { core::ptr::read(&this.outbox) };
        SendingMany { outbox: outbox.map_limits(f), _half: PhantomData }
    }

    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init: the batch is the operation's.
        unsafe {
            let sent = Self::channel(this).try_send_items(Self::head(this));
            Self::outcome(this, sent)
        }
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe { Self::attempt(this) }
    }

    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe {
            let sent = Self::channel(this).send_batch_or_park(Self::head(this), waker);
            Self::outcome(this, sent)
        }
    }

    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the node has left Waiting, or never was there: it is the task's.
        unsafe {
            Poll::Ready(match end {
                State::Done(_) => Ok(Self::finish(this).sent),
                State::Closed => Err(SendError::Closed(Self::finish(this))),
                State::TimedOut => Err(SendError::TimedOut(Self::finish(this))),
                State::Cancelled => Err(SendError::Cancelled(Self::finish(this))),
                State::Init | State::Waiting | State::Spent => return Poll::Pending,
            })
        }
    }
}

impl<T, L: Limits> Future for SendingMany<'_, T, L> {
    type Output = Outcome<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it but values that come back.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<T, L: Limits> FusedFuture for SendingMany<'_, T, L> {
    fn is_terminated(&self) -> bool {
        self.outbox.state() == State::Spent
    }
}

impl<T, L: Limits> Drop for SendingMany<'_, T, L> {
    fn drop(&mut self) {
        let this = core::ptr::from_mut(self);
        // SAFETY: pinned if it was ever polled, and gone afterwards. Spent: the batch is gone.
        unsafe {
            if op::withdraw(this) != State::Spent {
                drop(Self::take(this));
            }
        }
    }
}

impl<T, L: Limits> fmt::Debug for SendingMany<'_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendingMany").field("state", &self.outbox.state()).finish_non_exhaustive()
    }
}
