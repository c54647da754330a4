//! The part of a channel that does not depend on the payload: index words, lock, lists, counts.
//!
//! # Who touches what
//! ```text
//! line 0   header, ring, window, functions  constant
//! line 1   tail                            fast senders by CAS; the lock holder
//!          tx, rx, closed, tickets, close  the lock holder, who has the line already: the lock is in it
//!          parked                          the lock holder writes, anyone reads
//!          refs, senders, receivers        anyone, by atomic counts
//! line 2   head                            fast receivers by CAS; the lock holder
//!          seen                            receivers of an unbounded channel
//! ```
//! The lock is a bit of `tail`. It is taken by `fetch_or`, so that fast senders can't starve it, and given back by a
//! plain store: while it is set every fast send fails, and other lockers' `fetch_or` changes nothing.

use core::mem::offset_of;
use core::ptr::NonNull;
use core::task::Waker;

use tidegate_wait::debt::{Debt, Paid};
use tidegate_wait::list::List;
use tidegate_wait::origin::{Origin, OriginCell};
use tidegate_wait::owner::{Owner, OwnerHeader, RefCount};
pub(super) use tidegate_wait::shim::Patience;
use tidegate_wait::shim::{AtomicU64, AtomicUsize, Ordering, UnsafeCell};
use tidegate_wait::waiter::{Head, Kind, Node, State, Ticket};
use tidegate_wait::wake_batch::WakeBatch;

use super::window::Luck;
use super::words::{Ring, LOCK, PERMIT, RXW, TXW};

/// See the module's text. The two lines are a cache line each, and the neighbour that the processor fetches with it.
#[repr(C)]
#[derive(Debug)]
pub struct Core {
    header: OwnerHeader,
    pub(in crate::flavor) ring: Ring,
    /// Whether looking again before parking can pay: enough slots, and another processor.
    pub(super) window: bool,
    /// Is there a store with an account instead of slots (`flavor/weighted/`)?
    pub(in crate::flavor) weighted: bool,
    /// Drops and frees the channel that this core begins.
    free: unsafe fn(*const Core),
    /// Passes on a part of what is owed to those in line, for a thread that does not know the payload; `true`: for its
    /// payer. Outside the lock.
    pass_on: unsafe fn(*const Core, bool) -> Paid,
    /// How far behind the beginning of its memory the channel stands.
    pub(super) offset: usize,
    /// Where it was made, and what it was called, for a runtime's reports.
    pub(crate) origin: OriginCell,
    /// Of what is owed, what a timer's thread has still to pass on.
    pub(in crate::flavor) debt: Debt,
    pub(in crate::flavor) tail: TailLine,
    pub(in crate::flavor) head: HeadLine,
}

/// The head, and (unbounded) how far the receivers have seen the tail.
#[repr(C, align(128))]
#[derive(Debug)]
pub(in crate::flavor) struct HeadLine(pub(in crate::flavor) AtomicU64, pub(in crate::flavor) AtomicU64);

/// The tail and what its lock protects.
#[repr(C, align(128))]
#[derive(Debug)]
pub(in crate::flavor) struct TailLine(pub(in crate::flavor) AtomicU64, Locked);

#[repr(C)]
#[derive(Debug)]
struct Locked {
    tx: List,
    rx: List,
    /// Who waits for the close itself.
    closed: List,
    tickets: UnsafeCell<usize>,
    /// Slots that are promised: free in the ring, but nobody's to claim. PERMIT ⇔ there are any.
    permits: UnsafeCell<u64>,
    /// Permits of operations that were taken out of the line, for those behind them ([`super::grants`], N3); in a weighted
    /// channel, that somebody was taken out (A5). Written under
    /// the lock; whoever wrote it looks again after the hold.
    owed: AtomicU64,
    /// A `close_with(Parked::Admit)` still has parked senders to let in: the end has not come yet.
    admitting: UnsafeCell<bool>,
    luck: Luck,
    parked: ParkedCounts,
    refs: RefCount,
    senders: RefCount,
    receivers: RefCount,
}

