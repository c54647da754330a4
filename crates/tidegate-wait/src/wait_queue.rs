//! A FIFO of parked operations under a small lock: what events, locks, tokens and tasks wait in.
//!
//! # What it does
//! [`WaitQueue::park`] waits to be woken. Who wakes hands a *grant* over with the wake (a permit, a value, or nothing):
//! it belongs to the operation that was first in line, which nobody can pass. A granted operation that is dropped before
//! it took its grant passes it on: to the next parked one, else it is kept, in hand-off order, for the next that parks.
//! [`WaitQueue::wake_all`] is no grant: it wakes those present at the call and is not passed on.
//!
//! Not for: a condition that is tested outside and then waited for. Park first ([`Park::enter`]), test, then wait.
//!
//! # Invariants
//! - **Q1** The list and `kept` are not both non-empty: a grant is kept only when nobody is parked, and a kept one is
//!   taken before anybody parks.
//! - **Q2** Tickets of grants grow by one a hand-off and start at 1; ticket 0 is a wake without a grant, also where they wrap.
//! - **Q3** `closed` is set under the lock and never unset; afterwards nobody parks.
//!
//! # A cancellation
//! Unlinks the node wherever it stands, in the list or in the private list of a `wake_all` or `close` that is under
//! way: O(1). Nobody else is affected.
//!
//! Tests: `tests/wait_queue.rs`, `tests/loom_wait_queue.rs`.

use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};

use crate::debt::Debt;
use crate::list::List;
use crate::op::{self, Inbox, Limits, RawOperation, Unlimited};
use crate::owner::{Owner, OwnerHeader, RefCount};
use crate::shim::{AtomicBool, Guard, Lock, Ordering};
use crate::stash::{Returned, Stash};
use crate::waiter::{Head, Kind, Node, State, Ticket};
use crate::wake_batch::{wake, WakeBatch};

/// The queue itself, in memory that its waiters may hold on to. A cancel token has one inside.
#[repr(C)]
#[doc(hidden)]
pub struct QueueCore<G> {
    header: OwnerHeader,
    refs: RefCount,
    /// Frees the allocation that this core begins.
    free: unsafe fn(*const QueueCore<G>),
    closed: AtomicBool,
    /// Under `inner`'s lock, but not inside it: a `&mut` to what a lock guards would claim the sentinel, to which the
    /// nodes point.
    waiters: List,
    inner: Lock<QueueInner<G>>,
}

#[doc(hidden)]
pub struct QueueInner<G> {
    kept: Stash<G>,
    tickets: usize,
}

// SAFETY: the nodes behind the list are reached under the lock only; grants move between threads.
unsafe impl<G: Send> Send for QueueCore<G> {}
// SAFETY: as above.
unsafe impl<G: Send> Sync for QueueCore<G> {}

// SAFETY: `header` comes first; the lock is a mutex; `refs` counts whoever may touch the memory.
unsafe impl<G> Owner for QueueCore<G> {
    type Hold<'a>
        = Guard<'a, QueueInner<G>>
    where
        G: 'a;
    const NAME: &'static str = "wait queue";

    fn lock(&self) -> Guard<'_, QueueInner<G>> {
        self.inner.lock()
    }

    fn unlock(&self, hold: Guard<'_, QueueInner<G>>) {
        drop(hold);
    }

    unsafe fn detach(&self, _: &mut Guard<'_, QueueInner<G>>, node: *const Node, _: &mut WakeBatch) {
        // SAFETY: waiting nodes are linked.
        unsafe { List::unlink(node) }
    }

    unsafe fn retain(&self) {
        self.refs.add();
    }

    unsafe fn release(this: *const Self) -> Option<NonNull<Debt>> {
        // SAFETY: the caller gives its reference back.
        unsafe {
            if (*this).refs.sub() {
                ((*this).free)(this);
            }
        }
        None
    }
}

impl<G> QueueCore<G> {
    /// A core with one reference; [`QueueCore::init`] must follow at its final place.
    pub(crate) fn new(free: unsafe fn(*const QueueCore<G>)) -> QueueCore<G> {
        QueueCore::with_header(OwnerHeader::of::<Self>(), free)
    }

