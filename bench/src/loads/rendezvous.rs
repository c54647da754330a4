//! `rendezvous`: channels without a buffer; each value is handed over.

use crate::harness::{Cell, Load, Scale};
use crate::loads::runtimes;
use crate::loads::throughput::tasks::{self, MakeRuntime};
use crate::loads::throughput::{threads, Halves, Traffic, MPMC, MPSC, SPSC};
use crate::peers::{self, BlockingPeer, BlockingVisitor, Rendezvous, RendezvousVisitor};

pub(crate) fn load() -> Load {
    Load {
        name: "rendezvous",
        shows:
            "time and processor time for each 8-byte message through a channel that holds none, so that a send ends \
                when a receive has its value (spsc: 1 to 1, mpsc: 4 to 1, mpmc: 4 to 4), as tasks on tokio's two \
                workers or its current thread, and as plain threads that block.",
        hides: "channels of capacity 1, which are no rendezvous (`throughput`); latency. Left out, because they have \
                none: tokio, async-channel, tachyonix and asyncband refuse a capacity of 0, crossfire takes it for 1, \
                futures-channel for a slot a sender, thingbuf and postage hold nothing then. fibre's for threads is \
                another type and not here.",
        max_rounds: usize::MAX,
        cells,
    }
}

struct Cells {
    cells: Vec<Cell>,
    scale: Scale,
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), scale };
    peers::each_rendezvous(&mut all);
    peers::each_blocking(&mut all);
    all.cells
}

fn traffic(messages: usize) -> impl Iterator<Item = Traffic> {
    [SPSC, MPSC, MPMC].into_iter().map(move |pattern| Traffic { pattern, messages })
}

impl RendezvousVisitor for Cells {
    fn visit<P: Rendezvous>(&mut self) {
        let places: [(&str, MakeRuntime); 2] =
            [("on two workers", runtimes::two_workers), ("on one thread", runtimes::current_thread)];
        let halves = Halves::of_line::<P>(P::rendezvous());
        for (place, runtime) in places {
            for traffic in traffic(self.scale.pick(4_000, 100_000)) {
                if traffic.pattern.fits(&halves) {
                    let case = format!("{} {place}", traffic.pattern.name);
                    let run = move || tasks::run::<P, u64>(traffic, runtime, P::rendezvous);
                    self.cells.push(Cell::new(case, P::NAME, run));
                }
            }
        }
    }
}

impl BlockingVisitor for Cells {
    fn visit<P: BlockingPeer>(&mut self) {
        if !P::HAS_RENDEZVOUS {
            return;
        }
        let (_tx, rx) = P::bounded::<u64>(0);
        let has_many_receivers = P::another(&rx).is_some();
        for traffic in traffic(self.scale.pick(400, 10_000)) {
            if traffic.pattern.receivers == 1 || has_many_receivers {
                let case = format!("{} on threads", traffic.pattern.name);
                self.cells.push(Cell::new(case, P::NAME, move || threads::run::<P>(traffic, P::bounded(0))));
            }
        }
    }
}
