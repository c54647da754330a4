//! What several test files need: seeded random numbers, wakers that count, panic or call back, values that count their drops.
#![allow(dead_code, unreachable_pub)]

use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};

/// Random numbers from a seed (splitmix64): a failure can be repeated.
#[derive(Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// Polls once with `waker`.
pub fn poll<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Counts its wakes.
#[derive(Debug, Default)]
pub struct Woken(AtomicUsize);

impl Woken {
    pub fn new() -> (Arc<Woken>, Waker) {
        let woken = Arc::new(Woken::default());
        (woken.clone(), Waker::from(woken))
    }

    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

type Hook = Box<dyn Fn() + Send + Sync>;

/// What a [`hooked`] waker does beside counting. A hook runs after the count and may panic.
#[derive(Default)]
pub struct Hooks {
    pub wake: Option<Hook>,
    pub clone: Option<Hook>,
    pub drop: Option<Hook>,
    /// Clones alive; zero at the end, or a waker was leaked; wraps if one was dropped twice.
    pub alive: AtomicUsize,
    pub wakes: AtomicUsize,
    pub clones: AtomicUsize,
    /// Hooks run while this is set: not while a test sets up or cleans away.
    pub active: AtomicBool,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}

impl Hooks {
    pub fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    pub fn wakes(&self) -> usize {
        self.wakes.load(Ordering::SeqCst)
    }

    pub fn activate(&self, on: bool) {
        self.active.store(on, Ordering::SeqCst);
    }

    fn run(&self, hook: &Option<Hook>) {
        if self.active.load(Ordering::SeqCst) {
            if let Some(hook) = hook {
                loudly(hook);
            }
        }
    }
}

/// Runs code of a test where the library contains a panic, and would contain an assertion: one that fails ends the process. A
/// [`quiet_panic`] goes on.
fn loudly(f: impl FnOnce()) {
    let Err(payload) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)) else { return };
    if payload.is::<PanickingPayload>() {
        std::panic::resume_unwind(payload);
    }
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    // Past the capture of a test's output, which dies with the process.
    let _written =
        writeln!(std::io::stderr(), "in a waker of {:?}: {}", std::thread::current(), text.unwrap_or("a panic"));
    std::process::abort();
}

/// A waker from hand-written functions that run `hooks` in wake, clone and drop.
pub fn hooked(hooks: &Arc<Hooks>) -> Waker {
    hooks.alive.fetch_add(1, Ordering::SeqCst);
    let data = Arc::into_raw(hooks.clone());
    // SAFETY: the table's functions keep one strong count a waker.
    unsafe { Waker::from_raw(RawWaker::new(data.cast(), &TABLE)) }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(hook_clone, hook_wake, hook_wake_by_ref, hook_drop);

unsafe fn hook_clone(data: *const ()) -> RawWaker {
    // SAFETY: `data` is an `Arc<Hooks>` that the waker holds.
    let hooks = unsafe { &*data.cast::<Hooks>() };
    hooks.clones.fetch_add(1, Ordering::SeqCst);
    hooks.run(&hooks.clone);
    hooks.alive.fetch_add(1, Ordering::SeqCst);
    // SAFETY: as above.
    unsafe { Arc::increment_strong_count(data.cast::<Hooks>()) };
    RawWaker::new(data, &TABLE)
}

unsafe fn hook_wake(data: *const ()) {
    // SAFETY: the waker's own count, which ends here.
    let hooks = unsafe { Arc::from_raw(data.cast::<Hooks>()) };
    hooks.alive.fetch_sub(1, Ordering::SeqCst);
    hooks.wakes.fetch_add(1, Ordering::SeqCst);
    hooks.run(&hooks.wake);
}

unsafe fn hook_wake_by_ref(data: *const ()) {
    // SAFETY: as in `hook_clone`.
    let hooks = unsafe { &*data.cast::<Hooks>() };
    hooks.wakes.fetch_add(1, Ordering::SeqCst);
    hooks.run(&hooks.wake);
}

unsafe fn hook_drop(data: *const ()) {
    // SAFETY: as in `hook_wake`.
    let hooks = unsafe { Arc::from_raw(data.cast::<Hooks>()) };
    hooks.alive.fetch_sub(1, Ordering::SeqCst);
    hooks.run(&hooks.drop);
}

/// How many [`Counted`] are alive and how many were dropped.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<(AtomicUsize, AtomicUsize)>);

impl Ledger {
    pub fn value(&self, id: usize) -> Counted {
        self.0 .0.fetch_add(1, Ordering::SeqCst);
        Counted { id, ledger: self.clone() }
    }

    pub fn made(&self) -> usize {
        self.0 .0.load(Ordering::SeqCst)
    }

    pub fn dropped(&self) -> usize {
        self.0 .1.load(Ordering::SeqCst)
    }
}

/// A value that counts its drop, and notices a second one.
#[derive(Debug)]
pub struct Counted {
    pub id: usize,
    ledger: Ledger,
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Counted first: the library contains a panic in here.
        self.ledger.0 .1.fetch_add(1, Ordering::SeqCst);
        assert_ne!(self.id, usize::MAX, "dropped twice");
        self.id = usize::MAX;
    }
}

impl PartialEq<usize> for Counted {
    fn eq(&self, other: &usize) -> bool {
        self.id == *other
    }
}

/// Panics on purpose, without the message on stderr.
pub fn quiet_panic() {
    std::panic::resume_unwind(Box::new(PanickingPayload));
}

/// A panic's payload whose destructor panics, too.
#[derive(Debug)]
pub struct PanickingPayload;

impl Drop for PanickingPayload {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::panic::resume_unwind(Box::new("the payload's destructor"));
        }
    }
}
