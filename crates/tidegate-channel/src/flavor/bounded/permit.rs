//! Permits: a slot first, the value later.
//!
//! A permit is a number under the lock (`permits`), no slot in particular: so many free slots of the ring are promised.
//! While there are any, PERMIT freezes the tail, and every send takes the lock.
//!
//! - **M1** ring + permits ≤ capacity; a send finds no room where the rest is promised.
//! - **M2** A permit is given up in one of three ways: its value is published; its value goes to a parked receive, and its
//!   slot to whoever is first in line ([`Handle::free_slots`]); it is dropped, and its slot goes the same way.
//! - **M3** While its slot looks for an owner the permit still counts: nobody else may claim the slot.
//! - **M4** Permits outlive a close: their values are received, and receivers see the end after the last one (E3).
//!   While a close admits, and until the overflow is empty, their values go behind the admitted ones.
//!
//! | the first in line is | what becomes of a free slot |
//! | --- | --- |
//! | nobody | permits − 1 |
//! | a reserve | it inherits the permit; one of many as many as it wants ([`grants`](super::grants)) |
//! | a send, and a receive is parked | the value goes across; the slot is free again |
//! | a send alone | the value is published there; permits − 1 |
//!
//! Model: `model/bounded.pml` with `-DPERMITS`.

use core::task::Waker;

use tidegate_wait::debt::Paid;
use tidegate_wait::op::Place;
use tidegate_wait::owner::Owner;
use tidegate_wait::shim::Ordering;
use tidegate_wait::waiter::{Head, Kind};
use tidegate_wait::wake_batch::{discard, WakeBatch, BATCH};

use super::core::Patience;
use super::grants::grant;
use super::overflow::Room;
use super::words::{CLOSED, MAX_CAPACITY, PERMIT, TXW};
use super::Handle;
use crate::flavor::unbounded::Next;

/// How a reservation went.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reserved {
    /// The caller has a permit.
    Done,
    /// The channel is closed.
    Closed,
    /// The operation is parked, or (without a node) there is no room.
    Full,
}

/// What one look for an owner of a free slot came to.
enum Freed {
    /// It has one, or is free for everybody.
    Settled,
    /// So many waits were ended that the lock must be given back for a moment.
    More,
    /// The slot at this tail is still being read.
    Await,
}

impl<T> Handle<T> {
    /// How many permits there can be: an unbounded channel counts as many as the largest bounded one.
    pub(crate) fn most_permits(self) -> u64 {
        self.core().ring.cap.min(MAX_CAPACITY)
    }

    /// Takes so many permits, if there is room and nobody parked before.
    pub(crate) fn try_reserve(self, slots: u64) -> Reserved {
        // SAFETY: without an operation to park there is nothing to promise.
        unsafe { self.reserve_locked(slots, None, &mut None) }
    }

    /// Takes so many permits, or parks for them, after `try_reserve` found no room.
    ///
    /// # Safety
    /// `head` is that of a reservation, pinned, in state Init, and its task's waker is `waker`; of one of many with word
    /// and value, if it is of kind `Batch`.
    pub(crate) unsafe fn reserve_or_park(self, slots: u64, head: *const Head, kind: Kind, waker: &Waker) -> Reserved {
        // Cloned before the lock is taken (G5).
        let mut own = Some(waker.clone());
        // SAFETY: the caller's promise.
        let reserved = unsafe { self.reserve_locked(slots, Some((head, kind)), &mut own) };
        discard(own);
        reserved
    }

