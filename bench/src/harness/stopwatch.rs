//! Wall time and the process's processor time, together.

use std::time::{Duration, Instant};

use rustix::time::{clock_gettime, ClockId};

use super::{Metric, Unit};

/// Runs from its creation.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    cpu: Duration,
    wall: Instant,
}

/// What it showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lap {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { cpu: process_time(), wall: Instant::now() }
    }

    pub(crate) fn stop(self) -> Lap {
        let wall = self.wall.elapsed();
        Lap { wall, cpu: process_time().saturating_sub(self.cpu) }
    }
}

impl Lap {
    /// The cost of each of `count` operations.
    pub(crate) fn each(self, name: &'static str, count: usize) -> Metric {
        let share = |total: Duration| total.as_nanos() as f64 / count as f64;
        Metric::new(name, Unit::Nanoseconds, share(self.wall)).with_cpu(share(self.cpu))
    }
}

/// Processor time of all threads of this process.
fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

pub(crate) fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// From `from` to `to`; below zero if that is backwards.
pub(crate) fn milliseconds_between(from: Instant, to: Instant) -> f64 {
    milliseconds(to.saturating_duration_since(from)) - milliseconds(from.saturating_duration_since(to))
}
