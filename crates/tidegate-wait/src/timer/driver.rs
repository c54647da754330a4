//! The thread that turns the wheels of everybody who has no runtime of ours.
//!
//! It starts with the first timer, sleeps while nothing is armed, and never ends. A forked child has no such thread:
//! timers armed there do not fire.
//!
//! It has a wheel for each processor, up to 16, which it turns in rotation; a thread arms on one of them, the same
//! each time. On a single wheel all threads of a foreign runtime would meet at one lock, twice for each limit that they
//! arm and take back.
//!
//! # Debts
//! It also lets in those behind whom a timer of any wheel has taken out of a line, if they are many (O4 in
//! [`crate::owner`]): a part of the first debt after each turn, so its own timers wait for one part at most. A runtime's
//! thread does not do so itself: it has timers of its own; a task of it may compute for long, or block, and it stops when
//! `block_on` returns; all that while others would sleep beside room.

use core::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use super::{Next, Turner, Wheel};
use crate::debt::{Debts, Left, Owing};
use crate::shim::Ordering;

/// The most wheels, of which a process has 511.
const MOST: usize = 16;

static DEBTS: Mutex<Debts> = Mutex::new(Debts::new());

/// Debts that are not paid yet, turns of the driver, and wakes of other turns that may leave a debt.
static UNSETTLED: AtomicUsize = AtomicUsize::new(0);

struct Driver {
    thread: OnceLock<Thread>,
    /// Set by whoever armed an earlier timer; the driver's own token, which no one else's `unpark` can forge.
    notified: AtomicBool,
}

impl Turner for Driver {
    fn earlier(&self) {
        // Ordering: Release pairs with Acquire in `run`: the driver sees the new entry through the wheel's lock anyway;
        // this only keeps the flag from being set after the unpark.
        if !self.notified.swap(true, Ordering::Release) {
            if let Some(thread) = self.thread.get() {
                thread.unpark();
            }
        }
    }
}

std::thread_local! {
    /// This thread's wheel, once it has armed a timer.
    static MINE: Cell<Option<&'static Wheel>> = const { Cell::new(None) };
}

/// The wheel of the process on which this thread arms; starts the driver at the first call.
///
/// # Panics
/// When the system refuses the thread: then no timer could ever fire.
#[inline]
pub(crate) fn wheel() -> &'static Wheel {
    MINE.with(Cell::get).unwrap_or_else(choose)
}

/// Threads take the wheels in turn.
#[cold]
fn choose() -> &'static Wheel {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let wheels = wheels();
    // Ordering: Relaxed; only a number.
    let wheel = &wheels[TURN.fetch_add(1, Ordering::Relaxed) % wheels.len()];
    MINE.with(|mine| mine.set(Some(wheel)));
    wheel
}

/// All wheels of the driver, at least one.
fn wheels() -> &'static [Wheel] {
    static WHEELS: OnceLock<Vec<Wheel>> = OnceLock::new();
    WHEELS.get_or_init(start)
}

#[cold]
fn start() -> Vec<Wheel> {
    let driver = Arc::new(Driver { thread: OnceLock::new(), notified: AtomicBool::new(false) });
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let wheels: Vec<Wheel> = (0..processors.min(MOST)).map_while(|_| Wheel::register(driver.clone())).collect();
    assert!(!wheels.is_empty(), "511 timer wheels are alive: none is left for the driver thread");
    let thread = std::thread::Builder::new()
        .name("tidegate-timer".into())
        .spawn({
            let driver = driver.clone();
            move || run(&driver)
        })
        .expect("the system has no thread for timers (tidegate-timer)");
    // `earlier` may come before this; then the flag is set and the first turn finds the entry without an unpark.
    let _ = driver.thread.set(thread.thread().clone());
    thread.thread().unpark();
    wheels
}

fn debts() -> MutexGuard<'static, Debts> {
    DEBTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leaves a debt to the driver. If the system has no thread for it, the panic of [`wheel`] pays it on its way.
pub(super) fn owe(owing: Owing) {
    // Under loom there is no driver.
    if !cfg!(loom) {
        let wheel = wheel();
        // Ordering: Relaxed; whoever must see it has it from something that this thread does later.
        UNSETTLED.fetch_add(1, Ordering::Relaxed);
        debts().push(owing);
        wheel.notify(0);
    }
}

/// Runs `f` as something that is not settled until it has returned.
pub(super) fn settling<R>(f: impl FnOnce() -> R) -> R {
    // Ordering: Relaxed; as in `owe`.
    UNSETTLED.fetch_add(1, Ordering::Relaxed);
    let result = f();
    settled();
    result
}

/// Is somebody in the middle of something that may wake others, though no timer is due: a turn, a debt? Whoever looks
/// after something that was done by one who was woken by it, and then looks at what it was left itself, misses nothing.
#[must_use]
pub fn is_settling() -> bool {
    // Ordering: Acquire pairs with Release in `settled`.
    UNSETTLED.load(Ordering::Acquire) != 0
}

fn settled() {
    // Ordering: Release pairs with Acquire in `is_settling`: what this thread has woken is seen.
    UNSETTLED.fetch_sub(1, Ordering::Release);
}

/// Pays a part of the first debt. True: something is left.
fn pay() -> bool {
    let Some(owing) = debts().pop() else { return false };
    match owing.pay() {
        Left::Nothing => settled(),
        Left::More(owing) => debts().push(owing),
        Left::Waits(owing) => {
            debts().push(owing);
            std::thread::yield_now();
        }
    }
    !debts().is_empty()
}

fn run(driver: &Driver) -> ! {
    let wheels = wheels();
    loop {
        // Ordering: Acquire pairs with Release in `earlier`. Cleared before the turns: what is armed after one sets it again.
        driver.notified.swap(false, Ordering::Acquire);
        match settling(|| turn_all(wheels)) {
            _ if pay() => {}
            Next::More => {}
            Next::Idle => park(driver, None),
            Next::At(at) => {
                let left = at.saturating_sub(wheels[0].now_ns());
                if left > 0 {
                    park(driver, Some(Duration::from_nanos(left)));
                }
            }
        }
    }
}

/// One turn of each wheel, and what is left to do on the first of them that has something. They have one clock.
fn turn_all(wheels: &[Wheel]) -> Next {
    let earlier = |one, other| match (one, other) {
        (Next::More, _) | (_, Next::More) => Next::More,
        (Next::At(one), Next::At(other)) => Next::At(one.min(other)),
        (at @ Next::At(_), Next::Idle) | (Next::Idle, at) => at,
    };
    wheels.iter().map(Wheel::turn).fold(Next::Idle, earlier)
}

fn park(driver: &Driver, limit: Option<Duration>) {
    // Ordering: Acquire as in `run`. An unpark between this look and the park makes the park return at once.
    if driver.notified.load(Ordering::Acquire) {
        return;
    }
    match limit {
        Some(limit) => std::thread::park_timeout(limit),
        None => std::thread::park(),
    }
}
