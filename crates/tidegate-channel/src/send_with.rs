//! A send whose value is built in its place.

use core::fmt;
use core::future::Future;
use core::marker::PhantomPinned;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use futures_core::FusedFuture;
use tidegate_wait::op::{Limits, RawOperation, Unlimited};
use tidegate_wait::waiter::{Head, Kind, State};

use crate::error::SendError;
use crate::flavor::bounded::{Channel, Core};
use crate::sending::Sending;

/// A send that builds its value at its first poll; made by [`Sender::send_with`]. As large as a send and `F` together.
///
/// Until then the send inside is in state Spent, in which it has no value to drop.
///
/// [`Sender::send_with`]: crate::Sender::send_with
#[must_use = "a send does nothing unless it is awaited or waited for"]
#[repr(C)]
pub struct SendingWith<'a, T, F, L: Limits = Unlimited> {
    // First: limits find the head by its distance, and the head its value.
    sending: Sending<'a, T, L>,
    build: Option<F>,
    _pinned: PhantomPinned,
}

impl<'a, T, F: FnOnce() -> T> SendingWith<'a, T, F> {
    #[inline(always)]
    pub(crate) fn new(channel: NonNull<Channel<T>>, build: F) -> Self {
        SendingWith { sending: Sending::without_value(channel), build: Some(build), _pinned: PhantomPinned }
    }
}

impl<T, F: FnOnce() -> T, L: Limits> SendingWith<'_, T, F, L> {
    /// Takes the value back. `None`: it was never built, or is gone, either delivered or returned by a poll.
    ///
    /// The operation is over afterwards; polled again it stays pending.
    pub fn withdraw(self: Pin<&mut Self>) -> Option<T> {
        // SAFETY: `sending` is pinned with the whole; `build` is not.
        unsafe {
            let this = self.get_unchecked_mut();
            this.build = None;
            Pin::new_unchecked(&mut this.sending).withdraw()
        }
    }

    /// Builds the value, before the first poll of the send.
    ///
    /// # Safety
    /// `this` is pinned.
    #[inline(always)]
    unsafe fn build(this: *mut Self) {
        // SAFETY: `build` is not pinned. If it panics, it is gone, and the send stays without a value.
        unsafe {
            if let Some(build) = (*this).build.take() {
                Sending::fill(&raw mut (*this).sending, build);
            }
        }
    }
}

// SAFETY: `repr(C)`: it begins with a send, which is laid out as the trait says.
unsafe impl<'a, T, F: FnOnce() -> T, L: Limits> RawOperation for SendingWith<'a, T, F, L> {
    type Limits = L;
    type Owner = Core;
    type With<M: Limits> = SendingWith<'a, T, F, M>;
    const KIND: Kind = Kind::Send;

    #[inline(always)]
    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { Sending::head(&raw mut (*this).sending) }
    }

    #[inline(always)]
    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: the caller's promise.
        unsafe { Sending::limits(&raw mut (*this).sending) }
    }

    #[inline(always)]
    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> SendingWith<'a, T, F, M> {
        let this = ManuallyDrop::new(self);
        // SAFETY: each field is read once, and `this` is not dropped.
        let (sending, build) = unsafe { (core::ptr::read(&this.sending), core::ptr::read(&this.build)) };
        SendingWith { sending: sending.map_limits(f), build, _pinned: PhantomPinned }
    }

    #[inline(always)]
    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: the caller's promise.
        unsafe { Sending::attempt(&raw mut (*this).sending) }
    }

    #[inline(always)]
    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: the caller's promise.
        unsafe { Sending::try_once(&raw mut (*this).sending) }
    }

    #[inline(always)]
    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: the caller's promise.
        unsafe { Sending::park(&raw mut (*this).sending, waker) }
    }

    #[inline(always)]
    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the caller's promise.
        unsafe { Sending::conclude(&raw mut (*this).sending, end) }
    }
}

impl<T, F: FnOnce() -> T, L: Limits> Future for SendingWith<'_, T, F, L> {
    type Output = Result<(), SendError<T>>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; the send is polled where it stands.
        unsafe {
            let this = core::ptr::from_mut(self.get_unchecked_mut());
            Self::build(this);
            Pin::new_unchecked(&mut (*this).sending).poll(cx)
        }
    }
}

impl<T, F: FnOnce() -> T, L: Limits> FusedFuture for SendingWith<'_, T, F, L> {
    fn is_terminated(&self) -> bool {
        self.build.is_none() && self.sending.is_terminated()
    }
}

impl<T, F, L: Limits> fmt::Debug for SendingWith<'_, T, F, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let built = self.build.is_none();
        f.debug_struct("SendingWith").field("built", &built).field("sending", &self.sending).finish_non_exhaustive()
    }
}
