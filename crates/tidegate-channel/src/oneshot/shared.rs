//! What both halves share: a word of flags, a place for the value, a list of who waits.
//!
//! **For:** one value from one sender to one receiver, in one allocation. **Not for:** a second value, clones of a half,
//! or a send that waits: there is room, or nobody will ever receive.
//!
//! # The idea
//! The value stays in the channel until the receiver takes it; what a send hands to a parked receive is the news alone.
//! So a receive is 40 bytes whatever it waits for, one that is dropped after it was told has nothing to give back, and
//! one that was forgotten swallows nothing.
//!
//! # State
//! ```text
//! header, free   constant                                                                  8 + 8
//! word           flags, and the lock over `parked`: whoever has LOCK writes it              8
//! refs           anyone, by atomic counts: the halves, and wheels and tokens that           8
//!                know of a parked operation
//! parked         the lock holder                                                            16
//! value          the sender until VALUE is set; afterwards the receiver
//!
//! word:   4 PARKED   3 RX_CLOSED   2 TX_GONE   1 VALUE   0 LOCK
//! ```
//! In one list stand receives and waits for the close. They are never mixed up: a receive that is parked while the
//! *receiver* closes was forgotten, since it borrows the receiver exclusively, or has it as its own; and so was a
//! wait for the close that is parked while the *sender* sends or goes, since it borrows the sender. Nobody will ever
//! ask a forgotten operation how it ended. So whoever changes the word may end everything in the list.
//!
//! # Valid words, while the lock is free
//! ```text
//! word                         meaning                                          receive     send
//! 0                            open                                             parks       succeeds
//! PARKED                       open, somebody waits                             parks       succeeds, wakes
//! VALUE TX_GONE                sent                                             takes it    (no sender)
//! TX_GONE                      the sender went, or the value was taken          Closed      (no sender)
//! RX_CLOSED                    the receiver closed or went                      Closed      refused
//! RX_CLOSED TX_GONE            both                                             Closed      (no sender)
//! RX_CLOSED VALUE TX_GONE      sent, then closed                                takes it    (no sender)
//! ```
//! PARKED beside another flag: more than [`BATCH`] were parked (forgotten ones), and whoever set the flag is on his way.
//!
//! # Transitions
//! ```text
//! by                                   word                         parked operations     how
//! send                [`Core::raise`]  + VALUE TX_GONE - PARKED     Done                  CAS from 0, else LOCK
//!   if RX_CLOSED                       unchanged                                          LOCK
//! drop of the sender  [`Core::raise`]  + TX_GONE - PARKED           Closed                as above
//! close, drop of the  [`Core::raise`]  + RX_CLOSED - PARKED         Done                  as above
//!   receiver
//! a receive, the drop [`Core::claim`]  - VALUE                                            CAS, else LOCK
//!   of the receiver
//! a park              [`Core::park`]   + PARKED, from 0 or PARKED   Waiting               LOCK
//! timer, token, drop  `detach`         - PARKED if the last         TimedOut, Cancelled,  LOCK
//!   of an operation                                                 gone
//! ```
//!
//! # Invariants
//! - **H1** PARKED ⇔ the list is not empty, whenever the lock is free.
//! - **H2** While LOCK is set only its holder changes the word, by plain stores: everybody else's change is a CAS from a
//!   word without LOCK.
//! - **H3** VALUE ⇔ the place holds a value. It is set once, by the sender's last act; only the receiver clears it, or an
//!   operation that has or exclusively borrows the receiver. So between the look that sees it and the claim nobody else
//!   takes the value.
//! - **H4** No flag but PARKED and LOCK is ever unset, except VALUE.
//! - **H5** A flag is in the word before any operation is ended because of it: the task that learns of the end finds the
//!   flag. (Ended first, the task might look between the end and the unlock, and find a channel that is closed and not
//!   closed, or a delivery without a value.)
//! - **H6** When the last reference goes there is no value: a send is refused once the receiver is gone, and the receiver's
//!   drop drops what is there. So nothing of `T` outlives the halves, whatever keeps the memory.
//!
//! # A cancellation
//! Unlinks the node: O(1). Nobody else is affected, and the word keeps its meaning: a value that comes later waits for the
//! next receive.
//!
//! # References
//! The lock as a bit of the word that the fast path's CAS validates: as in the bounded channel.
//! Tests: `tests/oneshot.rs`, `tests/oneshot_allocations.rs`, `tests/loom_oneshot.rs`.
//!
//! [`BATCH`]: tidegate_wait::wake_batch::BATCH