    /// One hold of the lock.
    unsafe fn reserve_locked(
        self,
        slots: u64,
        park: Option<(*const Head, Kind)>,
        waker: &mut Option<Waker>,
    ) -> Reserved {
        let core = self.core();
        let tail = core.lock();
        if tail & CLOSED != 0 {
            core.unlock(tail);
            return Reserved::Closed;
        }
        // Ordering: Acquire; the holder's view of the head (it moves under us unless frozen).
        let mut head = core.head.0.load(Ordering::Acquire);
        // SAFETY: the lock is held; the caller's promise about the node.
        unsafe {
            loop {
                let free = if head & TXW == 0 { core.room(head, tail) } else { 0 };
                if free >= slots {
                    core.set_permits(core.permits() + slots);
                    core.unlock(tail | PERMIT);
                    return Reserved::Done;
                }
                // TXW means nothing to an unbounded channel.
                let may_park = waker.is_some() && !core.is_unbounded();
                let (Some((op, kind)), true) = (park, may_park) else { break };
                if head & TXW == 0 {
                    // Ordering: AcqRel, as in `send_locked`: if the head moved, there is more room after all.
                    if let Err(seen) =
                        core.head.0.compare_exchange(head, head | TXW, Ordering::AcqRel, Ordering::Acquire)
                    {
                        head = seen;
                        continue;
                    }
                }
                if let Some(waker) = waker.take() {
                    let node = &raw const (*op).node;
                    core.park(node, kind, waker);
                    if free != 0 {
                        // I1: what there is goes to it at once (N2: nobody stands in front of it).
                        let _less_than_it_wants = grant(node, free);
                        core.set_permits(core.permits() + free);
                        core.unlock(tail | PERMIT);
                        return Reserved::Full;
                    }
                }
                break;
            }
        }
        core.unlock(tail);
        Reserved::Full
    }

    /// Gives a permit's value away. False: nobody is left to receive, and nothing has been moved; the permit is gone.
    ///
    /// # Safety
    /// The caller has a permit, which ends here; `from` holds a value, which counts as moved if this returns true.
    pub(crate) unsafe fn send_permit(self, from: *const Place<T>) -> bool {
        let core = self.core();
        let mut patience = Patience::new();
        let mut room = Room::new();
        let mut next = Next::new(self);
        loop {
            let mut tail = core.lock();
            // SAFETY: the lock is held; the caller's promises.
            unsafe {
                if core.receivers().get() == 0 {
                    core.unlock(tail);
                    self.drop_permits(1);
                    return false;
                }
                if let Some(receive) = core.pop(core.rx(), Kind::Receive) {
                    let mut batch = WakeBatch::new();
                    batch.push(self.deliver(receive, from, core.next_ticket()));
                    core.after_receiver_left(&mut tail);
                    self.give_up(tail, 1, batch);
                    return true;
                }
                // M4.
                let behind = tail & CLOSED != 0
                    && (core.is_admitting() || self.overflow.with(|overflow| (*overflow).len() != 0));
                if behind {
                    if self.overflow.with_mut(|overflow| (*overflow).push(from, &mut room)) {
                        core.set_permits(core.permits() - 1);
                        self.leave(tail);
                        return true;
                    }
                    core.unlock(tail);
                    room.reserve(1);
                } else if core.ring.is_unbounded() {
                    if let Some(slot) = self.claim(tail, &mut next) {
                        core.set_permits(core.permits() - 1);
                        self.leave(tail + 1);
                        slot.fill(from);
                        return true;
                    }
                    core.unlock(tail);
                    next.allocate();
                } else if self.is_free_slot(tail) {
                    let next = self.publish(tail, from);
                    core.set_permits(core.permits() - 1);
                    self.leave(next);
                    return true;
                } else {
                    core.unlock(tail);
                    self.await_free(tail, &mut patience);
                }
            }
        }
    }

    /// Gives permits back unused: their slots go to the first in line.
    ///
    /// # Safety
    /// The caller has so many permits, which end here.
    pub(crate) unsafe fn drop_permits(self, slots: u64) {
        let tail = self.core().lock();
        // SAFETY: the lock is held; the caller's promise.
        unsafe { self.give_up(tail, slots, WakeBatch::new()) };
    }

    /// Passes on what is owed to those in line (N3), all of it; or leaves it to the payer, if there is one (N5).
    pub(crate) fn pass_on(self) {
        let core = self.core();
        if core.owes() {
            if core.weighted {
                // SAFETY: as said.
                return unsafe { self.let_in() };
            }
            let tail = core.lock();
            // SAFETY: the lock is held; what is owed is the taker's.
            unsafe {
                if core.debt.has_payer() {
                    return core.unlock(tail);
                }
                match core.take_owed() {
                    // Another was quicker.
                    0 => core.unlock(tail),
                    slots => self.give_up(tail, slots, WakeBatch::new()),
                }
            }
        }
    }

