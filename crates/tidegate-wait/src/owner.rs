//! Whoever is waited for: a channel, a wait queue, a timer wheel.
//!
//! A timer or a token that ends a wait knows neither the owner's type nor its payload. It finds the owner by the first
//! word of the operation's [`Head`], and what to call by the first word of the owner: a `&'static` [`OwnerVTable`].
//! The four moves that any owner's waiter can make are written once, here, generic over [`Owner`].
//!
//! | move | from | to | returns |
//! | --- | --- | --- | --- |
//! | [`settle`] | Waiting | the given end | [`Settled::Won`], the waker in the batch |
//! | [`settle`] | anything else | unchanged | [`Settled::Late`]: another event was first |
//! | [`refresh`] | Waiting | Waiting, perhaps with another waker | [`Refreshed`] |
//! | `rouse` | Waiting | Waiting without a waker | the waker, for the caller to wake: the task must look again |
//!
//! - **O1** All of them run under the owner's lock, so exactly one event moves a waiter out of Waiting.
//! - **O2** They clone, wake and drop no waker under it: wakers leave through the batch or the return value.
//! - **O3** Whoever calls through the vtable without being the operation's own task holds a reference on the owner's
//!   memory ([`Owner::retain`]): a leaked operation keeps its node for ever, but not its owner.
//! - **O4** Who is taken out of a line may leave room for many behind it. Letting them in is a [`Debt`] of the owner: a
//!   release does one hold's part of it, and if more is left returns the debt, with the reference, to its caller, who is
//!   the payer then: it calls `pay` until all is done, and releases. A timer's thread leaves that to the driver thread,
//!   anybody else does it at once.
//!   There is one payer at a time: the owner marks the debt under its lock.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::Waker;

use crate::debt::{Debt, Owing, Paid};
use crate::origin::Origin;
use crate::shim::Ordering;
use crate::waiter::{Head, Node, State};
use crate::wake_batch::WakeBatch;

/// The first word of every owner.
#[repr(C)]
#[derive(Debug)]
pub struct OwnerHeader {
    /// Good for ever. Not a reference: an owner's table may be the beginning of a longer one.
    vtable: NonNull<OwnerVTable>,
}

// SAFETY: a pointer to a table that nobody writes.
unsafe impl Send for OwnerHeader {}
// SAFETY: as above.
unsafe impl Sync for OwnerHeader {}

impl OwnerHeader {
    /// The header of an owner of type `O`.
    pub const fn of<O: Owner>() -> OwnerHeader {
        // SAFETY: a reference is not null.
        OwnerHeader { vtable: unsafe { NonNull::new_unchecked(core::ptr::from_ref(O::VTABLE).cast_mut()) } }
    }

    /// The header of an owner whose table begins a longer one (a task's).
    ///
    /// # Safety
    /// `vtable` is good for ever and was made by [`OwnerVTable::of`] for the owner's type.
    pub const unsafe fn with_table(vtable: NonNull<OwnerVTable>) -> OwnerHeader {
        OwnerHeader { vtable }
    }

    /// The table, for whoever knows what it begins.
    #[inline(always)]
    pub const fn table(&self) -> NonNull<OwnerVTable> {
        self.vtable
    }

    #[inline(always)]
    pub(crate) fn vtable(&self) -> &'static OwnerVTable {
        // SAFETY: good for ever, and never written.
        unsafe { self.vtable.as_ref() }
    }
}

/// What a timer or a token may do with a waiter of any owner.
#[derive(Debug)]
pub struct OwnerVTable {
    settle: unsafe fn(*const OwnerHeader, *const Node, State, &mut WakeBatch) -> Settled,
    refresh: unsafe fn(*const OwnerHeader, *const Node, &Waker) -> Refreshed,
    rouse: unsafe fn(*const OwnerHeader, *const Node, &mut WakeBatch),
    retain: unsafe fn(*const OwnerHeader),
    release: unsafe fn(*const OwnerHeader) -> Option<NonNull<Debt>>,
    pub(crate) pay: unsafe fn(*const OwnerHeader) -> Paid,
    origin: unsafe fn(*const OwnerHeader) -> Origin,
    name: &'static str,
}

