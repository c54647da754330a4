//! `payload`: what the size of a value costs on its way.

use crate::harness::stopwatch::Stopwatch;
use crate::harness::{Cell, Failure, Load, Run, Scale};
use crate::loads::runtimes;
use crate::loads::throughput::{tasks, Halves, Traffic, MPMC, SPSC};
use crate::peers::{self, Bounded, BoundedVisitor, Numbered, Outcome, Payload, Received, Sent};

pub(crate) fn load() -> Load {
    Load {
        name: "payload",
        shows:
            "time and processor time for each message of 8, 64, 256 and 1,024 bytes through a channel of capacity 64: \
                one thread where nothing waits (send and receive awaited in turn), and tasks on two workers that are \
                always busy (spsc, mpmc). Each value carries a number, and all must come.",
        hides: "values on the heap, of which only a pointer moves; what a parked send of that size keeps (`sizes`). \
                mpmc is left out where a peer has one receiver. thingbuf also resets its slot after each receive.",
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
