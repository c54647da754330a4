//! A million timers within one upper slot of the wheel, and everybody else's punctuality meanwhile.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::{Sleeps, Tidegate, Tokio};
use crate::harness::statistics::{maximum, median, percentile, SEED};
use crate::harness::stopwatch::milliseconds;
use crate::harness::{Cell, Failure, Metric, Run, Scale, Unit};
use crate::loads::resident::Residents;
use crate::loads::{hooks, runtimes};

/// A slot of the third level of our wheel: 64 × 64 ticks of 2^16 ns.
const SLOT_NS: u64 = 1 << 28;
const PERIOD: Duration = Duration::from_millis(1);
/// Ticks that make a run worth something.
const ENOUGH: usize = 100;

pub(super) fn cells(scale: Scale) -> Vec<Cell> {
    let many = scale.pick(200_000, 1_000_000);
    let ahead = Duration::from_millis(scale.pick(500, 2_500));
    let mut cells = Vec::new();
    for timers in [0, many] {
        let case = format!("a 1 ms timer beside {timers} in one upper slot");
        cells.push(Cell::new(case.clone(), Tidegate::NAME, move || run::<Tidegate>(timers, ahead)));
        cells.push(Cell::new(case, Tokio::NAME, move || run::<Tokio>(timers, ahead)));
    }
    cells
}

/// Tries again with deadlines further away if the insertion itself took too long.
fn run<S: Sleeps>(many: usize, ahead: Duration) -> Run {
    let runtime = runtimes::current_thread()?;
    let _entered = runtime.enter();
    for ahead in [ahead, 4 * ahead, 16 * ahead] {
        let late = near_and_drop::<S>(&runtime, many, ahead)?;
        if late.len() >= ENOUGH {
            return Ok(vec![
                Metric::new("lateness", Unit::Milliseconds, median(&late)).with_p99(percentile(&late, 0.99)),
                Metric::new("worst lateness", Unit::Milliseconds, maximum(&late)),
            ]);
        }
    }
    Err(Failure::new(format!("the machine is too slow to arm {many} timers and see them come near")))
}

/// The deadlines fill the second half of a slot: the wheel has to move them before they are due, and they are dropped
/// just before the first one fires. Returns how late each tick was between the insertion and the drop.
fn near_and_drop<S: Sleeps>(runtime: &Runtime, many: usize, ahead: Duration) -> Result<Vec<f64>, Failure> {
    let first = slot_after(Instant::now() + ahead)? + Duration::from_nanos(SLOT_NS / 2);
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut timers = Residents::new(many);
    let pending = timers.park(|_| S::sleep_until(first + Duration::from_nanos(random.u64(..SLOT_NS / 2))));
    Failure::unless_equal("timers pending", pending, many)?;
    let late = runtime.block_on(lateness::<S>(first - Duration::from_millis(5)));
    timers.cancel();
    Ok(late)
}

/// How late each tick of a periodic timer was, until `end`.
async fn lateness<S: Sleeps>(end: Instant) -> Vec<f64> {
    let mut late = Vec::new();
    let mut due = Instant::now() + PERIOD;
    while due < end {
        S::sleep_until(due).await;
        let now = Instant::now();
        late.push(milliseconds(now.saturating_duration_since(due)));
        // A tick that was missed is not made up for: it was counted as one that was late.
        while due <= now {
            due += PERIOD;
        }
    }
    tokio::time::sleep_until(end.into()).await;
    late
}

/// The first beginning of a slot of our wheels after `at`.
fn slot_after(at: Instant) -> Result<Instant, Failure> {
    let now = hooks::wheel()?.now_ns();
    let at_ns = now + at.saturating_duration_since(Instant::now()).as_nanos() as u64;
    Ok(at + Duration::from_nanos(SLOT_NS - at_ns % SLOT_NS))
}
