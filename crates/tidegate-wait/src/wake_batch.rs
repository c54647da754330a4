//! Wakers and references collected under a lock, run after it.
//!
//! A waker is code of the user: it may panic, block, or call back into the very object that woke it. So a lock holder
//! puts wakers here, and [`WakeBatch::run`], outside every lock, wakes all of them in order, each caught on its own: one
//! that panics strands nobody. The panic's payload is forgotten, since its destructor is code of the user too.

use core::mem::MaybeUninit;
use core::task::Waker;

use crate::debt::Owing;
use crate::owner::Held;

/// How many ends one hold of a lock may collect. Few under loom, where a second hold must be within reach.
pub const BATCH: usize = if cfg!(loom) { 2 } else { 32 };

/// One waker an end, and a spare place: the last end's leaving may let one other go on ([`Owner::detach`]).
///
/// [`Owner::detach`]: crate::owner::Owner::detach
const WAKERS: usize = BATCH + 1;

/// Up to [`BATCH`] ends: wakers, and references on owners. Must be run outside locks; dropping it runs it.
#[derive(Debug)]
pub struct WakeBatch {
    wakers: [MaybeUninit<Waker>; WAKERS],
    waker_count: usize,
    held: [MaybeUninit<Held>; BATCH],
    held_count: usize,
}

impl WakeBatch {
    /// An empty batch.
    #[inline(always)]
    pub fn new() -> WakeBatch {
        WakeBatch {
            wakers: [const { MaybeUninit::uninit() }; WAKERS],
            waker_count: 0,
            held: [const { MaybeUninit::uninit() }; BATCH],
            held_count: 0,
        }
    }

    /// Is there room for another end?
    #[inline]
    pub fn has_room(&self) -> bool {
        self.waker_count < BATCH && self.held_count < BATCH
    }

    /// Keeps a waker for later. `None` (a roused node) is nothing to wake.
    ///
    /// # Panics
    /// When there is no room: the caller bounds its hold by [`WakeBatch::has_room`].
    #[inline(always)]
    pub fn push(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.wakers[self.waker_count].write(waker);
            self.waker_count += 1;
        }
    }

    /// Keeps a reference to give back later.
    #[inline(always)]
    pub(crate) fn release_later(&mut self, held: Held) {
        self.held[self.held_count].write(held);
        self.held_count += 1;
    }

    /// Has it references to give back?
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        self.held_count != 0
    }

    /// Wakes all, then gives the references back. The batch is empty afterwards and may be filled again.
    pub fn run(&mut self) {
        self.run_keeping(drop);
    }

    /// The same; what owners owe goes to `keep`, whatever else that is for (O4).
    #[inline]
    pub(crate) fn run_keeping(&mut self, mut keep: impl FnMut(Owing)) {
        let wakers = core::mem::take(&mut self.waker_count);
        for waker in &mut self.wakers[..wakers] {
            // SAFETY: the first `waker_count` entries are initialized, and the count is zero already: none is read twice.
            wake(unsafe { waker.assume_init_read() });
        }
        let held = core::mem::take(&mut self.held_count);
        for held in &mut self.held[..held] {
            // SAFETY: as above.
            let held = unsafe { held.assume_init_read() };
            contain(|| {
                if let Some(owing) = held.release() {
                    keep(owing);
                }
            });
        }
    }
}

impl Default for WakeBatch {
    fn default() -> Self {
        WakeBatch::new()
    }
}

impl Drop for WakeBatch {
    #[inline]
    fn drop(&mut self) {
        if self.waker_count | self.held_count != 0 {
            self.run();
        }
    }
}

/// Wakes one task; a panic of its waker ends here.
#[inline]
pub fn wake(waker: Waker) {
    contain(move || waker.wake());
}

/// Drops a waker; a panic of its destructor ends here.
#[inline]
pub fn discard(waker: Option<Waker>) {
    if let Some(waker) = waker {
        contain(move || drop(waker));
    }
}

/// Runs code of the user whose panic must not change what we do next.
#[cfg(any(feature = "std", loom))]
#[inline]
pub fn contain(f: impl FnOnce()) {
    if let Err(payload) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)) {
        // Its destructor may panic too.
        core::mem::forget(payload);
    }
}

/// Runs code of the user. Without std nothing can be caught; a panic that unwinds out of it ends the process, since what
/// we do next must happen: half-moved values and lists on the stack are behind us.
#[cfg(not(any(feature = "std", loom)))]
#[inline]
pub fn contain(f: impl FnOnce()) {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            // While panicking: this aborts.
            panic!("a waker or a destructor panicked, and without std it can't be caught");
        }
    }
    let bomb = Bomb;
    f();
    core::mem::forget(bomb);
}
