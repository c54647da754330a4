//! Where an operation keeps its payload: behind its head (a send), or over its links and waker (a receive).
//!
//! The place of the payload is found from the head's address alone, rounded up to the payload's alignment: the whole is
//! aligned as the payload is, so the compiler's layout agrees, however many limits stand in front.

use core::marker::PhantomPinned;
use core::mem::MaybeUninit;

use super::limits::Limits;
use crate::shim::UnsafeCell;
use crate::waiter::{Head, State};

/// A payload's cell.
pub type Place<T> = UnsafeCell<MaybeUninit<T>>;

#[inline(always)]
fn place_after<T>(head: *const Head, bytes: usize) -> *const Place<T> {
    let align = align_of::<Place<T>>();
    // `head` is aligned to 8; for most payloads this is a constant offset.
    match align <= align_of::<Head>() && bytes % align_of::<Head>() == 0 {
        true => head.cast::<u8>().wrapping_add(bytes).cast(),
        false => head.cast::<u8>().wrapping_add(bytes).map_addr(|addr| addr.next_multiple_of(align)).cast(),
    }
}

/// A word of an operation's own, right behind its head: what its owner must know of it while it waits, whatever its
/// payload is. The owner's, under its lock, while the node waits; else the task's.
#[repr(transparent)]
pub struct Word(UnsafeCell<u64>);

impl Word {
    /// A word.
    #[inline(always)]
    pub fn new(word: u64) -> Word {
        Word(UnsafeCell::new(word))
    }

    /// The word of the operation that has this head.
    ///
    /// # Safety
    /// `head` belongs to an `Outbox<_, _, Word>`, derived from a pointer to the whole of it.
    #[inline(always)]
    pub unsafe fn of<'o>(head: *const Head) -> &'o Word {
        // SAFETY: the caller's promise; the word follows the head without a gap (`Outbox::LAYOUT`).
        unsafe { &*head.add(1).cast() }
    }

    /// # Safety
    /// Under the owner's lock, or by the task while the node does not wait.
    #[inline(always)]
    pub unsafe fn get(&self) -> u64 {
        // SAFETY: the caller's promise makes this the only access.
        self.0.with(|word| unsafe { *word })
    }

    /// # Safety
    /// As for `get`.
    #[inline(always)]
    pub unsafe fn set(&self, to: u64) {
        // SAFETY: as above.
        self.0.with_mut(|word| unsafe { *word = to });
    }
}

impl core::fmt::Debug for Word {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Word")
    }
}

/// An operation that holds a value until it is taken; with `W` = [`Word`], and a word beside it.
#[repr(C)]
pub struct Outbox<T, L, W = ()> {
    limits: L,
    head: Head,
    word: W,
    value: Place<T>,
    _pinned: PhantomPinned,
}

impl<T, L: Limits> Outbox<T, L> {
    /// An operation that holds `value`.
    #[inline(always)]
    pub fn new(head: Head, limits: L, value: MaybeUninit<T>) -> Self {
        Outbox::with_word(head, limits, (), value)
    }
}

impl<T, L: Limits, W> Outbox<T, L, W> {
    /// The word stands where its readers look for it.
    const LAYOUT: () = {
        assert!(align_of::<W>() <= align_of::<Head>());
        assert!(size_of::<W>() == 0 || size_of::<W>() == size_of::<Word>());
    };

    /// The same with a word.
    #[inline(always)]
    pub fn with_word(head: Head, limits: L, word: W, value: MaybeUninit<T>) -> Self {
        const { Self::LAYOUT };
        if size_of::<T>() > 2 * size_of::<usize>() {
            head.node.part();
        }
        Outbox { limits, head, word, value: UnsafeCell::new(value), _pinned: PhantomPinned }
    }

    /// The word.
    ///
    /// # Safety
    /// `this` points at an operation, alive or being built.
    #[inline(always)]
    pub unsafe fn word(this: *mut Self) -> *const W {
        // SAFETY: the caller's promise.
        unsafe { &raw const (*this).word }
    }

