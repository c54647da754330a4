//! Sending into the bounded channel; where an unbounded one does otherwise, `flavor/unbounded/send.rs`.

use core::task::Waker;

use tidegate_wait::op::{Inbox, Outbox, Place, Unlimited};
use tidegate_wait::owner::Owner;
use tidegate_wait::shim::{spin_loop, Ordering};
use tidegate_wait::waiter::{Head, Kind, Node, State, Ticket};
use tidegate_wait::wake_batch::discard;

use super::core::{finish_delivered, head_of, wake, Patience};
use super::window::Window;
use super::words::{position, CLOSED, LOCK, PERMIT, RXW, TXW};
use super::Handle;

/// How a send went.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The value has been moved.
    Done,
    /// It has not: the channel is closed.
    Closed,
    /// It has not, and the operation is parked, or (without a node) there is no room.
    Full,
}

/// What one hold of the lock came to.
enum Hold {
    Ended(Sent),
    /// It must park, and has nothing to be woken by; nothing has happened.
    NeedsWaker,
    /// There is room, but the slot at this tail is still being read.
    Await(u64),
}

impl<T> Handle<T> {
    /// The fast path. False: nothing has been moved; take the slow one.
    ///
    /// # Safety
    /// `from` holds a value, which counts as moved if this returns true.
    #[inline(always)]
    pub(crate) unsafe fn send_fast(self, from: *const Place<T>) -> bool {
        let ring = self.core.ring;
        if ring.is_unbounded() {
            // SAFETY: the caller's promise.
            return unsafe { self.send_to_block(from) };
        }
        // Ordering: Relaxed; the stamp and the CAS decide.
        let mut tail = self.core.tail.0.load(Ordering::Relaxed);
        loop {
            // Ordering: Acquire pairs with the Release of the receive that freed the slot: its read is over.
            if self.stamp(tail).load(Ordering::Acquire) == ring.free(tail) {
                // Ordering: AcqRel; Acquire pairs with Release in `unlock` (the flags in the word are the ones a holder
                // left), Release with looks at the tail.
                match self.core.tail.0.compare_exchange_weak(tail, ring.next(tail), Ordering::AcqRel, Ordering::Relaxed)
                {
                    Ok(_) => {
                        // SAFETY: the position is claimed: no flag was set, and the slot is free.
                        unsafe { self.fill(tail, from) };
                        // Ordering: Release pairs with Acquire in the receive; makes the value visible.
                        self.stamp(tail).store(ring.full(tail), Ordering::Release);
                        return true;
                    }
                    Err(seen) => {
                        tail = seen;
                        spin_loop();
                    }
                }
            } else {
                // Full, in flight, or flagged; or the word is old.
                let seen = self.core.tail.0.load(Ordering::Relaxed);
                if seen == tail {
                    return false;
                }
                tail = seen;
            }
        }
    }

    /// The slow path without parking: `Full` is true of some moment during the call.
    ///
    /// # Safety
    /// As for `send_fast`, if this returns `Done`.
    #[inline(never)]
    pub(crate) unsafe fn try_send_slow(self, from: *const Place<T>) -> Sent {
        if self.core.ring.is_unbounded() {
            // SAFETY: the caller's promise.
            return unsafe { self.send_unbounded(from, None) };
        }
        let mut patience = Patience::new();
        loop {
            // Ordering: Acquire pairs with Release in `unlock`.
            let tail = self.core.tail.0.load(Ordering::Acquire);
            if tail & CLOSED != 0 {
                return Sent::Closed;
            }
            if tail & (LOCK | RXW | PERMIT) == 0 {
                // SAFETY: the caller's promise.
                if unsafe { self.send_fast(from) } {
                    return Sent::Done;
                }
                // Ordering: Acquire (both); the looks at the tail bracket the one at the head.
                let head = self.core.head.0.load(Ordering::Acquire);
                if self.core.tail.0.load(Ordering::Acquire) != tail {
                    continue;
                }
                if head & TXW != 0 || self.core.ring.is_full(head, tail) {
                    return Sent::Full;
                }
                // Room, but the slot is still being read: awaited before locking (I6).
                patience.a_little();
                continue;
            }
            // SAFETY: the caller's promise.
            match unsafe { self.send_locked(from, None, &mut None) } {
                Hold::Ended(ended) => return ended,
                Hold::NeedsWaker => return Sent::Full,
                Hold::Await(tail) => self.await_free(tail, &mut patience),
            }
        }
    }

