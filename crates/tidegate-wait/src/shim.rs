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

#[cfg(any(feature = "std", loom))]
pub use blocking_lock::{Guard, Lock};
#[cfg(not(any(feature = "std", loom)))]
pub use spin_lock::{Guard, Lock};

#[cfg(any(feature = "std", loom))]
mod blocking_lock {
    #[cfg(loom)]
    use loom::sync::{Mutex, MutexGuard};
    #[cfg(not(loom))]
    use std::sync::{Mutex, MutexGuard};

    /// A small lock: a word, held for a handful of instructions, never around code of the user.
    #[derive(Debug, Default)]
    pub struct Lock<T>(Mutex<T>);

    /// Access to what a [`Lock`] protects.
    pub type Guard<'a, T> = MutexGuard<'a, T>;

    impl<T> Lock<T> {
        /// A lock around `value`.
        #[cfg(not(loom))]
        pub const fn new(value: T) -> Self {
            Lock(Mutex::new(value))
        }

        /// A lock around `value`.
        #[cfg(loom)]
        pub fn new(value: T) -> Self {
            Lock(Mutex::new(value))
        }

        /// Waits for the lock. Nothing of the user's runs under it, so poison would be our own bug; it is passed over,
        /// because a second panic helps nobody.
        #[inline]
        pub fn lock(&self) -> Guard<'_, T> {
            match self.0.lock() {
                Ok(guard) => guard,
                Err(poisoned) => poisoned.into_inner(),
            }
        }
    }
}

#[cfg(not(any(feature = "std", loom)))]
mod spin_lock {
    use core::cell::UnsafeCell;
    use core::ops::{Deref, DerefMut};
    use core::sync::atomic::{AtomicBool, Ordering};

    /// A small lock for targets without threads of their own: spins, since there is nothing to sleep on.
    #[derive(Debug, Default)]
    pub struct Lock<T> {
        held: AtomicBool,
        value: UnsafeCell<T>,
    }

    // SAFETY: `value` is reached only through a `Guard`, of which `held` admits one at a time.
    unsafe impl<T: Send> Sync for Lock<T> {}

    /// Access to what a [`Lock`] protects.
    #[derive(Debug)]
    pub struct Guard<'a, T>(&'a Lock<T>);

    impl<T> Lock<T> {
        /// A lock around `value`.
        pub const fn new(value: T) -> Self {
            Lock { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
        }

        /// Waits for the lock.
        pub fn lock(&self) -> Guard<'_, T> {
            // Ordering: Acquire pairs with Release in `Guard::drop`; makes the last holder's writes visible.
            while self.held.swap(true, Ordering::Acquire) {
                core::hint::spin_loop();
            }
            Guard(self)
        }
    }

    impl<T> Deref for Guard<'_, T> {
        type Target = T;
        fn deref(&self) -> &T {
            // SAFETY: this guard is the only access while it lives.
            unsafe { &*self.0.value.get() }
        }
    }

    impl<T> DerefMut for Guard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: this guard is the only access while it lives.
            unsafe { &mut *self.0.value.get() }
        }
    }

    impl<T> Drop for Guard<'_, T> {
        fn drop(&mut self) {
            // Ordering: Release pairs with Acquire in `Lock::lock`.
            self.0.held.store(false, Ordering::Release);
        }
    }
}
