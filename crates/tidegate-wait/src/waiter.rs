//! The waiter: one blocked operation, as a node of 32 bytes inside the operation's own future.
//!
//! **For:** everything in the workspace that blocks. **Not for:** deciding who waits and who is served; that is the
//! owner's business (a channel, a wait queue, a timer wheel), and so is the lock under which a node moves.
//!
//! # Layout
//! ```text
//! Head   owner: *const OwnerHeader            8   whom the operation waits for
//!        prev:  AtomicPtr   ─ the state ─     8   see below
//!        next:  *mut Links | kind             8   the kind of *this* node in the low three bits
//!        waker: Option<Waker>                16   None: taken by `rouse`
//! ```
//! `next` and `waker` mean something only while the node waits: they are `MaybeUninit`, and an operation that receives
//! may lay its value over them ([`Inbox`](crate::op::Inbox)).
//!
//! # States, all in the word `prev`
//! ```text
//! value              state            low three bits
//! null               Init             0     never parked, or reset by its own task
//! pointer            Waiting          0     the previous node of a circular list (or its sentinel)
//! ticket << 3 | 1    Done(ticket)     1     delivered, served or woken
//! 2                  Closed           2
//! 3                  TimedOut         3
//! 4                  Cancelled        4
//! 5                  Spent            5     the operation gave its result away, or took itself back
//! ```
//!
//! # Transitions
//! ```text
//! from      to          by                                  under the owner's lock
//! Init      Waiting     its task: `List::push_back`          yes
//! Waiting   terminal    anyone: `finish`                     yes; exactly one wins
//! Init      Spent       its task                             no (nobody else knows the node)
//! terminal  Spent|Init  its task                             no (nobody else touches it any more)
//! ```
//!
//! # Invariants
//! - **W1** A node is in a list exactly while its state is Waiting. Links move only under the owner's lock.
//! - **W2** Whoever moves a node out of Waiting has unlinked it, taken its waker and moved its payload before; the
//!   terminal store (Release) is the last touch: right after it the task may free the memory.
//! - **W3** The task reads the word once a poll (Acquire) and matches exhaustively. Read twice, a delivery between the
//!   reads is seen half: the first read says "waiting", the second "done", and the payload is freed by both paths.
//!   (`is_init` asks for nothing of the sort: only the task leaves Init.)
//! - **W4** `waker` is initialized exactly while Waiting.
//!
//! A cancellation is one of the terminal moves: O(1), wherever the node stands.
//! Tests: `tests/waiter.rs`, `tests/loom_wait_queue.rs`.

use core::cell::Cell;
use core::marker::PhantomPinned;
use core::mem::MaybeUninit;
use core::ptr;
use core::task::Waker;

use crate::owner::OwnerHeader;
use crate::shim::{AtomicPtr, Ordering, UnsafeCell};

/// What stands in a wait list. It lives in the low bits of the node's own `next` word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    /// A list's sentinel; no operation.
    Sentinel = 0,
    /// A send that holds its value.
    Send = 1,
    /// A receive that waits for one.
    Receive = 2,
    /// A reservation: a slot without a value.
    Permit = 3,
    /// An operation that keeps its place until it is whole, and has a [`Word`](crate::op::Word) that says what it is and
    /// how much is left: a batch of sends, a reservation of many slots.
    Batch = 4,
    /// An arm of a select: its mover first wins the select's shared word.
    Arm = 5,
    /// A plain wait: a queue, an event, a token.
    Wait = 6,
    /// A sleep: its owner is the timer wheel.
    Sleep = 7,
}

impl Kind {
    const MASK: usize = 7;

    /// The kind whose number (`kind as u8`) this is.
    pub const fn from_number(number: u8) -> Kind {
        Kind::from_bits(number as usize)
    }