    /// The core of a queue that is a part of something else; `header` is one of this type.
    pub(crate) fn with_header(header: OwnerHeader, free: unsafe fn(*const QueueCore<G>)) -> QueueCore<G> {
        QueueCore {
            header,
            refs: RefCount::new(1),
            free,
            closed: AtomicBool::new(false),
            waiters: List::new(),
            inner: Lock::new(QueueInner { kept: Stash::new(), tickets: 0 }),
        }
    }

    pub(crate) fn init(&self) {
        // SAFETY: nobody else knows the queue yet.
        unsafe { self.waiters.init() }
    }

    pub(crate) fn refs(&self) -> &RefCount {
        &self.refs
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Acquire pairs with Release in `close`.
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn parked(&self) -> usize {
        let _inner = self.inner.lock();
        // SAFETY: the lock is held.
        unsafe { self.waiters.count() }
    }

    /// Hands `grant` to the first in line, with the ticket of its first hand-off if it has had one. `Err`: nobody waits.
    fn hand_over(&self, grant: G, ticket: Option<Ticket>) -> Result<(), G> {
        let mut inner = self.inner.lock();
        // SAFETY: the lock is held; parked nodes belong to `Inbox<G, _>` operations.
        unsafe {
            let Some(node) = self.waiters.pop_front() else { return Err(grant) };
            let ticket = ticket.unwrap_or_else(|| inner.next_ticket());
            let waker = (*node).take_waker();
            let head = node.byte_sub(offset_of!(Head, node)).cast::<Head>();
            (*Inbox::<G, Unlimited>::value_of(head)).with_mut(|place| (*place).write(grant));
            (*node).finish(State::Done(ticket));
            drop(inner);
            if let Some(waker) = waker {
                wake(waker);
            }
        }
        Ok(())
    }

    /// A grant that its operation did not take: to the next in line, else kept (Q1).
    fn pass_on(&self, mut grant: G, ticket: Ticket) {
        loop {
            let Err(refused) = self.hand_over(grant, Some(ticket)) else { return };
            // Allocated outside the lock; meanwhile somebody may have parked.
            let returned = Returned::new(ticket, refused);
            let mut inner = self.inner.lock();
            // SAFETY: the lock is held.
            if unsafe { self.waiters.is_empty() } {
                inner.kept.insert(returned);
                return;
            }
            drop(inner);
            grant = returned.value;
        }
    }

    /// Ends everything parked at this moment as `end`, in order, a batch a hold.
    fn end_all(&self, end: State, close: bool) -> usize {
        // Pinned on this stack until it is empty: `batch` contains every panic, so we do not unwind in between.
        let present = List::new();
        let mut count = 0;
        let mut inner = self.inner.lock();
        if close {
            // Ordering: Release pairs with Acquire in `is_closed`.
            self.closed.store(true, Ordering::Release);
        }
        // SAFETY: the lock is held whenever a list is touched.
        unsafe {
            present.init();
            self.waiters.splice(&present);
            let mut batch = WakeBatch::new();
            loop {
                while batch.has_room() {
                    let Some(node) = present.pop_front() else { break };
                    count += 1;
                    batch.push((*node).take_waker());
                    (*node).finish(end);
                }
                let done = present.is_empty();
                drop(inner);
                batch.run();
                if done {
                    return count;
                }
                inner = self.inner.lock();
            }
        }
    }

    pub(crate) fn close(&self) -> usize {
        self.end_all(State::Closed, true)
    }
}

impl<G> QueueInner<G> {
    fn next_ticket(&mut self) -> Ticket {
        loop {
            self.tickets = self.tickets.wrapping_add(1);
            let ticket = Ticket::new(self.tickets);
            // Tickets wrap (2^29 on 32-bit targets); zero stays a wake without a grant (Q2).
            if ticket != Ticket::new(0) {
                return ticket;
            }
        }
    }
}

/// A FIFO of parked operations that are woken with a grant `G`. One allocation, at its making.
///
/// ```
/// use std::time::Duration;
/// use tidegate_wait::{wait_queue::{ParkError, WaitQueue}, Operation};
///
/// let queue = WaitQueue::<u32>::new();
/// assert_eq!(queue.hand_over(7), Err(7)); // nobody waits
/// assert_eq!(queue.park().timeout(Duration::from_millis(1)).wait(), Err(ParkError::TimedOut));
/// ```
pub struct WaitQueue<G = ()> {
    core: *const QueueCore<G>,
    _owned: PhantomData<G>,
}

// SAFETY: grants move between threads; everything else is behind the lock.
unsafe impl<G: Send> Send for WaitQueue<G> {}
// SAFETY: as above.
unsafe impl<G: Send> Sync for WaitQueue<G> {}

impl<G> WaitQueue<G> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> WaitQueue<G> {
        unsafe fn free<G>(core: *const QueueCore<G>) {
            // SAFETY: made by `Box::into_raw` below, and this was the last reference.
            drop(unsafe { Box::from_raw(core.cast_mut()) });
        }
        let core = Box::into_raw(Box::new(QueueCore::new(free::<G>)));
        // SAFETY: just made.
        unsafe { (*core).init() };
        WaitQueue { core, _owned: PhantomData }
    }

