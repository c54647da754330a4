//! The store: what a weighted channel buffers. A FIFO of values with their weights, in blocks.
//!
//! A plain data structure under the channel's lock. Blocks are allocated before the lock is taken and freed after: one that
//! a receive leaves is kept as the spare, a further one is freed, so a steady flow allocates nothing.

use alloc::alloc::{alloc, dealloc, handle_alloc_error, Layout};
use core::mem::MaybeUninit;
use core::ptr;

use tidegate_wait::op::Place;
use tidegate_wait::wake_batch::contain;

/// A block of small values has so many slots.
const MAX_SLOTS: usize = if cfg!(loom) { 2 } else { 64 };

/// A block of large values has no more bytes of slots than this, or one slot.
const MAX_BYTES: usize = 64 << 10;

struct Slot<T> {
    weight: u64,
    value: MaybeUninit<T>,
}

/// The beginning of a block; its slots follow in the same allocation.
#[repr(C)]
struct Block<T> {
    next: *mut Block<T>,
    _slots: [Slot<T>; 0],
}

impl<T> Block<T> {
    const SLOTS: usize = {
        let slots = MAX_BYTES / size_of::<Slot<T>>();
        if slots == 0 {
            1
        } else if slots < MAX_SLOTS {
            slots
        } else {
            MAX_SLOTS
        }
    };

    fn layout() -> Option<Layout> {
        let slots = Layout::array::<Slot<T>>(Self::SLOTS).ok()?;
        Some(Layout::new::<Block<T>>().extend(slots).ok()?.0)
    }

    fn allocate() -> *mut Block<T> {
        let Some(layout) = Self::layout() else { panic!("a value is larger than an allocation may be") };
        // SAFETY: the layout is not empty: it holds a pointer.
        let block = unsafe { alloc(layout) }.cast::<Block<T>>();
        if block.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: fresh memory of the right layout. Slots need no writing.
        unsafe { (&raw mut (*block).next).write(ptr::null_mut()) };
        block
    }

    /// # Safety
    /// Nobody else knows the block, and its values have been moved.
    unsafe fn free(block: *mut Block<T>) {
        let Some(layout) = Self::layout() else { unreachable!("it was allocated with this layout") };
        // SAFETY: the caller's promise.
        unsafe { dealloc(block.cast(), layout) };
    }

    fn slot(block: *mut Block<T>, index: usize) -> *mut Slot<T> {
        block.wrapping_byte_add(size_of::<Block<T>>()).cast::<Slot<T>>().wrapping_add(index)
    }
}

/// A block without values, outside the lock: made there, or left there to be freed.
pub(super) struct Loose<T>(*mut Block<T>);

impl<T> Loose<T> {
    pub(super) fn none() -> Loose<T> {
        Loose(ptr::null_mut())
    }

    /// Outside the lock.
    #[cold]
    pub(super) fn allocate(&mut self) {
        if self.0.is_null() {
            self.0 = Block::allocate();
        }
    }
}

impl<T> Drop for Loose<T> {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: ours alone, without values.
            unsafe { Block::free(self.0) };
        }
    }
}

/// See the module's text.
pub(super) struct Store<T> {
    first: *mut Block<T>,
    last: *mut Block<T>,
    spare: *mut Block<T>,
    /// In `first`: the first value. In `last`: behind the last one.
    begin: usize,
    end: usize,
    len: usize,
}

impl<T> Store<T> {
    pub(super) const fn new() -> Store<T> {
        let none = ptr::null_mut();
        Store { first: none, last: none, spare: none, begin: 0, end: 0, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn needs_block(&self) -> bool {
        self.last.is_null() || self.end == Block::<T>::SLOTS
    }

    /// Makes room for one value, if need be by the block in hand. False: there is none, and no room.
    pub(super) fn make_room(&mut self, loose: &mut Loose<T>) -> bool {
        if !self.needs_block() {
            return true;
        }
        let fresh = if self.spare.is_null() { &mut loose.0 } else { &mut self.spare };
        let block = core::mem::replace(fresh, ptr::null_mut());
        if block.is_null() {
            return false;
        }
        // SAFETY: blocks in the list are ours; the fresh one is nobody else's.
        unsafe {
            (*block).next = ptr::null_mut();
            if self.last.is_null() {
                self.first = block;
                self.begin = 0;
            } else {
                (*self.last).next = block;
            }
        }
        self.last = block;
        self.end = 0;
        true
    }

    /// Moves a value to the end.
    ///
    /// # Safety
    /// There is room; `from` holds a value, which counts as moved.
    pub(super) unsafe fn push(&mut self, from: *const Place<T>, weight: u64) {
        debug_assert!(!self.needs_block());
        let slot = Block::slot(self.last, self.end);
        // SAFETY: the slot is free; the caller's promise.
        unsafe {
            (&raw mut (*slot).weight).write(weight);
            (*from).with(|from| ptr::copy_nonoverlapping(from, &raw mut (*slot).value, 1));
        }
        self.end += 1;
        self.len += 1;
    }

    /// Moves the first value out; returns its weight. A block that is over and not kept is left in `loose`, which is empty.
    ///
    /// # Safety
    /// There is a value.
    pub(super) unsafe fn take(&mut self, to: *const Place<T>, loose: &mut Loose<T>) -> u64 {
        debug_assert!(self.len != 0 && loose.0.is_null());
        let slot = Block::slot(self.first, self.begin);
        // SAFETY: the caller's promise: the slot holds a value, which counts as moved.
        let weight = unsafe {
            (*to).with_mut(|to| ptr::copy_nonoverlapping(&raw const (*slot).value, to, 1));
            (*slot).weight
        };
        self.advance(loose);
        weight
    }

    /// Past the first value, which has been moved.
    fn advance(&mut self, loose: &mut Loose<T>) {
        self.begin += 1;
        self.len -= 1;
        if self.len == 0 {
            // Only the last block is left, or the first of two with nothing in the second: begin anew.
            debug_assert_eq!(self.first, self.last);
            (self.begin, self.end) = (0, 0);
        } else if self.begin == Block::<T>::SLOTS {
            let block = self.first;
            // SAFETY: a block of ours; there is another one, with the values that are left.
            self.first = unsafe { (*block).next };
            self.begin = 0;
            let place = if self.spare.is_null() { &mut self.spare } else { &mut loose.0 };
            *place = block;
        }
    }
}

impl<T> Drop for Store<T> {
    fn drop(&mut self) {
        while self.len != 0 {
            let slot = Block::slot(self.first, self.begin);
            // SAFETY: the slot holds a value, which is dropped once, where it stands: it may be too large for the stack.
            contain(|| unsafe { (*slot).value.assume_init_drop() });
            self.advance(&mut Loose::none());
        }
        for block in [self.last, self.spare] {
            drop(Loose(block));
        }
    }
}
