//! `sizes`: what one blocked operation costs in bytes.

use std::mem::size_of_val;
use std::time::Duration;

use crate::harness::allocation::counted;
use crate::harness::{Cell, Failure, Load, Metric, Run, Scale, Unit};
use crate::loads::resident::Residents;
use crate::loads::runtimes;
use crate::peers::{self, Numbered, Payload, Peer, Token, Visitor};

pub(crate) fn load() -> Load {
    Load {
        name: "sizes",
        shows: "the size of each operation's future, by payload, as its crate makes it, borrowed and owned (what one \
                would spawn: an `async move` block around the operation, where the crate has no owned one); limits are \
                tokio::time::timeout and a hand-written future on tokio_util's token, the leanest there are. And the \
                heap that one parked send takes after a warm-up.",
        hides: "the size of the task around it; `select!` and `async fn` around an operation, which cost more.",
        max_rounds: 1,
        cells,
    }
}

const LIMIT: Duration = Duration::from_secs(3600);
const PARKED: usize = 1_024;

struct Cells {
    cells: Vec<Cell>,
    own_timeouts: bool,
}

fn cells(_: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), own_timeouts: false };
    peers::each(&mut all);
    all.own_timeouts = true;
    peers::each_own_timeout(&mut all);
    all.cells
}

impl Visitor for Cells {
    fn visit<P: Peer>(&mut self) {
        self.add::<P, 8>();
        self.add::<P, 64>();
        self.add::<P, 256>();
        self.add::<P, 1_024>();
    }
}

impl Cells {
    fn add<P: Peer, const N: usize>(&mut self) {
        let cell = Cell::new(format!("payload of {N} bytes, borrowed"), P::NAME, borrowed::<P, N>);
        self.cells.push(cell.on("bytes of payload, borrowed", N));
        let cell = Cell::new(format!("payload of {N} bytes, owned"), P::NAME, owned::<P, N>);
        self.cells.push(cell.on("bytes of payload, owned", N));
        if !self.own_timeouts {
            self.cells.push(Cell::new(format!("payload of {N} bytes, heap of a parked send"), P::NAME, heap::<P, N>));
        }
    }
}

fn bytes<F>(name: &'static str, future: F) -> Metric {
    Metric::new(name, Unit::Bytes, size_of_val(&future) as f64)
}

fn borrowed<P: Peer, const N: usize>() -> Run {
    // Tokio's timers look for their runtime when they are made.
    let runtime = runtimes::current_thread()?;
    let _entered = runtime.enter();
    let (tx, mut rx) = P::bounded::<Payload<N>>(1);
    let token = P::Token::new();
    let value = Payload::<N>::default();
    Ok(vec![
        bytes("send", P::send(&tx, value)),
        bytes("+timeout", P::send_within(&tx, value, LIMIT)),
        bytes("+token", P::send_until(&tx, value, &token)),
        bytes("+both", P::send_limited(&tx, value, LIMIT, &token)),
        bytes("recv", P::recv(&mut rx)),
        bytes("recv+timeout", P::recv_within(&mut rx, LIMIT)),
        bytes("recv+token", P::recv_until(&mut rx, &token)),
    ])
}

fn owned<P: Peer, const N: usize>() -> Run {
    let runtime = runtimes::current_thread()?;
    let _entered = runtime.enter();
    let (tx, rx) = P::bounded::<Payload<N>>(1);
    let token = P::Token::new();
    let value = Payload::<N>::default();
    Ok(vec![
        bytes("send", P::send_owned(tx.clone(), value)),
        bytes("+timeout", P::send_within_owned(tx.clone(), value, LIMIT)),
        bytes("+token", P::send_until_owned(tx.clone(), value, token.clone())),
        bytes("+both", P::send_limited_owned(tx.clone(), value, LIMIT, token)),
        bytes("recv", P::recv_owned(rx)),
    ])
}

fn heap<P: Peer, const N: usize>() -> Run {
    let (tx, mut rx) = P::bounded::<Payload<N>>(1);
    if !P::try_send(&tx, Payload::default()) {
        return Err(Failure::new("an empty channel refused a value"));
    }
    let mut residents = Residents::new(PARKED);
    residents.park(|_| P::send(&tx, Payload::numbered(1)));
    residents.cancel();
    let (parked, allocated) = counted(|| residents.park(|_| P::send(&tx, Payload::numbered(1))));
    Failure::unless_equal("sends parked", parked, PARKED)?;
    residents.cancel();
    if P::try_recv(&mut rx) != Some(Payload::default()) {
        return Err(Failure::new("the value in the channel was lost"));
    }
    let each = |total: u64| total as f64 / PARKED as f64;
    Ok(vec![
        Metric::new("heap", Unit::Bytes, each(allocated.bytes)),
        Metric::new("allocations", Unit::Count, each(allocated.calls)),
    ])
}
