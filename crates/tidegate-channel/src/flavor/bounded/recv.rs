//! Receiving from the bounded channel; where an unbounded one does otherwise, `flavor/unbounded/recv.rs`.

use alloc::boxed::Box;
use core::task::Waker;

use tidegate_wait::op::Place;
use tidegate_wait::owner::Owner;
use tidegate_wait::shim::{spin_loop, Ordering, UnsafeCell};
use tidegate_wait::stash::Returned;
use tidegate_wait::waiter::{Head, Kind, Node, State, Ticket};
use tidegate_wait::wake_batch::discard;

use super::core::{finish_delivered, wake, Patience};
use super::grants::grant;
use super::overflow::Admitted;
use super::window::Window;
use super::words::{position, CLOSED, LOCK, PERMIT, RXW, STASH, TXW};
use super::Handle;

/// How a receive went.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// The value is in its place.
    Value,
    /// The channel is closed and drained.
    Closed,
    /// The operation is parked, or (without a node) there is nothing.
    Empty,
}

/// What a look without the lock came to.
enum Look {
    Ended,
    /// There was nothing, and the channel was open.
    Empty,
    /// It moved, or an item was in flight.
    Again,
    /// Only the lock can tell.
    Lock,
}

/// What one hold of the lock came to.
enum Hold {
    Ended(Received),
    /// It must park, and has nothing to be woken by; nothing has happened.
    NeedsWaker,
    /// Items are there, for the fast path.
    Retry,
    /// The slot at this head is still being written.
    Await(u64),
    /// The slot at this tail is still being read.
    AwaitFree(u64),
}

impl<T> Handle<T> {
    /// The fast path. False: take the slow one.
    #[inline(always)]
    pub(crate) fn receive_fast(self, to: *const Place<T>) -> bool {
        let ring = self.core.ring;
        if ring.is_unbounded() {
            return self.receive_from_block(to);
        }
        // Ordering: Relaxed; the stamp and the CAS decide.
        let mut head = self.core.head.0.load(Ordering::Relaxed);
        loop {
            // Ordering: Acquire pairs with the Release of the send that filled the slot.
            if self.stamp(head).load(Ordering::Acquire) == ring.full(head) {
                // Ordering: AcqRel, as in `send_fast`.
                match self.core.head.0.compare_exchange_weak(head, ring.next(head), Ordering::AcqRel, Ordering::Relaxed)
                {
                    Ok(_) => {
                        // SAFETY: the position is claimed: no flag was set, and the slot is full.
                        unsafe { self.empty(head, to) };
                        // Ordering: Release pairs with Acquire in the send of the next lap: our read is over.
                        self.stamp(head).store(ring.free(head) + ring.lap(), Ordering::Release);
                        return true;
                    }
                    Err(seen) => {
                        head = seen;
                        spin_loop();
                    }
                }
            } else {
                let seen = self.core.head.0.load(Ordering::Relaxed);
                if seen == head {
                    return false;
                }
                head = seen;
            }
        }
    }

    /// One whole try without parking. (Always: left to the compiler, one caller more made it a call, and a ready receive 20
    /// instructions longer.)
    #[inline(always)]
    pub(crate) fn try_receive(self, to: *const Place<T>) -> Received {
        if self.receive_fast(to) {
            return Received::Value;
        }
        self.try_receive_slow(to)
    }

    #[inline(never)]
    fn try_receive_slow(self, to: *const Place<T>) -> Received {
        let mut patience = Patience::new();
        loop {
            match self.before_lock(to, &mut patience) {
                Look::Ended => return Received::Value,
                Look::Again => continue,
                Look::Empty => return Received::Empty,
                Look::Lock => {}
            }
            // SAFETY: without an operation to park there is nothing to promise.
            match unsafe { self.receive_locked(to, None, &mut None) } {
                Hold::Ended(ended) => return ended,
                Hold::NeedsWaker => return Received::Empty,
                Hold::Retry => {}
                Hold::Await(head) => self.await_full(head, &mut patience),
                Hold::AwaitFree(tail) => self.await_free(tail, &mut patience),
            }
        }
    }

