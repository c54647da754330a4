//! The bounded channel: a ring of stamped slots, with its flags in the two index words.
//!
//! **For:** many senders, many receivers, a fixed capacity, strict FIFO among the parked. **Not for:**
//! lock-freedom: a receiver waits for a memcpy in progress, and every slow path takes a short lock.
//!
//! # The idea
//! The claim of a slot is a CAS on an index word. The flags that would forbid it (somebody is parked, the channel is
//! closed, a slow path is at work) stand in the same word, so the CAS validates them for nothing: the fast path is one
//! read-modify-write, without a fence and without a second look.
//!
//! # State ([`words`], [`core`])
//! `tail` with LOCK, RXW, CLOSED, PERMIT; `head` with TXW, STASH; a stamp a slot; under the lock: the lists of parked
//! senders and receivers and of waits for the close, the stash of returned deliveries, the overflow of admitted sends.
//!
//! # Invariants, whenever the lock is free
//! - **I1** TXW ⇔ senders are parked; then ring + permits = capacity (a ring without slots is always full: [`rendezvous`]).
//! - **I2** RXW ⇔ receivers are parked; then ring, stash and overflow are empty.
//! - **I3** RXW and TXW are both set only while the ring is empty and every slot is promised ([`permit`]).
//! - **I4** LOCK, RXW, CLOSED or PERMIT freezes `tail` against fast senders, TXW or STASH freezes `head` against fast
//!   receivers. Only the lock holder writes a frozen word, by plain stores; setting a flag on an unfrozen head, and
//!   clearing TXW at close, are read-modify-writes. Without slots (a rendezvous) no fast path writes: both are frozen always.
//! - **I5** STASH ⇔ the stash is not empty; then nobody is parked to receive. (In a weighted channel: stash or store, A2.)
//! - **I6** LOCK is never held across a wait. In-flight slots are awaited before locking, then looked at again.
//! - **I7** Under LOCK a publish is: tail first (with LOCK), then payload, stamp, head, unlock. Any other order lets a
//!   receiver move head past tail.
//! - **I8** An operation's own state is stored before anybody is woken.
//!
//! A weighted channel (`flavor/weighted/`) is one of capacity 0 with a store beside it; its invariants are A1–A6.
//!
//! # Transitions of a parked operation
//! | by | send | receive |
//! | --- | --- | --- |
//! | the other side | value moved to the ring (slow receive) | value moved into it (slow send, returned delivery) |
//! | `close` ([`close`]) | Closed, value stays with it; or admitted: Done | Closed, once nothing will come |
//! | timer, token | TimedOut, Cancelled, value stays | TimedOut, Cancelled |
//! | its own drop | unlinked | unlinked; a delivery goes on to the next |
//!
//! # References
//! Vyukov's bounded MPMC queue for the stamps; the rest is ours and is model-checked: `model/bounded.pml`.
//! Tests: `tests/suite/`, `tests/values.rs`, `tests/stress.rs`, `tests/linearizability/`, `tests/loom_bounded/`.

mod batch;
mod close;
mod closed;
pub(super) mod core;
mod grants;
mod overflow;
mod permit;
mod recv;
mod rendezvous;
mod send;
mod window;
pub(super) mod words;

use ::core::fmt;
use ::core::mem::offset_of;
use ::core::ops::Deref;
use ::core::ptr::NonNull;
use alloc::alloc::{alloc_zeroed, dealloc, Layout};
use alloc::boxed::Box;

use tidegate_wait::debt::Paid;
use tidegate_wait::op::Place;
use tidegate_wait::owner::Owner;
use tidegate_wait::shim::{AtomicU64, Ordering, Patience, UnsafeCell};
use tidegate_wait::stash::Stash;
use tidegate_wait::waiter::Kind;
use tidegate_wait::wake_batch::contain;

pub(in crate::flavor) use self::core::head_of;
pub(crate) use self::core::Core;
pub(crate) use batch::{Batch, Items};
pub use close::Parked;
pub use closed::Closed;
pub(crate) use grants::wants;
pub(crate) use permit::Reserved;
pub(in crate::flavor) use recv::spend;
pub(crate) use recv::Received;
pub(crate) use send::Sent;