    /// The slow path with parking: `Full` means parked.
    ///
    /// # Safety
    /// As for `send_fast`; `head` is that of the operation which holds `from`, pinned, in state Init, and its task's
    /// waker is `waker`.
    #[inline(never)]
    pub(crate) unsafe fn send_or_park(self, from: *const Place<T>, head: *const Head, waker: &Waker) -> Sent {
        // SAFETY: the caller's promise.
        unsafe {
            if self.core.ring.is_unbounded() {
                return self.send_unbounded(from, Some(head));
            }
            if self.core.try_window(|| self.send_in_window(from)) {
                return Sent::Done;
            }
            let mut patience = Patience::new();
            // Cloned before the lock is taken (G5), and not for nothing: with a receiver parked the value goes there.
            // Ordering: Relaxed; a guess, decided under the lock.
            let parks = self.core.tail.0.load(Ordering::Relaxed) & (RXW | CLOSED | PERMIT) == 0;
            let mut own = parks.then(|| waker.clone());
            loop {
                match self.send_locked(from, Some(head), &mut own) {
                    Hold::Ended(ended) => {
                        discard(own);
                        return ended;
                    }
                    Hold::NeedsWaker => own = Some(waker.clone()),
                    Hold::Await(tail) => self.await_free(tail, &mut patience),
                }
            }
        }
    }

    /// Looks whether a receiver is at work on another processor and will make room in a moment.
    ///
    /// # Safety
    /// As for `send_fast`.
    #[inline(never)]
    unsafe fn send_in_window(self, from: *const Place<T>) -> bool {
        let mut window = Window::sender();
        loop {
            // Ordering: Relaxed (both); guesses, decided by `send_fast` or under the lock.
            let flags = self.core.tail.0.load(Ordering::Relaxed) & (LOCK | RXW | CLOSED | PERMIT);
            let head = self.core.head.0.load(Ordering::Relaxed);
            if flags != 0 || head & TXW != 0 || !window.look(|| self.core.head.0.load(Ordering::Relaxed) != head) {
                return false;
            }
            // SAFETY: the caller's promise.
            if unsafe { self.send_fast(from) } {
                return true;
            }
        }
    }

    /// One hold of the lock: hands over, publishes, parks, or finds that it must wait outside.
    #[inline(always)]
    unsafe fn send_locked(self, from: *const Place<T>, park: Option<*const Head>, waker: &mut Option<Waker>) -> Hold {
        let core = &self.core;
        let tail = core.lock_for(park.is_some());
        if tail & CLOSED != 0 {
            core.unlock(tail);
            return Hold::Ended(Sent::Closed);
        }
        // Ordering: Acquire; the holder's view of the head (it moves under us unless frozen).
        let mut head = core.head.0.load(Ordering::Acquire);
        // SAFETY: the lock is held; the caller's promises about `from` and the node.
        unsafe {
            // Never past a parked sender (G2).
            if tail & RXW != 0 && head & TXW == 0 {
                self.hand_over(tail, from, None, park);
                return Hold::Ended(Sent::Done);
            }
            loop {
                if head & TXW == 0 && !core.is_full(head, tail) {
                    // There is room: never park with room, or a sender sleeps beside an empty ring for ever.
                    return self.publish_locked(tail, from);
                }
                let (Some(op), true) = (park, waker.is_some()) else {
                    core.unlock(tail);
                    return Hold::NeedsWaker;
                };
                if core.ring.cap == 0 {
                    // Ordering: Release, as in `unlock`. Without slots there are no fast receivers: the head is the holder's.
                    core.head.0.store(head | TXW, Ordering::Release);
                } else if head & TXW == 0 {
                    // Ordering: AcqRel; the head is not frozen yet: if it moved, there is room after all (I4).
                    if let Err(seen) =
                        core.head.0.compare_exchange(head, head | TXW, Ordering::AcqRel, Ordering::Acquire)
                    {
                        head = seen;
                        continue;
                    }
                }
                if let Some(waker) = waker.take() {
                    core.park(&raw const (*op).node, Kind::Send, waker);
                }
                core.unlock(tail);
                return Hold::Ended(Sent::Full);
            }
        }
    }

