//! The token tree: what is linked where, and how a cancellation runs through it.
//!
//! # One token
//! ```text
//! waiters    a queue core: reference count, and who awaits `cancelled()`     its own lock: a leaf
//! cancelled  set once, read without a lock
//! children, entries, callbacks, reason                                       the token's lock
//! siblings   the place among the parent's children                           the *parent's* lock
//! parent     a strong reference, given back when the token is freed
//! ```
//!
//! # Invariants
//! - **C1** Lock order: a token's lock → a wheel's → an owner's (a channel, a queue, this or another token's waiters).
//!   Two tokens' locks are never held at once: a cancellation walks the tree with a work list, not with its stack.
//! - **C2** `cancelled` is set under the lock. Under it, a registration sees either "not yet", and the cancellation will
//!   find its entry, or "cancelled", and it fails.
//! - **C3** All descendants are marked before the first operation is settled, the first callback run or the first task
//!   woken: whoever is told by a cancellation finds everything below its token cancelled, also where another thread is on
//!   its way through a part of the tree. (Who asks a token himself, by a poll or by registering a callback late, learns
//!   of that token alone.) A child leaves its parent's list only when it is marked and its own list is empty, so a
//!   parent's empty list says that everything below is marked, whoever did it.
//! - **C4** A linked child is alive while the parent's lock is held: to be freed it must unlink itself under that lock.
//! - **C5** A linked entry holds a reference on its operation's owner; whoever unlinks it takes the reference over.
//!
//! Tests: `tests/cancel.rs`, `tests/loom_cancel.rs`.

use core::cell::Cell;
use core::ptr::NonNull;

use super::reason::Reason;
use crate::op::entry::{head_of, unlink, EntryLinks, EntryList, ENTRY_SIZE};
use crate::owner::{Held, OwnerHeader, OwnerVTable};
use crate::shim::{AtomicBool, Guard, Lock, Ordering};
use crate::wait_queue::QueueCore;
use crate::waiter::{Head, State};
use crate::wake_batch::WakeBatch;

/// An operation's place in a token: 24 bytes in front of the operation.
///
/// ```text
/// word   the token, and in its low bits:  1 OWNED: a reference on the token   2 ARMED: has been linked
/// ```
/// `word` is the task's; the links are under the token's lock.
#[repr(C, align(8))]
#[derive(Debug)]
pub(crate) struct TokenEntry {
    links: EntryLinks,
    token: Cell<*const TokenNode>,
    /// On targets with 32-bit pointers the entry must fill its 24 bytes.
    _fill: [u32; FILL],
}

const FILL: usize = (ENTRY_SIZE - size_of::<[usize; 3]>()) / 4;

const _: () = assert!(size_of::<TokenEntry>() == ENTRY_SIZE);

const OWNED: usize = 1;
const ARMED: usize = 2;

impl TokenEntry {
    #[inline(always)]
    pub(crate) fn new(token: *const TokenNode, owned: bool) -> TokenEntry {
        let token = token.map_addr(|addr| addr | if owned { OWNED } else { 0 });
        TokenEntry { links: EntryLinks::new(0), token: Cell::new(token), _fill: [0; FILL] }
    }

    #[inline(always)]
    pub(crate) fn token(&self) -> *const TokenNode {
        self.token.get().map_addr(|addr| addr & !(OWNED | ARMED))
    }

    #[inline(always)]
    pub(crate) fn is_owned(&self) -> bool {
        self.token.get().addr() & OWNED != 0
    }

    #[inline(always)]
    fn is_armed(&self) -> bool {
        self.token.get().addr() & ARMED != 0
    }

    /// Registers the operation. False: the token is cancelled already.
    ///
    /// # Safety
    /// By the operation's task, parked; `this` stands `depth` entries in front of its head, whose owner is `owner`, and
    /// is derived from a pointer to the whole operation. The token is alive.
    pub(crate) unsafe fn arm(this: *mut TokenEntry, owner: *const OwnerHeader, depth: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            let token = &*(*this).token();
            let _hold = token.lock();
            // C2.
            if token.is_cancelled() {
                return false;
            }
            let _standing = Held::new(owner).into_raw();
            (&raw mut (*this).links).write(EntryLinks::new(depth));
            token.entries.push_back(this);
            (*this).token.set((*this).token.get().map_addr(|addr| addr | ARMED));
            true
        }
    }

    /// Takes the entry out, if it was ever linked; afterwards no token touches the operation.
    ///
    /// # Safety
    /// By the operation's task; `owner` is the one it was armed for. The token is alive.
    #[inline]
    pub(crate) unsafe fn disarm(this: *mut TokenEntry, owner: *const OwnerHeader) {
        // SAFETY: the caller's promise.
        unsafe {
            if !(*this).is_armed() {
                return;
            }
            let hold = (*(*this).token()).lock();
            let linked = unlink(this.cast()).is_some();
            drop(hold);
            (*this).token.set((*this).token.get().map_addr(|addr| addr & !ARMED));
            if linked {
                // C5.
                drop(Held::from_raw(owner));
            }
        }
    }
}