use crate::error::CapacityError;
use crate::flavor::unbounded::Blocks;
use crate::flavor::weighted::Account;
use overflow::Overflow;
use words::{position, Ring, CLOSED, MAX_CAPACITY, NO_SLOT, PERMIT, POSITION, STASH, TXW};

/// A slot: `stamp` says whose turn it is; the value belongs to whoever claimed the position that the stamp admits.
#[repr(C)]
pub(in crate::flavor) struct Slot<T> {
    pub(in crate::flavor) stamp: AtomicU64,
    pub(in crate::flavor) value: Place<T>,
}

/// A channel, at the beginning of one allocation; the slots of a bounded one follow.
#[repr(C)]
pub(crate) struct Channel<T> {
    core: Core,
    /// Under the lock.
    stash: UnsafeCell<Stash<T>>,
    /// Under the lock.
    overflow: UnsafeCell<Overflow<T>>,
    /// Where an unbounded one has its slots.
    pub(in crate::flavor) blocks: Blocks<T>,
    /// Where a weighted one has its values.
    account: Option<Box<Account<T>>>,
}

// SAFETY: values move between threads, hence `T: Send`; nothing is shared but under the lock or by the stamps' protocol.
unsafe impl<T: Send> Send for Channel<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Channel<T> {}

/// What to ask the allocator for, so that there is room for `layout` somewhere in it, and zeroed memory need not be
/// touched: above the alignment that it gives anyway, std allocates memory and writes the zeros itself.
fn untouched(layout: Layout) -> Option<Layout> {
    const ALIGN: usize = 2 * size_of::<usize>();
    let slack = layout.align().saturating_sub(ALIGN);
    Layout::from_size_align(layout.size().checked_add(slack)?, ALIGN).ok()
}

impl<T> Channel<T> {
    fn layout(cap: usize) -> Option<(Layout, usize)> {
        // Without slots, one stamp in the place of the first slot's.
        let slots = match cap {
            0 => Layout::new::<AtomicU64>().align_to(align_of::<Slot<T>>()).ok()?,
            _ => Layout::array::<Slot<T>>(cap).ok()?,
        };
        Layout::new::<Channel<T>>().extend(slots).ok()
    }

    /// The offset of the slots; a constant.
    const SLOTS: usize = size_of::<Channel<T>>().next_multiple_of(align_of::<Slot<T>>());

    /// A channel with one sender and one receiver, whose positions begin in lap `first_lap`.
    pub(crate) fn create(cap: usize, first_lap: u64) -> Result<NonNull<Channel<T>>, CapacityError> {
        if cap as u64 > MAX_CAPACITY {
            return Err(CapacityError::TooMany);
        }
        let (layout, slots) = Self::layout(cap).ok_or(CapacityError::Layout)?;
        debug_assert_eq!(slots, Self::SLOTS);
        let ring = Ring::new(cap as u64);
        let Some(start) = first_lap.checked_mul(ring.lap()).filter(|&start| ring.may_start(start)) else {
            return Err(CapacityError::TooMany);
        };
        let raw = untouched(layout).ok_or(CapacityError::Layout)?;
        // SAFETY: the layout is not empty: it holds a channel.
        let base = NonNull::new(unsafe { alloc_zeroed(raw) }).ok_or(CapacityError::OutOfMemory)?;
        let offset = base.addr().get().wrapping_neg() & (layout.align() - 1);
        // SAFETY: `untouched` left room for it.
        let memory = unsafe { base.byte_add(offset) };
        let channel = memory.cast::<Channel<T>>();
        // SAFETY: fresh memory of the right layout. Zeroed slots are slots: their stamps admit lap 0, their values are
        // not initialized. Loom's atomics are not plain words and are made one by one, as are stamps of another lap.
        unsafe {
            Self::init(channel, Core::new(ring, start, offset, Self::free, Self::pass_on), Blocks::none());
            if cap == 0 {
                memory.byte_add(slots).cast::<AtomicU64>().write(AtomicU64::new(NO_SLOT));
            } else if cfg!(loom) || start != 0 {
                for index in 0..cap {
                    // Field by field: a slot on the stack would be as large as the payload.
                    let slot = memory.byte_add(slots).cast::<Slot<T>>().add(index).as_ptr();
                    (&raw mut (*slot).stamp).write(AtomicU64::new(start));
                    #[cfg(loom)]
                    (&raw mut (*slot).value).write(UnsafeCell::new(::core::mem::MaybeUninit::uninit()));
                }
            }
        }
        Ok(channel)
    }

