//! The handle of a task, and the wait for its end.

use core::fmt;
use core::future::{Future, IntoFuture};
use core::marker::{PhantomData, PhantomPinned};
use core::mem::ManuallyDrop;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tidegate_channel::{Borrowed, Hold, Owned};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{self, Cancellable, Limits, Operation, RawOperation, Timed, Unlimited};
use tidegate_wait::waiter::{Head, Kind, State as End};

use super::{Header, JoinError};
use crate::scheduler;

/// A task's handle: await it for the output. 8 bytes.
///
/// Dropped, it detaches the task, which goes on to its end; its output is dropped then. (A task that must not outlive its
/// parent belongs in a [`scope`](crate::scope()).)
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rt = tidegate_runtime::Runtime::new()?;
/// let sum = rt.block_on(async {
///     let task = tidegate_runtime::spawn(async { 1 + 2 });
///     task.await
/// })??;
/// assert_eq!(sum, 3);
/// # Ok(())
/// # }
/// ```
#[must_use = "a dropped handle detaches its task; say so by `detach`"]
pub struct JoinHandle<T> {
    task: NonNull<Header>,
    _output: PhantomData<T>,
}

// SAFETY: the handle gives access to the output, and otherwise to what any waker has.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared handle gives no access to the output.
unsafe impl<T: Send> Sync for JoinHandle<T> {}
impl<T> Unpin for JoinHandle<T> {}
impl<T> core::panic::UnwindSafe for JoinHandle<T> {}
impl<T> core::panic::RefUnwindSafe for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// # Safety
    /// The handle's reference on a task whose output is `T`, with HANDLE set.
    pub(crate) unsafe fn from_raw(task: NonNull<Header>) -> JoinHandle<T> {
        JoinHandle { task, _output: PhantomData }
    }

    /// The whole task, for the runtime.
    pub(crate) fn as_ptr(&self) -> *const Header {
        self.task.as_ptr()
    }

    /// The output of a task that has completed, for the runtime, once.
    pub(crate) fn take_output(&self) -> Result<T, JoinError> {
        assert!(self.header().state.is_complete() && self.header().state.has_handle(), "there is an output");
        // SAFETY: complete, and the handle has not given the output up; it does so now.
        unsafe {
            let output = Header::take_output(self.as_ptr());
            let _complete = self.header().state.give_up_output();
            output
        }
    }

    fn header(&self) -> &Header {
        // SAFETY: the handle's reference.
        unsafe { self.task.as_ref() }
    }

    /// Waits for the end and keeps the handle: for a wait that may be given up and taken up again.
    ///
    /// # Errors
    /// As awaiting the handle; [`JoinError::Taken`] after a join that returned the output.
    ///
    /// # Cancel safety
    /// Dropped, it loses nothing.
    pub fn join(&mut self) -> Join<'_, T> {
        Join::new(self.task)
    }

    /// The handle as the operation that awaiting it is.
    ///
    /// # Errors
    /// [`JoinError::Panicked`], [`JoinError::Aborted`], [`JoinError::Shutdown`], [`JoinError::Itself`]; with limits
    /// [`JoinError::TimedOut`], [`JoinError::Cancelled`].
    ///
    /// # Cancel safety
    /// Dropped, it detaches the task, like the handle.
    pub fn into_join(self) -> OwnedJoin<T> {
        Join::new(ManuallyDrop::new(self).task)
    }

    /// [`Operation::timeout`] on [`JoinHandle::into_join`]. The task goes on when the time has run out, detached.
    pub fn timeout(self, limit: Duration) -> OwnedJoin<T, Timed<Unlimited>> {
        self.into_join().timeout(limit)
    }

    /// [`Operation::deadline`] on [`JoinHandle::into_join`].
    pub fn deadline(self, at: Instant) -> OwnedJoin<T, Timed<Unlimited>> {
        self.into_join().deadline(at)
    }

    /// [`Operation::cancel_on_owned`] on [`JoinHandle::into_join`]: cancels the join, not the task.
    pub fn cancel_on(self, token: &CancelToken) -> OwnedJoin<T, Cancellable<'static, Unlimited>> {
        self.into_join().cancel_on_owned(token.clone())
    }

    /// Blocks the thread until the task has ended. Not in a task of the same runtime, which could not go on meanwhile.
    ///
    /// # Errors
    /// As awaiting the handle.
    pub fn wait(self) -> Result<T, JoinError> {
        self.into_join().wait()
    }

    /// Lets the task go on by itself, as dropping the handle does.
    pub fn detach(self) {}

    /// Asks for the task's end: its future is dropped by its runtime, before it would be polled again. A task that has
    /// ended has ended.
    pub fn abort(&self) {
        abort(self.task.as_ptr());
    }

    /// Something that can abort the task and goes anywhere.
    pub fn abort_handle(&self) -> AbortHandle {
        self.header().state.retain();
        AbortHandle { task: self.task }
    }

    /// Has the task ended? Then a join returns at once.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.header().state.is_complete()
    }
}

