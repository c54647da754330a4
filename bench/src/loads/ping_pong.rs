//! `ping_pong`: one message there, one back, and nothing else.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::harness::statistics::percentile;
use crate::harness::stopwatch::{Lap, Stopwatch};
use crate::harness::{Cell, Failure, Load, Run, Scale};
use crate::loads::runtimes;
use crate::peers::{self, Bounded, BoundedVisitor, Line, Outcome, Received, Sent, Token};

pub(crate) fn load() -> Load {
    Load {
        name: "ping_pong",
        shows:
            "a round of two messages between two tasks through two channels of capacity 1: every receive parks and is \
                woken. Plain, with a limit of 1 s that never fires, with a live token; both tasks on one thread, or on \
                two workers. p99 is from a second pass with a clock read a round.",
        hides: "throughput. On two workers it is mostly the runtime's wake and the scheduler of the system.",
        max_rounds: usize::MAX,
        cells,
    }
}

const LIMIT: Duration = Duration::from_secs(1);

/// How the operations are limited.
#[derive(Clone, Copy, Debug)]
enum Way {
    Plain,
    Timed,
    Cancellable,
}

type MakeRuntime = fn() -> Result<Runtime, Failure>;

struct Cells {
    cells: Vec<Cell>,
    rounds: usize,
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), rounds: scale.pick(5_000, 50_000) };
    peers::each_bounded(&mut all);
    all.cells
}

impl BoundedVisitor for Cells {
    fn visit<P: Bounded>(&mut self) {
        let places: [(&str, MakeRuntime); 2] =
            [("same thread", runtimes::current_thread), ("two workers", runtimes::two_workers)];
        let ways = [("plain", Way::Plain), ("1 s limits", Way::Timed), ("live token", Way::Cancellable)];
        let rounds = self.rounds;
        for (place, runtime) in places {
            for (title, way) in ways {
                let run = move || run::<P>(way, rounds, runtime);
                self.cells.push(Cell::new(format!("{title}, {place}"), P::NAME, run));
            }
        }
    }
}

fn run<P: Bounded>(way: Way, rounds: usize, runtime: MakeRuntime) -> Run {
    let runtime = runtime()?;
    let (lap, _) = runtime.block_on(game::<P>(way, rounds, false))?;
    let (_, times) = runtime.block_on(game::<P>(way, rounds / 4, true))?;
    Ok(vec![lap.each("a round", rounds).with_p99(percentile(&times, 0.99))])
}

/// Plays `rounds`; gives each one's time if it is `timed`.
async fn game<P: Bounded>(way: Way, rounds: usize, timed: bool) -> Result<(Lap, Vec<f64>), Failure> {
    let (ping_tx, ping_rx) = P::bounded::<u64>(1);
    let (pong_tx, pong_rx) = P::bounded::<u64>(1);
    let token = P::Token::new();
    let echo = tokio::spawn(echo::<P>(way, End { tx: pong_tx, rx: ping_rx, token: token.clone() }));
    let end = End { tx: ping_tx, rx: pong_rx, token };
    let served = tokio::spawn(serve::<P>(way, end, rounds, timed));
    let served = served.await.map_err(|error| Failure::new(error.to_string()))??;
    let echoed = echo.await.map_err(|error| Failure::new(error.to_string()))?;
    Failure::unless_equal("messages echoed", echoed, rounds)?;
    Ok(served)
}

/// One player's halves.
struct End<P: Line> {
    tx: P::Sender<u64>,
    rx: P::Receiver<u64>,
    token: P::Token,
}

impl<P: Line> End<P> {
    async fn send(&mut self, way: Way, value: u64) -> bool {
        let outcome = match way {
            Way::Plain => P::send(&mut self.tx, value).await.outcome(),
            Way::Timed => P::send_within(&mut self.tx, value, LIMIT).await.outcome(),
            Way::Cancellable => P::send_until(&mut self.tx, value, &self.token).await.outcome(),
        };
        outcome == Outcome::Sent
    }

    async fn recv(&mut self, way: Way) -> Option<u64> {
        match way {
            Way::Plain => P::recv(&mut self.rx).await.value(),
            Way::Timed => P::recv_within(&mut self.rx, LIMIT).await.value(),
            Way::Cancellable => P::recv_until(&mut self.rx, &self.token).await.value(),
        }
    }
}

async fn serve<P: Line>(way: Way, mut end: End<P>, rounds: usize, timed: bool) -> Result<(Lap, Vec<f64>), Failure> {
    let mut times = Vec::with_capacity(if timed { rounds } else { 0 });
    let watch = Stopwatch::start();
    let mut last = Instant::now();
    for round in 0..rounds as u64 {
        if !end.send(way, round).await || end.recv(way).await != Some(round) {
            return Err(Failure::new(format!("round {round} went wrong")));
        }
        if timed {
            let now = Instant::now();
            times.push((now - last).as_nanos() as f64);
            last = now;
        }
    }
    Ok((watch.stop(), times))
}

async fn echo<P: Line>(way: Way, mut end: End<P>) -> usize {
    let mut echoed = 0;
    while let Some(value) = end.recv(way).await {
        if !end.send(way, value).await {
            break;
        }
        echoed += 1;
    }
    echoed
}
