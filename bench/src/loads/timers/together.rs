//! Insertion and cancellation by two threads at once.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Barrier;
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::{Sleeps, Tidegate, Tokio};
use crate::harness::stopwatch::Stopwatch;
use crate::harness::{Cell, Failure, Run, Scale};
use crate::loads::runtimes;

const THREADS: usize = 2;
/// Due long after the load.
const LIMIT: Duration = Duration::from_secs(3600);

pub(super) fn cells(scale: Scale) -> Vec<Cell> {
    let times = scale.pick(50_000, 500_000);
    let mut cells = Vec::new();
    add::<Tidegate>(&mut cells, times);
    add::<Tokio>(&mut cells, times);
    cells
}

fn add<S: Sleeps>(cells: &mut Vec<Cell>, times: usize) {
    cells.push(Cell::new(format!("{THREADS} threads at once"), S::NAME, move || run::<S>(times)));
}

/// Each thread sets a timer and drops it, again and again, on the runtime of both.
fn run<S: Sleeps>(times: usize) -> Run {
    let runtime = runtimes::two_workers()?;
    let ready = Barrier::new(THREADS + 1);
    let (lap, due) = thread::scope(|scope| {
        let worker = || {
            let _entered = runtime.enter();
            ready.wait();
            set_and_drop::<S>(times)
        };
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(worker)).collect();
        ready.wait();
        let watch = Stopwatch::start();
        let due: Option<usize> = workers.into_iter().map(|worker| worker.join().ok()).sum();
        (watch.stop(), due)
    });
    let due = due.ok_or_else(|| Failure::new("a thread that sets timers panicked"))?;
    Failure::unless_equal("timers that were due", due, 0)?;
    Ok(vec![lap.each("insert + cancel", THREADS * times)])
}

/// How many were due.
fn set_and_drop<S: Sleeps>(times: usize) -> usize {
    let deadline = Instant::now() + LIMIT;
    let mut cx = Context::from_waker(Waker::noop());
    let is_due = |_: &usize| {
        let mut sleep = pin!(S::sleep_until(deadline));
        black_box(sleep.as_mut().poll(&mut cx)).is_ready()
    };
    (0..times).filter(is_due).count()
}
