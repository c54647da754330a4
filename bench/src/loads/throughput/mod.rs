//! `throughput`: as many messages as will go through.

pub(super) mod tasks;
pub(super) mod threads;

use crate::harness::{Cell, Failure, Load, Scale};
use crate::peers::{Bounded, Line};

pub(crate) fn load() -> Load {
    Load {
        name: "throughput",
        shows: "time and processor time for each 8-byte message from busy senders to busy receivers (spsc: 1 to 1, mpsc: 4 \
                to 1, mpmc: 4 to 4), as tasks on tokio's two workers or its current thread, and as plain threads that \
                block; through buffers of three sizes and through unbounded channels.",
        hides: "latency; channels that are mostly idle; more cores. A peer that spins pays in the cpu column. Two \
                workers are bimodal: look at the minimum too. A pattern is left out where a peer has one half of a \
                kind: one receiver have tokio, crossfire-mpsc, tachyonix, thingbuf, postage, futures-channel, \
                asyncband-mpsc and std-mpsc; crossfire-spsc has one sender too. futures-channel has a slot more for \
                each sender beyond the first. On threads only those that block by themselves. An unbounded channel never \
                stops its senders: on one thread all have sent all before a receiver runs, on two workers they may run \
                far ahead, and the channel grows up to 200,000 values. So its rows show how it grows rather than how it \
                waits, and hold its allocations. tachyonix, thingbuf and postage have none; futures-intrusive's has a \
                limit that nothing reaches; fibre-mpsc has one receiver too. Where a send is no future (tokio, \
                crossfire, futures-channel, asyncband), it is called at once.",
        max_rounds: usize::MAX,
        cells,
    }
}

const CAPACITIES: [usize; 3] = [1, 64, 1024];

/// How many of each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) name: &'static str,
    pub(super) senders: usize,
    pub(super) receivers: usize,
}

pub(super) const SPSC: Pattern = Pattern { name: "spsc", senders: 1, receivers: 1 };
pub(super) const MPSC: Pattern = Pattern { name: "mpsc", senders: 4, receivers: 1 };
pub(super) const MPMC: Pattern = Pattern { name: "mpmc", senders: 4, receivers: 4 };

/// Which halves a peer has more than one of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halves {
    many_senders: bool,
    many_receivers: bool,
}

impl Halves {
    pub(super) fn of<P: Bounded>() -> Halves {
        Halves::of_line::<P>(P::bounded(1))
    }

    pub(super) fn of_line<P: Line>((tx, rx): (P::Sender<u64>, P::Receiver<u64>)) -> Halves {
        Halves { many_senders: P::another_sender(&tx).is_some(), many_receivers: P::another(&rx).is_some() }
    }
}

impl Pattern {
    pub(super) fn fits(&self, halves: &Halves) -> bool {
        (self.senders == 1 || halves.many_senders) && (self.receivers == 1 || halves.many_receivers)
    }
}

const PATTERNS: [Pattern; 3] = [SPSC, MPSC, MPMC];

/// One run's size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    pub(super) pattern: Pattern,
    /// A multiple of the senders.
    pub(super) messages: usize,
}

impl Traffic {
    /// All patterns.
    fn all(messages: usize) -> impl Iterator<Item = Traffic> {
        PATTERNS.into_iter().map(move |pattern| Traffic { pattern, messages })
    }

    pub(super) fn title(&self, place: &str, capacity: usize) -> String {
        format!("{} {place}, capacity {capacity}", self.pattern.name)
    }

    pub(super) fn title_unbounded(&self, place: &str) -> String {
        format!("{} {place}, unbounded", self.pattern.name)
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
        let traffic = Traffic { pattern: PATTERNS[0], messages: 3 };
        let lost = Tally { count: 2, sum: 3 };
        assert!(traffic.verify(&[lost]).is_err());
        let doubled = Tally { count: 3, sum: 4 };
        assert!(traffic.verify(&[doubled]).is_err());
    }
}
