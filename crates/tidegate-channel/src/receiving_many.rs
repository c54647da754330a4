//! The receive of many values as one operation.

use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::marker::PhantomPinned;
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use futures_core::FusedFuture;
use tidegate_wait::op::{self, Limits, RawOperation, Unlimited};
use tidegate_wait::waiter::{Head, Kind, State};

use crate::error::RecvError;
use crate::flavor::bounded::{Channel, Core, Received};
use crate::receiving::Receiving;

/// A receive of many values; made by [`Receiver::recv_many`]. It waits for the first value as a receive does, and takes
/// with it what is there.
///
/// [`Receiver::recv_many`]: crate::Receiver::recv_many
#[must_use = "a receive does nothing unless it is awaited or waited for"]
#[repr(C)]
pub struct ReceivingMany<'a, 'b, T, L: Limits = Unlimited> {
    // First: limits find the head by its distance, and the head its value.
    receiving: Receiving<'a, T, L>,
    buffer: &'b mut Vec<T>,
    max: usize,
    _pinned: PhantomPinned,
}

impl<'b, T> ReceivingMany<'_, 'b, T> {
    pub(crate) fn new(channel: NonNull<Channel<T>>, buffer: &'b mut Vec<T>, max: usize) -> Self {
        ReceivingMany { receiving: Receiving::new(channel), buffer, max, _pinned: PhantomPinned }
    }
}

impl<T, L: Limits> ReceivingMany<'_, '_, T, L> {
    /// The first value has come: appends it, and what is there beside it.
    ///
    /// # Safety
    /// `this` is alive; the buffer has room for one.
    unsafe fn collect(this: *mut Self, first: T) -> usize {
        // SAFETY: the buffer is not pinned.
        unsafe {
            let this = &mut *this;
            let before = this.buffer.len();
            this.buffer.push(first);
            let _nothing_more = Receiving::channel(&raw mut this.receiving).try_receive_many(this.buffer, this.max - 1);
            this.buffer.len() - before
        }
    }
}

// SAFETY: `repr(C)`: it begins with a receive, which is laid out as the trait says.
unsafe impl<'a, 'b, T, L: Limits> RawOperation for ReceivingMany<'a, 'b, T, L> {
    type Limits = L;
    type Owner = Core;
    type With<M: Limits> = ReceivingMany<'a, 'b, T, M>;
    const KIND: Kind = Kind::Receive;
    const OPERATION: &'static str = "receive of many";

    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { Receiving::head(&raw mut (*this).receiving) }
    }

    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: the caller's promise.
        unsafe { Receiving::limits(&raw mut (*this).receiving) }
    }

    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> ReceivingMany<'a, 'b, T, M> {
        let this = ManuallyDrop::new(self);
        // SAFETY: each field is read once, and `this` is not dropped.
        let (receiving, buffer) = unsafe { (core::ptr::read(&this.receiving), core::ptr::read(&this.buffer)) };
        ReceivingMany { receiving: receiving.map_limits(f), buffer, max: this.max, _pinned: PhantomPinned }
    }

    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init; the buffer is not pinned.
        unsafe {
            let whole = &mut *this;
            let before = whole.buffer.len();
            let end = match Receiving::channel(&raw mut whole.receiving).try_receive_many(whole.buffer, whole.max) {
                Received::Value => Ok(whole.buffer.len() - before),
                Received::Closed => Err(RecvError::Closed),
                Received::Empty => return None,
            };
            (*Self::head(this)).node.set_quiet(if end.is_ok() { State::Spent } else { State::Closed });
            Some(end)
        }
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe { Self::attempt(this) }
    }

    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: as above. The room is made before a value can come.
        unsafe {
            (*this).buffer.reserve(1);
            let received = Receiving::park(&raw mut (*this).receiving, waker)?;
            Some(received.map(|first| Self::collect(this, first)))
        }
    }

    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the caller's promise; the room for a delivered value was made at the park.
        unsafe {
            Receiving::conclude(&raw mut (*this).receiving, end)
                .map(|received| received.map(|first| Self::collect(this, first)))
        }
    }
}

impl<T, L: Limits> Future for ReceivingMany<'_, '_, T, L> {
    type Output = Result<usize, RecvError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it but values that were delivered.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<T, L: Limits> FusedFuture for ReceivingMany<'_, '_, T, L> {
    fn is_terminated(&self) -> bool {
        self.receiving.is_terminated()
    }
}

impl<T, L: Limits> fmt::Debug for ReceivingMany<'_, '_, T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max = self.max;
        f.debug_struct("ReceivingMany").field("max", &max).field("receiving", &self.receiving).finish_non_exhaustive()
    }
}
