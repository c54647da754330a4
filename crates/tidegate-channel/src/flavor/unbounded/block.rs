//! A block: slots for so many positions in a row, and the link to the block of the next ones.

use alloc::alloc::{alloc, dealloc, handle_alloc_error, Layout};
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};

use tidegate_wait::op::Place;
use tidegate_wait::shim::{AtomicU64, Ordering, Patience, UnsafeCell};

use crate::error::CapacityError;
use crate::flavor::bounded::Slot;

/// A block of small values has so many slots.
const MAX_SLOTS: u64 = if cfg!(loom) { 2 } else { 64 };

/// A block of large values has no more bytes of slots than this, or one slot.
const MAX_BYTES: u64 = 64 << 10;

/// The beginning of a block; its slots follow in the same allocation.
#[repr(C)]
pub(super) struct Block<T> {
    /// The block of the positions after ours: null until our last position is claimed. Under the channel's lock. Once the
    /// block has been left (U5) its retirer's, to keep it in a list.
    pub(super) next: UnsafeCell<*mut Block<T>>,
    /// The position of the first slot. Written by whoever is about to link the block.
    first: UnsafeCell<u64>,
    _slots: [Slot<T>; 0],
}

/// The stamp of the slot while it holds this position's value. No stamp of a fresh block (0) or of another position.
const fn full(position: u64) -> u64 {
    2 * position + 1
}

/// The stamp once the value has been read.
const fn spent(position: u64) -> u64 {
    2 * position + 2
}

impl<T> Block<T> {
    /// Slots of a block; a power of two, so that a position splits into block and slot by a mask.
    pub(super) const SLOTS: u64 = {
        let mut slots = MAX_SLOTS;
        while slots > 1 && size_of::<Slot<T>>() as u64 > MAX_BYTES / slots {
            slots /= 2;
        }
        slots
    };

    /// The part of a position that is the slot's index.
    pub(super) const MASK: u64 = Self::SLOTS - 1;

    fn layout() -> Option<Layout> {
        let slots = Layout::array::<Slot<T>>(Self::SLOTS as usize).ok()?;
        Some(Layout::new::<Block<T>>().extend(slots).ok()?.0)
    }

    /// A block that nobody knows.
    pub(super) fn try_allocate() -> Result<NonNull<Block<T>>, CapacityError> {
        let layout = Self::layout().ok_or(CapacityError::Layout)?;
        // SAFETY: the layout is not empty: it holds two words.
        let memory = NonNull::new(unsafe { alloc(layout) }).ok_or(CapacityError::OutOfMemory)?;
        let block = memory.cast::<Block<T>>().as_ptr();
        // SAFETY: fresh memory of the right layout. Field by field: a slot on the stack would be as large as the payload,
        // and a value's place needs no writing, except for loom.
        unsafe {
            (&raw mut (*block).next).write(UnsafeCell::new(ptr::null_mut()));
            (&raw mut (*block).first).write(UnsafeCell::new(0));
            for index in 0..Self::SLOTS {
                let slot = Self::slot(block, index).cast_mut();
                (&raw mut (*slot).stamp).write(AtomicU64::new(0));
                if cfg!(loom) {
                    (&raw mut (*slot).value).write(UnsafeCell::new(MaybeUninit::uninit()));
                }
            }
        }
        Ok(memory.cast())
    }

    /// The same, for a channel whose first block fitted into an address space.
    pub(super) fn allocate() -> *mut Block<T> {
        match (Self::try_allocate(), Self::layout()) {
            (Ok(block), _) => block.as_ptr(),
            (Err(_), Some(layout)) => handle_alloc_error(layout),
            (Err(_), None) => unreachable!("the first block had this layout"),
        }
    }

    /// # Safety
    /// Nobody knows the block any more, and its values are read. No lock is held.
    pub(super) unsafe fn free(block: *mut Block<T>) {
        // SAFETY: the caller's promise; allocated with this layout.
        unsafe {
            if cfg!(loom) {
                for index in 0..Self::SLOTS {
                    ptr::drop_in_place((&raw const (*Self::slot(block, index)).stamp).cast_mut());
                }
                ptr::drop_in_place(block);
            }
            let Some(layout) = Self::layout() else { unreachable!("it was allocated with this layout") };
            dealloc(block.cast(), layout);
        }
    }