    /// The slow path with parking: `Empty` means parked.
    ///
    /// # Safety
    /// `head` is that of the operation to which `to` belongs, pinned, in state Init, and its task's waker is `waker`.
    #[inline(never)]
    pub(crate) unsafe fn receive_or_park(self, to: *const Place<T>, head: *const Head, waker: &Waker) -> Received {
        if self.core.try_window(|| self.receive_in_window(to)) {
            return Received::Value;
        }
        let mut patience = Patience::new();
        let mut own: Option<Waker> = None;
        let ended = loop {
            match self.before_lock(to, &mut patience) {
                Look::Ended => break Received::Value,
                Look::Again => continue,
                // Cloned before the lock is taken (G5), and not for nothing: a flagged head has something to take.
                Look::Empty => own = own.or_else(|| Some(waker.clone())),
                Look::Lock => {}
            }
            // SAFETY: the caller's promise.
            match unsafe { self.receive_locked(to, Some(head), &mut own) } {
                Hold::Ended(ended) => break ended,
                Hold::NeedsWaker => own = Some(waker.clone()),
                Hold::Retry => {}
                Hold::Await(head) => self.await_full(head, &mut patience),
                Hold::AwaitFree(tail) => self.await_free(tail, &mut patience),
            }
        };
        discard(own);
        ended
    }

    /// Looks whether a sender is at work on another processor and will publish in a moment.
    #[inline(never)]
    fn receive_in_window(self, to: *const Place<T>) -> bool {
        let mut window = Window::receiver();
        loop {
            // Ordering: Relaxed (both); guesses, decided by `receive_fast` or under the lock.
            let tail = self.core.tail.0.load(Ordering::Relaxed);
            let head = self.core.head.0.load(Ordering::Relaxed);
            let alone = tail & (LOCK | RXW | CLOSED) == 0 && head & (TXW | STASH) == 0;
            let crossing = self.is_border(head) && position(tail) != position(head);
            if !alone || crossing || !window.look(|| self.core.tail.0.load(Ordering::Relaxed) != tail) {
                return false;
            }
            if self.receive_fast(to) {
                return true;
            }
        }
    }

    /// One look before the lock. An item in flight is awaited here (I6).
    #[inline(always)]
    fn before_lock(self, to: *const Place<T>, patience: &mut Patience) -> Look {
        // Ordering: Acquire; the head before the tail: if both are equal, the ring was empty at the first look.
        let head = self.core.head.0.load(Ordering::Acquire);
        if head & (TXW | STASH) == 0 {
            // Ordering: Acquire pairs with Release in `unlock`.
            let tail = self.core.tail.0.load(Ordering::Acquire);
            if position(tail) == head {
                // Closed is decided under the lock: a send that claimed before the close counts as delivered.
                return if tail & CLOSED == 0 { Look::Empty } else { Look::Lock };
            }
            if self.receive_fast(to) {
                return Look::Ended;
            }
            if self.is_border(head) {
                return Look::Lock;
            }
            // In flight. Or the head is old: others are served, and the wait begins anew.
            if self.core.head.0.load(Ordering::Relaxed) != head {
                *patience = Patience::new();
            }
        } else if head & STASH != 0 || self.core.ring.cap == 0 || self.is_full_slot(head) || self.is_empty_ring(head) {
            return Look::Lock;
        }
        patience.a_little();
        Look::Again
    }

    /// Is the value at this head published?
    #[inline]
    fn is_full_slot(self, head: u64) -> bool {
        // Ordering: Acquire as in `receive_fast`.
        self.stamp(head).load(Ordering::Acquire) == self.core.ring.full(position(head))
    }

    /// Does no position lie between this head and the tail? With TXW: every slot is promised.
    #[cold]
    fn is_empty_ring(self, head: u64) -> bool {
        // Ordering: Acquire pairs with Release in `unlock`.
        position(self.core.tail.0.load(Ordering::Acquire)) == position(head)
    }

    /// Waits, without the lock, until the value at `head` is published or the head has moved.
    #[cold]
    fn await_full(self, head: u64, patience: &mut Patience) {
        // Ordering: Relaxed; only a look, everything is validated again.
        while !self.is_full_slot(head) && self.core.head.0.load(Ordering::Relaxed) == head {
            patience.a_little();
        }
    }

