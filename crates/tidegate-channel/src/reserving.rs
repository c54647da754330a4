//! The reservation as an operation.

use core::fmt;
use core::future::Future;
use core::marker::{PhantomData, PhantomPinned};
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use futures_core::FusedFuture;
use tidegate_wait::op::{self, Limits, RawOperation, Unlimited};
use tidegate_wait::waiter::{Head, Kind, State};

use crate::error::ReserveError;
use crate::flavor::bounded::{Channel, Core, Handle, Reserved};
use crate::hold::{Borrowed, Hold, Owned};
use crate::permit::Permit;
use crate::sender::Sender;

/// A reservation with a half of its own; made by [`Sender::into_reserve`].
pub type OwnedReserving<T, L = Unlimited> = Reserving<'static, T, L, Owned>;

/// A reservation of a slot; made by [`Sender::reserve`]. 40 bytes, and 24 for each limit.
#[must_use = "a reservation does nothing unless it is awaited or waited for"]
#[repr(C)]
pub struct Reserving<'a, T, L: Limits = Unlimited, H: Hold = Borrowed<'a>> {
    limits: L,
    head: Head,
    _half: PhantomData<(&'a (), Sender<T>, H)>,
    _pinned: PhantomPinned,
}

// SAFETY: the node moves between threads under the channel's lock only; the permit is `Send` for `T: Send`.
unsafe impl<T: Send, L: Limits + Send, H: Hold> Send for Reserving<'_, T, L, H> {}
// SAFETY: a shared reference reads the state word only.
unsafe impl<T: Send, L: Limits + Sync, H: Hold> Sync for Reserving<'_, T, L, H> {}

impl<T, H: Hold> Reserving<'_, T, Unlimited, H> {
    pub(crate) fn new(channel: NonNull<Channel<T>>) -> Self {
        let head = Head::new(channel.as_ptr().cast_const().cast());
        Reserving { limits: Unlimited, head, _half: PhantomData, _pinned: PhantomPinned }
    }
}

impl<'a, T, L: Limits, H: Hold> Reserving<'a, T, L, H> {
    /// # Safety
    /// `this` is alive.
    unsafe fn channel(this: *mut Self) -> Handle<T> {
        // SAFETY: the operation borrows or has a half, and began with the half's pointer.
        unsafe { Handle::new(NonNull::new_unchecked((*this).head.owner().cast_mut().cast())) }
    }

    /// What the channel said, with a permit if there is one.
    ///
    /// # Safety
    /// In state Init; a permit that was taken is the operation's.
    unsafe fn outcome(this: *mut Self, reserved: Reserved) -> Option<Result<Permit<'a, T, H>, ReserveError>> {
        // SAFETY: the caller's promise.
        unsafe {
            match reserved {
                Reserved::Done => Some(Ok(Self::permit(this))),
                Reserved::Closed => Some(Self::fail(this, State::Closed, ReserveError::Closed)),
                Reserved::Full => None,
            }
        }
    }

    unsafe fn permit(this: *mut Self) -> Permit<'a, T, H> {
        // SAFETY: the operation was given a permit, and hands it on together with its half.
        unsafe {
            (*this).head.node.set_quiet(State::Spent);
            Permit::from_raw(Self::channel(this).as_ptr())
        }
    }

    /// The reservation makes no sense; its half is gone with it.
    ///
    /// # Safety
    /// In state Init.
    unsafe fn refuse(this: *mut Self, why: ReserveError) -> Result<Permit<'a, T, H>, ReserveError> {
        // SAFETY: the caller's promise. Spent, it has no half any more.
        unsafe {
            let channel = Self::channel(this).as_ptr();
            let refused = Self::fail(this, State::Spent, why);
            if H::OWNED {
                drop(Sender::from_raw(channel));
            }
            refused
        }
    }

    unsafe fn fail(this: *mut Self, end: State, error: ReserveError) -> Result<Permit<'a, T, H>, ReserveError> {
        // SAFETY: nobody else knows the node.
        unsafe { (*this).head.node.set_quiet(end) };
        Err(error)
    }
}

// SAFETY: `repr(C)`: limits, head. The half keeps the channel alive.
unsafe impl<'a, T, L: Limits, H: Hold> RawOperation for Reserving<'a, T, L, H> {
    type Limits = L;
    type Owner = Core;
    type With<M: Limits> = Reserving<'a, T, M, H>;
    const KIND: Kind = Kind::Permit;

    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).head }
    }

    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).limits }
    }

    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Reserving<'a, T, M, H> {
        let this = ManuallyDrop::new(self);
        // SAFETY: each field is read once, and `this` is not dropped.
        let (limits, head) = unsafe { (core::ptr::read(&this.limits), core::ptr::read(&this.head)) };
        Reserving { limits: f(limits), head, _half: PhantomData, _pinned: PhantomPinned }
    }

    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init.
        unsafe {
            let channel = Self::channel(this);
            match channel.try_reserve(1) {
                Reserved::Full if channel.capacity() == 0 => Some(Self::refuse(this, ReserveError::Rendezvous)),
                // All 2^64 - 1 are out: there is no line to wait in.
                Reserved::Full if channel.core().is_unbounded() => Some(Self::refuse(this, ReserveError::Full)),
                reserved => Self::outcome(this, reserved),
            }
        }
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe { Self::attempt(this) }
    }

    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe { Self::outcome(this, Self::channel(this).reserve_or_park(1, Self::head(this), Kind::Permit, waker)) }
    }

    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the node has left Waiting, or never was there: it is the task's.
        unsafe {
            Poll::Ready(match end {
                State::Done(_) => Ok(Self::permit(this)),
                State::Closed => Self::fail(this, end, ReserveError::Closed),
                State::TimedOut => Self::fail(this, end, ReserveError::TimedOut),
                State::Cancelled => Self::fail(this, end, ReserveError::Cancelled),
                State::Init | State::Waiting | State::Spent => return Poll::Pending,
            })
        }
    }
}

impl<'a, T, L: Limits, H: Hold> Future for Reserving<'a, T, L, H> {
    type Output = Result<Permit<'a, T, H>, ReserveError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it but a permit that was given to it.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<T, L: Limits, H: Hold> FusedFuture for Reserving<'_, T, L, H> {
    fn is_terminated(&self) -> bool {
        self.head.node.state() == State::Spent
    }
}

impl<T, L: Limits, H: Hold> Drop for Reserving<'_, T, L, H> {
    fn drop(&mut self) {
        let this = core::ptr::from_mut(self);
        // SAFETY: pinned if it was ever polled, and gone afterwards. A permit that nobody took is given back. Spent, the half
        // has gone, with the permit or a refusal, and perhaps the channel with it: nothing of it is looked at.
        unsafe {
            let end = op::withdraw(this);
            if let State::Done(_) = end {
                Self::channel(this).drop_permits(1);
            }
            if H::OWNED && end != State::Spent {
                drop(Sender::from_raw(Self::channel(this).as_ptr()));
            }
        }
    }
}

impl<T, L: Limits, H: Hold> fmt::Debug for Reserving<'_, T, L, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserving").field("state", &self.head.node.state()).finish_non_exhaustive()
    }
}