impl OwnerVTable {
    /// The table for owners of type `O`.
    pub const fn of<O: Owner>() -> OwnerVTable {
        OwnerVTable::named::<O>(O::NAME)
    }

    /// The same, for owners that a dump calls something else: a queue inside of something.
    pub const fn named<O: Owner>(name: &'static str) -> OwnerVTable {
        OwnerVTable {
            settle: settle_erased::<O>,
            refresh: refresh_erased::<O>,
            rouse: rouse_erased::<O>,
            retain: retain_erased::<O>,
            release: release_erased::<O>,
            pay: pay_erased::<O>,
            origin: origin_erased::<O>,
            name,
        }
    }
}

/// One who is waited for.
///
/// # Safety
/// The implementor's first field is its [`OwnerHeader`] (`repr(C)`), made by [`OwnerHeader::of`] for the same type; `lock`
/// excludes every other holder; `retain` keeps the memory alive until the matching `release`.
pub unsafe trait Owner: Sized {
    /// What the lock hands to its holder.
    type Hold<'a>
    where
        Self: 'a;

    /// What a dump calls this owner.
    const NAME: &'static str;

    /// Where this one was made, for a dump.
    fn origin(&self) -> Origin {
        Origin::UNKNOWN
    }

    /// The table for this type.
    const VTABLE: &'static OwnerVTable = &OwnerVTable::of::<Self>();

    /// Takes the owner's lock.
    fn lock(&self) -> Self::Hold<'_>;

    /// Gives it back.
    fn unlock(&self, hold: Self::Hold<'_>);

    /// Unlinks a waiting node and mends what the owner derives from its lists. The waker stays in the node. The waker of
    /// one other who can go on now may be put into the batch; of more than one, it lets the next go on itself.
    ///
    /// # Safety
    /// Under the lock; `node` waits for this owner.
    unsafe fn detach(&self, hold: &mut Self::Hold<'_>, node: *const Node, batch: &mut WakeBatch);

    /// Adds a reference on the owner's memory.
    ///
    /// # Safety
    /// The owner is alive.
    unsafe fn retain(&self);

    /// Gives a reference back; the owner may be gone afterwards. May run code of the user (a payload's destructor).
    /// `Some`: it has not, and the debt is the caller's now, with the reference (O4).
    ///
    /// # Safety
    /// It pairs with a `retain`; no lock is held.
    unsafe fn release(this: *const Self) -> Option<NonNull<Debt>>;

    /// Does one hold's part of what is owed to those in line (O4).
    ///
    /// # Safety
    /// By the payer; no lock is held.
    unsafe fn pay(this: *const Self) -> Paid {
        let _owes_nothing = this;
        Paid::All
    }
}

/// How an attempt to end a wait went.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// This call ended the wait.
    Won,
    /// It had ended before.
    Late,
}

/// What a poll of a waiting operation found.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// Still waiting, and the waker is the right one.
    Waiting,
    /// Still waiting, but its timer wheel has died: the limits must be armed again.
    Roused,
    /// The wait has ended meanwhile.
    Ended,
}

/// Ends the wait of `node` as `end`, if nothing ended it before (O1). The waker goes into the batch.
///
/// # Safety
/// `node` is an operation on `owner`; both are alive (O3); the batch has room for one waker.
#[inline]
pub unsafe fn settle<O: Owner>(owner: &O, node: *const Node, end: State, batch: &mut WakeBatch) -> Settled {
    // SAFETY: the caller's promise.
    match unsafe { take_out(owner, node, end, batch) } {
        Some(waker) => {
            batch.push(waker);
            Settled::Won
        }
        None => Settled::Late,
    }
}

/// [`settle`], with the waker returned: for the operation's own task, which needs no waking. `None`: late.
///
/// # Safety
/// As there.
#[inline]
pub unsafe fn take_out<O: Owner>(
    owner: &O,
    node: *const Node,
    end: State,
    batch: &mut WakeBatch,
) -> Option<Option<Waker>> {
    let mut hold = owner.lock();
    // SAFETY: the node is alive, and the lock is held.
    let waker = unsafe {
        (*node).is_waiting().then(|| {
            owner.detach(&mut hold, node, batch);
            let waker = (*node).take_waker();
            (*node).finish(end);
            waker
        })
    };
    owner.unlock(hold);
    waker
}

