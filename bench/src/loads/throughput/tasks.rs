//! Senders and receivers as tasks.

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::{Halves, Tally, Traffic, CAPACITIES};
use crate::harness::stopwatch::Stopwatch;
use crate::harness::{Cell, Failure, Run, Scale};
use crate::loads::runtimes;
use crate::peers::{
    self, Bounded, BoundedVisitor, Line, Numbered, Outcome, Received, Sent, Unbounded, UnboundedVisitor,
};

pub(in crate::loads) type MakeRuntime = fn() -> Result<Runtime, Failure>;

const PLACES: [(&str, MakeRuntime); 2] =
    [("on two workers", runtimes::two_workers), ("on one thread", runtimes::current_thread)];

struct Cells {
    cells: Vec<Cell>,
    messages: usize,
}

pub(super) fn cells(scale: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), messages: scale.pick(10_000, 200_000) };
    peers::each_bounded(&mut all);
    peers::each_unbounded(&mut all);
    all.cells
}

impl BoundedVisitor for Cells {
    fn visit<P: Bounded>(&mut self) {
        let halves = Halves::of::<P>();
        for (place, runtime) in PLACES {
            for traffic in Traffic::all(self.messages).filter(|traffic| traffic.pattern.fits(&halves)) {
                for capacity in CAPACITIES {
                    let run = move || run::<P, u64>(traffic, runtime, || P::bounded(capacity));
                    self.cells.push(Cell::new(traffic.title(place, capacity), P::NAME, run));
                }
            }
        }
    }
}

impl UnboundedVisitor for Cells {
    fn visit<P: Unbounded>(&mut self) {
        let halves = Halves::of_line::<P>(P::unbounded());
        for (place, runtime) in PLACES {
            for traffic in Traffic::all(self.messages).filter(|traffic| traffic.pattern.fits(&halves)) {
                let run = move || run::<P, u64>(traffic, runtime, P::unbounded);
                self.cells.push(Cell::new(traffic.title_unbounded(place), P::NAME, run));
            }
        }
    }
}

/// Sends all values through a line of `halves`, on a runtime of its own.
pub(in crate::loads) fn run<P: Line, T: Numbered>(
    traffic: Traffic,
    runtime: MakeRuntime,
    halves: impl FnOnce() -> (P::Sender<T>, P::Receiver<T>),
) -> Run {
    let runtime = runtime()?;
    let (lap, received) = runtime.block_on(async {
        let (tx, rx) = halves();
        let watch = Stopwatch::start();
        let receivers = spawn_receivers::<P, T>(traffic.pattern.receivers, rx)?;
        let mut senders = Vec::with_capacity(traffic.pattern.senders);
        for sender in 1..traffic.pattern.senders {
            let tx = P::another_sender(&tx).ok_or_else(|| Failure::new("one sender only"))?;
            senders.push(spawn_sender::<P, T>(tx, traffic.share(sender)));
        }
        senders.push(spawn_sender::<P, T>(tx, traffic.share(0)));
        for sender in senders {
            joined(sender).await??;
        }
        let mut received = Vec::with_capacity(receivers.len());
        for receiver in receivers {
            received.push(joined(receiver).await?);
        }
        Ok::<_, Failure>((watch.stop(), received))
    })?;
    traffic.verify(&received)?;
    Ok(vec![lap.each("a message", traffic.messages)])
}

fn spawn_receivers<P: Line, T: Numbered>(count: usize, rx: P::Receiver<T>) -> Result<Vec<JoinHandle<Tally>>, Failure> {
    let mut halves = Vec::with_capacity(count);
    for _ in 1..count {
        halves.push(P::another(&rx).ok_or_else(|| Failure::new("one receiver only"))?);
    }
    halves.push(rx);
    let receive = |mut rx: P::Receiver<T>| async move {
        let mut tally = Tally::default();
        while let Some(value) = P::recv(&mut rx).await.value() {
            tally.add(value.number());
        }
        tally
    };
    Ok(halves.into_iter().map(|rx| tokio::spawn(receive(rx))).collect())
}

fn spawn_sender<P: Line, T: Numbered>(
    mut tx: P::Sender<T>,
    share: std::ops::Range<u64>,
) -> JoinHandle<Result<(), Failure>> {
    tokio::spawn(async move {
        for value in share {
            if P::send(&mut tx, T::numbered(value)).await.outcome() != Outcome::Sent {
                return Err(Failure::new(format!("the value {value} was not sent")));
            }
        }
        Ok(())
    })
}

async fn joined<R>(task: JoinHandle<R>) -> Result<R, Failure> {
    task.await.map_err(|error| Failure::new(error.to_string()))
}
