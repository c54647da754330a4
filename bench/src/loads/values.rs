//! `values`: what becomes of the values of operations that are given up.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::harness::{Cell, Failure, Load, Metric, Run, Scale, Unit};
use crate::loads::full::{full, take_only};
use crate::loads::resident::Residents;
use crate::loads::runtimes;
use crate::peers::{self, Bounded, BoundedVisitor, Outcome, Peer, Sent, Token, Visitor};

pub(crate) fn load() -> Load {
    Load {
        name: "values",
        shows: "of 1,000 values, how many their senders have back when 1,000 sends that wait on a full channel run out \
                of time, are cancelled by a token, or see the receiver go; and how many can still be received when a \
                receive that waits is sent a value and is dropped before it is polled again. `+reserve`: a place is \
                waited for, and the value kept until then. A send that is given up must not be received.",
        hides: "values that are in the channel when it is dropped. Those that do not come back are dropped, not leaked. \
                The sends leave out postage, crossfire-spsc and futures-channel (see `park_cancel`). futures-intrusive gives \
                them back by a `cancel` that safe code cannot call on a pinned send.",
        max_rounds: 1,
        cells,
    }
}

const MANY: usize = 1_000;
const SOON: Duration = Duration::from_millis(1);

/// How sends are given up.
#[derive(Clone, Copy, Debug)]
enum Way {
    Time,
    Token,
    Close,
}

const WAYS: [(Way, &str); 3] = [
    (Way::Time, "sends that run out of time"),
    (Way::Token, "sends that are cancelled"),
    (Way::Close, "sends whose receiver goes"),
];

struct Cells {
    cells: Vec<Cell>,
    ways: &'static [(Way, &'static str)],
}

fn cells(_: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), ways: &WAYS };
    peers::each(&mut all);
    all.ways = &WAYS[..2];
    peers::each_reserving(&mut all);
    all.ways = &WAYS[..1];
    peers::each_own_timeout(&mut all);
    peers::each_bounded(&mut all);
    all.cells
}

impl Visitor for Cells {
    fn visit<P: Peer>(&mut self) {
        for &(way, title) in self.ways {
            self.cells.push(Cell::new(title, P::NAME, move || sends::<P>(way)));
        }
    }
}

impl BoundedVisitor for Cells {
    fn visit<P: Bounded>(&mut self) {
        self.cells.push(Cell::new("receives that are dropped with a value on its way", P::NAME, receives::<P>));
    }
}

fn sends<P: Peer>(way: Way) -> Run {
    let runtime = runtimes::current_thread()?;
    let _entered = runtime.enter();
    let (tx, mut rx) = full::<P>()?;
    match way {
        Way::Time => {
            let time = || runtime.block_on(tokio::time::sleep(2 * SOON));
            let returned = returned(|number| P::send_within(&tx, number, SOON), time)?;
            take_only::<P>(&mut rx)?;
            Ok(count("values returned", returned))
        }
        Way::Token => {
            let token = P::Token::new();
            let returned = returned(|number| P::send_until(&tx, number, &token), || token.cancel())?;
            take_only::<P>(&mut rx)?;
            Ok(count("values returned", returned))
        }
        Way::Close => {
            let mut rx = Some(rx);
            let returned = returned(|number| P::send(&tx, number), || drop(rx.take()))?;
            Ok(count("values returned", returned))
        }
    }
}

fn count(name: &'static str, count: usize) -> Vec<Metric> {
    vec![Metric::new(name, Unit::Count, count as f64)]
}

/// Parks all, lets `end` end them, and counts the values that come back, each to its own sender.
fn returned<F: Future<Output: Sent<u64>>>(make: impl Fn(u64) -> F, mut end: impl FnMut()) -> Result<usize, Failure> {
    let mut residents = Residents::new(MANY);
    residents.park(|number| make(number as u64 + 1));
    let (mut returned, mut wrong) = (0, 0);
    let mut pending = MANY;
    for _ in 0..1_000 {
        end();
        pending = residents.poll(|number, end| match end.outcome() {
            Outcome::Returned(value) if value == number as u64 + 1 => returned += 1,
            Outcome::Lost => {}
            Outcome::Returned(_) | Outcome::Sent => wrong += 1,
        });
        if pending == 0 {
            break;
        }
    }
    Failure::unless_equal("sends that did not end", pending, 0)?;
    Failure::unless_equal("sends that went through, or gave another's value back", wrong, 0)?;
    Ok(returned)
}

fn receives<P: Bounded>() -> Run {
    let mut kept = 0;
    for number in 0..MANY as u64 {
        let (mut tx, mut rx) = P::bounded::<u64>(1);
        {
            let mut receive = pin!(P::recv(&mut rx));
            let is_ready = receive.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
            Failure::unless_equal("an empty channel gave a value", is_ready, false)?;
            Failure::unless_equal("a value was taken", P::try_send(&mut tx, number), true)?;
        }
        match P::try_recv(&mut rx) {
            Some(value) if value == number => kept += 1,
            Some(value) => return Err(Failure::new(format!("{value} came in place of {number}"))),
            None => {}
        }
    }
    Ok(count("values kept", kept))
}
