//! `timers`: what a sleep costs, and how late it is.

mod cascade;
mod punctual;
mod resident_timers;
mod together;
mod worker;

use std::future::Future;
use std::time::{Duration, Instant};

use crate::harness::{Cell, Load, Scale};

pub(crate) fn load() -> Load {
    Load {
        name: "timers",
        shows: "resident: inserting a million sleeps with given deadlines over an hour (made and polled once) and dropping \
                them, in random order and in the order of insertion; one more beside 100,000. 2 threads at once: each \
                sets a timer and drops it, again and again; on a lock that both must take they wait for each other. \
                cascade: how late a 1 ms timer is while a million others, all within a quarter of a second, come near \
                and are dropped before they fire; and how long one turn of the wheel takes that moves such timers (by \
                so much they can hold up another one, if the last of them is moved before their slot begins), with \
                neighbours in the slot anywhere in memory or side by side. punctual: 32,768 sleeps of 100 ms: how \
                late their wakers were called, and their tasks polled. Ours fires on its driver thread; \
                `+worker_wheel`: on a wheel that the sleeps' own thread turns, as a worker of a runtime of ours will; \
                tasks are polled there by a minimal loop, which is no runtime; `+own_runtime`: on our runtime.",
        hides: "the clock read of a relative sleep; timers that move between threads; what else a task costs; a turn \
                that fires.",
        max_rounds: 5,
        cells,
    }
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells = resident_timers::cells(scale);
    cells.extend(together::cells(scale));
    cells.extend(cascade::cells(scale));
    cells.extend(punctual::cells(scale));
    cells
}

/// Ours on a wheel which the thread that arms the sleeps turns itself, as a worker of a runtime of ours will.
const WORKER_WHEEL: &str = "tidegate+worker_wheel";

/// A library's sleep.
trait Sleeps: 'static {
    const NAME: &'static str;
    type Sleep: Future<Output = ()> + Send + 'static;

    fn sleep(duration: Duration) -> Self::Sleep;
    fn sleep_until(deadline: Instant) -> Self::Sleep;
}

struct Tidegate;

impl Sleeps for Tidegate {
    const NAME: &'static str = "tidegate";
    type Sleep = tidegate_wait::timer::Sleep;

    fn sleep(duration: Duration) -> Self::Sleep {
        tidegate_wait::timer::sleep(duration)
    }

    #[inline]
    fn sleep_until(deadline: Instant) -> Self::Sleep {
        tidegate_wait::timer::sleep_until(deadline)
    }
}

struct Tokio;

impl Sleeps for Tokio {
    const NAME: &'static str = "tokio";
    type Sleep = tokio::time::Sleep;

    fn sleep(duration: Duration) -> Self::Sleep {
        tokio::time::sleep(duration)
    }

    #[inline]
    fn sleep_until(deadline: Instant) -> Self::Sleep {
        tokio::time::sleep_until(deadline.into())
    }
}