use alloc::boxed::Box;
use core::mem::offset_of;
use core::ops::Deref;
use core::ptr::NonNull;
use core::task::Waker;

use tidegate_wait::debt::Debt;
use tidegate_wait::list::List;
use tidegate_wait::op::Place;
use tidegate_wait::origin::Origin;
use tidegate_wait::owner::{Owner, OwnerHeader, RefCount};
use tidegate_wait::shim::{AtomicUsize, Ordering, Patience};
use tidegate_wait::waiter::{Kind, Node, State, Ticket};
use tidegate_wait::wake_batch::{contain, discard, WakeBatch};

/// Somebody is at work on the list.
const LOCK: usize = 1;
/// The place holds a value (H3).
pub(super) const VALUE: usize = 1 << 1;
/// The sender has sent or was dropped.
pub(super) const TX_GONE: usize = 1 << 2;
/// The receiver was closed or dropped: nothing will be accepted.
pub(super) const RX_CLOSED: usize = 1 << 3;
/// The list is not empty (H1).
const PARKED: usize = 1 << 4;

/// The part that does not depend on the payload: a timer or a token settles a wait with this alone.
#[repr(C)]
#[derive(Debug)]
pub struct Core {
    header: OwnerHeader,
    /// Frees the channel that this core begins.
    free: unsafe fn(*const Core),
    word: AtomicUsize,
    refs: RefCount,
    parked: List,
    /// Where it was made, for a runtime's reports.
    origin: Origin,
}

// SAFETY: `header` comes first; LOCK excludes other holders (H2); `refs` counts whoever may touch the memory.
unsafe impl Owner for Core {
    /// The word as it will be stored at the end of the hold, without LOCK.
    type Hold<'a> = usize;
    const NAME: &'static str = "oneshot channel";

    fn origin(&self) -> Origin {
        self.origin
    }

    fn lock(&self) -> usize {
        let mut patience = Patience::new();
        loop {
            // Ordering: Acquire pairs with Release in `unlock`; makes the list visible.
            let word = self.word.fetch_or(LOCK, Ordering::Acquire);
            if word & LOCK == 0 {
                return word;
            }
            // Ordering: Relaxed to look; the read-modify-write above has the Acquire.
            while self.word.load(Ordering::Relaxed) & LOCK != 0 {
                patience.a_little();
            }
        }
    }

    fn unlock(&self, word: usize) {
        debug_assert!(word & LOCK == 0);
        self.store(word);
    }

    unsafe fn detach(&self, word: &mut usize, node: *const Node, _: &mut WakeBatch) {
        // SAFETY: a waiting node is linked, and the lock is held.
        unsafe {
            List::unlink(node);
            if self.parked.is_empty() {
                *word &= !PARKED;
            }
        }
    }

    unsafe fn retain(&self) {
        self.refs.add();
    }

    unsafe fn release(this: *const Core) -> Option<NonNull<Debt>> {
        // SAFETY: the caller gives its reference back.
        unsafe {
            if (*this).refs.sub() {
                ((*this).free)(this);
            }
        }
        None
    }
}

impl Core {
    /// Stores the word that the caller has locked (H2).
    ///
    /// Loom needs a read-modify-write: it does not know that nothing can come between a `fetch_or` and a store of its
    /// thread, and lets the locker read its own, older word for ever.
    fn store(&self, word: usize) {
        // Ordering: Release pairs with Acquire in `lock` and `word`; makes list and value visible.
        #[cfg(not(loom))]
        self.word.store(word, Ordering::Release);
        #[cfg(loom)]
        self.word.swap(word, Ordering::Release);
    }

    /// The flags. LOCK may be among them.
    #[inline]
    pub(super) fn word(&self) -> usize {
        // Ordering: Acquire pairs with Release in `raise` and `store`; who sees a flag sees what was done before: VALUE, the
        // value.
        self.word.load(Ordering::Acquire)
    }