    /// One hold of the lock: takes a returned value, or an item and lets a parked sender in, or finds the channel
    /// drained, or parks.
    #[inline(always)]
    unsafe fn receive_locked(self, to: *const Place<T>, park: Option<*const Head>, waker: &mut Option<Waker>) -> Hold {
        let core = &self.core;
        let tail = core.lock_for(park.is_some());
        // Ordering: Acquire. Under the lock, for STASH and position: a stash can come and go without the tail moving.
        let head = core.head.0.load(Ordering::Acquire);
        if head & STASH != 0 {
            return self.take_returned(tail, head, to, park);
        }
        if position(head) != position(tail) {
            if self.is_border(head) {
                // SAFETY: the lock is held, and the position at the head is claimed and nobody else's to take.
                unsafe { self.cross(tail, head, to) };
                return Hold::Ended(Received::Value);
            }
            if head & TXW == 0 {
                core.unlock(tail);
                return Hold::Retry;
            }
            if !self.is_full_slot(head) {
                core.unlock(tail);
                return Hold::Await(head);
            }
            // With permits the slot at the tail is another one than that at the head.
            if tail & PERMIT != 0 && !self.is_free_slot(tail) {
                core.unlock(tail);
                return Hold::AwaitFree(tail);
            }
            // SAFETY: TXW freezes the head, the lock the tail; the slots are full and free.
            unsafe { self.take_and_admit(tail, head, to, park) };
            return Hold::Ended(Received::Value);
        }
        if head & TXW != 0 && core.ring.cap == 0 {
            // SAFETY: the lock is held.
            unsafe { self.meet(tail, to, park) };
            return Hold::Ended(Received::Value);
        }
        if tail & CLOSED != 0 {
            // SAFETY: the lock is held.
            let admitted = self.overflow.with_mut(|overflow| unsafe { (*overflow).pop() });
            if let Some(admitted) = admitted {
                core.unlock(tail);
                self.take_admitted(admitted, to, park);
                return Hold::Ended(Received::Value);
            }
            // E3. SAFETY: the lock is held.
            if unsafe { !core.is_admitting() && core.permits() == 0 } {
                core.unlock(tail);
                return Hold::Ended(Received::Closed);
            }
        }
        let (Some(op), Some(waker)) = (park, waker.take()) else {
            core.unlock(tail);
            return Hold::NeedsWaker;
        };
        // SAFETY: the lock is held; the caller's promise about the node.
        unsafe { core.park(&raw const (*op).node, Kind::Receive, waker) };
        core.unlock(tail | RXW);
        Hold::Ended(Received::Empty)
    }

    /// Under the lock, with STASH: a returned value precedes everything.
    fn take_returned(self, tail: u64, head: u64, to: *const Place<T>, own: Option<*const Head>) -> Hold {
        // SAFETY: the lock is held.
        let (returned, empty) = self.stash.with_mut(|stash| unsafe { ((*stash).pop(), (*stash).is_empty()) });
        if returned.is_none() && self.core.weighted {
            // SAFETY: the lock is held; A2: then it is the store that STASH tells of.
            unsafe { self.take_stored(tail, to, own) };
            return Hold::Ended(Received::Value);
        }
        // SAFETY: as above.
        if empty && unsafe { self.stored() } == 0 {
            // Ordering: Release; STASH froze the head, so a plain store does (I4, I5).
            self.core.head.0.store(head & !STASH, Ordering::Release);
        }
        self.core.unlock(tail);
        let Some(returned) = returned else { unreachable!("I5: STASH with an empty stash") };
        // SAFETY: the place is the caller's.
        unsafe {
            (*to).with_mut(|to| (*to).write(returned.value));
            spend(own);
        }
        Hold::Ended(Received::Value)
    }

    /// A value that the close let in beyond the capacity, out of the overflow. Nobody is to be woken.
    #[cold]
    fn take_admitted(self, admitted: Admitted<T>, to: *const Place<T>, own: Option<*const Head>) {
        // SAFETY: the place is the caller's.
        unsafe {
            (*to).with_mut(|to| (*to).write(admitted.take()));
            spend(own);
        }
    }

