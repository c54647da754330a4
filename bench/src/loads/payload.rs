//! `payload`: what the size of a value costs on its way.

use crate::harness::stopwatch::Stopwatch;
use crate::harness::{Cell, Failure, Load, Run, Scale};
use crate::loads::runtimes;
use crate::loads::throughput::{tasks, Halves, Pattern, Traffic, MPMC, MPSC, SPSC};
use crate::peers::{
    self, Bounded, BoundedVisitor, Numbered, Outcome, Payload, Received, Sent, Unbounded, UnboundedVisitor,
};

pub(crate) fn load() -> Load {
    Load {
        name: "payload",
        shows:
            "time and processor time for each message of 8, 64, 256 and 1,024 bytes through a channel of capacity 64: \
                one thread where nothing waits (send and receive awaited in turn), and tasks on two workers that are \
                always busy (spsc, mpmc); also 256 bytes (spsc, mpsc) and 1,024 bytes (mpmc) through an unbounded channel \
                on two workers. Each value carries a number, and all must come; each counts as read to its last byte.",
        hides: "values on the heap, of which only a pointer moves; what a parked send of that size keeps (`sizes`). \
                mpmc is left out where a peer has one receiver. thingbuf also resets its slot after each receive. \
                An unbounded channel never stops its senders and may come to hold all 100,000 values, 100 MB of 1,024 \
                bytes each: to allocate and map them is part of its rows. tachyonix, thingbuf and postage have none.",
        max_rounds: usize::MAX,
        cells,
    }
}

const CAPACITY: usize = 64;

struct Cells {
    cells: Vec<Cell>,
    scale: Scale,
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), scale };
    peers::each_bounded(&mut all);
    peers::each_unbounded(&mut all);
    all.cells
}

impl BoundedVisitor for Cells {
    fn visit<P: Bounded>(&mut self) {
        self.add::<P, 8>();
        self.add::<P, 64>();
        self.add::<P, 256>();
        self.add::<P, 1_024>();
    }
}

impl UnboundedVisitor for Cells {
    fn visit<P: Unbounded>(&mut self) {
        self.add_unbounded::<P, 256>(SPSC);
        self.add_unbounded::<P, 256>(MPSC);
        self.add_unbounded::<P, 1_024>(MPMC);
    }
}

impl Cells {
    fn add<P: Bounded, const N: usize>(&mut self) {
        let messages = self.scale.pick(4_000, 100_000);
        let case = format!("{N} bytes, ready");
        self.cells.push(Cell::new(case, P::NAME, move || ready::<P, N>(messages)));
        let halves = Halves::of::<P>();
        for pattern in [SPSC, MPMC] {
            if pattern.fits(&halves) {
                let traffic = Traffic { pattern, messages };
                let run = move || tasks::run::<P, Payload<N>>(traffic, runtimes::two_workers, || P::bounded(CAPACITY));
                self.cells.push(Cell::new(format!("{N} bytes, {} on two workers", pattern.name), P::NAME, run));
            }
        }
    }

    fn add_unbounded<P: Unbounded, const N: usize>(&mut self, pattern: Pattern) {
        if pattern.fits(&Halves::of_line::<P>(P::unbounded())) {
            let traffic = Traffic { pattern, messages: self.scale.pick(4_000, 100_000) };
            let run = move || tasks::run::<P, Payload<N>>(traffic, runtimes::two_workers, P::unbounded);
            let case = format!("{N} bytes, {}", traffic.title_unbounded("on two workers"));
            self.cells.push(Cell::new(case, P::NAME, run));
        }
    }
}

fn ready<P: Bounded, const N: usize>(messages: usize) -> Run {
    let runtime = runtimes::current_thread()?;
    let (lap, sum) = runtime.block_on(async {
        let (mut tx, mut rx) = P::bounded::<Payload<N>>(CAPACITY);
        let mut sum = 0;
        let watch = Stopwatch::start();
        for number in 0..messages as u64 {
            if P::send(&mut tx, Payload::numbered(number)).await.outcome() != Outcome::Sent {
                return Err(Failure::new("a send with room did not go through"));
            }
            let value = P::recv(&mut rx).await.value();
            sum += value.ok_or_else(|| Failure::new("a value that was sent did not come"))?.number();
        }
        Ok((watch.stop(), sum))
    })?;
    Failure::unless_equal("sum of the numbers received", sum, (0..messages as u64).sum())?;
    Ok(vec![lap.each("a message", messages)])
}