    /// Under the lock, with room: claims the slot at `tail` if it is free.
    #[inline(always)]
    unsafe fn publish_locked(self, tail: u64, from: *const Place<T>) -> Hold {
        let core = &self.core;
        // Ordering: Acquire as in `send_fast`.
        if !self.is_free_slot(tail) {
            core.unlock(tail);
            return Hold::Await(tail);
        }
        // SAFETY: the lock is held, and the slot is free.
        let next = unsafe { self.publish(tail, from) };
        core.unlock(next);
        Hold::Ended(Sent::Done)
    }

    /// Is the slot at this tail free, its last value read?
    #[inline(always)]
    pub(super) fn is_free_slot(self, tail: u64) -> bool {
        // Ordering: Acquire as in `send_fast`.
        self.stamp(tail).load(Ordering::Acquire) == self.core.ring.free(position(tail))
    }

    /// Under the lock: moves a value into the slot at `tail`; returns the next tail, for the unlock.
    ///
    /// # Safety
    /// The lock is held and the slot free; `from` holds a value, which is moved.
    #[inline(always)]
    pub(super) unsafe fn publish(self, tail: u64, from: *const Place<T>) -> u64 {
        let core = &self.core;
        let next = core.ring.next(tail);
        // I7.
        core.store_tail(next | LOCK);
        // SAFETY: the slot is free and the position claimed by the lock holder.
        unsafe { self.fill(tail, from) };
        // Ordering: Release as in `send_fast`.
        self.stamp(tail).store(core.ring.full(position(tail)), Ordering::Release);
        next
    }

    /// Waits, without the lock, until the slot at `tail` is free or the tail has moved.
    #[cold]
    pub(super) fn await_free(self, tail: u64, patience: &mut Patience) {
        // Ordering: Relaxed; only a look, everything is validated again.
        while !self.is_free_slot(tail) && self.core.tail.0.load(Ordering::Relaxed) & !LOCK == tail {
            patience.a_little();
        }
    }

    /// Under the lock: moves a value into the first parked receive, ends the hold, wakes it. `own`: the sending
    /// operation, whose state is stored first (I8).
    ///
    /// # Safety
    /// RXW is set; `from` holds a value, which is moved.
    pub(in crate::flavor) unsafe fn hand_over(
        self,
        mut tail: u64,
        from: *const Place<T>,
        ticket: Option<Ticket>,
        own: Option<*const Head>,
    ) {
        // SAFETY: the caller's promise; I2: the list is not empty.
        unsafe {
            let Some(node) = self.core.pop(self.core.rx(), Kind::Receive) else {
                unreachable!("I2: RXW without a parked receiver")
            };
            let ticket = ticket.unwrap_or_else(|| self.core.next_ticket());
            let waker = self.deliver(node, from, ticket);
            if let Some(own) = own {
                (*own).node.set_quiet(State::Spent);
            }
            self.core.after_receiver_left(&mut tail);
            self.core.unlock(tail);
            wake(waker);
        }
    }

    /// Moves a value into an unlinked receive and ends it. The waker comes out first: the value is laid over it.
    pub(super) unsafe fn deliver(self, node: *const Node, from: *const Place<T>, ticket: Ticket) -> Option<Waker> {
        // SAFETY: parked receives belong to `Inbox<T, _>` operations; the lock is held.
        unsafe {
            let waker = (*node).take_waker();
            let to = Inbox::<T, Unlimited>::value_of(head_of(node));
            (*from).with(|from| (*to).with_mut(|to| core::ptr::copy_nonoverlapping(from, to, 1)));
            finish_delivered(node, ticket);
            waker
        }
    }

    /// The value that an unlinked send holds.
    ///
    /// # Safety
    /// Under the lock; `node` belongs to an `Outbox<T, _>` operation.
    pub(super) unsafe fn value_of(node: *const Node) -> *const Place<T> {
        // SAFETY: the caller's promise.
        unsafe { Outbox::<T, Unlimited>::value_of(head_of(node)) }
    }
}
