//! The receive as an operation.

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

use super::receiver::Receiver;
use super::shared::{Channel, Core, Handle, Taken};
use crate::error::RecvError;
use crate::hold::{Borrowed, Hold, Owned};

/// A receive that has the receiver as its own; made by [`Receiver::into_recv`].
pub type OwnedReceiving<T, L = Unlimited> = Receiving<'static, T, L, Owned>;

/// A receive; made by [`Receiver::recv`]. 40 bytes whatever `T` is, and 24 for each limit.
#[must_use = "a receive does nothing unless it is awaited or waited for"]
#[repr(C)]
pub struct Receiving<'a, T, L: Limits = Unlimited, H: Hold = Borrowed<'a>> {
    limits: L,
    head: Head,
    _receiver: PhantomData<(&'a (), Receiver<T>, H)>,
    _pinned: PhantomPinned,
}

// SAFETY: the node moves between threads under the channel's lock only, and the value out of the channel.
unsafe impl<T: Send, L: Limits + Send, H: Hold> Send for Receiving<'_, T, L, H> {}
// SAFETY: a shared reference reads the state word only.
unsafe impl<T: Send, L: Limits + Sync, H: Hold> Sync for Receiving<'_, T, L, H> {}

impl<T, H: Hold> Receiving<'_, T, Unlimited, H> {
    /// A receive that exclusively borrows the receiver of `channel` (`Borrowed`), or takes it over (`Owned`).
    pub(super) fn new(channel: NonNull<Channel<T>>) -> Self {
        let head = Head::new(channel.as_ptr().cast_const().cast());
        Receiving { limits: Unlimited, head, _receiver: PhantomData, _pinned: PhantomPinned }
    }
}

impl<T, L: Limits, H: Hold> Receiving<'_, T, L, H> {
    fn raw_channel(&self) -> NonNull<Channel<T>> {
        // SAFETY: it began with the receiver's pointer.
        unsafe { NonNull::new_unchecked(self.head.owner().cast_mut().cast()) }
    }

    /// # Safety
    /// `this` is alive.
    unsafe fn channel(this: *mut Self) -> Handle<T> {
        // SAFETY: the operation borrows or has the receiver, which keeps the channel alive.
        unsafe { Handle::new((*this).raw_channel()) }
    }

    /// What the channel said, in state Init or after the end of a wait that says that there is something.
    ///
    /// # Safety
    /// Pinned, not Waiting.
    #[inline]
    unsafe fn look(this: *mut Self) -> Option<Result<T, RecvError>> {
        // SAFETY: the operation has or exclusively borrows the receiver; the node is the task's.
        unsafe {
            match Self::channel(this).take() {
                Taken::Value(value) => {
                    (*this).head.node.set_quiet(State::Spent);
                    Some(Ok(value))
                }
                Taken::Closed => {
                    (*this).head.node.set_quiet(State::Closed);
                    Some(Err(RecvError::Closed))
                }
                Taken::Empty => None,
            }
        }
    }

    /// An end without a value. What has the receiver as its own is its last receive: a reply is refused from now on.
    ///
    /// # Safety
    /// Pinned, not Waiting.
    unsafe fn limited(this: *mut Self, end: State, error: RecvError) -> RecvError {
        // SAFETY: as above.
        unsafe {
            (*this).head.node.set_quiet(end);
            if H::OWNED {
                Self::channel(this).abandon();
            }
        }
        error
    }
}

// SAFETY: `repr(C)`: limits, head. The receiver keeps the channel, which begins with its core, alive.
unsafe impl<'a, T, L: Limits, H: Hold> RawOperation for Receiving<'a, T, L, H> {
    type Limits = L;
    type Owner = Core;
    type With<M: Limits> = Receiving<'a, T, M, H>;
    const KIND: Kind = Kind::Receive;

    #[inline(always)]
    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).head }
    }

    #[inline(always)]
    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).limits }
    }

    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Receiving<'a, T, M, H> {
        let this = ManuallyDrop::new(self);
        // SAFETY: each field is read once, and `this` is not dropped.
        let (limits, head) = unsafe { (core::ptr::read(&this.limits), core::ptr::read(&this.head)) };
        Receiving { limits: f(limits), head, _receiver: PhantomData, _pinned: PhantomPinned }
    }

    #[inline(always)]
    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init.
        unsafe { Self::look(this) }
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe { Self::look(this) }
    }

    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: as above. What kept it from parking is still in the word (H4): the second look finds it.
        unsafe {
            match Self::channel(this).park(&raw const (*this).head.node, Kind::Receive, waker) {
                true => None,
                false => Self::look(this),
            }
        }
    }

    #[inline]
    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the node has left Waiting, or never was there: it is the task's.
        unsafe {
            Poll::Ready(match end {
                // H5: the value is there, and nobody else can take it while the receiver is held.
                State::Done(_) => return Self::look(this).map_or(Poll::Pending, Poll::Ready),
                State::Closed => Err(RecvError::Closed),
                State::TimedOut => Err(Self::limited(this, end, RecvError::TimedOut)),
                State::Cancelled => Err(Self::limited(this, end, RecvError::Cancelled)),
                State::Init | State::Waiting | State::Spent => return Poll::Pending,
            })
        }
    }
}

impl<T, L: Limits, H: Hold> Future for Receiving<'_, T, L, H> {
    type Output = Result<T, RecvError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<T, L: Limits, H: Hold> FusedFuture for Receiving<'_, T, L, H> {
    /// Once it has given the value away. After an error it says so again when it is polled again.
    fn is_terminated(&self) -> bool {
        self.head.node.state() == State::Spent
    }
}

impl<T, L: Limits, H: Hold> Drop for Receiving<'_, T, L, H> {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.head.node.state(), State::Spent | State::Init) {
            // SAFETY: pinned if it was ever polled, and gone afterwards. A value that it was told of is in the channel.
            let _ended = unsafe { op::withdraw(core::ptr::from_mut(self)) };
        }
        if H::OWNED {
            // SAFETY: the receiver that `into_recv` took over.
            drop(unsafe { Receiver::from_raw(self.raw_channel()) });
        }
    }
}

impl<T, L: Limits, H: Hold> fmt::Debug for Receiving<'_, T, L, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiving").field("state", &self.head.node.state()).finish_non_exhaustive()
    }
}
