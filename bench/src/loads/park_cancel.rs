//! `park_cancel`: what it costs to begin to wait and to give up.

use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use crate::harness::allocation::counted;
use crate::harness::stopwatch::Stopwatch;
use crate::harness::{Cell, Failure, Load, Metric, Run, Scale, Unit};
use crate::loads::full::{full, take_first};
use crate::loads::resident::Residents;
use crate::peers::{self, Peer, Visitor};

pub(crate) fn load() -> Load {
    Load {
        name: "park_cancel",
        shows:
            "one send that parks on a full channel and is dropped, with a number of sends parked ahead. One thread, a \
                waker that does nothing.",
        hides: "real wakers (a task's costs two atomic operations more), wakes, contention. Left out: postage and \
                crossfire-spsc, on one half of which one send waits, and futures-channel, each new sender of which may \
                send once.",
        max_rounds: 9,
        cells,
    }
}

/// A multiple of this many operations is measured, until the time is up.
const BATCH: usize = 64;

struct Cells {
    cells: Vec<Cell>,
    scale: Scale,
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), scale };
    peers::each(&mut all);
    all.cells
}

impl Visitor for Cells {
    fn visit<P: Peer>(&mut self) {
        let span = Duration::from_millis(self.scale.pick(2, 10));
        let ahead: &[usize] = self.scale.pick(&[0, 1_024, 8_192], &[0, 1_024, 32_768, 131_072]);
        for &ahead in ahead {
            let case = format!("park and drop one send, {ahead} parked ahead");
            let cell = Cell::new(case, P::NAME, move || one::<P>(ahead, span));
            self.cells.push(cell.on("sends parked ahead", ahead));
        }
    }
}

/// Parks `ahead` sends on a full channel, then parks and drops one send again and again for `span`.
fn one<P: Peer>(ahead: usize, span: Duration) -> Run {
    let (tx, mut rx) = full::<P>()?;
    let mut residents = Residents::new(ahead);
    let parked = residents.park(|number| P::send(&tx, number as u64 + 1));
    Failure::unless_equal("sends parked", parked, ahead)?;
    park_and_drop::<P>(&tx, BATCH)?;

    let mut operations = 0;
    let watch = Stopwatch::start();
    let begin = Instant::now();
    while begin.elapsed() < span {
        park_and_drop::<P>(&tx, BATCH)?;
        operations += BATCH;
    }
    let lap = watch.stop();
    let (parked, allocated) = counted(|| park_and_drop::<P>(&tx, BATCH));
    parked?;

    drain::<P>(&mut rx)?;
    let allocations = allocated.calls as f64 / BATCH as f64;
    Ok(vec![lap.each("park + drop", operations), Metric::new("allocations", Unit::Count, allocations)])
}

/// Takes the value in the channel, and those of parked sends as far as the peer hands them over: a peer that searches for
/// what is dropped has nothing left to search through.
fn drain<P: Peer>(rx: &mut P::Receiver<u64>) -> Result<(), Failure> {
    take_first::<P>(rx)?;
    while let Some(value) = P::try_recv(rx) {
        if value == u64::MAX {
            return Err(Failure::new("the value of a dropped send was received"));
        }
    }
    Ok(())
}

fn park_and_drop<P: Peer>(tx: &P::Sender<u64>, times: usize) -> Result<(), Failure> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut ready = 0;
    for _ in 0..times {
        let mut send = pin!(P::send(tx, u64::MAX));
        ready += usize::from(black_box(send.as_mut().poll(&mut cx)).is_ready());
    }
    Failure::unless_equal("sends that a full channel took", ready, 0)
}
