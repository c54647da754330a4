//! `allocations`: what an operation that waits asks of the allocator.

use std::future::Future;
use std::time::Duration;

use crate::harness::allocation::{Allocated, Counting};
use crate::harness::{Cell, Failure, Load, Metric, Run, Scale, Unit};
use crate::loads::full::full;
use crate::loads::resident::Residents;
use crate::loads::runtimes;
use crate::peers::{self, Outcome, Peer, Sent, Token, Visitor};

pub(crate) fn load() -> Load {
    Load {
        name: "allocations",
        shows:
            "allocations and bytes for each send that waits on a full channel, from its beginning to its end, after \
                as many before it: one that goes through, one that goes through within a limit of an hour, one that \
                runs out of time, one with a live token, one that is cancelled by its token. 1,024 wait together; the \
                value has 8 bytes.",
        hides: "the task around the send; what is kept (`cancel_storm`). Left out: postage, crossfire-spsc and \
                futures-channel (see `park_cancel`).",
        max_rounds: 1,
        cells,
    }
}

const MANY: usize = 1_024;
const NEVER: Duration = Duration::from_secs(3_600);
const SOON: Duration = Duration::from_millis(1);

/// How the sends are made and how they end.
#[derive(Clone, Copy, Debug)]
enum Way {
    Plain,
    Limited,
    TimedOut,
    Cancellable,
    Cancelled,
}

const WAYS: [(Way, &str); 5] = [
    (Way::Plain, "goes through"),
    (Way::Limited, "has a limit and goes through"),
    (Way::TimedOut, "runs out of time"),
    (Way::Cancellable, "has a token and goes through"),
    (Way::Cancelled, "is cancelled"),
];

struct Cells {
    cells: Vec<Cell>,
    ways: &'static [(Way, &'static str)],
}

fn cells(_: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), ways: &WAYS };
    peers::each(&mut all);
    all.ways = &WAYS[1..3];
    peers::each_own_timeout(&mut all);
    all.cells
}

impl Visitor for Cells {
    fn visit<P: Peer>(&mut self) {
        for &(way, title) in self.ways {
            self.cells.push(Cell::new(format!("a send that waits and {title}"), P::NAME, move || run::<P>(way)));
        }
    }
}

fn run<P: Peer>(way: Way) -> Run {
    let runtime = runtimes::current_thread()?;
    let _entered = runtime.enter();
    let (tx, mut rx) = full::<P>()?;
    let token = P::Token::new();
    let pass = |rx: &mut P::Receiver<u64>, token: &P::Token| {
        let time = || runtime.block_on(tokio::time::sleep(2 * SOON));
        match way {
            Way::Plain => through::<P, _>(rx, |number| P::send(&tx, number)),
            Way::Limited => through::<P, _>(rx, |number| P::send_within(&tx, number, NEVER)),
            Way::TimedOut => given_up(|number| P::send_within(&tx, number, SOON), time),
            Way::Cancellable => through::<P, _>(rx, |number| P::send_until(&tx, number, token)),
            Way::Cancelled => given_up(|number| P::send_until(&tx, number, token), || token.cancel()),
        }
    };
    pass(&mut rx, &token)?;
    let token = P::Token::new();
    let allocated = pass(&mut rx, &token)?;
    let each = |total: u64| total as f64 / MANY as f64;
    Ok(vec![
        Metric::new("allocations", Unit::Count, each(allocated.calls)),
        Metric::new("asked of the allocator", Unit::Bytes, each(allocated.bytes)),
    ])
}

type Measured = Result<Allocated, Failure>;

/// Parks all, then receives until each has gone through; the channel is full again at the end.
fn through<P: Peer, F: Future<Output: Sent<u64>>>(rx: &mut P::Receiver<u64>, make: impl Fn(u64) -> F) -> Measured {
    let mut residents = Residents::new(MANY);
    let counting = Counting::start();
    let parked = residents.park(|number| make(number as u64 + 1));
    Failure::unless_equal("sends parked", parked, MANY)?;
    let (mut sent, mut sum) = (0, 0);
    for _ in 0..MANY {
        sum += P::try_recv(rx).ok_or_else(|| Failure::new("a full channel gave no value"))?;
        residents.poll_until_one_ends(|end| sent += usize::from(end.outcome() == Outcome::Sent));
    }
    let allocated = counting.stop();
    Failure::unless_equal("sends that went through", sent, MANY)?;
    // All but the one that is left in the channel, in whatever order the peer takes them.
    let left = P::try_recv(rx).ok_or_else(|| Failure::new("the last value is missing"))?;
    // The first pass begins with the 0 that fills the channel, the second with whatever the first left.
    let refill = Residents::new(1).park(|_| make(0));
    Failure::unless_equal("sends that an empty channel did not take", refill, 0)?;
    Failure::unless_equal("the sum of the values", sum + left, (1..=MANY as u64).sum())?;
    Ok(allocated)
}

/// Parks all, lets `end` end them, and polls each.
fn given_up<F: Future<Output: Sent<u64>>>(make: impl Fn(u64) -> F, end: impl Fn()) -> Measured {
    let mut residents = Residents::new(MANY);
    let counting = Counting::start();
    let parked = residents.park(|number| make(number as u64 + 1));
    let mut sent = 0;
    let mut pending = parked;
    for _ in 0..1_000 {
        end();
        pending = residents.poll(|_, end| sent += usize::from(end.outcome() == Outcome::Sent));
        if pending == 0 {
            break;
        }
    }
    let allocated = counting.stop();
    Failure::unless_equal("sends that did not end", pending, 0)?;
    Failure::unless_equal("sends that a full channel took", sent, 0)?;
    Ok(allocated)
}