/// A poll of a waiting operation: keeps its waker up to date. The clone and the drop of a waker happen outside the lock.
///
/// # Safety
/// Called by the operation's own task; `node` is an operation on `owner`.
pub unsafe fn refresh<O: Owner>(owner: &O, node: *const Node, waker: &Waker) -> Refreshed {
    let mut spare: Option<Waker> = None;
    loop {
        let hold = owner.lock();
        // SAFETY: the node is ours, and the lock is held.
        let found = unsafe {
            if !(*node).is_waiting() {
                Some(Refreshed::Ended)
            } else {
                match (*node).same_waker(waker) {
                    Some(true) => Some(Refreshed::Waiting),
                    stored if spare.is_some() => {
                        spare = (*node).exchange_waker(spare.take());
                        Some(if stored.is_none() { Refreshed::Roused } else { Refreshed::Waiting })
                    }
                    _ => None,
                }
            }
        };
        owner.unlock(hold);
        match found {
            Some(found) => {
                crate::wake_batch::discard(spare);
                return found;
            }
            None => spare = Some(waker.clone()),
        }
    }
}

/// Takes the waker of a waiting node, so that its task looks again (a dying wheel).
///
/// # Safety
/// As for [`settle`].
unsafe fn rouse<O: Owner>(owner: &O, node: *const Node, batch: &mut WakeBatch) {
    let hold = owner.lock();
    // SAFETY: the node is alive, and the lock is held.
    unsafe {
        if (*node).is_waiting() {
            batch.push((*node).exchange_waker(None));
        }
    }
    owner.unlock(hold);
}

unsafe fn settle_erased<O: Owner>(o: *const OwnerHeader, n: *const Node, end: State, b: &mut WakeBatch) -> Settled {
    // SAFETY: the vtable belongs to an `O`, whose first field is the header.
    unsafe { settle(&*o.cast::<O>(), n, end, b) }
}

unsafe fn refresh_erased<O: Owner>(o: *const OwnerHeader, n: *const Node, waker: &Waker) -> Refreshed {
    // SAFETY: as above.
    unsafe { refresh(&*o.cast::<O>(), n, waker) }
}

unsafe fn rouse_erased<O: Owner>(o: *const OwnerHeader, n: *const Node, b: &mut WakeBatch) {
    // SAFETY: as above.
    unsafe { rouse(&*o.cast::<O>(), n, b) }
}

unsafe fn retain_erased<O: Owner>(o: *const OwnerHeader) {
    // SAFETY: as above.
    unsafe { (*o.cast::<O>()).retain() }
}

unsafe fn release_erased<O: Owner>(o: *const OwnerHeader) -> Option<NonNull<Debt>> {
    // SAFETY: as above.
    unsafe { O::release(o.cast::<O>()) }
}

unsafe fn pay_erased<O: Owner>(o: *const OwnerHeader) -> Paid {
    // SAFETY: as above.
    unsafe { O::pay(o.cast::<O>()) }
}

unsafe fn origin_erased<O: Owner>(o: *const OwnerHeader) -> Origin {
    // SAFETY: as above.
    unsafe { (*o.cast::<O>()).origin() }
}

/// A reference on an owner's memory, given back by [`WakeBatch::run`] or by hand, never under a lock. Dropping it pays
/// what the owner owes (O4).
#[derive(Debug)]
pub(crate) struct Held(*const OwnerHeader);

impl Held {
    /// # Safety
    /// The owner is alive.
    pub(crate) unsafe fn new(owner: *const OwnerHeader) -> Held {
        // SAFETY: the caller's promise.
        unsafe { ((*owner).vtable().retain)(owner) };
        Held(owner)
    }

    /// Leaves the reference standing; [`Held::from_raw`] takes it up again.
    pub(crate) fn into_raw(self) -> *const OwnerHeader {
        ManuallyDrop::new(self).0
    }

    /// # Safety
    /// A reference on `owner` was left standing by [`Held::into_raw`].
    pub(crate) unsafe fn from_raw(owner: *const OwnerHeader) -> Held {
        Held(owner)
    }

