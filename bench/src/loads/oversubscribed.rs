//! `oversubscribed`: sixteen busy threads on two cores.

use crate::harness::{Cell, Failure, Load, Run, Scale};
use crate::loads::runtimes;
use crate::loads::throughput::{tasks, threads, Halves, Pattern, Traffic};
use crate::peers::{self, BlockingPeer, BlockingVisitor, Bounded, BoundedVisitor};

pub(crate) fn load() -> Load {
    Load {
        name: "oversubscribed",
        shows:
            "time and processor time for each 8-byte message where 16 threads share two cores (on Linux the load ties \
                itself to two): 15 senders to 1 receiver and 8 to 8, as plain threads that block, and as tasks on \
                tokio's 16 workers. A peer that spins while it waits takes the core from the thread it waits for.",
        hides: "fairness between the senders, latency; more cores. Elsewhere than on Linux all cores are used. 8 to 8 \
                is left out where a peer has one receiver, and crossfire-spsc altogether; so are crossfire's tasks, 8 to 8, \
                which poll one another without an end: six minutes were not enough for 96,000 messages.",
        max_rounds: 9,
        cells,
    }
}

const PATTERNS: [Pattern; 2] = [
    Pattern { name: "15 senders to 1 receiver", senders: 15, receivers: 1 },
    Pattern { name: "8 senders to 8 receivers", senders: 8, receivers: 8 },
];
const CAPACITIES: [usize; 2] = [1, 64];
/// A multiple of both numbers of senders.
const UNIT: usize = 120;

struct Cells {
    cells: Vec<Cell>,
    scale: Scale,
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), scale };
    peers::each_blocking(&mut all);
    peers::each_bounded(&mut all);
    all.cells
}

fn traffic(units: usize) -> impl Iterator<Item = Traffic> {
    PATTERNS.into_iter().map(move |pattern| Traffic { pattern, messages: units * UNIT })
}

impl BlockingVisitor for Cells {
    fn visit<P: BlockingPeer>(&mut self) {
        let (_tx, rx) = P::bounded::<u64>(1);
        let has_many_receivers = P::another(&rx).is_some();
        for traffic in traffic(self.scale.pick(5, 200)) {
            if traffic.pattern.receivers > 1 && !has_many_receivers {
                continue;
            }
            for capacity in CAPACITIES {
                let run = move || on_two_cores(|| threads::run::<P>(traffic, P::bounded(capacity)));
                self.cells.push(Cell::new(traffic.title("on threads", capacity), P::NAME, run));
            }
        }
    }
}

impl BoundedVisitor for Cells {
    fn visit<P: Bounded>(&mut self) {
        let halves = Halves::of::<P>();
        for traffic in traffic(self.scale.pick(20, 800)) {
            if !traffic.pattern.fits(&halves) || (traffic.pattern.receivers > 1 && is_endless::<P>()) {
                continue;
            }
            for capacity in CAPACITIES {
                let run = move || {
                    on_two_cores(|| tasks::run::<P, u64>(traffic, runtimes::sixteen_workers, || P::bounded(capacity)))
                };
                self.cells.push(Cell::new(traffic.title("on 16 workers", capacity), P::NAME, run));
            }
        }
    }
}

/// Do its tasks, many to many on more workers than cores, keep each other from going on? (See `hides`.)
fn is_endless<P: Bounded>() -> bool {
    P::NAME == <peers::Crossfire as peers::Peer>::NAME
}

/// Runs `work`, and the threads that it starts, on the first two cores that this thread may use.
#[cfg(target_os = "linux")]
fn on_two_cores(work: impl FnOnce() -> Run) -> Run {
    use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

    let failed = |error: rustix::io::Errno| Failure::new(format!("cores: {error}"));
    let all = sched_getaffinity(None).map_err(failed)?;
    let mut two = CpuSet::new();
    for core in (0..CpuSet::MAX_CPU).filter(|&core| all.is_set(core)).take(2) {
        two.set(core);
    }
    sched_setaffinity(None, &two).map_err(failed)?;
    let result = work();
    sched_setaffinity(None, &all).map_err(failed)?;
    result
}

#[cfg(not(target_os = "linux"))]
fn on_two_cores(work: impl FnOnce() -> Run) -> Run {
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sender_has_the_same_share() {
        for traffic in traffic(1) {
            assert_eq!(traffic.messages % traffic.pattern.senders, 0);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_cores_come_back() {
        let count = || rustix::thread::sched_getaffinity(None).unwrap().count();
        let before = count();
        let mut inside = 0;
        on_two_cores(|| {
            inside = count();
            Ok(Vec::new())
        })
        .unwrap();
        assert_eq!(inside, before.min(2));
        assert_eq!(count(), before);
    }
}
