//! Closing: the end of the sends, and in slices the end of whoever is parked.
//!
//! # What a close does
//! | hold of the lock | `Parked::GiveBack` | `Parked::Admit` |
//! | --- | --- | --- |
//! | first | CLOSED; TXW cleared; parked sends and waits for the close go to private lists | the same |
//! | each further, at most 32 operations | a send ends Closed, with its value; then a receive Closed; then a wait for the close Done | the first parked send ends Done: its value goes to the first parked receive, else to the overflow |
//! | the last of an admission | – | `admitting` ends; what is left goes the way of the left column |
//!
//! Wakers run between the holds. Order is kept: parked sends end first to last.
//!
//! - **E1** A node in a private list is still Waiting: a timer, a token or its own drop may take it out between two holds,
//!   which touches links and counts, never an index word that is not frozen (`after_sender_left`).
//! - **E2** The private lists stand in the closing thread's frame. [`Closing`] empties them even if the frame unwinds (an
//!   allocation may fail); wakers are contained.
//! - **E3** Receivers see the end only when ring, stash and overflow are empty *and* no admission runs: while one does, a
//!   receive that finds nothing parks.
//!   Nor while a permit is out: whoever ends the last one ends them ([`Handle::leave`]). What a refused reservation of many
//!   had collected ends in the hold that refuses it (N3), before the receives' turn.
//!   Parked receives stay in their list, with RXW, until their turn to end: a delivery that comes back between two holds
//!   still finds them.
//! - **E4** An admission that finds no receiver left stops: the values go back to their senders. What it had let in by
//!   then the last receiver drops: its drain takes the lock after its half is gone, so a hold of ours is before that drain,
//!   or sees that nobody is left.
//!
//! Model: `model/bounded.pml`, process `Closer`. Tests: `tests/suite/close.rs`, `tests/loom_bounded/`.

use tidegate_wait::list::List;
use tidegate_wait::owner::Owner;
use tidegate_wait::shim::Ordering;
use tidegate_wait::waiter::{Kind, Node, State, Ticket};
use tidegate_wait::wake_batch::{WakeBatch, BATCH};

use super::core::finish_delivered;
use super::overflow::Room;
use super::words::{CLOSED, LOCK, PERMIT, TXW};
use super::Handle;

/// What becomes of the sends that are parked when a channel is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Parked {
    /// They fail, in order, and get their values back.
    #[default]
    GiveBack,
    /// They succeed, in order, beyond the capacity: their values can still be received, after the buffered ones.
    Admit,
}

/// A close under way, with the operations that it has still to end (E2).
struct Closing<T> {
    channel: Handle<T>,
    tx: List,
    closed: List,
}

impl<T> Handle<T> {
    /// Closes. False: it was closed, or is being closed.
    pub(crate) fn close(self, parked: Parked) -> bool {
        let core = self.core();
        let tail = core.lock();
        if tail & CLOSED != 0 {
            core.unlock(tail);
            return false;
        }
        let closing = Closing { channel: self, tx: List::new(), closed: List::new() };
        // SAFETY: the lock is held; `closing` stays where it is until it is dropped, at the end of this block.
        unsafe { closing.begin(tail, parked) };
        true
    }
}

impl<T> Handle<T> {
    /// Ends a hold that changed the count of permits, with PERMIT as it says. After the last permit of a closed channel
    /// nothing can come any more: ends the receives that are still parked.
    ///
    /// # Safety
    /// Under the lock, which is given back; `tail` is the holder's word.
    pub(super) unsafe fn leave(self, tail: u64) {
        let core = self.core();
        // SAFETY: the lock is held.
        unsafe {
            let tail = core.with_permit_flag(tail);
            let ends = tail & (CLOSED | PERMIT) == CLOSED && !core.is_admitting() && !core.rx().is_empty();
            if !ends {
                core.unlock(tail);
                return;
            }
            let closing = Closing { channel: self, tx: List::new(), closed: List::new() };
            [&closing.tx, &closing.closed].into_iter().for_each(|list| list.init());
            core.unlock(tail);
        }
    }
}

impl<T> Closing<T> {
    /// The first hold, and an admission to its end.
    ///
    /// # Safety
    /// Under the lock, which is given back; `self` does not move any more.
    unsafe fn begin(&self, mut tail: u64, parked: Parked) {
        let core = self.channel.core();
        // Before TXW goes: a receive that sees neither would find the channel open and empty, although a send is parked.
        tail |= CLOSED;
        core.store_tail(tail | LOCK);
        // Ordering: AcqRel; with TXW the head is frozen, without it fast receivers may move it at this moment (I4).
        core.head.0.fetch_and(!TXW, Ordering::AcqRel);
        // SAFETY: the lock is held.
        unsafe {
            [&self.tx, &self.closed].into_iter().for_each(|list| list.init());
            core.tx().splice(&self.tx);
            core.closed().splice(&self.closed);
            let admit = parked == Parked::Admit && !self.tx.is_empty();
            core.set_admitting(admit);
            core.unlock(tail);
            if admit {
                self.admit();
            }
        }
    }

