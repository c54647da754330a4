//! `throughput`: as many messages as will go through.

mod tasks;
mod threads;

use crate::harness::{Cell, Failure, Load, Scale};
use crate::peers::Bounded;

pub(crate) fn load() -> Load {
    Load {
        name: "throughput",
        shows: "time and processor time for each 8-byte message from busy senders to busy receivers (spsc: 1 to 1, mpsc: 4 \
                to 1, mpmc: 4 to 4), as tasks on tokio's two workers or its current thread, and as plain threads that \
                block.",
        hides: "latency; channels that are mostly idle; more cores. A peer that spins pays in the cpu column. Two \
                workers are bimodal: look at the minimum too.",
        max_rounds: usize::MAX,
        cells,
    }
}

const CAPACITIES: [usize; 3] = [1, 64, 1024];

/// How many of each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pattern {
    name: &'static str,
    senders: usize,
    receivers: usize,
}

/// Which halves a peer has more than one of.
#[derive(Clone, Copy, Debug)]
struct Halves {
    many_senders: bool,
    many_receivers: bool,
}

impl Halves {
    fn of<P: Bounded>() -> Halves {
        let (tx, rx) = P::bounded::<u64>(1);
        Halves { many_senders: P::another_sender(&tx).is_some(), many_receivers: P::another(&rx).is_some() }
    }
}

impl Pattern {
    fn fits(&self, halves: &Halves) -> bool {
        (self.senders == 1 || halves.many_senders) && (self.receivers == 1 || halves.many_receivers)
    }
}

const PATTERNS: [Pattern; 3] = [
    Pattern { name: "spsc", senders: 1, receivers: 1 },
    Pattern { name: "mpsc", senders: 4, receivers: 1 },
    Pattern { name: "mpmc", senders: 4, receivers: 4 },
];

/// One run's size.
#[derive(Clone, Copy, Debug)]
struct Traffic {
    pattern: Pattern,
    capacity: usize,
    /// A multiple of the senders.
    messages: usize,
}

impl Traffic {
    /// All patterns and capacities.
    fn all(messages: usize) -> impl Iterator<Item = Traffic> {
        PATTERNS.into_iter().flat_map(move |pattern| {
            CAPACITIES.into_iter().map(move |capacity| Traffic { pattern, capacity, messages })
        })
    }

    fn title(&self, place: &str) -> String {
        format!("{} {place}, capacity {}", self.pattern.name, self.capacity)
    }

    /// What each sender sends.
    fn share(&self, sender: usize) -> std::ops::Range<u64> {
        let share = (self.messages / self.pattern.senders) as u64;
        sender as u64 * share..(sender as u64 + 1) * share
    }

    /// Every value must have come once.
    fn verify(&self, received: &[Tally]) -> Result<(), Failure> {
        let count: u64 = received.iter().map(|tally| tally.count).sum();
        let sum: u64 = received.iter().map(|tally| tally.sum).sum();
        Failure::unless_equal("values received", count, self.messages as u64)?;
        Failure::unless_equal("their sum", sum, (0..self.messages as u64).sum())
    }
}

/// What one receiver got.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    count: u64,
    sum: u64,
}

impl Tally {
    #[inline]
    fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += value;
    }
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells = tasks::cells(scale);
    cells.extend(threads::cells(scale));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_senders_share_the_messages() {
        for traffic in Traffic::all(1_000) {
            let mut tally = Tally::default();
            (0..traffic.pattern.senders).flat_map(|sender| traffic.share(sender)).for_each(|value| tally.add(value));
            traffic.verify(&[tally]).unwrap();
        }
    }

    #[test]
    fn a_lost_value_and_a_double_one_are_found() {
        let traffic = Traffic { pattern: PATTERNS[0], capacity: 1, messages: 3 };
        let lost = Tally { count: 2, sum: 3 };
        assert!(traffic.verify(&[lost]).is_err());
        let doubled = Tally { count: 3, sum: 4 };
        assert!(traffic.verify(&[doubled]).is_err());
    }
}