    /// One hold's part of it, for a thread that has other things to do: a timer's (N5). `is_payer`: the debt is the
    /// caller's. Anything but [`Paid::All`] says that it is now.
    pub(in crate::flavor) fn pass_on_some(self, is_payer: bool) -> Paid {
        let core = self.core();
        if core.weighted {
            // SAFETY: as said.
            return unsafe { self.let_in_part(is_payer) };
        }
        let mut batch = WakeBatch::new();
        let mut tail = core.lock();
        // SAFETY: the lock is held; what is owed is the taker's.
        unsafe {
            if !is_payer && core.debt.has_payer() {
                core.unlock(tail);
                return Paid::All;
            }
            // None, if another was quicker.
            let mut slots = core.take_owed();
            let paid = match self.free_slots(&mut tail, &mut slots, &mut batch) {
                Freed::Settled => Paid::All,
                Freed::More => Paid::Part,
                Freed::Await => Paid::Waits,
            };
            core.set_owed(slots);
            core.debt.set_payer(paid != Paid::All);
            match paid {
                Paid::All => self.leave(tail),
                _ => core.unlock(tail),
            }
            batch.run();
            paid
        }
    }

    /// Under the lock, which is given back: the slots of permits find their next owners (M2, M3).
    ///
    /// # Safety
    /// As said; the permits are the caller's.
    unsafe fn give_up(self, mut tail: u64, mut slots: u64, mut batch: WakeBatch) {
        let core = self.core();
        let mut patience = Patience::new();
        loop {
            // SAFETY: the lock is held.
            let freed = unsafe { self.free_slots(&mut tail, &mut slots, &mut batch) };
            match freed {
                Freed::Settled => {
                    // SAFETY: as above.
                    unsafe { self.leave(tail) };
                    batch.run();
                    return;
                }
                Freed::More => {
                    core.unlock(tail);
                    batch.run();
                }
                Freed::Await => {
                    core.unlock(tail);
                    batch.run();
                    self.await_free(tail, &mut patience);
                }
            }
            tail = core.lock();
        }
    }

    /// One hold's part of it, by the module's table.
    ///
    /// # Safety
    /// Under the lock; the permits are the caller's, and those that are over no longer in `slots`.
    unsafe fn free_slots(self, tail: &mut u64, slots: &mut u64, batch: &mut WakeBatch) -> Freed {
        let core = self.core();
        // Counted, not by the batch's room alone: a roused operation has no waker.
        let mut steps = 0;
        // SAFETY: the lock is held; parked sends hold their values.
        unsafe {
            while *slots != 0 {
                let Some(first) = core.tx().front() else {
                    core.set_permits(core.permits() - *slots);
                    *slots = 0;
                    break;
                };
                if steps == BATCH || !batch.has_room() {
                    return Freed::More;
                }
                steps += 1;
                let last = if core.wants_slots(first) {
                    // Inherited: they count as before.
                    let grant = grant(first, *slots);
                    *slots -= grant.taken;
                    grant.last
                } else if let Some(receive) = core.rx().front() {
                    let _front = core.pop(core.rx(), Kind::Receive);
                    let offer = self.offer(first);
                    batch.push(self.deliver(receive, offer.value, core.next_ticket()));
                    core.after_receiver_left(tail);
                    offer.last
                } else if self.is_free_slot(*tail) {
                    let offer = self.offer(first);
                    *tail = self.publish(*tail, offer.value);
                    core.set_permits(core.permits() - 1);
                    *slots -= 1;
                    offer.last
                } else {
                    return Freed::Await;
                };
                if last {
                    batch.push(self.end_sender(first));
                    core.after_sender_left();
                }
            }
        }
        Freed::Settled
    }
}