    /// Writes what channels of all kinds begin with.
    ///
    /// # Safety
    /// The memory is there, for the channel to stay in; nobody knows it yet.
    pub(in crate::flavor) unsafe fn init(channel: NonNull<Channel<T>>, core: Core, blocks: Blocks<T>) {
        let (stash, overflow) = (UnsafeCell::new(Stash::new()), UnsafeCell::new(Overflow::new()));
        // SAFETY: the caller's promise.
        unsafe {
            channel.write(Channel { core, stash, overflow, blocks, account: None });
            channel.as_ref().core.init();
        }
    }

    /// Drops what is left and frees the memory.
    unsafe fn free(core: *const Core) {
        let this = core.cast::<Channel<T>>().cast_mut();
        // SAFETY: nobody has a reference any more. The last receiver has drained the ring, except for values that were
        // sent by leaked operations; whatever is there is dropped now.
        unsafe {
            let channel = Handle(NonNull::new_unchecked(this));
            channel.drain();
            let cap = channel.core.ring.cap as usize;
            if cfg!(loom) {
                ::core::ptr::drop_in_place((&raw const (*channel.slot(0)).stamp).cast_mut());
                for index in 1..cap {
                    ::core::ptr::drop_in_place((&raw const (*channel.slot(index as u64)).stamp).cast_mut());
                }
            }
            let raw = Self::layout(cap).and_then(|(layout, _)| untouched(layout));
            let Some(raw) = raw else { unreachable!("it was allocated with this layout") };
            let base = this.cast::<u8>().sub((*this).core.offset);
            ::core::ptr::drop_in_place(this);
            dealloc(base, raw);
        }
    }

    /// [`Handle::pass_on_some`], by the core.
    ///
    /// # Safety
    /// The caller keeps the channel alive.
    pub(in crate::flavor) unsafe fn pass_on(core: *const Core, is_payer: bool) -> Paid {
        // SAFETY: a channel begins with its core.
        unsafe { Handle(NonNull::new_unchecked(core.cast::<Channel<T>>().cast_mut())).pass_on_some(is_payer) }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Makes a channel of capacity 0 that nobody knows a weighted one.
    pub(in crate::flavor) fn weigh(&mut self, account: Box<Account<T>>) {
        self.core.weighted = true;
        self.account = Some(account);
    }

    pub(in crate::flavor) fn account(&self) -> Option<&Account<T>> {
        self.account.as_deref()
    }

    /// How many values it may hold.
    pub(crate) fn capacity(&self) -> usize {
        if self.core.weighted {
            return usize::MAX;
        }
        self.core.ring.cap as usize
    }
}

/// A channel with its slots, by a pointer to the whole allocation.
///
/// Not a reference: a `&Channel<T>` is good for the channel alone, and no pointer made from it may reach the slots behind
/// it (Stacked Borrows). So whatever needs them is a method of the handle.
pub(crate) struct Handle<T>(NonNull<Channel<T>>);

impl<T> Clone for Handle<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> Deref for Handle<T> {
    type Target = Channel<T>;