    fn core(&self) -> &QueueCore<G> {
        // SAFETY: `self` holds a reference.
        unsafe { &*self.core }
    }

    /// Waits for a grant, for [`wake_all`](WaitQueue::wake_all), or for the queue's end.
    ///
    /// # Errors
    /// See [`ParkError`]. `Ok(None)`: woken without a grant.
    ///
    /// # Cancel safety
    /// A dropped `Park` loses its place. A grant that was handed to it already is passed on.
    pub fn park(&self) -> Park<'_, G> {
        Park { inbox: Inbox::new(Head::new(self.core.cast()), Unlimited), _queue: PhantomData }
    }

    /// Hands `grant` to the operation that parked first, and wakes it.
    ///
    /// # Errors
    /// The grant, if nobody is parked.
    pub fn hand_over(&self, grant: G) -> Result<(), G> {
        self.core().hand_over(grant, None)
    }

    /// Wakes all that are parked at the call, without a grant; returns how many. Who parks afterwards is not woken.
    pub fn wake_all(&self) -> usize {
        self.core().end_all(State::Done(Ticket::new(0)), false)
    }

    /// Ends the queue: all that are parked, and all that will be, get [`ParkError::Closed`].
    pub fn close(&self) {
        self.core().close();
    }

    /// Has it been closed?
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.core().is_closed()
    }

    /// How many are parked. Walks the list: for reports and tests.
    #[must_use]
    pub fn parked(&self) -> usize {
        self.core().parked()
    }
}

impl WaitQueue<()> {
    /// Wakes the one that parked first; false: nobody is parked.
    pub fn wake_one(&self) -> bool {
        self.hand_over(()).is_ok()
    }

    /// Wakes the `n` that parked first, or all if there are fewer; returns how many. They are woken one by one, and one
    /// that parks meanwhile counts: to wake all, call [`wake_all`](WaitQueue::wake_all).
    pub fn wake_n(&self, n: usize) -> usize {
        (0..n).take_while(|_| self.wake_one()).count()
    }
}

impl<G> Default for WaitQueue<G> {
    fn default() -> Self {
        Self::new()
    }
}

impl<G> Drop for WaitQueue<G> {
    fn drop(&mut self) {
        // What is still parked was leaked; it must not look like waiting for memory that is gone.
        self.core().close();
        // A leaked park's limits may keep the core: longer than a grant's lifetime, and on threads it must not go to.
        let kept = core::mem::take(&mut self.core().inner.lock().kept);
        drop(kept);
        // SAFETY: this is the handle's reference.
        unsafe { QueueCore::release(self.core) };
    }
}

impl<G> fmt::Debug for QueueCore<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueCore").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl<G> fmt::Debug for QueueInner<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueInner").field("kept", &self.kept.len()).finish_non_exhaustive()
    }
}

impl<G> fmt::Debug for WaitQueue<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitQueue").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}

/// Why a [`Park`] ended without being woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ParkError {
    /// The queue was closed.
    Closed,
    /// A limit in time ran out.
    TimedOut,
    /// A token was cancelled.
    Cancelled,
}

