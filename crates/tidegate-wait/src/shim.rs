//! The one place where atomics, cells, locks and threads come from: the real ones, or loom's under `--cfg loom`.
//!
//! Everything concurrent in the workspace imports these names, so that a loom test runs the production code.

#[cfg(not(loom))]
pub use real::*;

#[cfg(loom)]
pub use modelled::*;

pub use core::sync::atomic::Ordering;

#[cfg(not(loom))]
mod real {
    pub use core::hint::spin_loop;
    pub use core::sync::atomic::{fence, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

    /// `core::cell::UnsafeCell` with loom's interface: access happens inside a closure, so that loom can watch it.
    #[repr(transparent)]
    #[derive(Debug)]
    pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// A cell around `value`.
        #[inline(always)]
        pub const fn new(value: T) -> Self {
            UnsafeCell(core::cell::UnsafeCell::new(value))
        }

        /// Calls `f` with a pointer for reading.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Calls `f` with a pointer for reading and writing.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }

    #[cfg(feature = "std")]
    pub use std::thread::yield_now;

    /// Without threads of its own the crate can only hint.
    #[cfg(not(feature = "std"))]
    #[inline]
    pub fn yield_now() {
        spin_loop();
    }

    /// Gives the processor away for about 50 µs: the last step of a wait for somebody's memcpy.
    #[cfg(feature = "std")]
    pub fn nap() {
        std::thread::sleep(core::time::Duration::from_micros(50));
    }

    /// Without threads of its own the crate can only hint.
    #[cfg(not(feature = "std"))]
    pub fn nap() {
        spin_loop();
    }
}

#[cfg(loom)]
mod modelled {
    pub use loom::cell::UnsafeCell;
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{fence, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
    pub use loom::thread::yield_now;
    pub use loom::thread::yield_now as nap;
}

#[cfg(loom)]
pub use modelled_lock::{Guard, Lock};
#[cfg(not(loom))]
pub use small_lock::{Guard, Lock};

/// Spin hints for about 50 ns.
#[cfg(feature = "std")]
pub use crate::parker::unit;

/// Without a clock: hints as slow as some processors have them.
#[cfg(not(feature = "std"))]
#[inline]
pub fn unit() -> u32 {
    1
}

/// How to wait for somebody who holds a small lock or is in the middle of a memcpy: a few hints, then the processor, then
/// naps, for a peer that was preempted in between. Never while holding a lock.
#[derive(Debug, Default)]
pub struct Patience(u32);

impl Patience {
    /// The beginning of a wait.
    #[must_use]
    pub const fn new() -> Patience {
        Patience(0)
    }

    /// After a lost race for a word or a small lock: for 0.8 µs, twice as long each time, at most 6.4 µs. Who lost leaves
    /// the line to the winner for some operations, instead of taking it away at each; look afresh afterwards.
    #[cold]
    pub fn after_a_loss(&mut self) {
        let hints = (16 * unit()).max(1) << self.0.min(3);
        self.0 = self.0.saturating_add(1);
        (0..hints).for_each(|_| spin_loop());
    }

    /// Waits a little longer each time.
    #[inline]
    pub fn a_little(&mut self) {
        self.0 = self.0.saturating_add(1);
        match self.0 {
            0..=6 if !cfg!(loom) => (0..1 << self.0).for_each(|_| spin_loop()),
            0..=40 => yield_now(),
            _ => nap(),
        }
    }
}

#[cfg(loom)]
mod modelled_lock {
    use loom::sync::{Mutex, MutexGuard};

    /// A small lock.
    #[derive(Debug, Default)]
    pub struct Lock<T>(Mutex<T>);

    /// Access to what a [`Lock`] protects.
    pub type Guard<'a, T> = MutexGuard<'a, T>;

    impl<T> Lock<T> {
        /// A lock around `value`.
        pub fn new(value: T) -> Self {
            Lock(Mutex::new(value))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> Guard<'_, T> {
            match self.0.lock() {
                Ok(guard) => guard,
                Err(poisoned) => poisoned.into_inner(),
            }
        }
    }
}

#[cfg(not(loom))]
mod small_lock {
    use core::cell::UnsafeCell;
    use core::ops::{Deref, DerefMut};
    use core::sync::atomic::{AtomicBool, Ordering};

    use super::Patience;

    /// A small lock: one byte, held for a handful of instructions, never around code of the user or a wait.
    ///
    /// One read-modify-write to take, a plain store to give back: a mutex that can put its waiters to sleep needs a
    /// second one for that. Who finds it taken spins, yields, then naps.
    #[derive(Debug, Default)]
    pub struct Lock<T> {
        held: AtomicBool,
        value: UnsafeCell<T>,
    }

    // SAFETY: `value` is reached only through a `Guard`, of which `held` admits one at a time.
    unsafe impl<T: Send> Sync for Lock<T> {}

    /// Access to what a [`Lock`] protects.
    #[derive(Debug)]
    pub struct Guard<'a, T> {
        lock: &'a Lock<T>,
        /// Stays on its thread, as a mutex's guard does.
        _local: core::marker::PhantomData<*mut ()>,
    }

    impl<T> Lock<T> {
        /// A lock around `value`.
        pub const fn new(value: T) -> Self {
            Lock { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
        }

        /// Waits for the lock.
        #[inline]
        pub fn lock(&self) -> Guard<'_, T> {
            // Ordering: Acquire pairs with Release in `Guard::drop`; makes the last holder's writes visible.
            if self.held.swap(true, Ordering::Acquire) {
                self.contended();
            }
            Guard { lock: self, _local: core::marker::PhantomData }
        }

        #[cold]
        fn contended(&self) {
            let mut patience = Patience::new();
            loop {
                // Ordering: Relaxed to look; the swap has the Acquire.
                while self.held.load(Ordering::Relaxed) {
                    patience.a_little();
                }
                if !self.held.swap(true, Ordering::Acquire) {
                    return;
                }
            }
        }
    }

    impl<T> Deref for Guard<'_, T> {
        type Target = T;
        #[inline(always)]
        fn deref(&self) -> &T {
            // SAFETY: this guard is the only access while it lives.
            unsafe { &*self.lock.value.get() }
        }
    }

    impl<T> DerefMut for Guard<'_, T> {
        #[inline(always)]
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: this guard is the only access while it lives.
            unsafe { &mut *self.lock.value.get() }
        }
    }

    impl<T> Drop for Guard<'_, T> {
        #[inline(always)]
        fn drop(&mut self) {
            // Ordering: Release pairs with Acquire in `Lock::lock`.
            self.lock.held.store(false, Ordering::Release);
        }
    }
}
