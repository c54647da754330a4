//! Sending into an unbounded channel. Nothing ever parks.

use core::ptr;

use tidegate_wait::op::Place;
use tidegate_wait::owner::Owner;
use tidegate_wait::shim::{Ordering, Patience};
use tidegate_wait::waiter::Head;

use super::block::{Block, Claimed};
use crate::flavor::bounded::words::{position, CLOSED, RXW};
use crate::flavor::bounded::{Handle, Sent};

/// A block in the hand of a sender, for the border at which it may arrive (U6). What is not used goes to the cache.
pub(in crate::flavor) struct Next<T> {
    channel: Handle<T>,
    block: *mut Block<T>,
}

impl<T> Next<T> {
    pub(in crate::flavor) fn new(channel: Handle<T>) -> Next<T> {
        Next { channel, block: ptr::null_mut() }
    }

    /// Gets a block. Outside the lock.
    #[cold]
    pub(in crate::flavor) fn allocate(&mut self) {
        self.block = Block::allocate();
    }

    fn take(&mut self) -> Option<*mut Block<T>> {
        let block = core::mem::replace(&mut self.block, ptr::null_mut());
        (!block.is_null()).then_some(block)
    }
}

impl<T> Drop for Next<T> {
    fn drop(&mut self) {
        if let Some(block) = self.take() {
            // SAFETY: nobody else knows the block.
            unsafe { self.channel.recycle(block) };
        }
    }
}

impl<T> Handle<T> {
    /// The fast path. False: nothing has been moved; take the slow one.
    ///
    /// # Safety
    /// `from` holds a value, which counts as moved if this returns true.
    #[inline]
    pub(in crate::flavor) unsafe fn send_to_block(self, from: *const Place<T>) -> bool {
        let word = &self.core().tail.0;
        // Ordering: Acquire pairs with Release in `unlock`; makes the block of this tail visible (U2).
        let mut tail = word.load(Ordering::Acquire);
        let mut patience = Patience::new();
        loop {
            if Self::turns_away(tail) {
                return false;
            }
            // Ordering: Relaxed; not older than the tail, by its Acquire, nor newer if the CAS succeeds (U2).
            let block = self.blocks.tail.load(Ordering::Relaxed);
            // Ordering: AcqRel; Acquire as above, Release for U2 and for looks at the tail. On failure Relaxed: it is read
            // afresh. (Not the weak one, which some processors fail for nothing: a loss costs a pause.)
            match word.compare_exchange(tail, tail + 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    // SAFETY: the position is claimed: no flag was set.
                    unsafe { Claimed::new(block, tail).fill(from) };
                    return true;
                }
                Err(_) => {
                    patience.after_a_loss();
                    tail = word.load(Ordering::Acquire);
                }
            }
        }
    }

    /// Claims a run of positions within one block, at most `max`, and fills them with what `next` points at, one by one.
    /// Returns how many.
    ///
    /// # Safety
    /// `next` points at a value, which counts as moved, each time it is called.
    pub(in crate::flavor) unsafe fn send_run_to_block(
        self,
        max: usize,
        mut next: impl FnMut() -> *const Place<T>,
    ) -> usize {
        let word = &self.core().tail.0;
        // Ordering: Acquire, as in `send_to_block`.
        let tail = word.load(Ordering::Acquire);
        if Self::turns_away(tail) {
            return 0;
        }
        // The border is not ours (U1).
        let run = (max as u64).min(Block::<T>::MASK - (tail & Block::<T>::MASK));
        // Ordering: Relaxed; as in `send_to_block`.
        let block = self.blocks.tail.load(Ordering::Relaxed);
        // Ordering: AcqRel, as in `send_to_block`.
        if run == 0 || word.compare_exchange(tail, tail + run, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return 0;
        }
        for at in tail..tail + run {
            // SAFETY: the position is claimed: no flag was set; the caller's promise.
            unsafe { Claimed::new(block, at).fill(next()) };
        }
        run as usize
    }

    /// The slow path: hands over to a parked receive, crosses a border, or claims beside permits. `own`: the sending
    /// operation, whose state is stored before anybody is woken (I8).
    ///
    /// # Safety
    /// `from` holds a value, which counts as moved if this returns `Done`.
    pub(in crate::flavor) unsafe fn send_unbounded(self, from: *const Place<T>, own: Option<*const Head>) -> Sent {
        let core = self.core();
        let mut next = Next::new(self);
        loop {
            let tail = core.lock();
            if tail & CLOSED != 0 {
                core.unlock(tail);
                return Sent::Closed;
            }
            // SAFETY: the lock is held; the caller's promises.
            unsafe {
                if tail & RXW != 0 {
                    self.hand_over(tail, from, None, own);
                    return Sent::Done;
                }
                if let Some(claimed) = self.claim(tail, &mut next) {
                    core.unlock(tail + 1);
                    claimed.fill(from);
                    return Sent::Done;
                }
            }
            core.unlock(tail);
            next.allocate();
        }
    }

    /// Under the lock: claims the position at the tail; the caller gives the lock back with the next position, then
    /// fills the slot. `None`: nothing has happened; this is a border, and there is no block for the other side of it.
    ///
    /// # Safety
    /// As said.
    pub(in crate::flavor) unsafe fn claim(self, tail: u64, next: &mut Next<T>) -> Option<Claimed<T>> {
        let blocks = &self.blocks;
        // Ordering: Relaxed; written under the lock.
        let block = blocks.tail.load(Ordering::Relaxed);
        let position = position(tail);
        if self.is_border(tail) {
            let fresh = next.take().or_else(|| blocks.take_spare())?;
            // SAFETY: nobody knows the fresh block; the lock is held.
            unsafe {
                Block::open(fresh, position + 1);
                (*block).next.with_mut(|next| *next = fresh);
            }
            // Ordering: Relaxed; the unlock's Release makes it visible with the tail that needs it (U2).
            blocks.tail.store(fresh, Ordering::Relaxed);
        }
        Some(Claimed::new(block, position))
    }
}