impl fmt::Display for ParkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParkError::Closed => "the wait queue was closed",
            ParkError::TimedOut => "the wait's time limit ran out",
            ParkError::Cancelled => "the wait's token was cancelled",
        })
    }
}

impl core::error::Error for ParkError {}

/// The wait for a grant; made by [`WaitQueue::park`].
#[must_use = "a wait does nothing unless it is awaited or waited for"]
pub struct Park<'q, G, L: Limits = Unlimited> {
    inbox: Inbox<G, L>,
    _queue: PhantomData<&'q QueueCore<G>>,
}

// SAFETY: node and grant move between threads only under the queue's lock.
unsafe impl<G: Send, L: Limits + Send> Send for Park<'_, G, L> {}
// SAFETY: a shared reference offers nothing.
unsafe impl<G: Send, L: Limits + Sync> Sync for Park<'_, G, L> {}

impl<'q, L: Limits> Park<'q, (), L> {
    /// A park in a core that lives elsewhere.
    ///
    /// # Safety
    /// `core` points at all of its allocation and is good for `'q`.
    pub(crate) unsafe fn on(core: *const QueueCore<()>, limits: L) -> Self {
        Park { inbox: Inbox::new(Head::new(core.cast()), limits), _queue: PhantomData }
    }
}

impl<G, L: Limits> Park<'_, G, L> {
    /// Parks now, so that a condition tested afterwards can't be missed. False: it has ended already; poll it. A grant
    /// that it ended with stays in it until then.
    ///
    /// Not a poll: it spends no budget, so it parks in any case, and called again it only says whether it still waits.
    pub fn enter(self: Pin<&mut Self>) -> bool {
        // SAFETY: pinned; nothing is moved out of it.
        unsafe {
            let this = core::ptr::from_mut(self.get_unchecked_mut());
            let node = &(*Self::head(this)).node;
            match node.state() {
                State::Init => {}
                state => return state == State::Waiting,
            }
            let limits = Self::limits(this);
            if (*limits).is_cancelled() {
                node.set_quiet(State::Cancelled);
            } else if (*limits).has_expired() {
                if !Self::take_end(this) {
                    node.set_quiet(State::TimedOut);
                }
            } else if Self::take_place(this, Waker::noop()) {
                return op::arm_parked(this).is_none();
            }
            false
        }
    }

    /// The way in, for whoever polls and for `enter`. False: it has ended, as the node's state says.
    ///
    /// # Safety
    /// Pinned, in state Init.
    unsafe fn take_place(this: *mut Self, waker: &Waker) -> bool {
        let waker = waker.clone();
        // SAFETY: pinned, in state Init; the lock is held around the list.
        unsafe {
            let core = Self::core(this);
            let mut inner = core.inner.lock();
            // Ordering: Relaxed; Q3.
            let kept = if core.closed.load(Ordering::Relaxed) { None } else { Some(inner.kept.pop()) };
            if let Some(None) = kept {
                core.waiters.push_back(&raw const (*Self::head(this)).node, Kind::Wait, waker);
                return true;
            }
            drop(inner);
            crate::wake_batch::discard(Some(waker));
            Self::end_at_once(this, kept.flatten());
            false
        }
    }

    /// Ends as closed or with a kept grant, if there is one; else returns false.
    ///
    /// # Safety
    /// Pinned, in state Init.
    unsafe fn take_end(this: *mut Self) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let core = Self::core(this);
            let closed = core.is_closed();
            let kept = if closed { None } else { core.inner.lock().kept.pop() };
            let ended = closed || kept.is_some();
            if ended {
                Self::end_at_once(this, kept);
            }
            ended
        }
    }

    /// `None`: closed.
    ///
    /// # Safety
    /// Pinned, in state Init.
    unsafe fn end_at_once(this: *mut Self, kept: Option<Box<Returned<G>>>) {
        // SAFETY: nobody else knows the node; its links and waker are not used any more (the value may lie over them).
        unsafe {
            let head = Self::head(this);
            let end = match kept {
                None => State::Closed,
                Some(returned) => {
                    let Returned { ticket, value, .. } = *returned;
                    (*Inbox::<G, L>::value_of(head)).with_mut(|place| (*place).write(value));
                    State::Done(ticket)
                }
            };
            (*head).node.set_quiet(end);
        }
    }

    /// # Safety
    /// `this` is alive; the owner of a park is a `QueueCore<G>`.
    unsafe fn core<'a>(this: *mut Self) -> &'a QueueCore<G> {
        // SAFETY: the operation borrows the queue.
        unsafe { &*(*Self::head(this)).owner().cast() }
    }

    /// # Safety
    /// In state Done with a grant's ticket, once.
    unsafe fn take_grant(this: *mut Self) -> G {
        // SAFETY: the grant was written before the state (W2).
        unsafe { (*Inbox::<G, L>::value_of(Self::head(this))).with(|place| (*place).assume_init_read()) }
    }
}