    /// The head.
    ///
    /// # Safety
    /// `this` points at an operation, alive or being built.
    #[inline(always)]
    pub unsafe fn head(this: *mut Self) -> *mut Head {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*this).head }
    }

    /// The limits.
    ///
    /// # Safety
    /// `this` points at an operation, alive or being built.
    #[inline(always)]
    pub unsafe fn limits(this: *mut Self) -> *mut L {
        // SAFETY: as above.
        unsafe { &raw mut (*this).limits }
    }

    /// The value.
    ///
    /// # Safety
    /// `this` points at an operation, alive or being built.
    #[inline(always)]
    pub unsafe fn value(this: *mut Self) -> *const Place<T> {
        // SAFETY: as above.
        unsafe { &raw const (*this).value }
    }

    /// The same under other limits, before the first poll.
    #[inline(always)]
    pub fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Outbox<T, M, W> {
        let Outbox { limits, head, word, value, _pinned } = self;
        Outbox { limits: f(limits), head, word, value, _pinned }
    }

    /// The value of the operation that has this head.
    ///
    /// # Safety
    /// `head` belongs to an `Outbox<T, _, W>`, derived from a pointer to the whole of it.
    #[inline(always)]
    pub unsafe fn value_of(head: *const Head) -> *const Place<T> {
        place_after(head, size_of::<Head>() + size_of::<W>())
    }
}

impl<T, L, W> Outbox<T, L, W> {
    /// The state, for the operation's own task.
    #[inline(always)]
    pub fn state(&self) -> State {
        self.head.node.state()
    }
}

impl<T, L, W> core::fmt::Debug for Outbox<T, L, W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Outbox").field("head", &self.head).finish_non_exhaustive()
    }
}

#[cfg(not(loom))]
mod layout {
    use super::*;
    use core::mem::ManuallyDrop;

    /// Where the value begins, before it is aligned: behind owner and state.
    const VALUE: usize = core::mem::offset_of!(Head, node.links) + size_of::<*mut ()>();

    /// While it waits: limits, owner, state, next, waker.
    #[repr(C)]
    struct Waiting<L> {
        limits: L,
        head: Head,
    }

    /// After the delivery: limits, owner, state, value.
    #[repr(C)]
    struct Delivered<T, L> {
        limits: MaybeUninit<L>,
        /// Owner and state, as bytes: as long as they are on this target, padding included, and without an alignment of
        /// their own that could move the value.
        owner_and_state: [MaybeUninit<u8>; VALUE],
        value: Place<T>,
    }

    #[repr(C)]
    union Either<T, L> {
        waiting: ManuallyDrop<Waiting<L>>,
        delivered: ManuallyDrop<Delivered<T, L>>,
    }

    /// An operation that waits for a value, which is laid over its links and waker: 16 + max(24, value) bytes.
    #[repr(C)]
    pub struct Inbox<T, L> {
        either: Either<T, L>,
        _pinned: PhantomPinned,
    }

    impl<T, L: Limits> Inbox<T, L> {
        /// What is written behind the head must lie inside the operation, on every target.
        const FITS: () = {
            let value = (size_of::<L>() + VALUE).next_multiple_of(align_of::<Place<T>>());
            assert!(size_of::<Self>() >= value + size_of::<Place<T>>());
        };

        /// An operation without a value yet.
        #[inline(always)]
        pub fn new(head: Head, limits: L) -> Self {
            const { Self::FITS };
            Inbox { either: Either { waiting: ManuallyDrop::new(Waiting { limits, head }) }, _pinned: PhantomPinned }
        }

        /// The head.
        ///
        /// # Safety
        /// `this` points at an operation, alive or being built.
        #[inline(always)]
        pub unsafe fn head(this: *mut Self) -> *mut Head {
            // SAFETY: the caller's promise.
            unsafe { (&raw mut (*this).either.waiting).cast::<Waiting<L>>().map_head() }
        }

        /// The limits.
        ///
        /// # Safety
        /// `this` points at an operation, alive or being built.
        #[inline(always)]
        pub unsafe fn limits(this: *mut Self) -> *mut L {
            this.cast()
        }

