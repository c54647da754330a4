//! Sending into a weighted channel, and letting in who stands in line.

use core::task::Waker;

use tidegate_wait::debt::Paid;
use tidegate_wait::op::{Place, Word};
use tidegate_wait::owner::Owner;
use tidegate_wait::shim::Ordering;
use tidegate_wait::waiter::{Head, Kind};
use tidegate_wait::wake_batch::{discard, WakeBatch, BATCH};

use super::store::Loose;
use crate::flavor::bounded::words::{CLOSED, RXW, STASH, TXW};
use crate::flavor::bounded::{head_of, Handle, Sent};

/// What one hold of the lock came to.
enum Hold {
    Ended(Sent),
    /// It must park, and has nothing to be woken by; nothing has happened.
    NeedsWaker,
    /// It fits, but the store needs a block; nothing has happened.
    NeedsBlock,
}

/// How far one hold has let in who stands in line.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LetIn {
    /// The first does not fit, or nobody stands there.
    All,
    /// The next hold goes on.
    More,
    /// So does the next hold, with a block; nothing has happened in this one.
    NeedsBlock,
}

impl<T> Handle<T> {
    /// Sends without parking.
    ///
    /// # Safety
    /// The channel is weighted, the weight no more than its limit; `from` holds a value, which counts as moved if this
    /// returns `Done`.
    pub(crate) unsafe fn try_send_weighed(self, from: *const Place<T>, weight: u64) -> Sent {
        let mut loose = Loose::none();
        loop {
            // SAFETY: the caller's promise.
            match unsafe { self.send_weighed(from, weight, None, &mut None, &mut loose) } {
                Hold::Ended(ended) => return ended,
                Hold::NeedsWaker => return Sent::Full,
                Hold::NeedsBlock => loose.allocate(),
            }
        }
    }

    /// Sends, or parks (`Full`).
    ///
    /// # Safety
    /// As for `try_send_weighed`; `head` is that of the operation which holds `from` and has the weight in its word,
    /// pinned, in state Init, and its task's waker is `waker`.
    pub(crate) unsafe fn send_weighed_or_park(
        self,
        from: *const Place<T>,
        weight: u64,
        head: *const Head,
        waker: &Waker,
    ) -> Sent {
        let mut loose = Loose::none();
        // Cloned before the lock is taken (G5): it has been tried once.
        let mut own = Some(waker.clone());
        let ended = loop {
            // SAFETY: the caller's promise.
            match unsafe { self.send_weighed(from, weight, Some(head), &mut own, &mut loose) } {
                Hold::Ended(ended) => break ended,
                Hold::NeedsWaker => own = Some(waker.clone()),
                Hold::NeedsBlock => loose.allocate(),
            }
        };
        discard(own);
        ended
    }

    /// One hold: hands over, stores, parks, or needs something.
    ///
    /// # Safety
    /// As for the callers.
    unsafe fn send_weighed(
        self,
        from: *const Place<T>,
        weight: u64,
        park: Option<*const Head>,
        waker: &mut Option<Waker>,
        loose: &mut Loose<T>,
    ) -> Hold {
        let core = self.core();
        let tail = core.lock();
        if tail & CLOSED != 0 {
            core.unlock(tail);
            return Hold::Ended(Sent::Closed);
        }
        // Ordering: Relaxed (all); only lock holders write the head of a weighted channel.
        let alone = core.head.0.load(Ordering::Relaxed) & TXW == 0;
        // SAFETY: the lock is held; the caller's promises about `from` and the node.
        unsafe {
            if tail & RXW != 0 {
                debug_assert!(alone, "A2");
                self.hand_over(tail, from, None, park);
                return Hold::Ended(Sent::Done);
            }
            // A4.
            if alone && self.books(|books, limit| books.fits(weight, limit)) {
                let stored = self.store(from, weight, loose);
                core.unlock(tail);
                return if stored { Hold::Ended(Sent::Done) } else { Hold::NeedsBlock };
            }
            let (Some(op), Some(waker)) = (park, waker.take()) else {
                core.unlock(tail);
                return Hold::NeedsWaker;
            };
            // First: whoever sees that a send is parked finds TXW (`ParkedCounts`).
            core.head.0.fetch_or(TXW, Ordering::Relaxed);
            core.park(&raw const (*op).node, Kind::Batch, waker);
        }
        core.unlock(tail);
        Hold::Ended(Sent::Full)
    }

