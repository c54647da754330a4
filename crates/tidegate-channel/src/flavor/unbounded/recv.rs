//! Receiving from an unbounded channel, as far as it differs from a bounded one: the claim, and the way into the next
//! block. Returned deliveries, the end and parking are the same, in `flavor/bounded/recv.rs`.

use alloc::boxed::Box;
use core::ptr;

use tidegate_wait::op::Place;
use tidegate_wait::owner::Owner;
use tidegate_wait::shim::{Ordering, Patience};
use tidegate_wait::wake_batch::contain;

use super::block::{Block, Claimed};
use crate::flavor::bounded::words::{position, STASH};
use crate::flavor::bounded::{Handle, Received};

impl<T> Handle<T> {
    /// The fast path. False: take the slow one.
    #[inline]
    pub(in crate::flavor) fn receive_from_block(self, to: *const Place<T>) -> bool {
        let word = &self.core().head.0;
        // Ordering: Acquire pairs with Release in `cross`; makes the block of this head visible (U2).
        let mut head = word.load(Ordering::Acquire);
        let mut patience = Patience::new();
        loop {
            if Self::turns_away(head) || !self.is_claimed(head) {
                return false;
            }
            // Ordering: Relaxed; not older than the head, by its Acquire, nor newer if the CAS succeeds (U2).
            let block = self.blocks.head.load(Ordering::Relaxed);
            // Ordering: AcqRel; Acquire as above, Release for U2 and for looks at the head. On failure Relaxed: it is read
            // afresh. (Not the weak one, which some processors fail for nothing: a loss costs a pause.)
            match word.compare_exchange(head, head + 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    // SAFETY: the position is claimed: no flag was set; before, a sender had claimed it.
                    unsafe { Claimed::new(block, head).take(to) };
                    return true;
                }
                Err(_) => {
                    patience.after_a_loss();
                    head = word.load(Ordering::Acquire);
                }
            }
        }
    }

    /// Claims a run of positions that senders have claimed, at most `max`, within one block, and gives the values to `f`,
    /// one by one. Returns how many.
    pub(in crate::flavor) fn receive_run_from_block(self, max: usize, mut f: impl FnMut(*mut T)) -> usize {
        let word = &self.core().head.0;
        // Ordering: Acquire, as in `receive_from_block`.
        let head = word.load(Ordering::Acquire);
        if Self::turns_away(head) {
            return 0;
        }
        // Ordering: Acquire, as every look at the tail.
        let there = position(self.core().tail.0.load(Ordering::Acquire)).saturating_sub(head);
        // The border is not ours (U1).
        let run = there.min(max as u64).min(Block::<T>::MASK - (head & Block::<T>::MASK));
        // Ordering: Relaxed; as in `receive_from_block`.
        let block = self.blocks.head.load(Ordering::Relaxed);
        // Ordering: AcqRel, as in `receive_from_block`.
        if run == 0 || word.compare_exchange(head, head + run, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return 0;
        }
        for at in head..head + run {
            // SAFETY: the position is claimed; before, a sender had claimed it.
            unsafe { Claimed::new(block, at).read(&mut f) };
        }
        run as usize
    }

    /// Drops the first value where it stands, past a panic. False: there is none, or the slow path has to get it.
    pub(in crate::flavor) fn drop_from_block(self) -> bool {
        // SAFETY: the value is dropped once.
        if self.receive_run_from_block(1, |value| contain(|| unsafe { ptr::drop_in_place(value) })) != 0 {
            return true;
        }
        let core = self.core();
        // Ordering: Acquire (both), as for every look at both words.
        let head = core.head.0.load(Ordering::Acquire);
        let more = position(core.tail.0.load(Ordering::Acquire)) != position(head);
        more && head & STASH == 0 && self.is_border(head) && self.drop_at_border()
    }

    /// The same at a border. Not through the stack, which a value may be too large for.
    #[cold]
    fn drop_at_border(self) -> bool {
        let place = Box::into_raw(Box::<Place<T>>::new_uninit()).cast::<Place<T>>();
        // SAFETY: a box's memory. A cell around memory that is not initialized needs no initializing, but for loom's.
        let place = unsafe {
            #[cfg(loom)]
            place.write(tidegate_wait::shim::UnsafeCell::new(core::mem::MaybeUninit::uninit()));
            Box::from_raw(place)
        };
        let received = self.try_receive(&*place) == Received::Value;
        if received {
            // SAFETY: just received; dropped once.
            place.with_mut(|value| contain(|| unsafe { (*value).assume_init_drop() }));
        }
        received
    }

    /// Has a sender claimed the position at this head? It looks at the tail, which senders change all the time, only when
    /// the last look of any receiver has been used up.
    #[inline(always)]
    fn is_claimed(self, head: u64) -> bool {
        let seen = &self.core().head.1;
        // Ordering: Acquire pairs with Release below: who goes on from here has the tail that was seen behind it (I7).
        if seen.load(Ordering::Acquire) > head {
            return true;
        }
        // Ordering: Acquire, as every look at the tail.
        let tail = position(self.core().tail.0.load(Ordering::Acquire));
        let claimed = tail > head;
        if claimed {
            // Perhaps over a later one: it only ever says less than is true.
            seen.store(tail, Ordering::Release);
        }
        claimed
    }

    /// Under the lock, at a border, with a value: takes it, and the head into the next block. Then sees to the block
    /// that was left (U5). Gives the lock back.
    ///
    /// # Safety
    /// As said; STASH is clear.
    pub(in crate::flavor) unsafe fn cross(self, tail: u64, head: u64, to: *const Place<T>) {
        let (core, blocks) = (self.core(), &self.blocks);
        // Ordering: Relaxed; written under the lock.
        let block = blocks.head.load(Ordering::Relaxed);
        // SAFETY: the lock is held; whoever claimed the last position of the block linked the next one (U2).
        let next = unsafe { (*block).next.with(|next| *next) };
        debug_assert!(!next.is_null(), "U2: a claimed border without a block behind it");
        // Ordering: Relaxed; the head's Release makes it visible with the head that needs it (U2).
        blocks.head.store(next, Ordering::Relaxed);
        // Ordering: Release pairs with Acquire in `receive_from_block`. A plain store: at a border fast receivers are
        // turned away (U1).
        core.head.0.store(head + 1, Ordering::Release);
        // SAFETY: the lock is held.
        let earlier = blocks.leaving.with_mut(|leaving| unsafe { ptr::replace(leaving, ptr::null_mut()) });
        core.unlock(tail);
        // SAFETY: the position is ours, and with it the block to retire; so are the blocks that stood in the list.
        unsafe {
            Claimed::new(block, head).take(to);
            (*block).next.with_mut(|next| *next = earlier);
            self.retire(block);
        }
    }

    /// Recycles the blocks of a list in which everything has been read, and keeps the others for the next who crosses.
    ///
    /// # Safety
    /// The blocks have been left, and the caller retires them; no lock is held.
    unsafe fn retire(self, mut left: *mut Block<T>) {
        let (mut first, mut last) = (ptr::null_mut::<Block<T>>(), ptr::null_mut::<Block<T>>());
        while !left.is_null() {
            let block = left;
            // SAFETY: the blocks are the caller's (U5).
            unsafe {
                left = (*block).next.with(|next| *next);
                if Block::is_spent(block) {
                    self.recycle(block);
                } else {
                    (*block).next.with_mut(|next| *next = first);
                    first = block;
                    last = if last.is_null() { block } else { last };
                }
            }
        }
        if !first.is_null() {
            // SAFETY: as above.
            unsafe { self.keep(first, last) };
        }
    }

    /// Puts a chain of blocks, in which somebody still reads, into the list of the channel.
    #[cold]
    unsafe fn keep(self, first: *mut Block<T>, last: *mut Block<T>) {
        let core = self.core();
        let tail = core.lock();
        // SAFETY: the lock is held; the chain is the caller's.
        self.blocks.leaving.with_mut(|leaving| unsafe {
            (*last).next.with_mut(|next| *next = *leaving);
            *leaving = first;
        });
        core.unlock(tail);
    }
}