    const fn from_bits(bits: usize) -> Kind {
        match bits & Self::MASK {
            1 => Kind::Send,
            2 => Kind::Receive,
            3 => Kind::Permit,
            4 => Kind::Batch,
            5 => Kind::Arm,
            6 => Kind::Wait,
            7 => Kind::Sleep,
            _ => Kind::Sentinel,
        }
    }
}

/// Orders deliveries: the n-th hand-off of its owner. Compared by [`Ticket::before`], so that the 29 bits a 32-bit
/// target has may wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(usize);

impl Ticket {
    const BITS: u32 = usize::BITS - 3;

    /// The ticket numbered `n`, modulo what fits beside the tag.
    #[inline(always)]
    pub const fn new(n: usize) -> Ticket {
        Ticket(n & (usize::MAX >> 3))
    }

    /// Was `self` handed out before `other`? Right while fewer than half of all tickets lie between them: 2^60 on
    /// 64-bit targets, 2^28 on 32-bit ones.
    #[inline]
    pub const fn before(self, other: Ticket) -> bool {
        let distance = other.0.wrapping_sub(self.0) << 3;
        distance != 0 && distance >> (Self::BITS + 2) == 0
    }
}

/// The state of a waiter, as its task reads it: once a poll (W3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not parked.
    Init,
    /// Parked in its owner's list.
    Waiting,
    /// Delivered, with the ticket of the hand-off.
    Done(Ticket),
    /// The owner closed.
    Closed,
    /// A limit in time ended the wait.
    TimedOut,
    /// A token ended the wait.
    Cancelled,
    /// The result is gone; nothing is left to do.
    Spent,
}

impl State {
    #[inline(always)]
    fn decode(word: *mut Links) -> State {
        match word.addr() & Kind::MASK {
            0 if word.is_null() => State::Init,
            0 => State::Waiting,
            1 => State::Done(Ticket(word.addr() >> 3)),
            2 => State::Closed,
            3 => State::TimedOut,
            4 => State::Cancelled,
            _ => State::Spent,
        }
    }

    #[inline(always)]
    fn encode(self) -> *mut Links {
        ptr::without_provenance_mut(match self {
            State::Init => 0,
            State::Done(ticket) => ticket.0 << 3 | 1,
            State::Closed => 2,
            State::TimedOut => 3,
            State::Cancelled => 4,
            // Waiting is a pointer and never stored through here; `finish` asserts it.
            State::Spent | State::Waiting => 5,
        })
    }
}

/// Both links of a node, and all of a list's sentinel.
#[repr(C, align(8))]
#[derive(Debug)]
pub struct Links {
    /// The back link while Waiting, else the state. Written under the owner's lock, or by the task that nobody else
    /// knows; read by the task without it.
    pub(crate) prev: AtomicPtr<Links>,
    /// The forward link and this node's kind. Under the owner's lock only.
    next: UnsafeCell<MaybeUninit<*mut Links>>,
}

