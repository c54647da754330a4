//! Receiving from the store of a weighted channel.

use tidegate_wait::op::Place;
use tidegate_wait::owner::Owner;
use tidegate_wait::shim::Ordering;
use tidegate_wait::waiter::Head;
use tidegate_wait::wake_batch::WakeBatch;

use super::send::LetIn;
use super::store::{Loose, Store};
use crate::flavor::bounded::words::STASH;
use crate::flavor::bounded::{spend, Handle};

impl<T> Handle<T> {
    /// Under the lock, with STASH and an empty stash: takes the first value of the store, and lets in who fits now. Gives
    /// the lock back.
    ///
    /// # Safety
    /// As said; `to` is the caller's, and `own` the receiving operation, whose state is stored before anybody is woken (I8).
    pub(in crate::flavor) unsafe fn take_stored(self, tail: u64, to: *const Place<T>, own: Option<*const Head>) {
        let core = self.core();
        let mut batch = WakeBatch::new();
        let (mut over, mut loose) = (Loose::none(), Loose::none());
        // SAFETY: the lock is held; A2: the store is not empty.
        let let_in = unsafe {
            self.books(|books, _| books.used -= books.store.take(to, &mut over));
            if self.stored() == 0 {
                // Ordering: Release, as for every store of the head. A2.
                core.head.0.fetch_and(!STASH, Ordering::Release);
            }
            let let_in = self.let_in_some(&mut batch, &mut loose);
            spend(own);
            core.unlock(tail);
            let_in
        };
        batch.run();
        if let_in != LetIn::All {
            // SAFETY: the channel is weighted.
            unsafe { self.let_in() };
        }
    }

    /// Drops what the store has, past panicking destructors, outside the lock. False: there is nothing.
    pub(in crate::flavor) fn drop_store(self) -> bool {
        if self.account().is_none() {
            return false;
        }
        let core = self.core();
        let tail = core.lock();
        // SAFETY: the lock is held.
        let store = unsafe {
            if self.returned() == 0 {
                // Ordering: Release, as above. A2.
                core.head.0.fetch_and(!STASH, Ordering::Release);
            }
            self.books(|books, _| {
                books.used = 0;
                core::mem::replace(&mut books.store, Store::new())
            })
        };
        core.unlock(tail);
        store.len() != 0
    }
}
