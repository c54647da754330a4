//! `ready`: operations that never wait.

use std::future::Future;
use std::time::Duration;

use crate::harness::stopwatch::{Lap, Stopwatch};
use crate::harness::{Cell, Failure, Load, Run, Scale};
use crate::loads::{hooks, runtimes};
use crate::peers::{
    self, Bounded, BoundedVisitor, Line, Outcome, Peer, Received, Sent, Tidegate, Token, TryLine, Unbounded,
    UnboundedVisitor, Visitor,
};

pub(crate) fn load() -> Load {
    Load {
        name: "ready",
        shows:
            "what one message costs on one thread when nothing ever waits: one send and one receive, 8 bytes; plain, \
                with a limit of 1 s on both that never fires, and with a live token on both. `+hooks`: inside a thread \
                context whose hooks do nothing. Plain also through an unbounded channel, where try_send is the only send \
                of those that have no other (tokio, futures-channel, asyncband).",
        hides: "contention, waiting, wakes; everything stays in the first-level cache. The unbounded channel never holds \
                more than one message. tachyonix, thingbuf and postage have none; futures-intrusive's has a limit that \
                nothing reaches. Where its send is no future (tokio, crossfire, futures-channel, asyncband), it is \
                called at once.",
        max_rounds: usize::MAX,
        cells,
    }
}

const CAPACITIES: [usize; 3] = [1, 64, 1024];
const LIMIT: Duration = Duration::from_secs(1);

/// How the operations are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Try,
    Await,
    Limit,
    Token,
}

impl Way {
    const ALL: [Way; 4] = [Way::Try, Way::Await, Way::Limit, Way::Token];

    fn title(self) -> &'static str {
        match self {
            Way::Try => "try_send + try_recv",
            Way::Await => "send + recv awaited",
            Way::Limit => "send + recv, 1 s limits",
            Way::Token => "send + recv, live token",
        }
    }
}

struct Cells {
    cells: Vec<Cell>,
    messages: usize,
    ways: &'static [Way],
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), messages: scale.pick(20_000, 100_000), ways: &Way::ALL };
    peers::each_bounded(&mut all);
    all.add::<Tidegate>("tidegate+hooks", |work| hooks::inside(work));
    peers::each_unbounded(&mut all);
    all.ways = &[Way::Limit];
    peers::each_own_timeout(&mut all);
    all.cells
}

/// Runs a run somewhere.
type Inside = fn(&dyn Fn() -> Run) -> Run;

impl BoundedVisitor for Cells {
    fn visit<P: Bounded>(&mut self) {
        self.add::<P>(P::NAME, |work| work());
    }
}

impl UnboundedVisitor for Cells {
    fn visit<P: Unbounded>(&mut self) {
        let messages = self.messages;
        for way in [Way::Try, Way::Await] {
            let case = format!("{}, unbounded", way.title());
            self.cells.push(Cell::new(case, P::NAME, move || run::<P>(way, P::unbounded, messages)));
        }
    }
}

/// The variants of peers.
impl Visitor for Cells {
    fn visit<P: Peer>(&mut self) {
        self.add::<P>(P::NAME, |work| work());
    }
}

impl Cells {
    fn add<P: Bounded>(&mut self, name: &'static str, inside: Inside) {
        let messages = self.messages;
        for &way in self.ways {
            for capacity in CAPACITIES {
                let case = format!("{}, capacity {capacity}", way.title());
                let run = move || inside(&|| run::<P>(way, || P::bounded(capacity), messages));
                self.cells.push(Cell::new(case, name, run));
            }
        }
    }
}

/// The halves of a line for numbers.
type Pair<P> = (<P as Line>::Sender<u64>, <P as Line>::Receiver<u64>);

fn run<P: TryLine>(way: Way, make: impl FnOnce() -> Pair<P>, messages: usize) -> Run {
    let runtime = runtimes::current_thread()?;
    let (lap, sum) = runtime.block_on(async {
        match way {
            Way::Try => tries::<P>(make(), messages),
            Way::Await => awaits::<P>(make(), messages).await,
            Way::Limit => limited::<P>(make(), messages).await,
            Way::Token => with_token::<P>(make(), messages).await,
        }
    })?;
    let messages_sum = (0..messages as u64).sum();
    Failure::unless_equal("sum of the values received", sum, messages_sum)?;
    Ok(vec![lap.each("a message", messages)])
}

/// The time, and the sum of what was received.
type Measured = Result<(Lap, u64), Failure>;

fn tries<P: TryLine>((mut tx, mut rx): Pair<P>, messages: usize) -> Measured {
    let mut sum = 0;
    let watch = Stopwatch::start();
    for value in 0..messages as u64 {
        if !P::try_send(&mut tx, value) {
            return Err(Failure::new("try_send refused though there was room"));
        }
        sum += P::try_recv(&mut rx).ok_or_else(nothing_came)?;
    }
    Ok((watch.stop(), sum))
}

async fn awaits<P: TryLine>((mut tx, mut rx): Pair<P>, messages: usize) -> Measured {
    let mut sum = 0;
    let watch = Stopwatch::start();
    for value in 0..messages as u64 {
        sent(P::send(&mut tx, value)).await?;
        sum += P::recv(&mut rx).await.value().ok_or_else(nothing_came)?;
    }
    Ok((watch.stop(), sum))
}

async fn limited<P: TryLine>((mut tx, mut rx): Pair<P>, messages: usize) -> Measured {
    let mut sum = 0;
    let watch = Stopwatch::start();
    for value in 0..messages as u64 {
        sent(P::send_within(&mut tx, value, LIMIT)).await?;
        sum += P::recv_within(&mut rx, LIMIT).await.value().ok_or_else(nothing_came)?;
    }
    Ok((watch.stop(), sum))
}

async fn with_token<P: TryLine>((mut tx, mut rx): Pair<P>, messages: usize) -> Measured {
    let token = P::Token::new();
    let mut sum = 0;
    let watch = Stopwatch::start();
    for value in 0..messages as u64 {
        sent(P::send_until(&mut tx, value, &token)).await?;
        sum += P::recv_until(&mut rx, &token).await.value().ok_or_else(nothing_came)?;
    }
    Ok((watch.stop(), sum))
}

#[inline]
async fn sent<S: Sent<u64>>(send: impl Future<Output = S>) -> Result<(), Failure> {
    match send.await.outcome() {
        Outcome::Sent => Ok(()),
        other => Err(Failure::new(format!("a send with room ended as {other:?}"))),
    }
}

#[cold]
fn nothing_came() -> Failure {
    Failure::new("a receive came back empty though a value was sent")
}