impl Links {
    #[inline(always)]
    pub(crate) fn new() -> Links {
        Links { prev: AtomicPtr::new(ptr::null_mut()), next: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// # Safety
    /// Under the owner's lock; `next` has been set.
    #[inline(always)]
    unsafe fn next_word(&self) -> *mut Links {
        // SAFETY: the caller's promise.
        self.next.with(|next| unsafe { (*next).assume_init() })
    }

    /// # Safety
    /// Under the owner's lock; `next` has been set.
    #[inline(always)]
    pub(crate) unsafe fn next(&self) -> *mut Links {
        // SAFETY: the caller's promise.
        unsafe { self.next_word() }.map_addr(|addr| addr & !Kind::MASK)
    }

    /// # Safety
    /// Under the owner's lock; `next` has been set.
    #[inline(always)]
    pub(crate) unsafe fn kind(&self) -> Kind {
        // SAFETY: the caller's promise.
        Kind::from_bits(unsafe { self.next_word() }.addr())
    }

    /// Sets link and kind.
    ///
    /// # Safety
    /// Under the owner's lock.
    #[inline(always)]
    pub(crate) unsafe fn init_next(&self, next: *mut Links, kind: Kind) {
        // SAFETY: the lock makes this the only access.
        self.next.with_mut(|word| unsafe { (*word).write(next.map_addr(|addr| addr | kind as usize)) });
    }

    /// Sets the link and keeps the kind.
    ///
    /// # Safety
    /// Under the owner's lock; `next` has been set.
    #[inline(always)]
    pub(crate) unsafe fn set_next(&self, next: *mut Links) {
        // SAFETY: the lock makes this the only access.
        self.next.with_mut(|word| unsafe {
            let kind = (*word).assume_init().addr() & Kind::MASK;
            (*word).write(next.map_addr(|addr| addr | kind));
        });
    }
}

/// One blocked operation, without its owner and its payload.
#[repr(C)]
#[derive(Debug)]
pub struct Node {
    pub(crate) links: Links,
    waker: UnsafeCell<MaybeUninit<Option<Waker>>>,
    _pinned: PhantomPinned,
}

impl Node {
    /// A node in state Init. Only its state is written.
    #[inline(always)]
    pub fn new() -> Node {
        Node { links: Links::new(), waker: UnsafeCell::new(MaybeUninit::uninit()), _pinned: PhantomPinned }
    }

    /// Writes the last word of a node that nobody knows yet. What stands behind it in an operation is then moved apart from
    /// it: with a gap of unwritten bytes in front of it, compilers copy a large payload along with the gap, once more.
    #[inline(always)]
    pub(crate) fn part(&self) {
        const { assert!(size_of::<Option<Waker>>() == 2 * size_of::<usize>()) };
        // SAFETY: the place has room for a waker, which is two words; unwritten as before, to whoever asks for a waker.
        self.waker.with_mut(|waker| unsafe { waker.cast::<[usize; 2]>().cast::<usize>().add(1).write(0) });
    }

    /// The state, for the operation's own task.
    #[inline(always)]
    pub fn state(&self) -> State {
        // Ordering: Acquire pairs with Release in `finish`; makes the payload and the end of all foreign touches visible.
        State::decode(self.links.prev.load(Ordering::Acquire))
    }

    /// Has nothing happened to it yet? For the operation's own task, which alone leaves that state: cheaper than to ask for
    /// the state, for an operation that never waits.
    #[inline(always)]
    pub(crate) fn is_init(&self) -> bool {
        // Ordering: Relaxed; the task's own store, or one that the task has seen.
        self.links.prev.load(Ordering::Relaxed).is_null()
    }

    /// Is the node parked? For the holder of its owner's lock, under which the answer stands.
    #[inline(always)]
    pub fn is_waiting(&self) -> bool {
        // Ordering: Relaxed; every move into and out of Waiting happens under the lock that the caller holds.
        State::decode(self.links.prev.load(Ordering::Relaxed)) == State::Waiting
    }

    /// The kind it was parked as.
    ///
    /// # Safety
    /// Under the owner's lock, while Waiting.
    #[inline(always)]
    pub unsafe fn kind(&self) -> Kind {
        // SAFETY: a waiting node's `next` is set (W1).
        unsafe { self.links.kind() }
    }

    /// Stores the first waker of a park.
    ///
    /// # Safety
    /// Under the owner's lock; the node is about to become Waiting.
    #[inline(always)]
    pub(crate) unsafe fn put_waker(&self, waker: Waker) {
        // SAFETY: the lock makes this the only access; nothing initialized is overwritten (W4).
        self.waker.with_mut(|slot| unsafe { (*slot).write(Some(waker)) });
    }

    /// Takes the waker of a node that is about to leave Waiting; the slot counts as uninitialized afterwards (W4).
    ///
    /// # Safety
    /// Under the owner's lock, while Waiting, once a wait.
    #[inline(always)]
    pub unsafe fn take_waker(&self) -> Option<Waker> {
        // SAFETY: W4, and the lock.
        self.waker.with(|slot| unsafe { (*slot).assume_init_read() })
    }

    /// Exchanges the waker of a node that goes on waiting.
    ///
    /// # Safety
    /// Under the owner's lock, while Waiting.
    #[inline]
    pub(crate) unsafe fn exchange_waker(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: W4, and the lock.
        self.waker.with_mut(|slot| unsafe { core::mem::replace((*slot).assume_init_mut(), waker) })
    }

    /// Would `waker` wake the same task as the stored one? `None`: the stored one was taken by `rouse`.
    ///
    /// # Safety
    /// Under the owner's lock, while Waiting.
    #[inline]
    pub unsafe fn same_waker(&self, waker: &Waker) -> Option<bool> {
        // SAFETY: W4, and the lock. `will_wake` compares two pointers; it runs nothing of the user's.
        self.waker.with(|slot| unsafe { (*slot).assume_init_ref() }.as_ref().map(|stored| stored.will_wake(waker)))
    }

    /// Moves the node out of Waiting. The last touch (W2).
    ///
    /// # Safety
    /// Under the owner's lock; the node waited, is unlinked, and its waker and payload have been moved.
    #[inline(always)]
    pub unsafe fn finish(&self, state: State) {
        debug_assert!(!matches!(state, State::Init | State::Waiting));
        // Ordering: Release pairs with Acquire in `state`; makes a delivered payload visible to the task.
        self.links.prev.store(state.encode(), Ordering::Release);
    }

    /// Marks a node that stands in no list as waiting: its own address serves as the back link.
    ///
    /// # Safety
    /// Under the owner's lock, in state Init.
    pub unsafe fn wait_unlinked(&self, kind: Kind, waker: Waker) {
        // SAFETY: the caller's promise.
        unsafe {
            self.put_waker(waker);
            self.links.init_next(ptr::null_mut(), kind);
        }
        // Ordering: Relaxed; only the task and holders of the lock look for Waiting.
        self.links.prev.store(ptr::from_ref(&self.links).cast_mut(), Ordering::Relaxed);
    }

    /// Sets the state of a node that nobody else knows: before a park, or after the terminal store was seen.
    #[inline(always)]
    pub fn set_quiet(&self, state: State) {
        debug_assert!(state != State::Waiting);
        // Ordering: Relaxed; no other thread reads the word until the next park, which happens under the owner's lock.
        self.links.prev.store(state.encode(), Ordering::Relaxed);
    }
}

impl Default for Node {
    fn default() -> Self {
        Node::new()
    }
}

/// Under loom the end of a node counts as an access: whoever touches it after the terminal store (W2) is reported, although
/// loom does not know that memory is freed.
#[cfg(loom)]
impl Drop for Node {
    fn drop(&mut self) {
        self.waker.with_mut(|_| ());
        self.links.next.with_mut(|_| ());
    }
}

/// What every operation begins with, at a distance from its limits that does not depend on its payload.
#[repr(C)]
#[derive(Debug)]
pub struct Head {
    /// Written by the task while the node is in no list, wheel or token; constant while it is.
    owner: Cell<*const OwnerHeader>,
    /// The waiter.
    pub node: Node,
}

impl Head {
    /// The head of an operation on `owner`.
    #[inline(always)]
    pub fn new(owner: *const OwnerHeader) -> Head {
        Head { owner: Cell::new(owner), node: Node::new() }
    }

    /// Whom the operation waits for.
    #[inline(always)]
    pub fn owner(&self) -> *const OwnerHeader {
        self.owner.get()
    }

    /// Chooses the owner at the park (a sleep learns its wheel then).
    #[inline]
    pub(crate) fn set_owner(&self, owner: *const OwnerHeader) {
        self.owner.set(owner);
    }
}

#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = {
    assert!(size_of::<Node>() == 32);
    assert!(size_of::<Head>() == 40);
};
