//! `idle`: a channel on which little happens.

use std::thread;
use std::time::{Duration, Instant};

use crate::harness::statistics::{median, percentile};
use crate::harness::stopwatch::Stopwatch;
use crate::harness::{Cell, Failure, Load, Metric, Run, Scale, Unit};
use crate::peers::{self, BlockingPeer, BlockingVisitor};

pub(crate) fn load() -> Load {
    Load {
        name: "idle",
        shows:
            "processor time of the whole process for each message of a thread that sends one every 100 µs to a thread \
                that blocks in a receive: 5 µs are 5 % of a core. Beside it how long a message takes. Who spins while \
                nothing comes pays here for what it wins elsewhere.",
        hides: "busy channels; tasks, which a runtime puts to sleep and wakes.",
        max_rounds: 9,
        cells,
    }
}

const PACE: Duration = Duration::from_micros(100);
const CAPACITY: usize = 64;

struct Cells {
    cells: Vec<Cell>,
    messages: u32,
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), messages: scale.pick(500, 5_000) };
    peers::each_blocking(&mut all);
    all.cells
}

impl BlockingVisitor for Cells {
    fn visit<P: BlockingPeer>(&mut self) {
        let messages = self.messages;
        self.cells.push(Cell::new("a message every 100 µs", P::NAME, move || run::<P>(messages)));
    }
}

fn run<P: BlockingPeer>(messages: u32) -> Run {
    let (mut tx, rx) = P::bounded::<u64>(CAPACITY);
    let begin = Instant::now();
    let watch = Stopwatch::start();
    let late = thread::scope(|scope| {
        let receiver = scope.spawn(move || receive::<P>(rx, begin));
        for turn in 1..=messages {
            thread::sleep((PACE * turn).saturating_sub(begin.elapsed()));
            if !P::send(&mut tx, nanoseconds(begin.elapsed())) {
                return Err(Failure::new("a message was not sent"));
            }
        }
        drop(tx);
        receiver.join().map_err(|_| Failure::new("the receiver panicked"))
    })?;
    let lap = watch.stop();
    Failure::unless_equal("messages received", late.len(), messages as usize)?;
    let cpu = lap.cpu.as_secs_f64() * 1e6 / f64::from(messages);
    let took = Metric::new("from send to receive", Unit::Microseconds, median(&late));
    Ok(vec![Metric::new("processor time a message", Unit::Microseconds, cpu), took.with_p99(percentile(&late, 0.99))])
}

/// How long each message was on its way, in microseconds.
fn receive<P: BlockingPeer>(mut rx: P::Receiver<u64>, begin: Instant) -> Vec<f64> {
    let mut late = Vec::new();
    while let Some(sent) = P::recv(&mut rx) {
        late.push(nanoseconds(begin.elapsed()).saturating_sub(sent) as f64 / 1e3);
    }
    late
}

fn nanoseconds(since: Duration) -> u64 {
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
