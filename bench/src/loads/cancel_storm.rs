//! `cancel_storm`: what a million operations that were given up leave behind.

use std::future::Future;
use std::hint::black_box;
use std::pin::{pin, Pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::harness::allocation::Counting;
use crate::harness::{Cell, Failure, Load, Metric, Run, Scale, Unit};
use crate::loads::full::{full, take_first, Channel};
use crate::loads::resident::Residents;
use crate::loads::runtimes;
use crate::peers::{self, Bounded, BoundedVisitor, Outcome, Peer, Sent, Visitor};

pub(crate) fn load() -> Load {
    Load {
        name: "cancel_storm",
        shows: "memory that stays when 10^6 (--quick: 20,000) operations have waited and were given up, by the \
                allocator's count: sends dropped, and sends that ran out of time, behind one send that waits all the \
                while; receives dropped on an empty channel. Once while the channel is as it was, once when the send \
                ahead has gone through and the channel is empty. The send ahead, and then another, must get their \
                places.",
        hides:
            "time (`park_cancel`); what the allocator itself keeps. The sends leave out postage, crossfire-spsc and \
                futures-channel (see `park_cancel`).",
        max_rounds: 1,
        cells,
    }
}

/// So many sends run out of time together.
const WAVE: usize = 1_000;
const LIMIT: Duration = Duration::from_millis(1);
/// What is done before the count begins, so that what is allocated once is not counted.
const WARM_UP: usize = 2 * WAVE;

struct Cells {
    cells: Vec<Cell>,
    storm: usize,
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), storm: scale.pick(20_000, 1_000_000) };
    peers::each(&mut all);
    peers::each_own_timeout(&mut Variants(&mut all));
    peers::each_bounded(&mut all);
    all.cells
}

impl Visitor for Cells {
    fn visit<P: Peer>(&mut self) {
        let storm = self.storm;
        self.cells.push(Cell::new("sends that are dropped", P::NAME, move || drops::<P>(storm)));
        self.cells.push(Cell::new("sends that run out of time", P::NAME, move || timeouts::<P>(storm)));
    }
}

/// A peer with another time-out.
struct Variants<'a>(&'a mut Cells);

impl Visitor for Variants<'_> {
    fn visit<P: Peer>(&mut self) {
        let storm = self.0.storm;
        self.0.cells.push(Cell::new("sends that run out of time", P::NAME, move || timeouts::<P>(storm)));
    }
}

impl BoundedVisitor for Cells {
    fn visit<P: Bounded>(&mut self) {
        let storm = self.storm;
        self.cells.push(Cell::new("receives that are dropped", P::NAME, move || receives::<P>(storm)));
    }
}

fn drops<P: Peer>(storm: usize) -> Run {
    let (tx, rx) = full::<P>()?;
    let mut ahead = pin!(P::send(&tx, 1));
    let is_parked = poll_once(ahead.as_mut()).is_pending();
    Failure::unless_equal("the send ahead waits", is_parked, true)?;
    let one = || {
        let mut send = pin!(P::send(&tx, u64::MAX));
        let ended = black_box(poll_once(send.as_mut())).is_ready();
        Failure::unless_equal("a full channel took a send", ended, false)
    };
    (0..WARM_UP).try_for_each(|_| one())?;
    let counting = Counting::start();
    (0..storm).try_for_each(|_| one())?;
    judge::<P>(counting, ahead, (tx.clone(), rx))
}

fn timeouts<P: Peer>(storm: usize) -> Run {
    let runtime = runtimes::current_thread()?;
    // Tokio's timers look for their runtime; polled outside of a task, nothing yields to others.
    let _entered = runtime.enter();
    let (tx, rx) = full::<P>()?;
    let mut ahead = pin!(P::send(&tx, 1));
    let is_parked = poll_once(ahead.as_mut()).is_pending();
    Failure::unless_equal("the send ahead waits", is_parked, true)?;
    let mut residents = Residents::new(WAVE);
    let mut wave = || {
        residents.park(|_| P::send_within(&tx, u64::MAX, LIMIT));
        let mut sent = 0;
        let mut pending = WAVE;
        for _ in 0..1_000 {
            runtime.block_on(tokio::time::sleep(2 * LIMIT));
            pending = residents.poll(|_, end| sent += usize::from(end.outcome() == Outcome::Sent));
            if pending == 0 {
                break;
            }
        }
        Failure::unless_equal("sends that never ran out of time", pending, 0)?;
        Failure::unless_equal("sends that a full channel took", sent, 0)
    };
    (0..WARM_UP / WAVE).try_for_each(|_| wave())?;
    let counting = Counting::start();
    (0..storm / WAVE).try_for_each(|_| wave())?;
    judge::<P>(counting, ahead, (tx.clone(), rx))
}

/// What is there now, and when the channel has been emptied; the send ahead must have kept its place, and none of the
/// dropped ones may have taken one along.
fn judge<P: Peer>(
    counting: Counting,
    mut ahead: Pin<&mut impl Future<Output: Sent<u64>>>,
    (tx, mut rx): Channel<P>,
) -> Run {
    let waiting = counting.now().live();
    take_first::<P>(&mut rx)?;
    match poll_once(ahead.as_mut()) {
        Poll::Ready(end) => Failure::unless_equal("the send ahead went through", end.outcome() == Outcome::Sent, true)?,
        Poll::Pending => return Err(Failure::new("the send ahead waits though there is room")),
    }
    Failure::unless_equal("the value of the send ahead", P::try_recv(&mut rx).unwrap_or(u64::MAX), 1)?;
    Failure::unless_equal("an empty channel takes a value", P::try_send(&tx, 2), true)?;
    Failure::unless_equal("the last value", P::try_recv(&mut rx).unwrap_or(u64::MAX), 2)?;
    Ok(kept(waiting, counting.stop().live()))
}

fn kept(waiting: i64, emptied: i64) -> Vec<Metric> {
    vec![
        Metric::new("while one waits", Unit::Bytes, waiting.max(0) as f64),
        Metric::new("when emptied", Unit::Bytes, emptied.max(0) as f64),
    ]
}

fn receives<P: Bounded>(storm: usize) -> Run {
    let (mut tx, mut rx) = P::bounded::<u64>(1);
    let mut one = || {
        let mut receive = pin!(P::recv(&mut rx));
        let ended = black_box(poll_once(receive.as_mut())).is_ready();
        Failure::unless_equal("an empty channel gave a value", ended, false)
    };
    (0..WARM_UP).try_for_each(|_| one())?;
    let counting = Counting::start();
    (0..storm).try_for_each(|_| one())?;
    let waiting = counting.now().live();
    Failure::unless_equal("an empty channel takes a value", P::try_send(&mut tx, 1), true)?;
    Failure::unless_equal("the value", P::try_recv(&mut rx).unwrap_or(u64::MAX), 1)?;
    Ok(kept(waiting, counting.stop().live()))
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