/// How many operations wait, in whichever list, until they are settled. Written under the lock, read without it, for
/// reports.
#[derive(Debug)]
pub(super) struct ParkedCounts {
    senders: AtomicUsize,
    receivers: AtomicUsize,
}

impl ParkedCounts {
    fn of(&self, kind: Kind) -> Option<&AtomicUsize> {
        match kind {
            Kind::Send | Kind::Permit | Kind::Batch => Some(&self.senders),
            Kind::Receive => Some(&self.receivers),
            _ => None,
        }
    }

    #[inline(always)]
    fn add(&self, kind: Kind, n: isize) {
        if let Some(count) = self.of(kind) {
            // Ordering: Relaxed to load: the lock holder alone writes it. Release pairs with Acquire in `count`: TXW was set
            // before, so whoever sees that a send is parked, and then tries to receive, finds it.
            count.store(count.load(Ordering::Relaxed).wrapping_add_signed(n), Ordering::Release);
        }
    }

    /// How many wait as `kind`.
    pub(super) fn count(&self, kind: Kind) -> usize {
        // Ordering: Acquire pairs with Release in `add`.
        self.of(kind).map_or(0, |count| count.load(Ordering::Acquire))
    }
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Core>() == 384);

// SAFETY: `header` comes first; the lock bit excludes other holders; `refs` counts whoever may touch the memory.
unsafe impl Owner for Core {
    /// The tail word as it will be stored at the end of the hold, without `LOCK`.
    type Hold<'a> = u64;
    const NAME: &'static str = "channel";

    #[inline]
    fn lock(&self) -> u64 {
        match self.try_lock() {
            Some(tail) => tail,
            None => self.lock_contended(),
        }
    }

    #[inline]
    fn unlock(&self, tail: u64) {
        debug_assert!(tail & LOCK == 0);
        self.store_tail(tail);
    }

    #[inline]
    unsafe fn detach(&self, tail: &mut u64, node: *const Node, _: &mut WakeBatch) {
        // SAFETY: a waiting node is linked, in a list of ours or in the private one of a `close` under way.
        unsafe {
            let kind = (*node).kind();
            List::unlink(node);
            self.tail.1.parked.add(kind, -1);
            match kind {
                Kind::Receive => self.after_receiver_left(tail),
                Kind::Send | Kind::Permit => self.after_sender_left(),
                Kind::Batch => {
                    self.owe(node);
                    self.after_sender_left();
                }
                _ => {}
            }
        }
    }

    fn origin(&self) -> Origin {
        self.origin.get()
    }

    unsafe fn retain(&self) {
        self.tail.1.refs.add();
    }

    unsafe fn release(this: *const Core) -> Option<NonNull<Debt>> {
        // SAFETY: the caller gives its reference back; until then the channel is alive.
        unsafe {
            if (*this).owes() && ((*this).pass_on)(this, false) != Paid::All {
                return Some(NonNull::from(&(*this).debt));
            }
            Core::give_back(this);
        }
        None
    }

    unsafe fn pay(this: *const Core) -> Paid {
        // SAFETY: the caller has a reference.
        unsafe { ((*this).pass_on)(this, true) }
    }
}

/// How often a task pauses before it insists on the lock: 12 µs in all.
const PAUSES: u32 = 4;

impl Core {
    /// Gives a reference back, by somebody who has passed on what it owes.
    ///
    /// # Safety
    /// As for [`Owner::release`].
    pub(super) unsafe fn give_back(this: *const Core) {
        // SAFETY: the caller's promise.
        unsafe {
            if (*this).tail.1.refs.sub() {
                ((*this).free)(this);
            }
        }
    }

