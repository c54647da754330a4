//! `head_of_line`: many timed sends expire behind many parked ones; does anybody else notice?

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{spawn, yield_now, JoinHandle};

use crate::harness::stopwatch::{milliseconds, Stopwatch};
use crate::harness::{Cell, Failure, Load, Metric, Run, Scale, Unit};
use crate::loads::{head_of_line_at_home, runtimes};
use crate::peers::{self, Outcome, Peer, Received, Sent, Tidegate, Visitor};

pub(crate) fn load() -> Load {
    Load {
        name: "head_of_line",
        shows:
            "a canary that sleeps 100 ms on a thread where 4,096 sends with a limit of 100 ms expire behind B parked \
                ones: how long it slept, when all 4,096 tasks were done, and how many got their value back. All on one \
                current-thread runtime of tokio, the canary on tokio's timer (`+own_sleep`: on ours). The same with \
                receives, of which those ahead must then get a value each. And all of it on our own runtime \
                (`+own_runtime`), also with 16,384 sends that expire.",
        hides:
            "how timers of other runtimes fare; the time that the B tasks take to park. The sends leave out postage, \
                crossfire-spsc and futures-channel (see `park_cancel`), the receives whoever has one receiver.",
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
    let parked: &[usize] = scale.pick(&[0, 8_192], &[0, 32_768, 131_072]);
    let mut all = Cells { cells: Vec::new(), parked };
    peers::each(&mut all);
    all.add::<Tidegate, _>("tidegate+own_sleep", || tidegate_wait::timer::sleep(LIMIT));
    peers::each_own_timeout(&mut Variants(&mut all));
    all.cells.extend(head_of_line_at_home::cells(scale));
    all.cells
}

/// The other side.
async fn receives<P: Peer, S: Future<Output = ()> + Send + 'static>(parked: usize, sleep: fn() -> S) -> Run {
    let (tx, rx) = P::bounded::<u64>(1);
    let mut halves = Vec::with_capacity(parked + TIMED);
    for _ in 0..parked + TIMED {
        halves.push(P::another(&rx).ok_or_else(|| Failure::new("one receiver only"))?);
    }
    let timed = halves.split_off(parked);
    let ahead = all_parked(halves, |_, rx, begun| {
        let receive = P::recv_owned(rx);
        async move {
            begun.fetch_add(1, Relaxed);
            receive.await.value()
        }
    })
    .await;
    let timed = all_parked(timed, |_, mut rx, begun| async move {
        begun.fetch_add(1, Relaxed);
        P::recv_within(&mut rx, LIMIT).await.value()
    })
    .await;
    let watch = Stopwatch::start();
    let begin = Instant::now();
    let canary = spawn(async move {
        sleep().await;
        begin.elapsed()
    });
    let mut timed_out = 0;
    for task in timed {
        timed_out += usize::from(task.await.map_err(|error| Failure::new(error.to_string()))?.is_none());
    }
    let lap = watch.stop();
    let canary = canary.await.map_err(|error| Failure::new(error.to_string()))?;
    Failure::unless_equal("receives that timed out", timed_out, TIMED)?;
    // Those ahead have kept their places.
    for number in 1..=parked as u64 {
        if P::send(&tx, number).await.outcome() != Outcome::Sent {
            return Err(Failure::new("a send to a receive that waits did not go through"));
        }
    }
    drop(tx);
    let mut sum = 0;
    for task in ahead {
        sum += task.await.map_err(|error| Failure::new(error.to_string()))?.unwrap_or(0);
    }
    Failure::unless_equal("the sum of what those ahead received", sum, (1..=parked as u64).sum())?;
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

/// A peer with another way to limit a send; its receives are the peer's.
struct Variants<'a>(&'a mut Cells);

impl Visitor for Variants<'_> {
    fn visit<P: Peer>(&mut self) {
        self.0.add_sends::<P, _>(P::NAME, || tokio::time::sleep(LIMIT));
    }
}

impl Cells {
    fn add<P: Peer, S: Future<Output = ()> + Send + 'static>(&mut self, name: &'static str, sleep: fn() -> S) {
        self.add_sends::<P, S>(name, sleep);
        self.add_receives::<P, S>(name, sleep);
    }

    fn add_sends<P: Peer, S: Future<Output = ()> + Send + 'static>(&mut self, name: &'static str, sleep: fn() -> S) {
        for &parked in self.parked {
            let case = format!("{parked} parked ahead of {TIMED} sends of 100 ms");
            let cell = Cell::new(case, name, move || run::<P, S>(parked, sleep));
            self.cells.push(cell.on("sends parked ahead", parked));
        }
    }

    /// Not for a peer with one receiver.
    fn add_receives<P: Peer, S: Future<Output = ()> + Send + 'static>(&mut self, name: &'static str, sleep: fn() -> S) {
        let (_tx, rx) = P::bounded::<u64>(1);
        if P::another(&rx).is_none() {
            return;
        }
        for &parked in self.parked {
            let case = format!("{parked} parked ahead of {TIMED} receives of 100 ms");
            let run = move || runtimes::current_thread()?.block_on(receives::<P, S>(parked, sleep));
            self.cells.push(Cell::new(case, name, run).on("receives parked ahead", parked));
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
    let _ahead = all_parked(vec![tx.clone(); parked], |number, tx, begun| async move {
        begun.fetch_add(1, Relaxed);
        let _closed = P::send(&tx, number).await.outcome();
    })
    .await;
    let timed = all_parked(vec![tx.clone(); TIMED], |number, tx, begun| async move {
        begun.fetch_add(1, Relaxed);
        P::send_within(&tx, number, LIMIT).await.outcome()
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

/// Spawns a task for each half and waits until each has begun, and so (on one thread) parked.
async fn all_parked<H, F: Future<Output: Send> + Send + 'static>(
    halves: Vec<H>,
    task: impl Fn(u64, H, Arc<AtomicUsize>) -> F,
) -> Vec<JoinHandle<F::Output>> {
    let begun = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (1..).zip(halves).map(|(number, half)| spawn(task(number, half, begun.clone()))).collect();
    while begun.load(Relaxed) < tasks.len() {
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
