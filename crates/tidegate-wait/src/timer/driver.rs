//! The thread that turns the wheel of everybody who has no runtime of ours.
//!
//! It starts with the first timer, sleeps while nothing is armed, and never ends. A forked child has no such thread:
//! timers armed there do not fire.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use super::{Next, Turner, Wheel};
use crate::shim::Ordering;

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

/// The process's wheel; starts its thread at the first call.
///
/// # Panics
/// When the system refuses the thread: then no timer could ever fire.
#[inline]
pub(crate) fn wheel() -> &'static Wheel {
    static WHEEL: OnceLock<Wheel> = OnceLock::new();
    WHEEL.get_or_init(start)
}

#[cold]
fn start() -> Wheel {
    let driver = Arc::new(Driver { thread: OnceLock::new(), notified: AtomicBool::new(false) });
    let wheel =
        Wheel::register(driver.clone()).expect("511 timer wheels are alive: none is left for the driver thread");
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
    wheel
}

fn run(driver: &Driver) -> ! {
    let wheel = wheel();
    loop {
        // Ordering: Acquire pairs with Release in `earlier`. Cleared before the turn: what is armed after it sets it again.
        driver.notified.swap(false, Ordering::Acquire);
        match wheel.turn() {
            Next::More => {}
            Next::Idle => park(driver, None),
            Next::At(at) => {
                let left = at.saturating_sub(wheel.now_ns());
                if left > 0 {
                    park(driver, Some(Duration::from_nanos(left)));
                }
            }
        }
    }
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
