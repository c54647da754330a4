//! The unbounded channel: blocks of slots instead of a ring.
//!
//! **For:** senders that never wait. **Not for:** a load without a limit of its own: memory is what gives way.
//!
//! # The idea
//! The words, the lock, the lists, the stash, the close and every invariant are those of the bounded channel
//! (`flavor/bounded/mod.rs`), with a capacity that is never reached: no send parks, TXW is never set. Positions are plain
//! numbers; position p stands in slot p mod [`Block::SLOTS`] of block p / `SLOTS`. A claim is the same CAS on the same
//! word. What is new is how to get from one block into the next, and when one is over.
//!
//! ```text
//!  head, blocks.head                    tail, blocks.tail
//!        |                                    |
//!        v          next            next      v
//!  [ s s s f f ] --------> [ f f f f ] --> [ f f . . ]      s spent, f full, . free
//!
//!  leaving: blocks behind the head, in which somebody still reads        spare: one block, empty
//! ```
//!
//! # Invariants
//! - **U1** *The last slot of a block is its border.* Fast paths turn away from a word that stands there; only the lock
//!   holder takes it on. (So one CAS moves a word within a block only, and crossing is one step for everybody. Without:
//!   sender A claims the last slot and stops before it has stored the next block; B claims the first position behind it,
//!   and writes it into the old block.)
//! - **U2** *Block and word belong together:* while the lock is free, `blocks.tail` is the block of the position in `tail`,
//!   `blocks.head` that of `head`. The hold that claims a border links the next block and stores its pointer before it
//!   stores the word (Release). A fast path loads the word (Acquire), then the pointer, then claims by a CAS from that
//!   word: the pointer is not older than the word, and not newer, as whoever stores a newer one comes after our CAS
//!   (Release) in the order of the word. (Without the order of the two loads: pointer of block 0; the word crosses; word of
//!   block 1; the CAS succeeds, and the value goes into block 0.)
//! - **U3** *A block is not touched before a position in it is claimed*, or the lock held. (A look at the slot before the
//!   claim, as the bounded flavor has it: load the pointer; others take everything, the block is freed; look.) So a
//!   receiver decides by `tail`, claims, and then waits for the value's stamp: for a copy in progress, as ever.
//! - **U4** A slot's stamp is `full` of its position from the sender's last touch on, `spent` from the receiver's. Stamps
//!   of other positions differ, so a used block is as good as a fresh one.
//! - **U5** *A block is left when the head crosses its border.* Whoever took it across retires it: if every stamp is
//!   `spent` (Acquire), nobody touches the block any more, and it goes to the cache or is freed. Else it goes to `leaving`,
//!   and the next who crosses takes that list and looks again. (Freed by the count of claims: R claims the first slot and
//!   stops; S claims the last one, and frees the block under R.) No receive pays a read-modify-write to say that it has
//!   read.
//! - **U6** *Nothing is allocated or freed under the lock*, nor between a claim and its publication. A sender at a border
//!   takes the spare block, or gives the lock back, allocates, and begins anew; so an allocation that fails has claimed
//!   nothing.
//! - **U7** `seen` is a position that `tail` has reached. It may fall back; it is a reason not to look at `tail`.
//!
//! # Memory
//! A block of small values has 64 slots; of larger ones as many as fit into 64 KiB, at least one. Its allocation is made
//! by the sender that needs it, if the cache is empty; in a steady state the block that receivers leave is the one that
//! senders enter. After a burst has been received the channel has: the current block; one spare; and a block for each
//! receive that was in the middle of its read when somebody last crossed a border.
//! Several senders that meet at a border with an empty cache allocate a block each; all but one go to the cache or back.
//!
//! Tests: `tests/unbounded.rs`, `tests/unbounded_memory.rs`, `tests/loom_unbounded.rs`.

mod block;
mod recv;
mod send;

use core::ptr::{self, NonNull};

use alloc::alloc::{alloc, dealloc, Layout};
use tidegate_wait::shim::{AtomicPtr, Ordering, UnsafeCell};

use crate::error::CapacityError;
use crate::flavor::bounded::words::{Ring, POSITION};
use crate::flavor::bounded::{Channel, Core, Handle};
use block::Block;
pub(in crate::flavor) use send::Next;

