//! Insertion and cancellation beside a million others.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use super::{Sleeps, Tidegate, Tokio, WORKER_WHEEL};
use crate::harness::allocation::counted;
use crate::harness::statistics::SEED;
use crate::harness::stopwatch::Stopwatch;
use crate::harness::{Cell, Failure, Metric, Run, Scale, Unit};
use crate::loads::resident::{Order, Residents};
use crate::loads::{hooks, runtimes};

const SPAN: Duration = Duration::from_secs(3600);
/// None is due while the load runs.
const NEAREST: Duration = Duration::from_secs(60);

/// Runs a run somewhere.
type Inside = fn(&dyn Fn() -> Run) -> Run;

pub(super) fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells = Vec::new();
    add::<Tidegate>(&mut cells, scale, Tidegate::NAME, |work| work());
    add::<Tidegate>(&mut cells, scale, WORKER_WHEEL, |work| hooks::inside(work));
    add::<Tokio>(&mut cells, scale, Tokio::NAME, |work| work());
    cells
}

fn add<S: Sleeps>(cells: &mut Vec<Cell>, scale: Scale, name: &'static str, inside: Inside) {
    let many = scale.pick(200_000, 1_000_000);
    for (order, title) in [(Order::Random, "random"), (Order::Oldest, "insertion")] {
        let case = format!("{many} resident timers, dropped in {title} order");
        cells.push(Cell::new(case, name, move || inside(&|| resident::<S>(many, order))));
    }
    let case = "one timer beside 100000 resident ones";
    cells.push(Cell::new(case, name, move || inside(&|| beside::<S>(100_000, scale.pick(20_000, 200_000)))));
}

/// Random deadlines over the span, the same in every run.
fn deadlines(count: usize) -> Vec<Instant> {
    let mut random = fastrand::Rng::with_seed(SEED);
    let first = Instant::now() + NEAREST;
    (0..count).map(|_| first + Duration::from_nanos(random.u64(..SPAN.as_nanos() as u64))).collect()
}

fn resident<S: Sleeps>(many: usize, order: Order) -> Run {
    let runtime = runtimes::current_thread()?;
    let _entered = runtime.enter();
    let deadlines = deadlines(many);
    let mut timers = Residents::new(many);
    let ((insertion, pending), inserted) = counted(|| {
        let watch = Stopwatch::start();
        let pending = timers.park(|number| S::sleep_until(deadlines[number]));
        (watch.stop(), pending)
    });
    Failure::unless_equal("timers pending", pending, many)?;
    timers.arrange(order, SEED);
    let (cancellation, cancelled) = counted(|| {
        let watch = Stopwatch::start();
        timers.cancel();
        watch.stop()
    });
    let allocations = (inserted.calls + cancelled.calls) as f64;
    Ok(vec![
        insertion.each("insert", many),
        cancellation.each("cancel", many),
        Metric::new("allocations", Unit::Count, allocations),
    ])
}

fn beside<S: Sleeps>(many: usize, times: usize) -> Run {
    let runtime = runtimes::current_thread()?;
    let _entered = runtime.enter();
    let deadlines = deadlines(many);
    let mut timers = Residents::new(many);
    let pending = timers.park(|number| S::sleep_until(deadlines[number]));
    Failure::unless_equal("timers pending", pending, many)?;
    let mut cx = Context::from_waker(Waker::noop());
    let mut ready = 0;
    let watch = Stopwatch::start();
    for number in 0..times {
        let mut sleep = pin!(S::sleep_until(deadlines[number % many]));
        ready += usize::from(black_box(sleep.as_mut().poll(&mut cx)).is_ready());
    }
    let lap = watch.stop();
    Failure::unless_equal("timers that were due", ready, 0)?;
    Ok(vec![lap.each("insert + cancel", times)])
}
