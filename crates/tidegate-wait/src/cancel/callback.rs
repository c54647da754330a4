//! Callbacks of a token.
//!
//! # States, under the token's lock
//! ```text
//! from      to        by                                        the closure is
//! Linked    Running   the cancellation                          taken out, run outside the lock
//! Linked    Gone      `Registration::drop`, or the token's end  taken out, dropped outside the lock
//! Running   Gone      the cancellation                          done
//! ```
//! - **B1** After an unregistration has returned, the callback does not run: dropping a [`Registration`] whose callback
//!   runs on another thread waits for it.
//! - **B2** Except from inside any callback: there it never waits, or two callbacks that unregister each other on two
//!   threads would wait for ever. A callback may therefore still be running when a registration dropped inside another
//!   callback is gone.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cell::{Cell, UnsafeCell};
use core::fmt;

use super::tree::TokenNode;
use super::CancelToken;
use crate::op::entry::{unlink, EntryLinks};
use crate::wake_batch::contain;

#[cfg(loom)]
use loom::sync::{Condvar, Mutex};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex};

type Closure = Box<dyn FnOnce() + Send>;

/// A registered closure. The token's list holds one reference while it is linked, the registration another.
#[repr(C)]
pub(crate) struct Callback {
    links: EntryLinks,
    closure: UnsafeCell<Option<Closure>>,
    running: Cell<bool>,
    done: Mutex<bool>,
    signal: Condvar,
}

// SAFETY: `links`, `closure` and `running` are touched under the token's lock only; the rest is `Sync`.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

#[cfg(not(loom))]
std::thread_local! {
    /// How many callbacks, of any tokens, this thread is inside of (B2).
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}
#[cfg(loom)]
loom::thread_local! {
    static INSIDE: Cell<usize> = Cell::new(0);
}

/// A callback that waits for its token; made by [`CancelToken::on_cancel`].
///
/// Dropping it takes the callback back, in O(1). If the callback runs on another thread at that moment, the drop waits
/// until it is done, unless it happens inside a callback itself.
#[must_use = "a registration that is dropped takes its callback back"]
pub struct Registration {
    /// `None`: it ran at once, or is to be kept.
    registered: Option<(CancelToken, Arc<Callback>)>,
}

impl Registration {
    /// Leaves the callback registered as long as the token lives. If the token goes uncancelled, it is dropped unrun.
    pub fn keep(mut self) {
        self.registered = None;
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("token", &self.registered.as_ref().map(|(token, _)| token)).finish()
    }
}

pub(super) fn register(token: &CancelToken, closure: Closure) -> Registration {
    let callback = Arc::new(Callback {
        links: EntryLinks::new(0),
        closure: UnsafeCell::new(Some(closure)),
        running: Cell::new(false),
        done: Mutex::new(false),
        signal: Condvar::new(),
    });
    let hold = token.node().lock();
    if token.is_cancelled() {
        drop(hold);
        // SAFETY: never linked: nobody else knows the callback.
        let closure = unsafe { (*callback.closure.get()).take() };
        run(closure);
        return Registration { registered: None };
    }
    // SAFETY: the list's reference keeps the callback where it is.
    unsafe { token.node().callbacks.push_back(Arc::into_raw(callback.clone()).cast_mut()) };
    drop(hold);
    Registration { registered: Some((token.clone(), callback)) }
}

fn run(closure: Option<Closure>) {
    if let Some(closure) = closure {
        INSIDE.with(|inside| inside.set(inside.get() + 1));
        contain(closure);
        INSIDE.with(|inside| inside.set(inside.get() - 1));
    }
}

/// Takes the front callback out of the list, with the list's reference, and its closure.
fn pop(token: &TokenNode, to_run: bool) -> Option<(Arc<Callback>, Option<Closure>)> {
    let _hold = token.lock();
    let callback = token.callbacks.front()?;
    // SAFETY: linked, so alive, and the lock is held; the reference is the list's.
    unsafe {
        unlink(callback.cast());
        (*callback).running.set(to_run);
        let closure = (*(*callback).closure.get()).take();
        Some((Arc::from_raw(callback), closure))
    }
}

/// Runs all callbacks of a token that has just been cancelled.
pub(super) fn run_all(token: &TokenNode) {
    while let Some((callback, closure)) = pop(token, true) {
        run(closure);
        let hold = token.lock();
        callback.running.set(false);
        drop(hold);
        *lock(&callback.done) = true;
        callback.signal.notify_all();
    }
}

/// Drops all callbacks of a token that goes uncancelled.
pub(super) fn drop_all(token: &TokenNode) {
    while let Some((callback, closure)) = pop(token, false) {
        contain(move || drop(closure));
        drop(callback);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some((token, callback)) = self.registered.take() else { return };
        let hold = token.node().lock();
        // SAFETY: the lock is held; what was linked gives the list's reference to us.
        let (linked, closure, running) = unsafe {
            let linked = unlink(Arc::as_ptr(&callback).cast_mut().cast()).is_some();
            (linked, (*callback.closure.get()).take(), callback.running.get())
        };
        drop(hold);
        if linked {
            // SAFETY: the list's reference, taken over just now.
            drop(unsafe { Arc::from_raw(Arc::as_ptr(&callback)) });
        }
        contain(move || drop(closure));
        // B1, B2.
        if running && INSIDE.with(Cell::get) == 0 {
            let mut done = lock(&callback.done);
            while !*done {
                done = match callback.signal.wait(done) {
                    Ok(done) => done,
                    Err(poisoned) => poisoned.into_inner(),
                };
            }
        }
    }
}

#[cfg(not(loom))]
fn lock(mutex: &Mutex<bool>) -> std::sync::MutexGuard<'_, bool> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(loom)]
fn lock(mutex: &Mutex<bool>) -> loom::sync::MutexGuard<'_, bool> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
