//! Senders and receivers as threads.

use std::thread::{self, ScopedJoinHandle};

use super::{Tally, Traffic, CAPACITIES, PATTERNS};
use crate::harness::stopwatch::Stopwatch;
use crate::harness::{Cell, Failure, Run, Scale};
use crate::peers::{self, BlockingLine, BlockingPeer, BlockingUnbounded, BlockingUnboundedVisitor, BlockingVisitor};

pub(super) fn cells(scale: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), messages: scale.pick(10_000, 200_000) };
    peers::each_blocking(&mut all);
    peers::each_blocking_unbounded(&mut all);
    all.cells
}

struct Cells {
    cells: Vec<Cell>,
    messages: usize,
}

impl BlockingVisitor for Cells {
    fn visit<P: BlockingPeer>(&mut self) {
        let (_tx, rx) = P::bounded::<u64>(1);
        let has_many_receivers = P::another(&rx).is_some();
        for pattern in PATTERNS.into_iter().filter(|pattern| pattern.receivers == 1 || has_many_receivers) {
            for capacity in CAPACITIES {
                // A hand-over between threads costs a hundred times what a buffered message does.
                let messages = if capacity == 1 { self.messages / 10 } else { self.messages };
                let traffic = Traffic { pattern, messages };
                let run = move || run::<P>(traffic, P::bounded(capacity));
                self.cells.push(Cell::new(traffic.title("on threads", capacity), P::NAME, run));
            }
        }
    }
}

impl BlockingUnboundedVisitor for Cells {
    fn visit<P: BlockingUnbounded>(&mut self) {
        let (_tx, rx) = P::unbounded::<u64>();
        let has_many_receivers = P::another(&rx).is_some();
        for traffic in Traffic::all(self.messages) {
            if traffic.pattern.receivers == 1 || has_many_receivers {
                let run = move || run::<P>(traffic, P::unbounded());
                self.cells.push(Cell::new(traffic.title_unbounded("on threads"), P::NAME, run));
            }
        }
    }
}

/// Sends all values through a channel between threads.
pub(in crate::loads) fn run<P: BlockingLine>(traffic: Traffic, (tx, rx): (P::Sender<u64>, P::Receiver<u64>)) -> Run {
    let mut receivers = Vec::new();
    for _ in 1..traffic.pattern.receivers {
        receivers.push(P::another(&rx).ok_or_else(|| Failure::new("one receiver only"))?);
    }
    receivers.push(rx);
    let watch = Stopwatch::start();
    let received = thread::scope(|scope| {
        let receivers: Vec<_> = receivers.into_iter().map(|rx| scope.spawn(move || receive::<P>(rx))).collect();
        let senders: Vec<_> = (0..traffic.pattern.senders)
            .map(|sender| (tx.clone(), traffic.share(sender)))
            .map(|(tx, share)| scope.spawn(move || send::<P>(tx, share)))
            .collect();
        drop(tx);
        for sender in senders {
            joined(sender)??;
        }
        receivers.into_iter().map(joined).collect::<Result<Vec<_>, Failure>>()
    })?;
    let lap = watch.stop();
    traffic.verify(&received)?;
    Ok(vec![lap.each("a message", traffic.messages)])
}

fn receive<P: BlockingLine>(mut rx: P::Receiver<u64>) -> Tally {
    let mut tally = Tally::default();
    while let Some(value) = P::recv(&mut rx) {
        tally.add(value);
    }
    tally
}

fn send<P: BlockingLine>(mut tx: P::Sender<u64>, share: std::ops::Range<u64>) -> Result<(), Failure> {
    for value in share {
        if !P::send(&mut tx, value) {
            return Err(Failure::new(format!("the value {value} was not sent")));
        }
    }
    Ok(())
}

fn joined<R>(thread: ScopedJoinHandle<'_, R>) -> Result<R, Failure> {
    thread.join().map_err(|_| Failure::new("a thread panicked"))
}
