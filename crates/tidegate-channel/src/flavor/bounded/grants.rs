//! Grants: what a reservation of many slots collects while it stands in line.
//!
//! It asks for `wanted` slots and is done when it has all of them. What there is it takes at once, as permits; the rest
//! it is granted slot by slot, at the head of the line, so that every slot of a channel with a line has an owner (I1) and
//! nobody passes it. Two of them cannot hold up each other: the one behind has been granted nothing before the one in
//! front has all, but for the slots that were free when nobody stood in line.
//!
//! - **N1** The word of a parked reservation of many is [`SLOTS`] and how many it still wants, its value how many it
//!   wanted. The difference is granted to it, and counts in `permits`.
//! - **N2** Only the first in line is granted a slot; the others have none. (The first to park takes the free ones, and is
//!   the first in line.)
//! - **N3** Whoever takes it out of the line before it is done takes back what it was granted, under the same hold: a
//!   close ends those permits, so that E3 holds; for anything else (a timer, a token, its own drop) they become *owed*.
//!   They still count as permits, and whoever took it out passes them on to the line, outside the lock: a timer's or
//!   token's thread as it gives back its reference on the channel, which it does after every end (O3), a task by itself.
//!   So no slot waits for a task to look at its reservation's end.
//! - **N5** A timer's thread has other timers: it does one hold's part, and leaves the rest, a debt of the channel
//!   (`tidegate_wait::debt`), to the driver thread, a part at each of its turns. What is left stays owed in between, counted
//!   as permits (a try to send may find the channel full for so long); whoever finds something owed meanwhile leaves it
//!   alone: first of all the task of the one that expired.
//! - **N4** Done, it has `wanted` permits, which its task takes or its drop gives back (M2).
//!
//! Rejected: waiting until so many slots are free at once, and taking none before. Then TXW would not mean that the
//! channel is full (I1), and each of the steps that rely on it would have to ask how much the first in line wants.

use tidegate_wait::op::{Outbox, Unlimited, Word};
use tidegate_wait::shim::Ordering;
use tidegate_wait::waiter::{Kind, Node};

use super::core::head_of;
use super::Core;

/// In the word of a reservation of many. No batch is so long: it is looked at when one is made.
pub(super) const SLOTS: u64 = 1 << 63;

/// What one in line took of the slots that it was offered.
#[must_use]
pub(super) struct Grant {
    pub(super) taken: u64,
    /// It has all that it wanted: the operation is to be ended.
    pub(super) last: bool,
}

/// The word of a reservation that wants so many more.
pub(crate) fn wants(slots: u64) -> Word {
    Word::new(SLOTS | slots)
}

/// Gives the first in line, which wants some, up to `slots` slots; the caller counts them as permits (N1).
///
/// # Safety
/// Under the lock; [`Core::wants_slots`].
pub(super) unsafe fn grant(node: *const Node, slots: u64) -> Grant {
    // SAFETY: the caller's promise.
    unsafe {
        if (*node).kind() == Kind::Permit {
            return Grant { taken: 1, last: true };
        }
        let word = Word::of(head_of(node));
        let wanted = word.get() & !SLOTS;
        let taken = wanted.min(slots);
        word.set(SLOTS | (wanted - taken));
        Grant { taken, last: taken == wanted }
    }
}

impl Core {
    /// Does this one in line want slots? Else it has values to send.
    ///
    /// # Safety
    /// Under the lock; `node` waits in the line of senders.
    #[inline(always)]
    pub(super) unsafe fn wants_slots(&self, node: *const Node) -> bool {
        // SAFETY: the caller's promise; a `Batch` has a word. In a weighted channel it is a weight.
        unsafe {
            match (*node).kind() {
                Kind::Permit => true,
                Kind::Batch => !self.weighted && Word::of(head_of(node)).get() & SLOTS != 0,
                _ => false,
            }
        }
    }

    /// How many slots a waiting operation has been granted (N1).
    ///
    /// # Safety
    /// Under the lock; `node` waits in the line of senders, or did until now.
    unsafe fn granted(&self, node: *const Node) -> u64 {
        let op = head_of(node);
        // SAFETY: the caller's promise; with SLOTS the value is the number that was wanted.
        unsafe {
            if (*node).kind() != Kind::Batch || !self.wants_slots(node) {
                return 0;
            }
            let wanted = (*Outbox::<u64, Unlimited, Word>::value_of(op)).with(|wanted| (*wanted).assume_init());
            wanted - (Word::of(op).get() & !SLOTS)
        }
    }

    /// N3, at a close: ends the permits of an operation that is refused.
    ///
    /// # Safety
    /// Under the lock; `node` has been unlinked and still reads as waiting. Whoever ends the hold mends PERMIT.
    pub(super) unsafe fn take_back(&self, node: *const Node) {
        // SAFETY: the caller's promise.
        unsafe { self.set_permits(self.permits() - self.granted(node)) };
    }

    /// N3, otherwise: keeps them for whoever is in line behind it. A weighted channel owes a look at the line (A5).
    ///
    /// # Safety
    /// As for `take_back`; the caller passes on what is owed once it has given the lock back.
    pub(super) unsafe fn owe(&self, node: *const Node) {
        // SAFETY: the caller's promise.
        let slots = if self.weighted { 1 } else { unsafe { self.granted(node) } };
        if slots != 0 {
            // SAFETY: the lock is held.
            // Ordering: Relaxed; written under the lock, and read without it only by those who wrote it before.
            unsafe { self.set_owed(self.owed().load(Ordering::Relaxed) + slots) };
        }
    }

    /// Takes up what is owed.
    ///
    /// # Safety
    /// Under the lock.
    pub(in crate::flavor) unsafe fn take_owed(&self) -> u64 {
        // Ordering: Relaxed; as above.
        let owed = self.owed().load(Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { self.set_owed(0) };
        owed
    }

    /// # Safety
    /// Under the lock, like everything that counts.
    pub(in crate::flavor) unsafe fn set_owed(&self, slots: u64) {
        // Ordering: Relaxed; as above.
        self.owed().store(slots, Ordering::Relaxed);
    }
}