    /// Sets `flags`, unless one of `unless` is set, and ends everything that is parked as `end`, in order. Returns the word
    /// as it was before.
    pub(super) fn raise(&self, flags: usize, unless: usize, end: State) -> usize {
        // Ordering: Release pairs with Acquire in `word` and `lock`; makes the value visible. Relaxed on failure: `lock` looks
        // again. A word of 0 says that nobody is parked and nothing is to be read.
        if self.word.compare_exchange(0, flags, Ordering::Release, Ordering::Relaxed).is_ok() {
            return 0;
        }
        let before = self.lock();
        if before & unless != 0 {
            self.unlock(before);
        } else {
            self.end_parked(before | flags, end);
        }
        before
    }

    /// The end of a hold: stores `word`, ends everything that is parked, unlocks, wakes.
    fn end_parked(&self, mut word: usize, end: State) {
        let mut batch = WakeBatch::new();
        loop {
            // H5.
            self.store(word | LOCK);
            // SAFETY: the lock is held. From a word with a flag on nobody parks, so the list only gets shorter.
            let done = unsafe {
                while batch.has_room() {
                    let Some(node) = self.parked.pop_front() else { break };
                    batch.push((*node).take_waker());
                    (*node).finish(end);
                }
                self.parked.is_empty()
            };
            self.unlock(if done { word & !PARKED } else { word });
            batch.run();
            if done {
                return;
            }
            word = self.lock();
        }
    }

    /// Takes the value for the receiver: afterwards it is the caller's to read or drop in its place, once.
    ///
    /// # Safety
    /// By who has or exclusively borrows the receiver (H3); `word` was read just now, and VALUE is set in it.
    #[inline]
    unsafe fn claim(&self, word: usize) {
        debug_assert!(word & VALUE != 0);
        // Ordering: Relaxed (both); the look had the Acquire, and nobody waits for this step. As a read-modify-write it
        // leaves what was Released before it visible to the next lock holder.
        let taken = word & LOCK == 0
            && self.word.compare_exchange(word, word & !VALUE, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !taken {
            // A sender that has not unlocked yet, or a timer or a token that comes too late.
            let word = self.lock();
            self.unlock(word & !VALUE);
        }
    }

    /// Parks `node`; false: there is a reason not to wait.
    ///
    /// # Safety
    /// `node` is an operation on this core, pinned, in state Init.
    pub(super) unsafe fn park(&self, node: *const Node, kind: Kind, waker: &Waker) -> bool {
        // Cloned before the lock is taken (G5).
        let waker = waker.clone();
        let word = self.lock();
        if word & !PARKED != 0 {
            self.unlock(word);
            discard(Some(waker));
            return false;
        }
        // SAFETY: the caller's promise; the lock is held.
        unsafe { self.parked.push_back(node, kind, waker) };
        self.unlock(PARKED);
        true
    }
}

/// What a receive found.
#[must_use]
#[derive(Debug)]
pub(super) enum Taken<T> {
    /// The value.
    Value(T),
    /// There is none, and none will come.
    Closed,
    /// There is none yet.
    Empty,
}

/// A channel: one allocation.
#[repr(C)]
pub(super) struct Channel<T> {
    core: Core,
    /// H3.
    value: Place<T>,
}

const _: () = assert!(offset_of!(Channel<u8>, core) == 0);

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Core>() == 56);

impl<T> Channel<T> {
    /// An open channel with two references: one for each half.
    pub(super) fn create(origin: Origin) -> NonNull<Channel<T>> {
        let memory = NonNull::from(Box::leak(Box::<Channel<T>>::new_uninit())).cast::<Channel<T>>();
        // SAFETY: fresh memory, written field by field: a channel on the stack would be as large as the payload. The place
        // may stay uninitialized; loom's cell is more than its content.
        unsafe {
            let channel = memory.as_ptr();
            (&raw mut (*channel).core).write(Core {
                header: OwnerHeader::of::<Core>(),
                free: Self::free,
                word: AtomicUsize::new(0),
                refs: RefCount::new(2),
                parked: List::new(),
                origin,
            });
            #[cfg(loom)]
            (&raw mut (*channel).value).write(tidegate_wait::shim::UnsafeCell::new(core::mem::MaybeUninit::uninit()));
            (*channel).core.parked.init();
        }
        memory
    }