    /// Gives the reference back, or says what is to be paid first.
    #[inline]
    pub(crate) fn release(self) -> Option<Owing> {
        let owner = self.into_raw();
        // SAFETY: this is the reference that `new` added; the debt comes with it.
        unsafe { ((*owner).vtable().release)(owner).map(|debt| Owing::new(debt, owner)) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: this is the only drop.
        let owing = unsafe { Held::from_raw(self.0) }.release();
        drop(owing);
    }
}

/// The pointers are raw so that they stay good for what stands in front of the head, too.
impl Head {
    /// [`settle`] through the owner's table.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn settle(this: *const Head, end: State, batch: &mut WakeBatch) -> Settled {
        // SAFETY: the caller's promise.
        unsafe { ((*(*this).owner()).vtable().settle)((*this).owner(), &raw const (*this).node, end, batch) }
    }

    /// [`refresh`] through the owner's table.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn refresh(this: *const Head, waker: &Waker) -> Refreshed {
        // SAFETY: the caller's promise.
        unsafe { ((*(*this).owner()).vtable().refresh)((*this).owner(), &raw const (*this).node, waker) }
    }

    /// Rouses the task through the owner's table.
    ///
    /// # Safety
    /// As for [`settle`].
    pub(crate) unsafe fn rouse(this: *const Head, batch: &mut WakeBatch) {
        // SAFETY: the caller's promise.
        unsafe { ((*(*this).owner()).vtable().rouse)((*this).owner(), &raw const (*this).node, batch) }
    }

    /// What a dump calls the owner.
    #[cfg(feature = "std")]
    pub(crate) fn owner_name(&self) -> &'static str {
        // SAFETY: an operation keeps its owner alive (it borrows or holds it).
        unsafe { (*self.owner()).vtable().name }
    }

    /// Where the owner was made.
    #[cfg(feature = "std")]
    pub(crate) fn owner_origin(&self) -> Origin {
        // SAFETY: as above.
        unsafe { ((*self.owner()).vtable().origin)(self.owner()) }
    }
}

/// A shared count of references on memory, with the orderings that freeing needs.
#[derive(Debug)]
pub struct RefCount(crate::shim::AtomicUsize);

impl RefCount {
    /// A count that starts at `n`.
    pub fn new(n: usize) -> RefCount {
        RefCount(crate::shim::AtomicUsize::new(n))
    }

    /// Adds one.
    ///
    /// # Panics
    /// Aborts the process beyond `isize::MAX` references, as `Arc` does: so many leaked clones would wrap the count.
    #[inline]
    pub fn add(&self) {
        // Ordering: Relaxed; the caller already has a reference, so the memory can't go meanwhile.
        if self.0.fetch_add(1, Ordering::Relaxed) > isize::MAX as usize {
            abort();
        }
    }

    /// Takes one away; true: it was the last, and everything done under the others is visible.
    #[inline]
    #[must_use]
    pub fn sub(&self) -> bool {
        // Ordering: Release pairs with the Acquire below in whoever takes the last one.
        if self.0.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        // Ordering: Acquire pairs with Release in every other `sub`. A load, not a fence: ThreadSanitizer knows no fences.
        self.0.load(Ordering::Acquire);
        true
    }

    /// Adds one unless there is none left.
    ///
    /// # Panics
    /// Aborts like [`RefCount::add`].
    #[must_use]
    pub fn add_unless_zero(&self) -> bool {
        // Ordering: Relaxed to look; Acquire on success pairs with Release in `sub`, whose count it continues.
        let mut seen = self.0.load(Ordering::Relaxed);
        while seen != 0 {
            if seen > isize::MAX as usize {
                abort();
            }
            match self.0.compare_exchange_weak(seen, seen + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// The count, for reports.
    pub fn get(&self) -> usize {
        // Ordering: Relaxed; a snapshot.
        self.0.load(Ordering::Relaxed)
    }
}

#[cold]
fn abort() -> ! {
    // A panic while panicking aborts on every target, with or without std.
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("reference count overflow");
        }
    }
    let _bomb = Bomb;
    panic!("reference count overflow");
}
