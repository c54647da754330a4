//! The intrusive FIFO list of waiters: circular, with a sentinel, both links, so that a node leaves from anywhere in
//! O(1) without knowing which list it stands in.
//!
//! The list owns nothing and locks nothing: every method is for the holder of the owner's lock. A node's back link is
//! its state word, so linking a node *is* parking it, and there is no second flag to keep in step (W1).
//! Removing any of the four link updates below makes `tests/waiter.rs` fail.

use core::marker::PhantomPinned;
use core::mem::offset_of;
use core::task::Waker;

use crate::shim::Ordering;
use crate::waiter::{Kind, Links, Node};

const _: () = assert!(offset_of!(Node, links) == 0, "a node is found by its links");

/// A FIFO of parked nodes. It must not move once [`List::init`] has run.
#[repr(transparent)]
#[derive(Debug)]
pub struct List {
    sentinel: Links,
    /// Nodes point at the sentinel, so even a box that is moved must not claim it.
    _pinned: PhantomPinned,
}

impl List {
    /// A list that [`List::init`] must still close into a circle, once it stands where it will stay.
    pub fn new() -> List {
        List { sentinel: Links::new(), _pinned: PhantomPinned }
    }

    #[inline(always)]
    fn sentinel(&self) -> *mut Links {
        core::ptr::from_ref(&self.sentinel).cast_mut()
    }

    /// Closes the circle.
    ///
    /// # Safety
    /// Before any other call, once, at the list's final place, with no other access.
    pub unsafe fn init(&self) {
        // Ordering: Relaxed; whoever reaches the list later synchronizes through its lock.
        self.sentinel.prev.store(self.sentinel(), Ordering::Relaxed);
        // SAFETY: nobody else knows the list yet.
        unsafe { self.sentinel.init_next(self.sentinel(), Kind::Sentinel) };
    }

    /// Is nobody parked here?
    ///
    /// # Safety
    /// Under the owner's lock.
    #[inline(always)]
    pub unsafe fn is_empty(&self) -> bool {
        // SAFETY: initialized, and the lock is held.
        unsafe { self.sentinel.next() == self.sentinel() }
    }

    /// Parks `node` at the tail.
    ///
    /// # Safety
    /// Under the owner's lock; `node` is pinned and not Waiting.
    #[inline]
    pub unsafe fn push_back(&self, node: *const Node, kind: Kind, waker: Waker) {
        // SAFETY: the caller's promise; the lock orders every access to links and waker.
        unsafe {
            (*node).put_waker(waker);
            self.link_back(node.cast_mut().cast(), kind);
        }
    }

    /// # Safety
    /// Under the owner's lock; `links` stand in no list.
    #[inline(always)]
    unsafe fn link_back(&self, links: *mut Links, kind: Kind) {
        // Ordering (all): Relaxed; the owner's lock orders the links, and the task reads the back link only as "waiting".
        let last = self.sentinel.prev.load(Ordering::Relaxed);
        // SAFETY: `last` is the sentinel or a waiting node, alive while it is linked (W1).
        unsafe {
            (*links).init_next(self.sentinel(), kind);
            (*links).prev.store(last, Ordering::Relaxed);
            (*last).set_next(links);
        }
        self.sentinel.prev.store(links, Ordering::Relaxed);
    }

    /// The node that parked first.
    ///
    /// # Safety
    /// Under the owner's lock.
    #[inline(always)]
    pub unsafe fn front(&self) -> Option<*const Node> {
        // SAFETY: initialized, and the lock is held.
        let first = unsafe { self.sentinel.next() };
        (first != self.sentinel()).then_some(first.cast_const().cast())
    }

    /// Unlinks the node that parked first. It still reads as Waiting: the caller goes on to finish it.
    ///
    /// # Safety
    /// Under the owner's lock.
    #[inline(always)]
    pub unsafe fn pop_front(&self) -> Option<*const Node> {
        // SAFETY: the front node is linked.
        unsafe {
            let node = self.front()?;
            List::unlink(node);
            Some(node)
        }
    }

    /// Takes a waiting node out of whichever list it stands in.
    ///
    /// # Safety
    /// Under the owner's lock; `node` is Waiting and linked.
    #[inline(always)]
    pub unsafe fn unlink(node: *const Node) {
        // SAFETY: a linked node's neighbours are alive (W1), and only the lock holder touches their links.
        unsafe {
            let links = &(*node).links;
            let (prev, next) = (links.prev.load(Ordering::Relaxed), links.next());
            (*prev).set_next(next);
            (*next).prev.store(prev, Ordering::Relaxed);
        }
    }

    /// Moves all nodes to the end of `to`, in order, in O(1).
    ///
    /// # Safety
    /// Under the owner's lock, which guards both lists.
    pub unsafe fn splice(&self, to: &List) {
        // SAFETY: initialized, and the lock is held.
        unsafe {
            if self.is_empty() {
                return;
            }
            let (first, last) = (self.sentinel.next(), self.sentinel.prev.load(Ordering::Relaxed));
            let end = to.sentinel.prev.load(Ordering::Relaxed);
            (*end).set_next(first);
            (*first).prev.store(end, Ordering::Relaxed);
            (*last).set_next(to.sentinel());
            to.sentinel.prev.store(last, Ordering::Relaxed);
            self.init();
        }
    }

    /// How many stand here, by walking: for tests and counts, never on an operation's path.
    ///
    /// # Safety
    /// Under the owner's lock.
    pub unsafe fn count(&self) -> usize {
        let mut count = 0;
        // SAFETY: initialized, and the lock is held.
        unsafe {
            let mut at = self.sentinel.next();
            while at != self.sentinel() {
                count += 1;
                at = (*at).next();
            }
        }
        count
    }
}

impl Default for List {
    fn default() -> Self {
        List::new()
    }
}