    /// # Safety
    /// `core` begins a `Channel<T>` on which nobody has a reference.
    unsafe fn free(core: *const Core) {
        // SAFETY: made by `create`; there is no value in it (H6).
        let channel = unsafe { Box::from_raw(core.cast_mut().cast::<Channel<T>>()) };
        debug_assert!(channel.core.word() & VALUE == 0, "H6");
        drop(channel);
    }
}

/// A channel, by a pointer to the whole allocation.
pub(super) struct Handle<T>(NonNull<Channel<T>>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> Deref for Handle<T> {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        // SAFETY: `new`'s caller keeps the channel alive.
        unsafe { &self.0.as_ref().core }
    }
}

impl<T> Handle<T> {
    /// # Safety
    /// The pointer is the one that `create` returned, unchanged but for casts; the channel is alive as long as the handle
    /// is used.
    #[inline]
    pub(super) unsafe fn new(channel: NonNull<Channel<T>>) -> Handle<T> {
        Handle(channel)
    }

    /// Whom an operation on the channel waits for.
    pub(super) fn owner(self) -> *const OwnerHeader {
        self.0.as_ptr().cast_const().cast()
    }

    #[inline]
    fn place(&self) -> &Place<T> {
        // SAFETY: as in `deref`.
        unsafe { &self.0.as_ref().value }
    }

    /// Sends the value, or gives it back. The caller's half counts as gone if it was sent, but for its reference.
    ///
    /// # Safety
    /// By the sender, once.
    pub(super) unsafe fn send(self, value: T) -> Result<(), T> {
        // The likely case of a refusal, before a large value is moved.
        if self.word() & RX_CLOSED != 0 {
            return Err(value);
        }
        // Outside the lock: until VALUE is set the place is the sender's (H3).
        // SAFETY: there is no value to overwrite.
        self.place().with_mut(|place| unsafe { (*place).write(value) });
        if self.raise(VALUE | TX_GONE, RX_CLOSED, State::Done(Ticket::new(0))) & RX_CLOSED == 0 {
            return Ok(());
        }
        // SAFETY: VALUE was not set, so what was written above is still the sender's.
        Err(self.place().with(|place| unsafe { (*place).assume_init_read() }))
    }

    /// Takes the value, if there is one.
    ///
    /// # Safety
    /// By who has or exclusively borrows the receiver.
    #[inline]
    pub(super) unsafe fn take(self) -> Taken<T> {
        let word = self.word();
        if word & VALUE != 0 {
            // SAFETY: the caller's promise; claimed, so read once, and the sender's write is visible.
            return Taken::Value(unsafe {
                self.claim(word);
                self.place().with(|place| (*place).assume_init_read())
            });
        }
        match word & (TX_GONE | RX_CLOSED) {
            0 => Taken::Empty,
            _ => Taken::Closed,
        }
    }

    /// The end of the receiver, but for its reference: later sends are refused, what was sent is dropped, past a
    /// panicking destructor, in its place and outside the lock.
    ///
    /// # Safety
    /// As above.
    pub(super) unsafe fn abandon(self) {
        // Without a sender nobody would notice the flag.
        if self.word() & TX_GONE == 0 {
            self.raise(RX_CLOSED, 0, State::Done(Ticket::new(0)));
        }
        let word = self.word();
        if word & VALUE != 0 {
            // SAFETY: the caller's promise; claimed, so dropped once.
            unsafe { self.claim(word) };
            // SAFETY: as above.
            contain(|| self.place().with_mut(|place| unsafe { (*place).assume_init_drop() }));
        }
    }

    /// Gives a half's reference on the memory back.
    ///
    /// # Safety
    /// The reference is the caller's, who does not use the handle afterwards.
    pub(super) unsafe fn release(self) {
        // SAFETY: the caller's promise; a channel begins with its core.
        let _owes_nothing = unsafe { Core::release(self.0.as_ptr().cast_const().cast()) };
    }

    /// What a half shows of the channel. It takes no lock.
    pub(super) fn debug(self, name: &str, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let word = self.word();
        f.debug_struct(name)
            .field("value", &(word & VALUE != 0))
            .field("closed", &(word & (TX_GONE | RX_CLOSED) != 0))
            .field("waiting", &(word & PARKED != 0))
            .finish()
    }
}