    /// Under the lock: moves a value that fits into the store. False: it needs a block, and nothing has happened.
    ///
    /// # Safety
    /// As said; `from` holds a value, which counts as moved if this returns true.
    unsafe fn store(self, from: *const Place<T>, weight: u64, loose: &mut Loose<T>) -> bool {
        // SAFETY: the caller's promise.
        let stored = unsafe {
            self.books(|books, _| {
                let room = books.store.make_room(loose);
                if room {
                    books.store.push(from, weight);
                    books.used += weight;
                }
                room
            })
        };
        if stored {
            // A2. Ordering: Release pairs with Acquire in a receive's look before the lock.
            self.core().head.0.fetch_or(STASH, Ordering::Release);
        }
        stored
    }

    /// One hold's part of letting in who stands in line (A5).
    ///
    /// # Safety
    /// Under the lock of a weighted channel; the batch has been run before.
    pub(super) unsafe fn let_in_some(self, batch: &mut WakeBatch, loose: &mut Loose<T>) -> LetIn {
        let core = self.core();
        // Counted, not by the batch's room alone: a roused operation has no waker.
        let mut steps = 0;
        // SAFETY: the lock is held; parked sends hold their values, and their weights (A3).
        unsafe {
            while let Some(first) = core.tx().front() {
                let weight = Word::of(head_of(first)).get();
                if !self.books(|books, limit| books.fits(weight, limit)) {
                    break;
                }
                if steps == BATCH || !batch.has_room() {
                    return LetIn::More;
                }
                if !self.store(self.offer(first).value, weight, loose) {
                    return if steps == 0 { LetIn::NeedsBlock } else { LetIn::More };
                }
                steps += 1;
                batch.push(self.end_sender(first));
                core.after_sender_left();
            }
        }
        LetIn::All
    }

    /// One hold's part of letting in who stands in line, for a thread that has other things to do (N5 of
    /// `flavor/bounded/grants.rs`; [`Handle::pass_on_some`]).
    ///
    /// # Safety
    /// The channel is weighted.
    pub(in crate::flavor) unsafe fn let_in_part(self, mut is_payer: bool) -> Paid {
        let core = self.core();
        let mut loose = Loose::none();
        loop {
            let mut batch = WakeBatch::new();
            let tail = core.lock();
            // SAFETY: the lock is held.
            let let_in = unsafe {
                if !is_payer && core.debt.has_payer() {
                    core.unlock(tail);
                    return Paid::All;
                }
                let let_in = match core.take_owed() {
                    // Another was quicker.
                    0 => LetIn::All,
                    _ => self.let_in_some(&mut batch, &mut loose),
                };
                is_payer = let_in != LetIn::All;
                core.set_owed(u64::from(is_payer));
                core.debt.set_payer(is_payer);
                let_in
            };
            core.unlock(tail);
            batch.run();
            match let_in {
                LetIn::All => return Paid::All,
                LetIn::More => return Paid::Part,
                LetIn::NeedsBlock => loose.allocate(),
            }
        }
    }

    /// Lets in who stands in line until the first does not fit (A5), or leaves that to the payer, if there is one. Outside
    /// the lock.
    ///
    /// # Safety
    /// The channel is weighted.
    pub(in crate::flavor) unsafe fn let_in(self) {
        let core = self.core();
        let mut loose = Loose::none();
        loop {
            let mut batch = WakeBatch::new();
            let tail = core.lock();
            // SAFETY: the lock is held.
            let let_in = unsafe {
                if core.debt.has_payer() {
                    // It looks again before it is done.
                    core.set_owed(1);
                    return core.unlock(tail);
                }
                let _looked_after = core.take_owed();
                self.let_in_some(&mut batch, &mut loose)
            };
            core.unlock(tail);
            batch.run();
            match let_in {
                LetIn::All => return,
                LetIn::More => {}
                LetIn::NeedsBlock => loose.allocate(),
            }
        }
    }
}
