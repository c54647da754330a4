//! The receive as an operation.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use futures_core::FusedFuture;
use tidegate_wait::op::{self, Inbox, Limits, Place, RawOperation, Unlimited};
use tidegate_wait::waiter::{Head, Kind, State};

use crate::error::RecvError;
use crate::flavor::bounded::{Channel, Core, Handle, Received};
use crate::hold::{Borrowed, Hold, Owned};
use crate::receiver::Receiver;

/// A receive with a half of its own; made by [`Receiver::into_recv`].
pub type OwnedReceiving<T, L = Unlimited> = Receiving<'static, T, L, Owned>;

/// A receive; made by [`Receiver::recv`]. 16 + max(24, `T`) bytes, and 24 for each limit: the value is laid over what
/// was needed to wait for it.
#[must_use = "a receive does nothing unless it is awaited or waited for"]
pub struct Receiving<'a, T, L: Limits = Unlimited, H: Hold = Borrowed<'a>> {
    inbox: Inbox<T, L>,
    _half: PhantomData<(&'a (), Receiver<T>, H)>,
}

// SAFETY: node and value move between threads under the channel's lock only.
unsafe impl<T: Send, L: Limits + Send, H: Hold> Send for Receiving<'_, T, L, H> {}
// SAFETY: a shared reference reads the state word only.
unsafe impl<T: Send, L: Limits + Sync, H: Hold> Sync for Receiving<'_, T, L, H> {}

impl<T, H: Hold> Receiving<'_, T, Unlimited, H> {
    #[inline(always)]
    pub(crate) fn new(channel: NonNull<Channel<T>>) -> Self {
        Receiving { inbox: Inbox::new(Head::new(channel.as_ptr().cast_const().cast()), Unlimited), _half: PhantomData }
    }
}

impl<T, L: Limits, H: Hold> Receiving<'_, T, L, H> {
    /// # Safety
    /// `this` is alive.
    #[inline(always)]
    pub(crate) unsafe fn channel(this: *mut Self) -> Handle<T> {
        // SAFETY: the operation borrows or has a half, and began with the half's pointer.
        unsafe { Handle::new(NonNull::new_unchecked((*Self::head(this)).owner().cast_mut().cast())) }
    }

    /// Begins anew after a value was returned.
    pub(crate) fn restart(self: Pin<&mut Self>) {
        debug_assert_eq!(self.inbox.state(), State::Spent);
        // SAFETY: in state Spent nobody else knows the node, and the value has been taken.
        unsafe { (*Self::head(core::ptr::from_mut(self.get_unchecked_mut()))).node.set_quiet(State::Init) };
    }

    /// The place for the value.
    #[inline(always)]
    unsafe fn place(this: *mut Self) -> *const Place<T> {
        // SAFETY: the pointer is derived from the whole operation.
        unsafe { Inbox::<T, L>::value_of(Self::head(this)) }
    }

    /// What the channel said, with the value from its place.
    #[inline(always)]
    unsafe fn outcome(this: *mut Self, received: Received) -> Option<Result<T, RecvError>> {
        // SAFETY: the caller asked the channel, in state Init; a received value is in its place and is taken once.
        unsafe {
            match received {
                Received::Value => {
                    (*Self::head(this)).node.set_quiet(State::Spent);
                    Some(Ok((*Self::place(this)).with(|value| (*value).assume_init_read())))
                }
                Received::Closed => {
                    (*Self::head(this)).node.set_quiet(State::Closed);
                    Some(Err(RecvError::Closed))
                }
                Received::Empty => None,
            }
        }
    }
}

// SAFETY: an `Inbox` is laid out as the module says; the half keeps the channel alive.
unsafe impl<'a, T, L: Limits, H: Hold> RawOperation for Receiving<'a, T, L, H> {
    type Limits = L;
    type Owner = Core;
    type With<M: Limits> = Receiving<'a, T, M, H>;
    const KIND: Kind = Kind::Receive;

    #[inline(always)]
    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { Inbox::head(&raw mut (*this).inbox) }
    }

    #[inline(always)]
    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: the caller's promise.
        unsafe { Inbox::limits(&raw mut (*this).inbox) }
    }

    #[inline(always)]
    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Receiving<'a, T, M, H> {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once, and `this` is not dropped.
        let inbox = unsafe { core::ptr::read(&this.inbox) };
        Receiving { inbox: inbox.map_limits(f), _half: PhantomData }
    }

    #[inline(always)]
    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // Not into the operation: a large value would be copied once more, on its way out.
        let place = Place::new(MaybeUninit::<T>::uninit());
        // SAFETY: the operation is alive and its task's; a received value is in its place and is taken once.
        unsafe {
            match Self::channel(this).receive_fast(&raw const place) {
                true => {
                    (*Self::head(this)).node.set_quiet(State::Spent);
                    Some(Ok(place.with(|value| (*value).assume_init_read())))
                }
                false => None,
            }
        }
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe { Self::outcome(this, Self::channel(this).try_receive(Self::place(this))) }
    }

    #[inline(always)]
    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe { Self::outcome(this, Self::channel(this).receive_or_park(Self::place(this), Self::head(this), waker)) }
    }

    #[inline(always)]
    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the node has left Waiting, or never was there: it is the task's.
        unsafe {
            Poll::Ready(match end {
                State::Done(_) => {
                    (*Self::head(this)).node.set_quiet(State::Spent);
                    Ok((*Self::place(this)).with(|value| (*value).assume_init_read()))
                }
                State::Closed => Err(RecvError::Closed),
                State::TimedOut | State::Cancelled => {
                    (*Self::head(this)).node.set_quiet(end);
                    Err(if end == State::TimedOut { RecvError::TimedOut } else { RecvError::Cancelled })
                }
                State::Init | State::Waiting | State::Spent => return Poll::Pending,
            })
        }
    }
}

impl<T, L: Limits, H: Hold> Future for Receiving<'_, T, L, H> {
    type Output = Result<T, RecvError>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it but a value that was delivered.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<T, L: Limits, H: Hold> FusedFuture for Receiving<'_, T, L, H> {
    fn is_terminated(&self) -> bool {
        self.inbox.state() == State::Spent
    }
}

impl<T, L: Limits, H: Hold> Drop for Receiving<'_, T, L, H> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the half that `into_recv` took over. It goes last, and also if giving a delivery back unwinds.
        let _half = H::OWNED.then(|| unsafe { Receiver::from_raw(Self::channel(self).as_ptr()) });
        if !matches!(self.inbox.state(), State::Spent | State::Init) {
            abandon(self);
        }
    }
}

/// The drop of a receive that has not ended, or whose end nobody saw: a delivery goes on to the next receive.
#[inline(never)]
fn abandon<T, L: Limits, H: Hold>(receiving: &mut Receiving<'_, T, L, H>) {
    let this = core::ptr::from_mut(receiving);
    // SAFETY: a receive that was polled is pinned and stays where it is until its drop is over.
    unsafe {
        if let State::Done(ticket) = op::withdraw(this) {
            Receiving::channel(this).give_back(Receiving::place(this), ticket);
        }
    }
}

impl<T, L: Limits, H: Hold> fmt::Debug for Receiving<'_, T, L, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiving").field("state", &self.inbox.state()).finish_non_exhaustive()
    }
}
