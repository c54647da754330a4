//! `head_of_line`: many timed sends expire behind many parked ones; does anybody else notice?

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_wait::Operation;
use tokio::task::{spawn, yield_now, JoinHandle};

use crate::harness::stopwatch::{milliseconds, Stopwatch};
use crate::harness::{Cell, Failure, Load, Metric, Run, Scale, Unit};
use crate::loads::{head_of_line_at_home, runtimes};
use crate::peers::{self, Outcome, Peer, Sent, Tidegate, Visitor};

pub(crate) fn load() -> Load {
    Load {
        name: "head_of_line",
        shows:
            "a canary that sleeps 100 ms on a thread where 4,096 sends with a limit of 100 ms expire behind B parked \
                ones: how long it slept, when all 4,096 tasks were done, and how many got their value back. All on one \
                current-thread runtime of tokio, the canary on tokio's timer (`+own_sleep`: on ours). The same with \
                receives, ours alone, the canary on our timer. And all of it on our own runtime \
                (`+own_runtime`), also with 16,384 sends that expire.",
        hides: "how timers of other runtimes fare; the time that the B tasks take to park.",
        max_rounds: 7,
        cells,
    }
}

pub(super) const LIMIT: Duration = Duration::from_millis(100);
pub(super) const TIMED: usize = 4_096;

struct Cells {
    cells: Vec<Cell>,
    parked: &'static [usize],
}

fn cells(scale: Scale) -> Vec<Cell> {
    let parked: &[usize] = scale.pick(&[0, 32_768], &[0, 32_768, 131_072]);
    let mut all = Cells { cells: Vec::new(), parked };
    peers::each(&mut all);
    all.add::<Tidegate, _>("tidegate+own_sleep", || tidegate_wait::timer::sleep(LIMIT));
    peers::each_own_timeout(&mut all);
    for &parked in parked {
        let case = format!("{parked} parked ahead of {TIMED} receives of 100 ms");
        all.cells.push(Cell::new(case, Tidegate::NAME, move || runtimes::current_thread()?.block_on(receives(parked))));
    }
    all.cells.extend(head_of_line_at_home::cells(scale));
    all.cells
}

/// The other side, ours alone: not every peer's receiver can be cloned.
async fn receives(parked: usize) -> Run {
    let (tx, rx) = tidegate_channel::bounded::<u64>(1);
    let ahead = all_parked(parked, |_, begun| {
        let receive = rx.clone().into_recv();
        async move {
            begun.fetch_add(1, Relaxed);
            receive.await.is_ok()
        }
    })
    .await;
    let timed = all_parked(TIMED, |_, begun| {
        let receive = rx.clone().into_recv().timeout(LIMIT);
        async move {
            begun.fetch_add(1, Relaxed);
            receive.await
        }
    })
    .await;
    Failure::unless_equal("receives parked", rx.parked_receivers(), parked + TIMED)?;
    let watch = Stopwatch::start();
    let begin = Instant::now();
    let canary = spawn(async move {
        tidegate_wait::timer::sleep(LIMIT).await;
        begin.elapsed()
    });
    let mut timed_out = 0;
    for task in timed {
        let end = task.await.map_err(|error| Failure::new(error.to_string()))?;
        timed_out += usize::from(end == Err(tidegate_channel::RecvError::TimedOut));
    }
    let lap = watch.stop();
    let canary = canary.await.map_err(|error| Failure::new(error.to_string()))?;
    Failure::unless_equal("receives that timed out", timed_out, TIMED)?;
    // Those ahead have kept their places.
    for task in ahead {
        tx.send(1).await.map_err(|error| Failure::new(error.to_string()))?;
        Failure::unless_equal("a receive ahead got its value", task.await.unwrap_or(false), true)?;
    }
    Ok(vec![
        Metric::new("canary", Unit::Milliseconds, milliseconds(canary)),
        Metric::new("all done", Unit::Milliseconds, milliseconds(lap.wall)).with_cpu(milliseconds(lap.cpu)),
    ])
}