/// A token. Its references are counted by `waiters`, with which it begins.
#[repr(C)]
pub(crate) struct TokenNode {
    pub(super) waiters: QueueCore<()>,
    cancelled: AtomicBool,
    /// The lock, and the reason under it. The lists are under it too, but not inside: a `&mut` to what a lock guards
    /// would claim the sentinels, to which the entries point.
    pub(super) reason: Lock<Option<Reason>>,
    children: EntryList<EntryLinks>,
    entries: EntryList<TokenEntry>,
    #[cfg(feature = "std")]
    pub(super) callbacks: EntryList<super::callback::Callback>,
    /// Under the parent's lock.
    siblings: EntryLinks,
    /// A strong reference, or null. Constant.
    parent: *const TokenNode,
    /// The next one to tell, in the work list of the cancellation that marked this token.
    next_marked: Cell<*const TokenNode>,
}

// SAFETY: the lists are under the token's lock, `siblings` under the parent's; `next_marked` belongs to the one cancellation that set `cancelled`;
// `parent` is constant.
unsafe impl Send for TokenNode {}
// SAFETY: as above.
unsafe impl Sync for TokenNode {}

impl TokenNode {
    /// A token with one reference, which is the caller's. Takes over a reference on `parent`.
    pub(super) fn create(parent: *const TokenNode) -> *const TokenNode {
        let node = alloc::boxed::Box::into_raw(alloc::boxed::Box::new(TokenNode {
            // SAFETY: a table of the queue's own type, in static memory.
            waiters: QueueCore::with_header(unsafe { OwnerHeader::with_table(TABLE) }, free),
            cancelled: AtomicBool::new(false),
            reason: Lock::new(None),
            children: EntryList::new(),
            entries: EntryList::new(),
            #[cfg(feature = "std")]
            callbacks: EntryList::new(),
            siblings: EntryLinks::new(0),
            parent,
            next_marked: Cell::new(core::ptr::null()),
        }));
        // SAFETY: just made.
        let token = unsafe { &*node };
        token.waiters.init();
        token.children.init();
        token.entries.init();
        #[cfg(feature = "std")]
        token.callbacks.init();
        // SAFETY: the caller's reference keeps the parent alive.
        if let Some(parent) = unsafe { parent.as_ref() } {
            parent.adopt(node);
        }
        node
    }

    fn adopt(&self, child: *const TokenNode) {
        let hold = self.lock();
        // SAFETY: the child is alive and in no list.
        unsafe {
            if self.is_cancelled() {
                let reason = hold.clone();
                drop(hold);
                let marked = (*child).mark(reason);
                debug_assert!(marked);
                (*child).waiters.close();
            } else {
                self.children.push_back((&raw const (*child).siblings).cast_mut());
            }
        }
    }

    #[inline(always)]
    pub(crate) fn is_cancelled(&self) -> bool {
        // Ordering: Acquire pairs with Release in `mark`; makes what the canceller did before visible.
        self.cancelled.load(Ordering::Acquire)
    }

    /// Sets the mark (C2). False: it was set.
    fn mark(&self, reason: Option<Reason>) -> bool {
        let mut hold = self.lock();
        if self.is_cancelled() {
            drop(hold);
            // A reason's destructor is code of the user.
            crate::wake_batch::contain(move || drop(reason));
            return false;
        }
        *hold = reason;
        // Ordering: Release pairs with Acquire in `is_cancelled`.
        self.cancelled.store(true, Ordering::Release);
        true
    }

    /// Cancels this token and everything below it. False: somebody was first.
    pub(super) fn cancel(&self, reason: Option<Reason>) -> bool {
        let first = self.mark(reason.clone());
        if first {
            // SAFETY: just marked by this call.
            unsafe {
                self.mark_descendants(reason.as_ref());
                self.tell_marked();
            }
        }
        // A reason's destructor is code of the user, and this may be the last one.
        crate::wake_batch::contain(move || drop(reason));
        first
    }

