//! The load gate: is the machine quiet enough for a round to mean something?
//!
//! Two looks, because neither sees everything: a short loop of plain arithmetic, which takes longer than its best when the
//! processor is shared or slowed, and the number of runnable threads in `/proc/loadavg`, which sees a neighbour on the
//! other processor. The gate waits for quiet a bounded time (less after it waited in vain); a round that starts without it is marked as noisy.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How much slower than its best the calibration may run.
const SLOWER: f64 = 1.12;
const LOOKS: usize = 5;

/// Remembers how fast the machine can be.
#[derive(Debug)]
pub(crate) struct Gate {
    best: Duration,
    patience: Duration,
    /// Halved by each wait in vain, so that a machine that is never quiet does not cost hours; whole again after quiet.
    left: Duration,
}

/// What the gate found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    Quiet,
    Noisy,
}

impl Gate {
    /// A gate that waits for quiet at most `patience` each time.
    pub(crate) fn new(patience: Duration) -> Gate {
        let best = (0..50).map(|_| calibrate()).min().unwrap_or_default();
        Gate { best, patience, left: patience }
    }

    /// Waits for quiet.
    pub(crate) fn wait(&mut self) -> Machine {
        let begin = Instant::now();
        loop {
            if self.is_quiet() {
                self.left = self.patience;
                return Machine::Quiet;
            }
            if begin.elapsed() >= self.left {
                self.left /= 2;
                return Machine::Noisy;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_quiet(&mut self) -> bool {
        let mut times = [Duration::ZERO; LOOKS];
        let mut shared = 0;
        for time in &mut times {
            *time = calibrate();
            shared += usize::from(runnable().is_some_and(|threads| threads > 1));
        }
        times.sort();
        self.best = self.best.min(times[0]);
        shared <= LOOKS / 2 && times[LOOKS / 2] <= self.best.mul_f64(SLOWER)
    }
}

/// About 200 µs of arithmetic that no compiler can leave out.
fn calibrate() -> Duration {
    let begin = Instant::now();
    let mut state = black_box(1_u64);
    for _ in 0..100_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    black_box(state);
    begin.elapsed()
}

/// Runnable threads of the whole machine, this one among them; `None` where the system does not say.
fn runnable() -> Option<u32> {
    parse_runnable(&std::fs::read_to_string("/proc/loadavg").ok()?)
}

/// The fourth field: runnable/all.
fn parse_runnable(loadavg: &str) -> Option<u32> {
    loadavg.split_whitespace().nth(3)?.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loadavg_is_read() {
        assert_eq!(parse_runnable("2.45 1.21 0.57 5/129 17551\n"), Some(5));
        assert_eq!(parse_runnable("2.45 1.21"), None);
        assert_eq!(parse_runnable("a b c d e"), None);
    }

    #[test]
    fn a_gate_without_patience_answers_at_once() {
        let mut gate = Gate::new(Duration::ZERO);
        let begin = Instant::now();
        let _ = gate.wait();
        assert!(begin.elapsed() < Duration::from_secs(5));
    }
}
