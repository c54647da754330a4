//! What several test files need: seeded random numbers, wakers that count, panic or call back, values that count their
//! drops, a watchdog, an executor of a few lines.
#![allow(dead_code, unreachable_pub)]

use std::collections::VecDeque;
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Condvar, Mutex};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;
use std::time::Duration;

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

/// One poll of a boxed operation, by a waker that does nothing or by a given one.
pub trait Look {
    type Output;

    fn look(&mut self) -> Poll<Self::Output>;
    fn look_with(&mut self, waker: &Waker) -> Poll<Self::Output>;

    /// It has to wait.
    #[track_caller]
    fn parks(&mut self) {
        assert!(self.look().is_pending(), "it did not park");
    }

    /// It has to wait; `waker` is its task's.
    #[track_caller]
    fn parks_with(&mut self, waker: &Waker) {
        assert!(self.look_with(waker).is_pending(), "it did not park");
    }

    /// It is over.
    #[track_caller]
    fn ends(&mut self) -> Self::Output {
        match self.look() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it is still pending"),
        }
    }
}

impl<F: Future + ?Sized> Look for Pin<Box<F>> {
    type Output = F::Output;

    fn look(&mut self) -> Poll<F::Output> {
        poll(self.as_mut(), Waker::noop())
    }

    fn look_with(&mut self, waker: &Waker) -> Poll<F::Output> {
        poll(self.as_mut(), waker)
    }
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

/// Runs code of a test where the channel contains a panic, and would contain an assertion: one that fails ends the process.
/// A [`quiet_panic`] goes on.
fn loudly(f: impl FnOnce()) {
    let Err(payload) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)) else { return };
    if payload.is::<PanickingPayload>() {
        std::panic::resume_unwind(payload);
    }
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    // Past the capture of a test's output, which dies with the process.
    let _written = writeln!(std::io::stderr(), "in a waker of {:?}: {}", thread::current(), text.unwrap_or("a panic"));
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

    /// Every value has been dropped, once.
    #[track_caller]
    pub fn settled(&self) {
        assert_eq!((self.made(), self.dropped()), (self.made(), self.made()), "made, dropped");
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
        // Counted first: the channel contains a panic in here.
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

/// Does it panic? The panic's payload is forgotten: its destructor would panic, too.
pub fn panics(f: impl FnOnce()) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).map_err(std::mem::forget).is_err()
}

/// Runs `f`, and ends the process with the test's name if it takes longer than `limit`: a lost wake-up is a failure, not
/// a hang. `what` says which part of the test. (Miri has no sense of time.)
pub fn within<R>(limit: Duration, what: &str, f: impl FnOnce() -> R) -> R {
    if cfg!(miri) {
        return f();
    }
    let (running, over) = mpsc::channel::<()>();
    let name = format!("{} [{what}]", thread::current().name().unwrap_or("a test"));
    let watchdog = thread::spawn(move || {
        if over.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
            // Past the capture of output, which an abort would lose.
            let _ = writeln!(std::io::stderr(), "{name}: not over after {limit:?}: was a wake-up lost?");
            std::process::abort();
        }
    });
    let result = f();
    drop(running);
    watchdog.join().unwrap();
    result
}

/// Waits until something that other threads do has happened.
pub fn until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

/// Wakers that write down who was woken, in order.
#[derive(Clone, Debug, Default)]
pub struct WakeLog(Arc<Mutex<Vec<usize>>>);

impl WakeLog {
    pub fn waker(&self, id: usize) -> Waker {
        struct Entry(usize, WakeLog);
        impl Wake for Entry {
            fn wake(self: Arc<Self>) {
                self.1 .0.lock().unwrap().push(self.0);
            }
        }
        Waker::from(Arc::new(Entry(id, self.clone())))
    }

    pub fn woken(&self) -> Vec<usize> {
        self.0.lock().unwrap().clone()
    }
}

/// A waker that runs `f` in its wake.
pub fn on_wake(f: impl Fn() + Send + Sync + 'static) -> Waker {
    let hooks = Arc::new(Hooks { wake: Some(Box::new(f)), ..Hooks::default() });
    hooks.activate(true);
    hooked(&hooks)
}

/// A waker that runs `f` once, at its first wake.
pub fn on_first_wake(f: impl FnOnce() + Send + 'static) -> Waker {
    let f = Mutex::new(Some(f));
    on_wake(move || {
        let first = f.lock().unwrap().take();
        if let Some(f) = first {
            f();
        }
    })
}

#[derive(Default)]
struct RunQueue {
    ready: Mutex<VecDeque<usize>>,
    more: Condvar,
}

struct Task(usize, Arc<RunQueue>);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.1.ready.lock().unwrap().push_back(self.0);
        self.1.more.notify_one();
    }
}

/// An executor of a few lines that knows nothing of the channels: tasks on one thread, in turn, woken from any thread.
#[derive(Default)]
pub struct Tasks<'a> {
    queue: Arc<RunQueue>,
    tasks: Vec<Option<Pin<Box<dyn Future<Output = ()> + 'a>>>>,
}

impl<'a> Tasks<'a> {
    pub fn spawn(&mut self, task: impl Future<Output = ()> + 'a) {
        self.queue.ready.lock().unwrap().push_back(self.tasks.len());
        self.tasks.push(Some(Box::pin(task)));
    }

    /// Until all tasks have ended.
    pub fn run(mut self) {
        let mut left = self.tasks.len();
        while left != 0 {
            let mut ready = self.queue.ready.lock().unwrap();
            let id = loop {
                match ready.pop_front() {
                    Some(id) => break id,
                    None => ready = self.queue.more.wait(ready).unwrap(),
                }
            };
            drop(ready);
            let waker = Waker::from(Arc::new(Task(id, self.queue.clone())));
            if let Some(task) = &mut self.tasks[id] {
                if task.look_with(&waker).is_ready() {
                    self.tasks[id] = None;
                    left -= 1;
                }
            }
        }
    }
}