    /// C3: marks all descendants, and links those that this call was first to mark behind this token. The walk keeps to
    /// the tree's own links: down to the first child, up when there is none left.
    ///
    /// # Safety
    /// By the call that marked this token, once.
    unsafe fn mark_descendants(&self, reason: Option<&Reason>) {
        let mut last: *const TokenNode = self;
        let mut at: *const TokenNode = self;
        // SAFETY: the walk holds a reference on every token between here and `at`, the work list one on each in it.
        unsafe {
            loop {
                if let Some(child) = (*at).first_child() {
                    if (*child).mark(reason.cloned()) {
                        (*child).waiters.refs().add();
                        (*last).next_marked.set(child);
                        last = child;
                    }
                    at = child;
                } else if core::ptr::eq(at, self) {
                    return;
                } else {
                    let parent = (*at).parent;
                    let hold = (*parent).lock();
                    // Another walk may have been here.
                    unlink((&raw const (*at).siblings).cast_mut());
                    drop(hold);
                    release(at);
                    at = parent;
                }
            }
        }
    }

    /// Tells this token's waits and those of the work list behind it.
    ///
    /// # Safety
    /// After `mark_descendants`, once.
    unsafe fn tell_marked(&self) {
        self.tell();
        let mut at = self.next_marked.get();
        // SAFETY: the list's references, given back here.
        unsafe {
            while let Some(token) = at.as_ref() {
                token.tell();
                let next = token.next_marked.get();
                release(at);
                at = next;
            }
        }
    }

    /// The first child, with a reference on it. One that is being freed is passed over.
    fn first_child(&self) -> Option<*const TokenNode> {
        let _hold = self.lock();
        while let Some(links) = self.children.front() {
            // SAFETY: a linked child is alive under this lock (C4).
            unsafe {
                let child = links.byte_sub(core::mem::offset_of!(TokenNode, siblings)).cast_const().cast::<TokenNode>();
                if (*child).waiters.refs().add_unless_zero() {
                    return Some(child);
                }
                unlink(links);
            }
        }
        None
    }

    /// Ends the operations that are registered, runs the callbacks, wakes who awaits `cancelled()`.
    fn tell(&self) {
        let mut batch = WakeBatch::new();
        loop {
            let hold = self.lock();
            // SAFETY: a linked entry's operation is alive: its task would have to take this lock first.
            unsafe {
                while batch.has_room() {
                    let Some(entry) = self.entries.front() else { break };
                    unlink(entry.cast());
                    let head = head_of(entry.cast());
                    let owner = (*head).owner();
                    let _either = Head::settle(head, State::Cancelled, &mut batch);
                    batch.release_later(Held::from_raw(owner));
                }
            }
            let done = self.entries.front().is_none();
            drop(hold);
            batch.run();
            if done {
                break;
            }
        }
        #[cfg(feature = "std")]
        super::callback::run_all(self);
        self.waiters.close();
    }

    pub(super) fn lock(&self) -> Guard<'_, Option<Reason>> {
        self.reason.lock()
    }
}

/// Gives a reference on a token back.
///
/// # Safety
/// The reference is the caller's; no lock is held.
pub(super) unsafe fn release(token: *const TokenNode) {
    // SAFETY: the caller's promise; a token begins with its waiters (`repr(C)`).
    unsafe {
        if (*token).waiters.refs().sub() {
            free(token.cast());
        }
    }
}

/// Frees a token without references, and its ancestors that lose their last one: a loop, so that a chain of any length
/// can go.
///
/// # Safety
/// `core` begins a token on which nobody has a reference.
/// What the waits for a token are called.
const TABLE: NonNull<OwnerVTable> = {
    const NAMED: &OwnerVTable = &OwnerVTable::named::<QueueCore<()>>("cancel token");
    // SAFETY: a reference is not null.
    unsafe { NonNull::new_unchecked(core::ptr::from_ref(NAMED).cast_mut()) }
};

unsafe fn free(core: *const QueueCore<()>) {
    let mut at: *const TokenNode = core.cast();
    // SAFETY: each turn frees a token whose count has just reached zero.
    unsafe {
        loop {
            let parent = (*at).parent;
            if let Some(parent) = parent.as_ref() {
                let hold = parent.lock();
                unlink((&raw const (*at).siblings).cast_mut());
                drop(hold);
            }
            abandon(&*at);
            let token = alloc::boxed::Box::from_raw(at.cast_mut());
            // A reason's destructor is code of the user; the ancestors must go all the same.
            crate::wake_batch::contain(move || drop(token));
            if parent.is_null() || !(*parent).waiters.refs().sub() {
                return;
            }
            at = parent;
        }
    }
}

/// What still stands in a token that goes: entries of operations that were leaked, callbacks that were kept.
fn abandon(token: &TokenNode) {
    loop {
        let hold = token.lock();
        let Some(entry) = token.entries.front() else { break };
        // SAFETY: a leaked operation's memory stays; its owner is held by the entry (C5).
        unsafe {
            unlink(entry.cast());
            let owner = (*head_of(entry.cast())).owner();
            drop(hold);
            let held = Held::from_raw(owner);
            crate::wake_batch::contain(move || drop(held));
        }
    }
    #[cfg(feature = "std")]
    super::callback::drop_all(token);
}
