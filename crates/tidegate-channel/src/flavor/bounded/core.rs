//! The part of a bounded channel that does not depend on the payload: index words, lock, lists, counts.
//!
//! # Who touches what
//! ```text
//! line 0   header, ring, window, free      constant
//! line 1   tail                            fast senders by CAS; the lock holder
//! line 2   head                            fast receivers by CAS; the lock holder
//! line 3   tx, rx, tickets                 the lock holder
//!          refs, senders, receivers        anyone, by atomic counts
//! ```
//! The lock is a bit of `tail`. It is taken by `fetch_or`, so that fast senders can't starve it, and given back by a
//! plain store: while it is set every fast send fails, and other lockers' `fetch_or` changes nothing.

use core::mem::offset_of;
use core::task::Waker;

use tidegate_wait::list::List;
use tidegate_wait::owner::{Owner, OwnerHeader, RefCount};
pub(super) use tidegate_wait::shim::Patience;
use tidegate_wait::shim::{AtomicU64, Ordering, UnsafeCell};
use tidegate_wait::waiter::{Head, Kind, Node, State, Ticket};
use tidegate_wait::wake_batch::WakeBatch;

use super::words::{Ring, LOCK, RXW, TXW};

/// A cache line of its own, and the neighbour that the processor fetches with it.
#[repr(align(128))]
#[derive(Debug)]
pub(super) struct Line<T>(pub(super) T);

/// See the module's text.
#[repr(C)]
#[derive(Debug)]
pub struct Core {
    header: OwnerHeader,
    pub(super) ring: Ring,
    /// Whether looking again before parking can pay: enough slots, and another processor.
    pub(super) window: bool,
    /// Drops and frees the channel that this core begins.
    free: unsafe fn(*const Core),
    pub(super) tail: Line<AtomicU64>,
    pub(super) head: Line<AtomicU64>,
    locked: Line<Locked>,
}

#[repr(C)]
#[derive(Debug)]
struct Locked {
    tx: List,
    rx: List,
    tickets: UnsafeCell<usize>,
    refs: RefCount,
    senders: RefCount,
    receivers: RefCount,
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Core>() <= 512);

// SAFETY: `header` comes first; the lock bit excludes other holders; `refs` counts whoever may touch the memory.
unsafe impl Owner for Core {
    /// The tail word as it will be stored at the end of the hold, without `LOCK`.
    type Hold<'a> = u64;
    const NAME: &'static str = "bounded channel";

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
            match kind {
                Kind::Receive => self.after_receiver_left(tail),
                _ => self.after_sender_left(),
            }
        }
    }

    unsafe fn retain(&self) {
        self.locked.0.refs.add();
    }

    unsafe fn release(this: *const Core) {
        // SAFETY: the caller gives its reference back.
        unsafe {
            if (*this).locked.0.refs.sub() {
                ((*this).free)(this);
            }
        }
    }
}

impl Core {
    /// A core with one sender and one receiver, whose positions begin at `start`. `init` must follow at its final place.
    pub(super) fn new(ring: Ring, start: u64, free: unsafe fn(*const Core)) -> Core {
        Core {
            header: OwnerHeader::of::<Core>(),
            ring,
            window: ring.cap >= 8 && super::window::pays(),
            free,
            tail: Line(AtomicU64::new(start)),
            head: Line(AtomicU64::new(start)),
            locked: Line(Locked {
                tx: List::new(),
                rx: List::new(),
                tickets: UnsafeCell::new(0),
                refs: RefCount::new(2),
                senders: RefCount::new(1),
                receivers: RefCount::new(1),
            }),
        }
    }

    /// # Safety
    /// Once, at the final place, before anybody else knows the core.
    pub(super) unsafe fn init(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            self.locked.0.tx.init();
            self.locked.0.rx.init();
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

    /// Parked senders, in order. Under the lock.
    #[inline(always)]
    pub(super) fn tx(&self) -> &List {
        &self.locked.0.tx
    }

    /// Parked receivers, in order. Under the lock.
    #[inline(always)]
    pub(super) fn rx(&self) -> &List {
        &self.locked.0.rx
    }

    /// How many halves there are of each side.
    pub(crate) fn senders(&self) -> &RefCount {
        &self.locked.0.senders
    }

    /// As above.
    pub(crate) fn receivers(&self) -> &RefCount {
        &self.locked.0.receivers
    }

    /// Numbers the next hand-off.
    ///
    /// # Safety
    /// Under the lock.
    #[inline(always)]
    pub(super) unsafe fn next_ticket(&self) -> Ticket {
        // SAFETY: the lock makes this the only access.
        self.locked.0.tickets.with_mut(|tickets| unsafe {
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
    pub(super) unsafe fn after_sender_left(&self) {
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
pub(super) fn head_of(node: *const Node) -> *const Head {
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
