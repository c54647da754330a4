//! Many sleeps that are due together.
//!
//! The tasks run on tokio's current-thread runtime, ours too, which our driver thread wakes from outside. `+worker_wheel`
//! runs them on the loop in [`worker`], which turns the wheel itself: what stands between the two is tokio's wake queue
//! and the way from one thread to the other. `+own_runtime` is our whole runtime.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use super::{worker, Sleeps, Tidegate, Tokio, WORKER_WHEEL};
use crate::harness::statistics::{maximum, median, percentile};
use crate::harness::stopwatch::{milliseconds, milliseconds_between, Lap, Stopwatch};
use crate::harness::{Cell, Failure, Metric, Run, Scale, Unit};
use crate::hosts::{self, Host};
use crate::loads::runtimes;

const OWN_RUNTIME: &str = "tidegate+own_runtime";
const SLEEPS: usize = 32_768;
const NAP: Duration = Duration::from_millis(100);
/// After this long every sleep must have fired.
const PATIENCE: Duration = Duration::from_millis(400);

pub(super) fn cells(_: Scale) -> Vec<Cell> {
    let fired = format!("{SLEEPS} sleeps of 100 ms, how late they fired");
    let polled = format!("{SLEEPS} sleeps of 100 ms in tasks, how late they were polled");
    vec![
        Cell::new(fired.clone(), Tidegate::NAME, fire::<Tidegate>),
        Cell::new(fired, Tokio::NAME, fire::<Tokio>),
        Cell::new(polled.clone(), Tidegate::NAME, poll::<Tidegate>),
        Cell::new(polled.clone(), WORKER_WHEEL, poll_on_worker),
        Cell::new(polled.clone(), OWN_RUNTIME, poll_at_home),
        Cell::new(polled, Tokio::NAME, poll::<Tokio>),
    ]
}

/// A waker that writes down when it was woken, in nanoseconds since `begin`.
struct Stamp {
    begin: Instant,
    // Relaxed: read after the run, by the thread that waited for all of it.
    woken: AtomicU64,
}

impl Wake for Stamp {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let _first = self.woken.compare_exchange(0, self.begin.elapsed().as_nanos() as u64, Relaxed, Relaxed);
    }
}

fn fire<S: Sleeps>() -> Run {
    let runtime = runtimes::current_thread()?;
    let _entered = runtime.enter();
    let begin = Instant::now();
    let stamps: Vec<Arc<Stamp>> = (0..SLEEPS).map(|_| Arc::new(Stamp { begin, woken: AtomicU64::new(0) })).collect();
    let mut sleeps: Vec<Pin<Box<S::Sleep>>> = Vec::with_capacity(SLEEPS);
    let mut due = Vec::with_capacity(SLEEPS);
    for stamp in &stamps {
        let deadline = Instant::now() + NAP;
        let mut sleep = Box::pin(S::sleep_until(deadline));
        let waker = Waker::from(stamp.clone());
        if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            return Err(Failure::new("a sleep of 100 ms was over at once"));
        }
        sleeps.push(sleep);
        due.push(deadline);
    }
    runtime.block_on(tokio::time::sleep(NAP + PATIENCE));

    let mut late = Vec::with_capacity(SLEEPS);
    for (stamp, due) in stamps.iter().zip(due) {
        let woken = match stamp.woken.load(Relaxed) {
            0 => return Err(Failure::new("a sleep did not fire in time")),
            woken => begin + Duration::from_nanos(woken),
        };
        if woken < due {
            return Err(Failure::new("a sleep fired early"));
        }
        late.push(milliseconds(woken - due));
    }
    Ok(vec![
        Metric::new("lateness", Unit::Milliseconds, median(&late)).with_p99(percentile(&late, 0.99)),
        Metric::new("worst lateness", Unit::Milliseconds, maximum(&late)),
    ])
}

/// What each task does; returns by how many ms it was polled late, below zero: early.
async fn nap<S: Sleeps>() -> f64 {
    let due = Instant::now() + NAP;
    S::sleep(NAP).await;
    milliseconds_between(due, Instant::now())
}

fn poll<S: Sleeps>() -> Run {
    let runtime = runtimes::current_thread()?;
    runtime.block_on(async {
        let watch = Stopwatch::start();
        let tasks: Vec<_> = (0..SLEEPS).map(|_| tokio::spawn(nap::<S>())).collect();
        let mut late = Vec::with_capacity(SLEEPS);
        for task in tasks {
            late.push(task.await.map_err(|error| Failure::new(error.to_string()))?);
        }
        polled(&late, watch.stop())
    })
}

/// The same tasks on our own runtime.
fn poll_at_home() -> Run {
    hosts::Tidegate::run(async {
        let watch = Stopwatch::start();
        let tasks: Vec<_> = (0..SLEEPS).map(|_| hosts::Tidegate::spawn(nap::<Tidegate>())).collect();
        let mut late = Vec::with_capacity(SLEEPS);
        for task in tasks {
            late.push(hosts::Tidegate::join(task).await);
        }
        polled(&late, watch.stop())
    })?
}

/// The same tasks where the thread that polls them turns the wheel, too.
fn poll_on_worker() -> Run {
    let watch = Stopwatch::start();
    let late = worker::run((0..SLEEPS).map(|_| nap::<Tidegate>()))?;
    polled(&late, watch.stop())
}

fn polled(late: &[f64], lap: Lap) -> Run {
    Failure::unless_equal("tasks that ended", late.len(), SLEEPS)?;
    if late.iter().any(|&late| late < 0.0) {
        return Err(Failure::new("a sleep was over early"));
    }
    Ok(vec![
        Metric::new("lateness", Unit::Milliseconds, median(late))
            .with_p99(percentile(late, 0.99))
            .with_cpu(milliseconds(lap.cpu)),
        Metric::new("worst lateness", Unit::Milliseconds, maximum(late)),
    ])
}