    /// Makes a block that nobody knows the one of the positions from `first` on.
    ///
    /// # Safety
    /// As said.
    pub(super) unsafe fn open(block: *mut Block<T>, first: u64) {
        // SAFETY: the caller's promise.
        unsafe {
            (*block).next.with_mut(|next| *next = ptr::null_mut());
            (*block).first.with_mut(|place| *place = first);
        }
    }

    /// Has everything in a block been read? Then nobody touches it any more (U4).
    ///
    /// # Safety
    /// The block has been left, and the caller retires it (U5).
    pub(super) unsafe fn is_spent(block: *mut Block<T>) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let first = (*block).first.with(|first| *first);
            // From the end: who still reads is likely to have claimed late.
            (0..Self::SLOTS).rev().all(|index| {
                // Ordering: Acquire pairs with Release in `Claimed::take`: the read is over.
                (*Self::slot(block, index)).stamp.load(Ordering::Acquire) == spent(first + index)
            })
        }
    }

    /// The slot of an index word.
    #[inline(always)]
    fn slot(block: *mut Block<T>, word: u64) -> *const Slot<T> {
        let first = block.wrapping_byte_add(size_of::<Block<T>>()).cast_const().cast::<Slot<T>>();
        first.wrapping_add((word & Self::MASK) as usize)
    }
}

/// A claimed position: for its sender to fill, or its receiver to empty, once.
#[must_use]
pub(in crate::flavor) struct Claimed<T> {
    slot: *const Slot<T>,
    position: u64,
}

impl<T> Claimed<T> {
    /// The slot of a position in its block.
    #[inline(always)]
    pub(super) fn new(block: *mut Block<T>, position: u64) -> Claimed<T> {
        Claimed { slot: Block::slot(block, position), position }
    }

    /// Moves a value in.
    ///
    /// # Safety
    /// The position is the calling sender's; `from` holds a value, which counts as moved.
    #[inline(always)]
    pub(in crate::flavor) unsafe fn fill(self, from: *const Place<T>) {
        // SAFETY: the caller's promise; the block stays until the value is read (U5).
        unsafe {
            (*from).with(|from| (*self.slot).value.with_mut(|to| ptr::copy_nonoverlapping(from, to, 1)));
            // Ordering: Release pairs with Acquire in `take`; makes the value visible.
            (*self.slot).stamp.store(full(self.position), Ordering::Release);
        }
    }

    /// Moves the value out; waits for a copy in progress. The slot, and with it the block, is not touched afterwards.
    ///
    /// # Safety
    /// The position is the calling receiver's, and a sender has claimed it. No lock is held.
    #[inline(always)]
    pub(super) unsafe fn take(self, to: *const Place<T>) {
        // SAFETY: the caller's promise.
        unsafe { (*to).with_mut(|to| self.read(|from| ptr::copy_nonoverlapping(from, (*to).as_mut_ptr(), 1))) };
    }

    /// Gives the value to `f`, which moves it out or drops it where it stands; otherwise [`Claimed::take`].
    ///
    /// # Safety
    /// As for `take`.
    #[inline(always)]
    pub(in crate::flavor) unsafe fn read(self, f: impl FnOnce(*mut T)) {
        // SAFETY: the caller's promise; the block stays until the stamp says that the value is read (U5).
        unsafe {
            let stamp = &(*self.slot).stamp;
            // Ordering: Acquire pairs with Release in `fill`.
            if stamp.load(Ordering::Acquire) != full(self.position) {
                await_full(stamp, self.position);
            }
            (*self.slot).value.with_mut(|value| f((*value).as_mut_ptr()));
            // Ordering: Release pairs with Acquire in `is_spent`: our read is over.
            stamp.store(spent(self.position), Ordering::Release);
        }
    }
}

#[cold]
fn await_full(stamp: &AtomicU64, position: u64) {
    let mut patience = Patience::new();
    // Ordering: Acquire, as in `take`.
    while stamp.load(Ordering::Acquire) != full(position) {
        patience.a_little();
    }
}