    /// A core with one sender and one receiver, whose positions begin at `start`. `init` must follow at its final place.
    pub(in crate::flavor) fn new(
        ring: Ring,
        start: u64,
        offset: usize,
        free: unsafe fn(*const Core),
        pass_on: unsafe fn(*const Core, bool) -> Paid,
    ) -> Core {
        Core {
            header: OwnerHeader::of::<Core>(),
            ring,
            window: ring.cap >= 8 && super::window::pays(),
            weighted: false,
            free,
            pass_on,
            offset,
            origin: OriginCell::new(Origin::UNKNOWN),
            debt: Debt::new(),
            tail: TailLine(
                AtomicU64::new(start),
                Locked {
                    tx: List::new(),
                    rx: List::new(),
                    closed: List::new(),
                    tickets: UnsafeCell::new(0),
                    permits: UnsafeCell::new(0),
                    owed: AtomicU64::new(0),
                    admitting: UnsafeCell::new(false),
                    luck: Luck::new(),
                    parked: ParkedCounts { senders: AtomicUsize::new(0), receivers: AtomicUsize::new(0) },
                    refs: RefCount::new(2),
                    senders: RefCount::new(1),
                    receivers: RefCount::new(1),
                },
            ),
            head: HeadLine(AtomicU64::new(start), AtomicU64::new(start)),
        }
    }

