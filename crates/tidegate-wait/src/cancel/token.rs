//! The handle on a token, and the wait for its cancellation.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use super::guard::CancelGuard;
use super::reason::Reason;
use super::tree::{release, TokenNode};
use crate::op::{self, Limit, Limits, RawOperation, Unlimited};
use crate::wait_queue::{Park, ParkError, QueueCore};
use crate::waiter::{Head, Kind, State};

/// A handle on a token: cheap to clone, the same token.
///
/// Cancelling is final. Dropping the last handle cancels nothing; what waits for it waits on.
pub struct CancelToken {
    node: *const TokenNode,
}

// SAFETY: a token is shared state behind locks and atomics.
unsafe impl Send for CancelToken {}
// SAFETY: as above.
unsafe impl Sync for CancelToken {}

impl CancelToken {
    /// A token that nobody above can cancel.
    #[must_use]
    pub fn new() -> CancelToken {
        CancelToken { node: TokenNode::create(core::ptr::null()) }
    }

    /// A token that is cancelled with this one, or alone. Of a cancelled token the child is born cancelled.
    #[must_use]
    pub fn child(&self) -> CancelToken {
        let parent = self.clone();
        let node = TokenNode::create(parent.node);
        // The child has the reference now.
        core::mem::forget(parent);
        CancelToken { node }
    }

    #[inline(always)]
    pub(crate) fn node(&self) -> &TokenNode {
        // SAFETY: the handle holds a reference.
        unsafe { &*self.node }
    }

    /// Gives the handle's reference away.
    pub(crate) fn into_raw(self) -> *const TokenNode {
        core::mem::ManuallyDrop::new(self).node
    }

    /// # Safety
    /// The pointer comes from `into_raw`, once.
    pub(crate) unsafe fn from_raw(node: *const TokenNode) -> CancelToken {
        CancelToken { node }
    }

    /// Cancels the token and all its descendants, without a reason. Returns false if it was cancelled already.
    ///
    /// When it returns true, every operation registered here has ended, every callback has run (or runs on another
    /// thread that was first with a descendant), every waiting task was woken. Wakers and callbacks run on this thread,
    /// outside all locks; their panics are contained.
    pub fn cancel(&self) -> bool {
        self.node().cancel(None)
    }

    /// [`cancel`](CancelToken::cancel) with a reason, which descendants get too. The first reason stays.
    pub fn cancel_with(&self, reason: impl Into<Reason>) -> bool {
        self.node().cancel(Some(reason.into()))
    }

    /// Has it been cancelled?
    #[inline]
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.node().is_cancelled()
    }

    /// Why it was cancelled. `None`: it was not, or nobody said why.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.node().lock().clone()
    }

    /// Waits for the cancellation. Its output is `()`, or `Result<(), Limit>` once a limit is set on it.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate_wait::{cancel::CancelToken, Limit, Operation};
    ///
    /// let token = CancelToken::new();
    /// assert_eq!(token.cancelled().timeout(Duration::from_millis(1)).wait(), Err(Limit::TimedOut));
    /// token.cancel();
    /// token.cancelled().wait();
    /// ```
    pub fn cancelled(&self) -> Cancelled<'_> {
        // A token begins with its waiters (`repr(C)`). Not through `&self.node().waiters`: a pointer made from that must not
        // leave the waiters, but the owner's last reference frees the whole token, and `attempt` reads its mark.
        // SAFETY: the token is alive as long as the handle that is borrowed.
        let park = unsafe { Park::on(self.node.cast(), Unlimited) };
        Cancelled { park }
    }

    /// A guard that cancels the token when it is dropped.
    pub fn drop_guard(self) -> CancelGuard {
        CancelGuard::new(self)
    }

    /// Runs `callback` once, when the token is cancelled: on the cancelling thread, outside all locks; at once and here
    /// if it is cancelled already. Callbacks of one token run in the order in which they were registered. A panic is
    /// contained and does not keep the others from running.
    ///
    /// One allocation. Dropping the [`Registration`](super::Registration) takes the callback back.
    #[cfg(feature = "std")]
    pub fn on_cancel(&self, callback: impl FnOnce() + Send + 'static) -> super::Registration {
        super::callback::register(self, alloc::boxed::Box::new(callback))
    }

    /// Are these handles on one token?
    #[must_use]
    pub fn same_token(&self, other: &CancelToken) -> bool {
        core::ptr::eq(self.node, other.node)
    }
}

impl Clone for CancelToken {
    fn clone(&self) -> Self {
        self.node().waiters.refs().add();
        CancelToken { node: self.node }
    }
}

impl Drop for CancelToken {
    fn drop(&mut self) {
        // SAFETY: this is the handle's reference.
        unsafe { release(self.node) }
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

/// The wait for a cancellation; made by [`CancelToken::cancelled`].
#[must_use = "a wait does nothing unless it is awaited or waited for"]
#[derive(Debug)]
#[repr(transparent)]
pub struct Cancelled<'t, L: Limits = Unlimited> {
    park: Park<'t, (), L>,
}

impl<'t, L: Limits> Cancelled<'t, L> {
    fn park(this: *mut Self) -> *mut Park<'t, (), L> {
        // `repr(transparent)`.
        this.cast()
    }

    fn output(ended: Result<Option<()>, ParkError>) -> L::Output<()> {
        L::output(match ended {
            // The queue of a token is never woken, only closed, and that is the cancellation.
            Ok(_) | Err(ParkError::Closed) => Ok(()),
            Err(ParkError::TimedOut) => Err(Limit::TimedOut),
            Err(ParkError::Cancelled) => Err(Limit::Cancelled),
        })
    }
}

// SAFETY: `repr(transparent)` around an operation; the token is borrowed.
unsafe impl<'t, L: Limits> RawOperation for Cancelled<'t, L> {
    type Limits = L;
    type Owner = QueueCore<()>;
    type With<M: Limits> = Cancelled<'t, M>;
    const KIND: Kind = Kind::Wait;

    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { Park::head(Self::park(this)) }
    }

    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: the caller's promise.
        unsafe { Park::limits(Self::park(this)) }
    }

    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Cancelled<'t, M> {
        Cancelled { park: self.park.map_limits(f) }
    }

    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: the token is borrowed, and begins with its waiters (`repr(C)`).
        let token = unsafe { &*(*Self::head(this)).owner().cast::<TokenNode>() };
        if !token.is_cancelled() {
            return None;
        }
        // SAFETY: in state Init.
        match unsafe { Self::conclude(this, State::Closed) } {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: as there.
        unsafe { Self::attempt(this) }
    }

    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: as there.
        unsafe { Park::park(Self::park(this), waker) }.map(Self::output)
    }

    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: as there.
        unsafe { Park::conclude(Self::park(this), end) }.map(Self::output)
    }
}

impl<L: Limits> Future for Cancelled<'_, L> {
    type Output = L::Output<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}