fn abort(task: *const Header) {
    // SAFETY: the caller's reference.
    unsafe {
        if (*task).state.abort() {
            scheduler::queue(task);
        }
    }
}

impl<T> IntoFuture for JoinHandle<T> {
    type Output = Result<T, JoinError>;
    type IntoFuture = OwnedJoin<T>;

    fn into_future(self) -> OwnedJoin<T> {
        self.into_join()
    }
}

impl<T> Drop for JoinHandle<T> {
    #[inline]
    fn drop(&mut self) {
        let task = self.task.as_ptr();
        // SAFETY: the handle's reference; the output is dropped once, by whoever S3 gives it to.
        unsafe {
            if (*task).state.has_handle() && (*task).state.give_up_output() {
                Header::drop_output(task);
            }
            Header::release(task);
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug("JoinHandle", self.header(), f)
    }
}

fn debug(name: &str, task: &Header, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_struct(name)
        .field("name", &task.spawned.name())
        .field("spawned", &format_args!("{}", task.spawned.place()))
        .field("finished", &task.state.is_complete())
        .finish_non_exhaustive()
}

/// Aborts a task, from any thread; made by [`JoinHandle::abort_handle`].
pub struct AbortHandle {
    task: NonNull<Header>,
}

// SAFETY: it does what any waker may do.
unsafe impl Send for AbortHandle {}
// SAFETY: as above.
unsafe impl Sync for AbortHandle {}

impl AbortHandle {
    /// As [`JoinHandle::abort`].
    pub fn abort(&self) {
        abort(self.task.as_ptr());
    }

    /// Has the task ended?
    #[must_use]
    pub fn is_finished(&self) -> bool {
        // SAFETY: the handle's reference.
        unsafe { self.task.as_ref() }.state.is_complete()
    }
}

impl Clone for AbortHandle {
    fn clone(&self) -> AbortHandle {
        // SAFETY: the handle's reference.
        unsafe { self.task.as_ref() }.state.retain();
        AbortHandle { task: self.task }
    }
}

impl Drop for AbortHandle {
    fn drop(&mut self) {
        // SAFETY: the handle's reference.
        unsafe { Header::release(self.task.as_ptr()) }
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the handle's reference.
        debug("AbortHandle", unsafe { self.task.as_ref() }, f)
    }
}

/// A join that has the handle as its own: what awaiting a [`JoinHandle`] is.
pub type OwnedJoin<T, L = Unlimited> = Join<'static, T, L, Owned>;

/// The wait for a task's end; made by [`JoinHandle::join`] and [`JoinHandle::into_join`]. 40 bytes, and 24 for each limit.
#[must_use = "a join does nothing unless it is awaited or waited for"]
#[repr(C)]
pub struct Join<'a, T, L: Limits = Unlimited, H: Hold = Borrowed<'a>> {
    limits: L,
    head: Head,
    _handle: PhantomData<(&'a (), JoinHandle<T>, H)>,
    _pinned: PhantomPinned,
}

// SAFETY: the node moves between threads under the task's lock only; the output is `T`.
unsafe impl<T: Send, L: Limits + Send, H: Hold> Send for Join<'_, T, L, H> {}
// SAFETY: a shared reference reads the state word only.
unsafe impl<T: Send, L: Limits + Sync, H: Hold> Sync for Join<'_, T, L, H> {}

impl<T, H: Hold> Join<'_, T, Unlimited, H> {
    /// A join that exclusively borrows the handle of `task` (`Borrowed`), or takes it over (`Owned`).
    fn new(task: NonNull<Header>) -> Self {
        let head = Head::new(task.as_ptr().cast_const().cast());
        Join { limits: Unlimited, head, _handle: PhantomData, _pinned: PhantomPinned }
    }
}

impl<T, L: Limits, H: Hold> Join<'_, T, L, H> {
    fn task(&self) -> *const Header {
        self.head.owner().cast()
    }