    /// # Safety
    /// Once, at the final place, before anybody else knows the core.
    pub(in crate::flavor) unsafe fn init(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            self.tail.1.tx.init();
            self.tail.1.rx.init();
            self.tail.1.closed.init();
        }
    }

    /// Stores the tail, which the caller has locked. A plain store: other lockers' `fetch_or` changes nothing meanwhile.
    ///
    /// Loom needs a read-modify-write: it does not know that nothing can come between a `fetch_or` and the value that it
    /// read, and lets the locker read its own, older word for ever.
    #[inline(always)]
    pub(super) fn store_tail(&self, tail: u64) {
        // Ordering: Release pairs with Acquire in `lock` and in every look at the tail.
        #[cfg(not(loom))]
        self.tail.0.store(tail, Ordering::Release);
        #[cfg(loom)]
        self.tail.0.swap(tail, Ordering::Release);
    }

    /// Takes the lock if it is free; returns the tail without it.
    ///
    /// Only the bit comes from the read-modify-write: so it is one instruction that can't be made to try again (`bts`),
    /// where x86 has none that returns the word. The word is frozen as soon as the bit is set.
    #[inline(always)]
    fn try_lock(&self) -> Option<u64> {
        // Ordering: Acquire pairs with Release in `unlock`; makes lists and stash visible.
        let was_locked = self.tail.0.fetch_or(LOCK, Ordering::Acquire) & LOCK != 0;
        // Ordering: Relaxed; not older than our own write, and nobody else changes the word (I4).
        (!was_locked).then(|| self.tail.0.load(Ordering::Relaxed) & !LOCK)
    }

    #[cold]
    fn lock_contended(&self) -> u64 {
        let mut wait = Patience::new();
        loop {
            // Ordering: Relaxed to look; `try_lock` has the Acquire.
            if self.tail.0.load(Ordering::Relaxed) & LOCK == 0 {
                if let Some(tail) = self.try_lock() {
                    return tail;
                }
            }
            wait.a_little();
        }
    }

    /// `lock`, for a whole send or receive; `parks`: if it must, it parks. A task that finds the lock taken lets the other
    /// side go on alone for a while, so that the channel's lines stay with one processor for many steps instead of one.
    #[inline(always)]
    pub(super) fn lock_for(&self, parks: bool) -> u64 {
        match self.try_lock() {
            Some(tail) => tail,
            None => self.lock_after_pauses(parks),
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_after_pauses(&self, parks: bool) -> u64 {
        let pauses = if parks && Self::may_pause() { PAUSES } else { 0 };
        let mut pause = Patience::new();
        for _ in 0..pauses {
            pause.after_a_loss();
            if let Some(tail) = self.try_lock() {
                return tail;
            }
        }
        self.lock_contended()
    }

    /// Not a thread that blocks in its operation: it is probably what the other side waits for, and has nothing else to do.
    #[cfg(all(feature = "std", not(loom), not(miri)))]
    fn may_pause() -> bool {
        !tidegate_wait::parker::is_blocking() && !tidegate_wait::parker::one_processor()
    }

    /// As above, where no time passes, or nobody knows.
    #[cfg(not(all(feature = "std", not(loom), not(miri))))]
    fn may_pause() -> bool {
        false
    }

    /// Parked senders, in order. Under the lock.
    #[inline(always)]
    pub(in crate::flavor) fn tx(&self) -> &List {
        &self.tail.1.tx
    }

    /// Parked receivers, in order. Under the lock.
    #[inline(always)]
    pub(super) fn rx(&self) -> &List {
        &self.tail.1.rx
    }

    /// Waits for the close. Under the lock.
    #[inline(always)]
    pub(super) fn closed(&self) -> &List {
        &self.tail.1.closed
    }

    /// Parks a node at the end of its kind's list; the flag is the caller's.
    ///
    /// # Safety
    /// Under the lock; `node` is pinned and not Waiting.
    #[inline(always)]
    pub(in crate::flavor) unsafe fn park(&self, node: *const Node, kind: Kind, waker: Waker) {
        let list = match kind {
            Kind::Send | Kind::Permit | Kind::Batch => self.tx(),
            Kind::Receive => self.rx(),
            _ => self.closed(),
        };
        // SAFETY: the caller's promise.
        unsafe { list.push_back(node, kind, waker) };
        self.tail.1.parked.add(kind, 1);
    }

    /// Takes the first node out of a list of waits of this kind; the caller settles it and mends the flag.
    ///
    /// # Safety
    /// Under the lock.
    #[inline(always)]
    pub(super) unsafe fn pop(&self, list: &List, kind: Kind) -> Option<*const Node> {
        // SAFETY: the caller's promise.
        let node = unsafe { list.pop_front() };
        if node.is_some() {
            self.tail.1.parked.add(kind, -1);
        }
        node
    }

    /// How many wait.
    pub(super) fn parked(&self) -> &ParkedCounts {
        &self.tail.1.parked
    }

    /// How many slots are promised.
    ///
    /// # Safety
    /// Under the lock.
    #[inline(always)]
    pub(super) unsafe fn permits(&self) -> u64 {
        // SAFETY: the lock makes this the only access.
        self.tail.1.permits.with(|permits| unsafe { *permits })
    }

    /// # Safety
    /// Under the lock; whoever ends the hold makes PERMIT say the same ([`Core::with_permit_flag`]).
    #[inline(always)]
    pub(super) unsafe fn set_permits(&self, n: u64) {
        // SAFETY: as above.
        self.tail.1.permits.with_mut(|permits| unsafe { *permits = n });
    }

    /// The tail word with PERMIT as the count says.
    ///
    /// # Safety
    /// Under the lock.
    #[inline(always)]
    pub(super) unsafe fn with_permit_flag(&self, tail: u64) -> u64 {
        // SAFETY: the caller's promise.
        match unsafe { self.permits() } {
            0 => tail & !PERMIT,
            _ => tail | PERMIT,
        }
    }

    /// Is every slot taken or promised? For the lock holder, whose tail this is.
    ///
    /// # Safety
    /// Under the lock.
    #[inline(always)]
    pub(super) unsafe fn is_full(&self, head: u64, tail: u64) -> bool {
        if tail & PERMIT == 0 {
            return self.ring.is_full(head, tail);
        }
        // SAFETY: the caller's promise.
        unsafe { self.room(head, tail) == 0 }
    }

    /// Are there blocks instead of a ring?
    pub(crate) fn is_unbounded(&self) -> bool {
        self.ring.is_unbounded()
    }

    /// How many slots are neither taken nor promised. For the lock holder.
    ///
    /// # Safety
    /// Under the lock.
    #[inline(always)]
    pub(super) unsafe fn room(&self, head: u64, tail: u64) -> u64 {
        // M1. Saturating: a channel without a ring has positions of its own.
        // SAFETY: the caller's promise.
        self.ring.cap.saturating_sub(self.ring.distance(head, tail)).saturating_sub(unsafe { self.permits() })
    }

    /// Permits that nobody has any more, to be passed on. Under the lock, or as a look.
    pub(super) fn owed(&self) -> &AtomicU64 {
        &self.tail.1.owed
    }

    /// Is there something to be passed on? For whoever has just taken an operation out of the line.
    #[inline(always)]
    pub(super) fn owes(&self) -> bool {
        // Ordering: Relaxed; the look is for what this thread wrote itself, or something newer.
        self.owed().load(Ordering::Relaxed) != 0
    }

    /// Does a close still let parked senders in?
    ///
    /// # Safety
    /// Under the lock.
    #[inline(always)]
    pub(super) unsafe fn is_admitting(&self) -> bool {
        // SAFETY: the lock makes this the only access.
        self.tail.1.admitting.with(|admitting| unsafe { *admitting })
    }

    /// # Safety
    /// Under the lock.
    pub(super) unsafe fn set_admitting(&self, on: bool) {
        // SAFETY: as above.
        self.tail.1.admitting.with_mut(|admitting| unsafe { *admitting = on });
    }

    /// How many halves there are of each side.
    pub(crate) fn senders(&self) -> &RefCount {
        &self.tail.1.senders
    }

    /// As above.
    pub(crate) fn receivers(&self) -> &RefCount {
        &self.tail.1.receivers
    }

    /// Before a park: opens a window where one can pay.
    #[inline(always)]
    pub(super) fn try_window(&self, look: impl FnOnce() -> bool) -> bool {
        self.window && self.tail.1.luck.try_window(look)
    }

    /// Numbers the next hand-off.
    ///
    /// # Safety
    /// Under the lock.
    #[inline(always)]
    pub(super) unsafe fn next_ticket(&self) -> Ticket {
        // SAFETY: the lock makes this the only access.
        self.tail.1.tickets.with_mut(|tickets| unsafe {
            *tickets = (*tickets).wrapping_add(1);
            Ticket::new(*tickets)
        })
    }

    /// RXW ⇔ the list is not empty (I2).
    ///
    /// # Safety
    /// Under the lock, after a receiver was unlinked.
    #[inline(always)]
    pub(super) unsafe fn after_receiver_left(&self, tail: &mut u64) {
        // SAFETY: the caller's promise.
        if unsafe { self.rx().is_empty() } {
            *tail &= !RXW;
        }
    }

    /// TXW ⇔ the list is not empty (I1). A sender that left a private list of `close` finds TXW clear, and must not
    /// store to a head that is not frozen: fast receivers move it.
    ///
    /// # Safety
    /// Under the lock, after a sender was unlinked.
    #[inline(always)]
    pub(in crate::flavor) unsafe fn after_sender_left(&self) {
        // Ordering: Relaxed; while TXW is set only lock holders write the word (I4).
        let head = self.head.0.load(Ordering::Relaxed);
        // SAFETY: the caller's promise.
        if head & TXW != 0 && unsafe { self.tx().is_empty() } {
            // Ordering: Release; fast receivers that see TXW gone see the ring as this holder left it.
            self.head.0.store(head & !TXW, Ordering::Release);
        }
    }
}

/// The head of a parked operation.
#[inline(always)]
pub(in crate::flavor) fn head_of(node: *const Node) -> *const Head {
    node.wrapping_byte_sub(offset_of!(Head, node)).cast()
}

/// Ends a popped node as delivered; returns its waker. The last touch of it.
///
/// # Safety
/// Under the lock; `node` was unlinked, and its payload has been moved *after* `take_waker` where the two share a place.
#[inline(always)]
pub(super) unsafe fn finish_delivered(node: *const Node, ticket: Ticket) {
    // SAFETY: the caller's promise.
    unsafe { (*node).finish(State::Done(ticket)) }
}

/// Wakes what a hold of the lock has ended.
#[inline(always)]
pub(super) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        tidegate_wait::wake_batch::wake(waker);
    }
}
