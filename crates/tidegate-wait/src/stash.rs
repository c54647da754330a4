//! Deliveries that nobody took: values that were handed to an operation which was then dropped.
//!
//! They leave in hand-off order, ahead of everything undelivered. Each stands in a box of its own that its dropper
//! allocates before it takes the owner's lock and its taker frees after: nothing is allocated under a lock, and an owner
//! whose deliveries are all taken never allocates here at all.
//!
//! A pairing heap by ticket (Fredman, Sedgewick, Sleator and Tarjan, 1986): a return costs O(1) in whatever order the
//! receives are dropped, a take O(log n) amortized. (A sorted list made dropping n delivered receives, newest first,
//! cost n² under the channel's lock.)

use alloc::boxed::Box;

use crate::waiter::Ticket;

type Link<T> = Option<Box<Returned<T>>>;

/// One value on its way back.
#[derive(Debug)]
pub struct Returned<T> {
    child: Link<T>,
    sibling: Link<T>,
    /// The ticket of its first hand-off, which it keeps.
    pub ticket: Ticket,
    /// The value.
    pub value: T,
}

impl<T> Returned<T> {
    /// Boxes a value, before the lock is taken.
    pub fn new(ticket: Ticket, value: T) -> Box<Returned<T>> {
        Box::new(Returned { child: None, sibling: None, ticket, value })
    }

    /// [`Returned::new`] for a value that may be too large for the stack.
    ///
    /// # Safety
    /// `value` points at a value, which counts as moved once this returns.
    pub unsafe fn from_place(ticket: Ticket, value: *const T) -> Box<Returned<T>> {
        let mut returned = Box::<Returned<T>>::new_uninit();
        let place = returned.as_mut_ptr();
        // SAFETY: every field is written, the value by the caller's promise.
        unsafe {
            (&raw mut (*place).child).write(None);
            (&raw mut (*place).sibling).write(None);
            (&raw mut (*place).ticket).write(ticket);
            value.copy_to_nonoverlapping(&raw mut (*place).value, 1);
            returned.assume_init()
        }
    }
}

/// Returned values, the earliest ticket first. Under the owner's lock.
#[derive(Debug)]
pub struct Stash<T> {
    root: Link<T>,
    len: usize,
}

impl<T> Stash<T> {
    /// Nothing returned.
    pub const fn new() -> Self {
        Stash { root: None, len: 0 }
    }

    /// Is nothing here?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// How many are here.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Puts a value where its ticket belongs.
    pub fn insert(&mut self, returned: Box<Returned<T>>) {
        self.root = Some(match self.root.take() {
            None => returned,
            Some(root) => meld(root, returned),
        });
        self.len += 1;
    }

    /// Takes the value that was handed out first.
    pub fn pop(&mut self) -> Link<T> {
        let mut root = self.root.take()?;
        self.root = meld_all(root.child.take());
        self.len -= 1;
        Some(root)
    }
}

/// The earlier of two heaps' roots adopts the other.
fn meld<T>(mut a: Box<Returned<T>>, mut b: Box<Returned<T>>) -> Box<Returned<T>> {
    if b.ticket.before(a.ticket) {
        core::mem::swap(&mut a, &mut b);
    }
    b.sibling = a.child.take();
    a.child = Some(b);
    a
}

/// Melds siblings in pairs, then the pairs from the last to the first.
fn meld_all<T>(mut siblings: Link<T>) -> Link<T> {
    let mut pairs: Link<T> = None;
    while let Some(mut a) = siblings {
        siblings = a.sibling.take();
        if let Some(mut b) = siblings.take() {
            siblings = b.sibling.take();
            a = meld(a, b);
        }
        a.sibling = pairs.take();
        pairs = Some(a);
    }
    let mut melded: Link<T> = None;
    while let Some(mut pair) = pairs {
        pairs = pair.sibling.take();
        melded = Some(match melded {
            None => pair,
            Some(other) => meld(pair, other),
        });
    }
    melded
}

impl<T> Default for Stash<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Stash<T> {
    fn drop(&mut self) {
        // One by one: the derived drop would recurse, and one destructor that panics must not keep the others.
        while let Some(returned) = self.pop() {
            crate::wake_batch::contain(move || drop(returned));
        }
    }
}