        /// The same under other limits, before the first poll.
        #[inline(always)]
        pub fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Inbox<T, M> {
            let this = ManuallyDrop::new(self);
            // SAFETY: an operation that can be moved was never polled: it has no value; and `this` is not dropped.
            let waiting = unsafe { core::ptr::read(&raw const this.either.waiting) };
            let waiting = ManuallyDrop::into_inner(waiting);
            Inbox::new(waiting.head, f(waiting.limits))
        }

        /// The place for the value of the operation that has this head.
        ///
        /// # Safety
        /// `head` belongs to an `Inbox<T, _>`, derived from a pointer to the whole of it; its links and waker are not
        /// used any more once the value is written.
        #[inline(always)]
        pub unsafe fn value_of(head: *const Head) -> *const Place<T> {
            place_after(head, VALUE)
        }
    }

    /// On every target that is only checked, too: payloads that end behind the links.
    const _: () = {
        use crate::op::Unlimited;
        let () = Inbox::<[u32; 4], Unlimited>::FITS;
        let () = Inbox::<[u64; 2], Unlimited>::FITS;
        let () = Inbox::<[u8; 13], Unlimited>::FITS;
        let () = Inbox::<[u64; 128], Unlimited>::FITS;
    };

    impl<T, L> Drop for Inbox<T, L> {
        #[inline(always)]
        fn drop(&mut self) {
            // SAFETY: the limits come first in both forms, are never overwritten, and are dropped here only.
            unsafe { core::ptr::drop_in_place((&raw mut self.either).cast::<L>()) }
        }
    }

    trait MapHead {
        fn map_head(self) -> *mut Head;
    }

    impl<L> MapHead for *mut Waiting<L> {
        #[inline(always)]
        fn map_head(self) -> *mut Head {
            // SAFETY: a place within the allocation of `self`, by its address alone.
            unsafe { &raw mut (*self).head }
        }
    }
}

/// Loom's cells own memory and can't share a place.
#[cfg(loom)]
mod layout {
    use super::*;

    /// An operation that waits for a value.
    #[repr(C)]
    pub struct Inbox<T, L> {
        limits: L,
        head: Head,
        value: Place<T>,
        _pinned: PhantomPinned,
    }

    impl<T, L: Limits> Inbox<T, L> {
        /// An operation without a value yet.
        pub fn new(head: Head, limits: L) -> Self {
            Inbox { limits, head, value: UnsafeCell::new(MaybeUninit::uninit()), _pinned: PhantomPinned }
        }

        /// The head.
        ///
        /// # Safety
        /// `this` points at an operation, alive or being built.
        pub unsafe fn head(this: *mut Self) -> *mut Head {
            // SAFETY: the caller's promise.
            unsafe { &raw mut (*this).head }
        }

        /// The limits.
        ///
        /// # Safety
        /// `this` points at an operation, alive or being built.
        pub unsafe fn limits(this: *mut Self) -> *mut L {
            // SAFETY: as above.
            unsafe { &raw mut (*this).limits }
        }

        /// The same under other limits, before the first poll.
        pub fn map_limits<M: Limits>(self, f: impl FnOnce(L) -> M) -> Inbox<T, M> {
            Inbox { limits: f(self.limits), head: self.head, value: self.value, _pinned: PhantomPinned }
        }

        /// The place for the value of the operation that has this head.
        ///
        /// # Safety
        /// `head` belongs to an `Inbox<T, _>`, derived from a pointer to the whole of it.
        pub unsafe fn value_of(head: *const Head) -> *const Place<T> {
            place_after(head, size_of::<Head>())
        }
    }
}

pub use layout::Inbox;

impl<T, L: Limits> Inbox<T, L> {
    /// The state, for the operation's own task.
    #[inline(always)]
    pub fn state(&self) -> State {
        // SAFETY: the state word is at the same place in both forms, and lives as long as `self`.
        unsafe { (*Inbox::head(core::ptr::from_ref(self).cast_mut())).node.state() }
    }
}

impl<T, L> core::fmt::Debug for Inbox<T, L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}