    /// # Safety
    /// The task has completed; the node is the join's.
    unsafe fn output(this: *mut Self) -> Result<T, JoinError> {
        // SAFETY: the caller's promise. The join has or exclusively borrows the handle, so nobody else takes the output.
        unsafe {
            let task = (*this).task();
            if !(*task).state.has_handle() {
                return Self::fail(this, End::Spent, JoinError::Taken);
            }
            (*this).head.node.set_quiet(End::Spent);
            let output = Header::take_output(task);
            let _complete = (*task).state.give_up_output();
            output
        }
    }

    unsafe fn fail(this: *mut Self, end: End, error: JoinError) -> Result<T, JoinError> {
        // SAFETY: nobody else knows the node.
        unsafe { (*this).head.node.set_quiet(end) };
        Err(error)
    }
}

// SAFETY: `repr(C)`: limits, head. The handle's reference keeps the task alive.
unsafe impl<'a, T, L: Limits, H: Hold> RawOperation for Join<'a, T, L, H> {
    type Limits = L;
    type Owner = Header;
    type With<M: Limits> = Join<'a, T, M, H>;
    const KIND: Kind = Kind::Wait;
    const OPERATION: &'static str = "join";

    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).head }
    }

    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).limits }
    }

    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Join<'a, T, M, H> {
        let this = ManuallyDrop::new(self);
        // SAFETY: each field is read once, and `this` is not dropped.
        let (limits, head) = unsafe { (core::ptr::read(&this.limits), core::ptr::read(&this.head)) };
        Join { limits: f(limits), head, _handle: PhantomData, _pinned: PhantomPinned }
    }

    unsafe fn attempt(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init.
        unsafe {
            let task = (*this).task();
            if (*task).state.is_complete() {
                return Some(Self::output(this));
            }
            (task == scheduler::current_task()).then(|| Self::fail(this, End::Spent, JoinError::Itself))
        }
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: as above.
        unsafe { Self::attempt(this) }
    }

    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // Cloned before the lock is taken (G5).
        let waker = waker.clone();
        // SAFETY: pinned, in state Init; one join at a time has the handle.
        unsafe {
            let task = (*this).task();
            let node = &raw const (*this).head.node;
            (*task).state.lock();
            (*node).wait_unlinked(Kind::Wait, waker);
            (*task).joiner.set(node);
            if !(*task).state.park_join() {
                return None;
            }
            match op::withdraw(this) {
                End::Init | End::Done(_) => Some(Self::output(this)),
                end => unreachable!("no limit is armed yet: {end:?}"),
            }
        }
    }

    unsafe fn conclude(this: *mut Self, end: End) -> Poll<Self::Output> {
        // SAFETY: the node has left Waiting, or never was there: it is the task's.
        unsafe {
            Poll::Ready(match end {
                End::Done(_) => Self::output(this),
                End::TimedOut => Self::fail(this, end, JoinError::TimedOut),
                End::Cancelled => Self::fail(this, end, JoinError::Cancelled),
                End::Init | End::Waiting | End::Spent | End::Closed => return Poll::Pending,
            })
        }
    }
}

impl<T, L: Limits, H: Hold> Future for Join<'_, T, L, H> {
    type Output = Result<T, JoinError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<T, L: Limits, H: Hold> Drop for Join<'_, T, L, H> {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.head.node.state(), End::Spent | End::Init) {
            // SAFETY: pinned if it was ever polled, and gone afterwards. The output stays the handle's.
            let _ended = unsafe { op::withdraw(core::ptr::from_mut(self)) };
        }
        if H::OWNED {
            // SAFETY: the handle that `into_join` took over.
            drop(unsafe { JoinHandle::<T>::from_raw(NonNull::new_unchecked(self.task().cast_mut())) });
        }
    }
}

impl<T, L: Limits, H: Hold> fmt::Debug for Join<'_, T, L, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Join").field("state", &self.head.node.state()).finish_non_exhaustive()
    }
}