/// The blocks of a channel; a bounded one has none.
pub(in crate::flavor) struct Blocks<T> {
    /// The block of the position in `head` (U2). Written by the lock holder.
    head: AtomicPtr<Block<T>>,
    /// The block of the position in `tail` (U2). Written by the lock holder.
    tail: AtomicPtr<Block<T>>,
    /// An empty block, or null. Whoever swaps it out has it alone.
    spare: AtomicPtr<Block<T>>,
    /// Blocks behind the head in which somebody was still reading (U5). Under the lock.
    leaving: UnsafeCell<*mut Block<T>>,
}

impl<T> Blocks<T> {
    pub(in crate::flavor) fn none() -> Blocks<T> {
        Blocks::with(ptr::null_mut())
    }

    fn with(first: *mut Block<T>) -> Blocks<T> {
        Blocks {
            head: AtomicPtr::new(first),
            tail: AtomicPtr::new(first),
            spare: AtomicPtr::new(ptr::null_mut()),
            leaving: UnsafeCell::new(ptr::null_mut()),
        }
    }

    /// Empties the cache.
    fn take_spare(&self) -> Option<*mut Block<T>> {
        // Ordering: Acquire pairs with Release in `recycle`: who used the block before is done with it.
        let block = self.spare.swap(ptr::null_mut(), Ordering::Acquire);
        (!block.is_null()).then_some(block)
    }
}

impl<T> Channel<T> {
    /// An unbounded channel with one sender and one receiver, whose positions begin at the block of `first`.
    pub(crate) fn create_unbounded(first: u64) -> Result<NonNull<Channel<T>>, CapacityError> {
        debug_assert!(first < POSITION / 2, "so far that they might run into the flags");
        let first = first & !Block::<T>::MASK;
        // SAFETY: the layout is not empty.
        let memory = NonNull::new(unsafe { alloc(Layout::new::<Channel<T>>()) }).ok_or(CapacityError::OutOfMemory)?;
        let channel = memory.cast::<Channel<T>>();
        let block = match Block::<T>::try_allocate() {
            Ok(block) => block.as_ptr(),
            Err(error) => {
                // SAFETY: allocated above, with this layout.
                unsafe { dealloc(memory.as_ptr(), Layout::new::<Channel<T>>()) };
                return Err(error);
            }
        };
        // SAFETY: fresh memory of the right layout; nobody knows the block.
        unsafe {
            Block::open(block, first);
            let core = Core::new(Ring::unbounded(), first, 0, Self::free_unbounded, Self::pass_on);
            Self::init(channel, core, Blocks::with(block));
        }
        Ok(channel)
    }

    /// Drops what is left and frees the memory.
    unsafe fn free_unbounded(core: *const Core) {
        let this = core.cast::<Channel<T>>().cast_mut();
        // SAFETY: nobody has a reference any more, so nobody reads; what leaked operations have sent is dropped now.
        unsafe {
            let channel = Handle::new(NonNull::new_unchecked(this));
            channel.drain();
            let blocks = &channel.blocks;
            // Ordering: Relaxed; the last reference's Acquire makes everything visible.
            Block::free(blocks.head.load(Ordering::Relaxed));
            if let Some(spare) = blocks.take_spare() {
                Block::free(spare);
            }
            let mut left = blocks.leaving.with(|leaving| *leaving);
            while !left.is_null() {
                let block = left;
                left = (*block).next.with(|next| *next);
                Block::free(block);
            }
            ptr::drop_in_place(this);
            dealloc(this.cast(), Layout::new::<Channel<T>>());
        }
    }
}

impl<T> Handle<T> {
    /// Does this word stand at the end of a block (U1)? Never, if there are none.
    #[inline(always)]
    pub(in crate::flavor) fn is_border(self, word: u64) -> bool {
        self.core().ring.is_unbounded() && word & Block::<T>::MASK == Block::<T>::MASK
    }

    /// Must a fast path give up at this word? At a border, or for a flag.
    #[inline(always)]
    fn turns_away(word: u64) -> bool {
        // One comparison: a flag is more than any part of a position.
        word & (!POSITION | Block::<T>::MASK) >= Block::<T>::MASK
    }

    /// A block that is over, or was not needed: into the cache, or back to the allocator.
    ///
    /// # Safety
    /// The block is the caller's alone; no lock is held.
    unsafe fn recycle(self, block: *mut Block<T>) {
        // Ordering: Release pairs with Acquire in `take_spare`; Relaxed on failure, as nothing is looked at.
        if self.blocks.spare.compare_exchange(ptr::null_mut(), block, Ordering::Release, Ordering::Relaxed).is_err() {
            // SAFETY: the caller's promise.
            unsafe { Block::free(block) };
        }
    }
}