impl Visitor for Cells {
    fn visit<P: Peer>(&mut self) {
        self.add::<P, _>(P::NAME, || tokio::time::sleep(LIMIT));
    }
}

impl Cells {
    fn add<P: Peer, S: Future<Output = ()> + Send + 'static>(&mut self, name: &'static str, sleep: fn() -> S) {
        for &parked in self.parked {
            let case = format!("{parked} parked ahead of {TIMED} sends of 100 ms");
            self.cells.push(Cell::new(case, name, move || run::<P, S>(parked, sleep)));
        }
    }
}

fn run<P: Peer, S: Future<Output = ()> + Send + 'static>(parked: usize, sleep: fn() -> S) -> Run {
    let runtime = runtimes::current_thread()?;
    let metrics = runtime.block_on(measure::<P, S>(parked, sleep));
    drop(runtime);
    metrics
}

async fn measure<P: Peer, S: Future<Output = ()> + Send + 'static>(parked: usize, sleep: fn() -> S) -> Run {
    let (tx, mut rx) = P::bounded::<u64>(1);
    if !P::try_send(&tx, 0) {
        return Err(Failure::new("an empty channel refused a value"));
    }
    let _ahead = all_parked(parked, |number, begun| {
        let tx = tx.clone();
        async move {
            begun.fetch_add(1, Relaxed);
            let _closed = P::send(&tx, number).await.outcome();
        }
    })
    .await;
    let timed = all_parked(TIMED, |number, begun| {
        let tx = tx.clone();
        async move {
            begun.fetch_add(1, Relaxed);
            P::send_within(&tx, number, LIMIT).await.outcome()
        }
    })
    .await;

    let watch = Stopwatch::start();
    let begin = Instant::now();
    let canary = spawn(async move {
        sleep().await;
        begin.elapsed()
    });
    let returned = count_returned(timed).await?;
    let lap = watch.stop();
    let canary = canary.await.map_err(|error| Failure::new(error.to_string()))?;

    Failure::unless_equal("the value in the channel", P::try_recv(&mut rx).unwrap_or(u64::MAX), 0)?;
    // A peer that searches for what is dropped has nothing left to search through when the runtime drops the tasks.
    while P::try_recv(&mut rx).is_some() {}
    let cpu = milliseconds(lap.cpu);
    Ok(vec![
        Metric::new("canary", Unit::Milliseconds, milliseconds(canary)),
        Metric::new("all done", Unit::Milliseconds, milliseconds(lap.wall)).with_cpu(cpu),
        Metric::new("values returned", Unit::Count, returned as f64),
    ])
}

/// Spawns `count` tasks and waits until each has begun, and so (on one thread) parked.
async fn all_parked<F: Future<Output: Send> + Send + 'static>(
    count: usize,
    task: impl Fn(u64, Arc<AtomicUsize>) -> F,
) -> Vec<JoinHandle<F::Output>> {
    let begun = Arc::new(AtomicUsize::new(0));
    let tasks = (1..=count as u64).map(|number| spawn(task(number, begun.clone()))).collect();
    while begun.load(Relaxed) < count {
        yield_now().await;
    }
    tasks
}

/// How many of the timed sends gave their value back; none may have been sent, and none have another's value.
async fn count_returned(timed: Vec<JoinHandle<Outcome<u64>>>) -> Result<usize, Failure> {
    let mut returned = 0;
    for (number, task) in (1..).zip(timed) {
        match task.await.map_err(|error| Failure::new(error.to_string()))? {
            Outcome::Sent => return Err(Failure::new("a send on a full channel came through")),
            Outcome::Returned(value) if value != number => {
                return Err(Failure::new(format!("the send of {number} gave {value} back")));
            }
            Outcome::Returned(_) => returned += 1,
            Outcome::Lost => {}
        }
    }
    Ok(returned)
}