    /// Lets the parked sends in, in slices.
    ///
    /// # Safety
    /// `begin` has set `admitting`; no lock is held.
    unsafe fn admit(&self) {
        let core = self.channel.core();
        let mut room = Room::new();
        let mut batch = WakeBatch::new();
        let mut want = 1;
        loop {
            // Not more than there may be values: they may be large. A batch counts as one; so it asks for more and more.
            want = core.parked().count(Kind::Send).max(want).min(BATCH);
            room.reserve(want);
            want *= 2;
            let mut tail = core.lock();
            // SAFETY: the lock is held.
            let left = unsafe { self.admit_slice(&mut tail, &mut room, &mut batch) };
            // SAFETY: as above. A refused reservation's permits are over.
            core.unlock(unsafe { core.with_permit_flag(tail) });
            batch.run();
            if !left {
                return;
            }
        }
    }

    /// One hold of an admission. False: it is over.
    ///
    /// # Safety
    /// Under the lock.
    unsafe fn admit_slice(&self, tail: &mut u64, room: &mut Room<T>, batch: &mut WakeBatch) -> bool {
        let channel = self.channel;
        let core = channel.core();
        // SAFETY: the lock is held; parked sends hold their values.
        unsafe {
            // Counted, not by the batch's room: a roused operation has no waker.
            let mut ends = 0;
            // E4.
            while core.receivers().get() != 0 {
                ends += 1;
                if ends > BATCH {
                    return true;
                }
                let Some(send) = self.tx.front() else { break };
                if core.wants_slots(send) {
                    // A slot of a closed channel is no use: refused in both modes.
                    let _front = core.pop(&self.tx, Kind::Permit);
                    core.take_back(send);
                    batch.push((*send).take_waker());
                    (*send).finish(State::Closed);
                    if !batch.has_room() {
                        return true;
                    }
                    continue;
                }
                let to = core.rx().front();
                if to.is_none() && room.is_empty() {
                    return true;
                }
                let offer = channel.offer(send);
                if let Some(receive) = to {
                    let _front = core.pop(core.rx(), Kind::Receive);
                    batch.push(channel.deliver(receive, offer.value, core.next_ticket()));
                    core.after_receiver_left(tail);
                } else {
                    channel.overflow.with_mut(|overflow| (*overflow).push(offer.value, room));
                }
                if offer.last {
                    let _front = core.pop(&self.tx, Kind::Send);
                    batch.push((*send).take_waker());
                    finish_delivered(send, Ticket::new(0));
                }
                if !batch.has_room() {
                    return true;
                }
            }
            core.set_admitting(false);
        }
        false
    }

    /// One hold: ends at most a batch of operations. False: none is left.
    ///
    /// # Safety
    /// Under the lock.
    unsafe fn end_slice(&self, tail: &mut u64, batch: &mut WakeBatch) -> bool {
        let core = self.channel.core();
        // SAFETY: the lock is held, and guards the private lists, too.
        unsafe {
            // Counted, not by the batch's room: a roused operation has no waker.
            for _ in 0..BATCH {
                let (node, end) = if let Some(send) = core.pop(&self.tx, Kind::Send) {
                    core.take_back(send);
                    (send, State::Closed)
                } else if let Some(receive) = self.last_receive() {
                    core.after_receiver_left(tail);
                    (receive, State::Closed)
                } else if let Some(wait) = core.pop(&self.closed, Kind::Wait) {
                    (wait, State::Done(Ticket::new(0)))
                } else {
                    return false;
                };
                batch.push((*node).take_waker());
                (*node).finish(end);
            }
        }
        true
    }
}

impl<T> Closing<T> {
    /// The first parked receive, if nothing can come for it any more (E3).
    ///
    /// # Safety
    /// Under the lock, after an admission.
    unsafe fn last_receive(&self) -> Option<*const Node> {
        let core = self.channel.core();
        // SAFETY: the caller's promise.
        unsafe { (core.permits() == 0).then(|| core.pop(core.rx(), Kind::Receive)).flatten() }
    }
}

impl<T> Drop for Closing<T> {
    fn drop(&mut self) {
        let core = self.channel.core();
        let mut batch = WakeBatch::new();
        loop {
            let mut tail = core.lock();
            // SAFETY: the lock is held.
            let left = unsafe {
                if core.is_admitting() {
                    // The admission unwound.
                    core.set_admitting(false);
                }
                self.end_slice(&mut tail, &mut batch)
            };
            // SAFETY: as above. A refused reservation's permits are over.
            core.unlock(unsafe { core.with_permit_flag(tail) });
            batch.run();
            if !left {
                break;
            }
        }
    }
}