// SAFETY: an `Inbox` is laid out as the module says; the queue is borrowed.
unsafe impl<'q, G, L: Limits> RawOperation for Park<'q, G, L> {
    type Limits = L;
    type Owner = QueueCore<G>;
    type With<M: Limits> = Park<'q, G, M>;
    const KIND: Kind = Kind::Wait;

    unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { Inbox::head(&raw mut (*this).inbox) }
    }

    unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: as above.
        unsafe { Inbox::limits(&raw mut (*this).inbox) }
    }

    fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Park<'q, G, M> {
        let this = core::mem::ManuallyDrop::new(self);
        // SAFETY: read once, and `this` is not dropped.
        let inbox = unsafe { core::ptr::read(&this.inbox) };
        Park { inbox: inbox.map_limits(f), _queue: PhantomData }
    }

    unsafe fn attempt(_: *mut Self) -> Option<Self::Output> {
        None
    }

    unsafe fn try_once(this: *mut Self) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init.
        unsafe { Self::take_end(this).then(|| Self::ended(this)).flatten() }
    }

    unsafe fn park(this: *mut Self, waker: &Waker) -> Option<Self::Output> {
        // SAFETY: pinned, in state Init.
        unsafe {
            match Self::take_place(this, waker) {
                true => None,
                false => Self::ended(this),
            }
        }
    }

    unsafe fn conclude(this: *mut Self, end: State) -> Poll<Self::Output> {
        // SAFETY: the node has left Waiting, or never was there: it is the task's.
        unsafe {
            let node = &(*Self::head(this)).node;
            match end {
                State::Done(ticket) => {
                    node.set_quiet(State::Spent);
                    let grant = (ticket != Ticket::new(0)).then(|| Self::take_grant(this));
                    Poll::Ready(Ok(grant))
                }
                State::Closed | State::TimedOut | State::Cancelled => {
                    node.set_quiet(end);
                    Poll::Ready(Err(match end {
                        State::Closed => ParkError::Closed,
                        State::TimedOut => ParkError::TimedOut,
                        _ => ParkError::Cancelled,
                    }))
                }
                State::Init | State::Waiting | State::Spent => Poll::Pending,
            }
        }
    }
}

impl<G, L: Limits> Park<'_, G, L> {
    /// # Safety
    /// The node's state is an end, and nobody else knows it.
    unsafe fn ended(this: *mut Self) -> Option<<Self as Future>::Output> {
        // SAFETY: the caller's promise.
        match unsafe { Self::conclude(this, (*Self::head(this)).node.state()) } {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }
}

impl<G, L: Limits> Future for Park<'_, G, L> {
    type Output = Result<Option<G>, ParkError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: pinned; nothing is moved out of it.
        unsafe { op::poll(core::ptr::from_mut(self.get_unchecked_mut()), cx) }
    }
}

impl<G, L: Limits> Drop for Park<'_, G, L> {
    fn drop(&mut self) {
        let this = core::ptr::from_mut(self);
        // SAFETY: pinned if it was ever polled, and gone afterwards.
        unsafe {
            match op::withdraw(this) {
                State::Done(ticket) if ticket != Ticket::new(0) => {
                    let grant = Self::take_grant(this);
                    Self::core(this).pass_on(grant, ticket);
                }
                _ => {}
            }
        }
    }
}

impl<G, L: Limits> fmt::Debug for Park<'_, G, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Park").finish_non_exhaustive()
    }
}