    /// Under the lock, with TXW and a full slot at the head: takes the item, and lets the first parked sender's value
    /// into the slot that became free.
    ///
    /// # Safety
    /// As said.
    unsafe fn take_and_admit(self, tail: u64, head: u64, to: *const Place<T>, own: Option<*const Head>) {
        let core = &self.core;
        // SAFETY: I1: a sender is parked; without permits the ring is full, and the slot at the head is the one at the tail.
        unsafe {
            self.empty(head, to);
            // Ordering: Release, as in `receive_fast`. With permits this is not the slot that is filled next.
            self.stamp(head).store(core.ring.free(position(head)) + core.ring.lap(), Ordering::Release);
            let Some(first) = core.tx().front() else { unreachable!("I1: TXW without a parked sender") };
            let (next, last) = if core.wants_slots(first) {
                // The slot that became free is promised to it.
                core.set_permits(core.permits() + 1);
                (tail | PERMIT, grant(first, 1).last)
            } else {
                let offer = self.offer(first);
                // I7: before the head.
                (self.publish(tail, offer.value), offer.last)
            };
            let waker = if last { self.end_sender(first) } else { None };
            // Ordering: Release; fast receivers see the ring as this holder left it.
            let more = if core.tx().is_empty() { 0 } else { TXW };
            core.head.0.store(core.ring.next(position(head)) | more, Ordering::Release);
            spend(own);
            core.unlock(next);
            wake(waker);
        }
    }

    /// Under the lock: ends the first in line, whose last value has been moved or who was given a permit; returns its
    /// waker. TXW is the caller's.
    ///
    /// # Safety
    /// As said.
    #[inline(always)]
    pub(in crate::flavor) unsafe fn end_sender(self, first: *const Node) -> Option<Waker> {
        // SAFETY: the caller's promise.
        unsafe {
            let popped = self.core.pop(self.core.tx(), Kind::Send);
            debug_assert_eq!(popped, Some(first));
            let waker = (*first).take_waker();
            finish_delivered(first, Ticket::new(0));
            waker
        }
    }

    /// A delivery that its receive did not take: to the next parked receive, else into the stash, by its first ticket.
    ///
    /// # Safety
    /// `from` holds a value, which is moved.
    #[cold]
    pub(crate) unsafe fn give_back(self, from: *const Place<T>, ticket: Ticket) {
        let mut boxed = None;
        loop {
            let tail = self.core.lock();
            if tail & RXW != 0 {
                // SAFETY: the caller's promise. If the value moved into the box meanwhile, it comes from there.
                unsafe { self.redeliver(tail, from, ticket, boxed) };
                return;
            }
            if let Some(returned) = boxed.take() {
                // SAFETY: the lock is held.
                self.stash.with_mut(|stash| unsafe { (*stash).insert(returned) });
                // Ordering: Release; the head may not be frozen, fast receivers move it: an RMW (I4).
                self.core.head.0.fetch_or(STASH, Ordering::Release);
                self.core.unlock(tail);
                return;
            }
            self.core.unlock(tail);
            // Allocated outside the lock (G4).
            // SAFETY: the value is moved out of its place, once.
            boxed = Some(unsafe { (*from).with(|from| Returned::from_place(ticket, (*from).as_ptr())) });
        }
    }

    unsafe fn redeliver(self, tail: u64, from: *const Place<T>, ticket: Ticket, boxed: Option<Box<Returned<T>>>) {
        // SAFETY: the caller's promise; a boxed value is moved out and its box freed outside the lock.
        unsafe {
            match boxed {
                None => self.hand_over(tail, from, Some(ticket), None),
                Some(returned) => {
                    let value = UnsafeCell::new(core::mem::MaybeUninit::new(returned.value));
                    self.hand_over(tail, &value, Some(ticket), None);
                }
            }
        }
    }
}

/// The receiving operation's own state, stored before anybody is woken (I8).
///
/// # Safety
/// The operation is the caller's.
pub(in crate::flavor) unsafe fn spend(own: Option<*const Head>) {
    if let Some(own) = own {
        // SAFETY: the caller's promise.
        unsafe { (*own).node.set_quiet(State::Spent) };
    }
}
