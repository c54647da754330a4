//! What an owner owes to those in line behind one who was taken out (O4 in [`crate::owner`]).
//!
//! A send of weight 1,000 that expires may let in a thousand behind it. They must go on although nobody polls anything,
//! and whoever took the send out, a timer's thread, must not be kept from its other timers for so long (G3, G6). So it
//! does one hold's part, and leaves the rest, a [`Debt`], to the driver thread ([`crate::timer`]), in a list through the
//! owners, since waiting allocates nothing (G4).

use core::ptr;
use core::ptr::NonNull;

use crate::owner::{Held, OwnerHeader};
use crate::shim::{Patience, UnsafeCell};

/// What a payment came to.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paid {
    /// Nothing is owed any more, and the payer is free.
    All,
    /// As much as one hold may do; more is left.
    Part,
    /// More is left, and it waits for another thread to take its value out of a slot.
    Waits,
}

/// A part of an owner that may owe something.
#[derive(Debug)]
pub struct Debt {
    /// Does somebody pay? Under the owner's lock.
    has_payer: UnsafeCell<bool>,
    /// The payer's: whose debt it is. Written by each new payer.
    owner: UnsafeCell<*const OwnerHeader>,
    next: UnsafeCell<*const Debt>,
}

impl Debt {
    /// Nothing is owed.
    #[must_use]
    pub fn new() -> Debt {
        Debt {
            has_payer: UnsafeCell::new(false),
            owner: UnsafeCell::new(ptr::null()),
            next: UnsafeCell::new(ptr::null()),
        }
    }

    /// Does somebody pay?
    ///
    /// # Safety
    /// Under the owner's lock.
    pub unsafe fn has_payer(&self) -> bool {
        // SAFETY: the lock makes this the only access.
        self.has_payer.with(|has| unsafe { *has })
    }

    /// Somebody becomes the payer, or has paid.
    ///
    /// # Safety
    /// Under the owner's lock.
    pub unsafe fn set_payer(&self, has: bool) {
        // SAFETY: as above.
        self.has_payer.with_mut(|before| unsafe { *before = has });
    }
}

impl Default for Debt {
    fn default() -> Self {
        Debt::new()
    }
}

/// The payer's side of a debt, with a reference on the owner. Dropping it pays all.
#[derive(Debug)]
pub(crate) struct Owing(NonNull<Debt>);

impl Owing {
    /// # Safety
    /// `owner` has returned `debt` at the release of a reference: the caller is its payer, and has the reference still.
    pub(crate) unsafe fn new(debt: NonNull<Debt>, owner: *const OwnerHeader) -> Owing {
        // SAFETY: the field is the payer's.
        unsafe { debt.as_ref() }.owner.with_mut(|place| unsafe { *place = owner });
        Owing(debt)
    }

    /// One hold's part.
    pub(crate) fn pay(self) -> Left {
        let owner = self.owner();
        // SAFETY: we are the payer, and have a reference.
        match unsafe { pay(owner) } {
            Paid::Part => return Left::More(self),
            Paid::Waits => return Left::Waits(self),
            Paid::All => core::mem::forget(self),
        }
        // SAFETY: the reference is ours. What is owed by now is a new debt.
        match unsafe { Held::from_raw(owner) }.release() {
            Some(new) => Left::More(new),
            None => Left::Nothing,
        }
    }

    /// Who owes. Not to be asked once all is paid: another may be the payer then.
    fn owner(&self) -> *const OwnerHeader {
        // SAFETY: the owner is alive, and the field is the payer's.
        unsafe { self.0.as_ref() }.owner.with(|owner| unsafe { *owner })
    }
}

/// What a part of a payment has left.
#[must_use]
pub(crate) enum Left {
    /// The debt is over, and the reference given back.
    Nothing,
    More(Owing),
    /// The same, but another thread has to do something before.
    Waits(Owing),
}

/// # Safety
/// The caller is the payer, and has a reference on the owner.
unsafe fn pay(owner: *const OwnerHeader) -> Paid {
    // SAFETY: the caller's promise.
    unsafe { ((*owner).vtable().pay)(owner) }
}

impl Drop for Owing {
    fn drop(&mut self) {
        let owner = self.owner();
        let mut patience = Patience::new();
        loop {
            // SAFETY: we are the payer, and have a reference.
            match unsafe { pay(owner) } {
                Paid::All => break,
                Paid::Part => {}
                Paid::Waits => patience.a_little(),
            }
        }
        // SAFETY: the reference is ours, and this is the end of us. It may owe something new.
        drop(unsafe { Held::from_raw(owner) });
    }
}

/// Debts, the oldest first.
#[derive(Debug)]
pub(crate) struct Debts {
    first: *const Debt,
    last: *const Debt,
}

// SAFETY: debts are paid by whoever takes them out; which thread that is does not matter.
unsafe impl Send for Debts {}

impl Debts {
    pub(crate) const fn new() -> Debts {
        Debts { first: ptr::null(), last: ptr::null() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    pub(crate) fn push(&mut self, owing: Owing) {
        let debt = owing.0.as_ptr().cast_const();
        core::mem::forget(owing);
        // SAFETY: the debts in the list are alive, by the references that stand with them; their fields are the payer's,
        // who is whoever has the list.
        unsafe {
            (*debt).next.with_mut(|next| *next = ptr::null());
            if self.is_empty() {
                self.first = debt;
            } else {
                (*self.last).next.with_mut(|next| *next = debt);
            }
        }
        self.last = debt;
    }

    pub(crate) fn pop(&mut self) -> Option<Owing> {
        let debt = NonNull::new(self.first.cast_mut())?;
        // SAFETY: as above.
        self.first = unsafe { debt.as_ref() }.next.with(|next| unsafe { *next });
        Some(Owing(debt))
    }
}