    #[inline(always)]
    fn deref(&self) -> &Channel<T> {
        // SAFETY: `new`'s caller keeps the channel alive.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Handle<T> {
    /// # Safety
    /// The pointer is the one that `create` returned, unchanged but for casts; the channel is alive as long as the
    /// handle is used.
    #[inline(always)]
    pub(crate) unsafe fn new(channel: NonNull<Channel<T>>) -> Handle<T> {
        Handle(channel)
    }

    /// The pointer.
    #[inline(always)]
    pub(crate) fn as_ptr(self) -> NonNull<Channel<T>> {
        self.0
    }

    /// The slot of a position or an index word.
    #[inline(always)]
    fn slot(self, word: u64) -> *const Slot<T> {
        let first = self.0.as_ptr().cast_const().cast::<u8>().wrapping_add(Channel::<T>::SLOTS).cast::<Slot<T>>();
        first.wrapping_add(self.core.ring.index(word))
    }

    /// The stamp of the slot of a word; good while the channel is.
    #[inline(always)]
    fn stamp<'c>(self, word: u64) -> &'c AtomicU64 {
        // SAFETY: the index of any word is below the capacity.
        unsafe { &(*self.slot(word)).stamp }
    }

    /// Copies a value into the slot of a claimed position.
    ///
    /// # Safety
    /// The position is claimed and not published; `from` holds a value, which counts as moved.
    #[inline(always)]
    unsafe fn fill(self, word: u64, from: *const Place<T>) {
        // SAFETY: the caller's promise.
        unsafe {
            (*from).with(|from| {
                (*self.slot(word)).value.with_mut(|to| ::core::ptr::copy_nonoverlapping(from, to, 1));
            });
        }
    }

    /// Copies a value out of the slot of a claimed position.
    ///
    /// # Safety
    /// The position is claimed and its value published; the value counts as moved.
    #[inline(always)]
    unsafe fn empty(self, word: u64, to: *const Place<T>) {
        // SAFETY: the caller's promise.
        unsafe {
            (*self.slot(word)).value.with(|from| {
                (*to).with_mut(|to| ::core::ptr::copy_nonoverlapping(from, to, 1));
            });
        }
    }

    /// Has `close` been called, or a side gone?
    pub(crate) fn is_closed(self) -> bool {
        // Ordering: Acquire pairs with Release in `unlock`; who sees CLOSED sees what was done before the close.
        self.core.tail.0.load(Ordering::Acquire) & CLOSED != 0
    }

    /// How many values are buffered: in the ring, in the stash, in the overflow. A snapshot; never more than the capacity
    /// plus what was returned and admitted, never underflows.
    pub(crate) fn len(self) -> usize {
        let (ring, head) = self.ring_len();
        match head & STASH != 0 || self.is_closed() {
            true => self.whole_len(),
            false => ring,
        }
    }

    /// All three under the lock, in one moment: that of the look at the head. A value that moves from one to another
    /// between two looks would be counted twice, or not at all.
    fn whole_len(self) -> usize {
        let tail = self.core.lock();
        // Ordering: Acquire, as for every look at both words.
        let head = self.core.head.0.load(Ordering::Acquire);
        let ring = self.core.ring.distance(head, tail).min(self.core.ring.cap) as usize;
        // SAFETY: the lock is held.
        let beside =
            unsafe { self.stored() + self.returned() } + self.overflow.with(|overflow| unsafe { (*overflow).len() });
        self.core.unlock(tail);
        ring + beside
    }

    /// How many values the ring holds, and the head word of that moment.
    fn ring_len(self) -> (usize, u64) {
        let mut patience = Patience::new();
        loop {
            // Ordering: Acquire (all three); the two looks at the tail bracket the one at the head.
            let tail = self.core.tail.0.load(Ordering::Acquire);
            let head = self.core.head.0.load(Ordering::Acquire);
            // Only positions: a lock that is taken and given back moves nothing.
            if position(self.core.tail.0.load(Ordering::Acquire)) == position(tail) {
                let (distance, cap) = (self.core.ring.distance(head, tail), self.core.ring.cap);
                if cfg!(any(loom, debug_assertions)) {
                    assert!(distance <= cap.saturating_add(1) && distance <= POSITION, "I7: head has passed tail");
                }
                // A slow receive advances the tail before the head: clamp.
                return (distance.min(cap) as usize, head);
            }
            patience.a_little();
        }
    }

    /// Is the ring full? What was returned takes no room.
    pub(crate) fn is_full(self) -> bool {
        if self.core.weighted {
            // Not even the lightest value fits, or it would have to stand in line.
            // Ordering: Relaxed; a snapshot.
            return self.core.head.0.load(Ordering::Relaxed) & TXW != 0 || self.used() == self.limit();
        }
        // Ordering: Relaxed; a guess at which way to look.
        if self.core.tail.0.load(Ordering::Relaxed) & PERMIT == 0 {
            return self.ring_len().0 >= self.capacity();
        }
        let tail = self.core.lock();
        // Ordering: Acquire, as for every look at both words. SAFETY: the lock is held.
        let full = unsafe { self.core.is_full(self.core.head.0.load(Ordering::Acquire), tail) };
        self.core.unlock(tail);
        full
    }

    /// How many values have come back from dropped receives.
    ///
    /// # Safety
    /// Under the lock.
    pub(in crate::flavor) unsafe fn returned(self) -> usize {
        // SAFETY: the caller's promise.
        self.stash.with(|stash| unsafe { (*stash).len() })
    }

    /// How many sends are parked.
    pub(crate) fn parked_senders(self) -> usize {
        self.core.parked().count(Kind::Send)
    }

    /// How many receives are parked.
    pub(crate) fn parked_receivers(self) -> usize {
        self.core.parked().count(Kind::Receive)
    }

    /// Drops everything that is buffered, past panicking destructors, outside the lock. Claimed slots are awaited.
    ///
    /// Each value goes where it stands: it may be too large for the stack of whoever drops the last half, or gives the last
    /// reference back.
    pub(crate) fn drain(self) {
        let mut patience = Patience::new();
        loop {
            if self.core.ring.is_unbounded() && self.drop_from_block() {
                continue;
            }
            // Ordering: Acquire (both), as in `receive_fast` and for `unlock`.
            let head = self.core.head.0.load(Ordering::Acquire);
            let tail = self.core.tail.0.load(Ordering::Acquire);
            if head & STASH != 0 || position(head) == position(tail) {
                if !self.drop_beside_ring() {
                    return;
                }
            } else if self.core.ring.is_unbounded()
                || self.stamp(head).load(Ordering::Acquire) != self.core.ring.full(position(head))
            {
                patience.a_little();
            } else {
                self.drop_first(head);
            }
        }
    }

    /// Drops the value at this head in its slot, if nobody else was quicker to claim it. The channel is closed: no send
    /// waits for the slot while the destructor runs.
    fn drop_first(self, head: u64) {
        let ring = self.core.ring;
        // Ordering: AcqRel, as in `receive_fast`.
        if self.core.head.0.compare_exchange(head, ring.next(head), Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            // SAFETY: the position is claimed, and its value published.
            contain(|| unsafe { (*self.slot(head)).value.with_mut(|value| (*value).assume_init_drop()) });
            // Ordering: Release, as in `receive_fast`.
            self.stamp(head).store(ring.free(position(head)) + ring.lap(), Ordering::Release);
        }
    }

    /// Drops a returned value, what a weighted channel has stored, or an admitted value. False: there is none.
    fn drop_beside_ring(self) -> bool {
        let tail = self.core.lock();
        // SAFETY: the lock is held.
        let (returned, empty, stored) = unsafe {
            let (returned, empty) = self.stash.with_mut(|stash| ((*stash).pop(), (*stash).is_empty()));
            (returned, empty, self.stored())
        };
        let mut admitted = None;
        if returned.is_none() && stored == 0 {
            // SAFETY: as above.
            admitted = self.overflow.with_mut(|overflow| unsafe { (*overflow).pop() });
        } else if returned.is_some() && empty && stored == 0 {
            // Ordering: Release; STASH froze the head, but a plain store would need its position: an RMW.
            self.core.head.0.fetch_and(!STASH, Ordering::Release);
        }
        self.core.unlock(tail);
        let some = returned.is_some() || admitted.is_some() || self.drop_store();
        contain(move || drop(returned));
        if let Some(admitted) = admitted {
            admitted.discard();
        }
        some
    }

    /// What a half shows of the channel. Never blocks for long: it may take the lock to count the stash.
    pub(crate) fn debug(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("closed", &self.is_closed())
            .field("parked_senders", &self.parked_senders())
            .field("parked_receivers", &self.parked_receivers())
            .finish_non_exhaustive()
    }

    /// Gives a reference on the memory back.
    ///
    /// # Safety
    /// The reference is the caller's; no lock is held.
    pub(crate) unsafe fn release(self) {
        // SAFETY: the caller gives its reference back; a channel begins with its core.
        unsafe { Core::give_back(self.0.as_ptr().cast_const().cast()) }
    }
}

const _: () = assert!(offset_of!(Channel<u8>, core) == 0);

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Channel<u8>>() <= 512);
