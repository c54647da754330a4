//! The weighted channel: what is buffered is limited by the sum of its weights.
//!
//! **For:** messages of different sizes, a limit in bytes. **Not for:** throughput: every send and every receive takes the
//! lock, as the account is one number for both sides.
//!
//! # The idea
//! The words, the lock, the lists, the stash, the close and their invariants are those of a channel of capacity 0
//! (`flavor/bounded/rendezvous.rs`): its one stamp turns every fast path away, at no cost to other channels. What is added
//! is a [`store`] beside the ring that has no slots, and an account of it, both under the lock. STASH says that the stash
//! or the store has something: a receive looks there first, as always. "Full" is: somebody stands in line, or the account
//! has no room for this weight.
//!
//! # Invariants, whenever the lock is free
//! - **A1** `used` is the sum of the weights in the store, and at most `limit`. A value that goes from hand to hand, comes
//!   back from a dropped receive, or is let in by a close, counts nothing.
//! - **A2** STASH ⇔ stash or store are not empty (instead of I5); then nobody is parked to receive. RXW and TXW are never
//!   both set.
//! - **A3** A parked send has its weight in the word behind its head: whoever lets it in runs under the lock, where no code
//!   of the user may run (G5). The weigher runs once, before the operation is made; no weight is 0.
//! - **A4** Nobody passes a parked send, however little it weighs (G2). A send parks only behind another, or if it does not
//!   fit.
//! - **A5** *The first in line does not fit, or somebody is about to let it in.* Steps that could break it: a receive that
//!   takes from the store (`used` falls) or from the first in line (another is first now); a parked send that leaves by a
//!   timer, a token or its drop. Each lets in from the front, while the first fits, at most [`BATCH`] a hold: the receive
//!   under the same hold, and in further ones until the first does not fit ([`Handle::let_in`]). One who leaves makes the
//!   channel *owe* a look (`owed`, as in `flavor/bounded/grants.rs`, N3): whoever took it out, under the lock, does
//!   it outside: a task by itself, a timer's or token's thread as it gives back its reference on the channel, which it
//!   does after every end (O3), a timer's thread a part, and the driver thread the rest (N5 there). So nobody waits for a task to look at its send's end. (Without: limit 10, 6 used; the
//!   first in line wants 10, the second 4. The first times out, and its task is never polled again. The second would sleep
//!   beside room for it until the next receive; for ever, if the receiver waits for what the second sends.)
//! - **A6** Nothing is allocated or freed under the lock: who needs a block for the store gives the lock back and begins
//!   anew, with the block in hand; nothing has happened by then.
//!
//! After a close the account means nothing: nobody stands in line.
//!
//! Rejected: the blocks of the unbounded flavor. Their stamps and borders let senders and receivers meet without a lock,
//! which the account does not allow.
//!
//! Tests: `tests/weighted/`, `tests/loom_weighted.rs`.
//!
//! [`BATCH`]: tidegate_wait::wake_batch::BATCH

mod recv;
mod send;
mod store;

use alloc::boxed::Box;
use core::ptr::NonNull;

use tidegate_wait::owner::Owner;
use tidegate_wait::shim::UnsafeCell;

use crate::error::CapacityError;
use crate::flavor::bounded::{Channel, Handle};
use store::Store;

/// The account of a channel and what it is about.
pub(in crate::flavor) struct Account<T> {
    limit: u64,
    /// Under the lock.
    books: UnsafeCell<Books<T>>,
}

struct Books<T> {
    used: u64,
    store: Store<T>,
}

impl<T> Books<T> {
    fn fits(&self, weight: u64, limit: u64) -> bool {
        // A1: no sum that could overflow.
        weight <= limit - self.used
    }
}

impl<T> Channel<T> {
    /// A weighted channel with one sender and one receiver.
    pub(crate) fn create_weighted(limit: u64) -> Result<NonNull<Channel<T>>, CapacityError> {
        if limit == 0 {
            return Err(CapacityError::NoWeight);
        }
        let channel = Self::create(0, 0)?;
        let books = UnsafeCell::new(Books { used: 0, store: Store::new() });
        // SAFETY: nobody knows the channel yet.
        unsafe { (*channel.as_ptr()).weigh(Box::new(Account { limit, books })) };
        Ok(channel)
    }
}

impl<T> Handle<T> {
    /// # Safety
    /// The channel is weighted.
    unsafe fn books<R>(&self, f: impl FnOnce(&mut Books<T>, u64) -> R) -> R {
        let Some(account) = self.account() else { unreachable!("the channel is weighted") };
        // SAFETY: under the lock; nothing in `f` comes back here.
        account.books.with_mut(|books| f(unsafe { &mut *books }, account.limit))
    }

    /// The largest sum of weights.
    pub(crate) fn limit(self) -> u64 {
        self.account().map_or(u64::MAX, |account| account.limit)
    }

    /// The sum of the weights of what is in the store.
    pub(crate) fn used(self) -> u64 {
        let tail = self.core().lock();
        // SAFETY: the lock is held.
        let used = self.account().map_or(0, |_| unsafe { self.books(|books, _| books.used) });
        self.core().unlock(tail);
        used
    }

    /// How many values the store has; none, if the channel is not weighted.
    ///
    /// # Safety
    /// Under the lock.
    pub(in crate::flavor) unsafe fn stored(self) -> usize {
        // SAFETY: the caller's promise.
        self.account().map_or(0, |_| unsafe { self.books(|books, _| books.store.len()) })
    }
}
