//! `mass_cancel`: many parked sends are given up at once.

use crate::harness::statistics::SEED;
use crate::harness::stopwatch::Stopwatch;
use crate::harness::{Cell, Failure, Load, Metric, Run, Scale, Unit};
use crate::loads::full::{full, take_only};
use crate::loads::resident::{Order, Residents};
use crate::peers::{self, Outcome, Peer, Sent, Token, Visitor};

pub(crate) fn load() -> Load {
    Load {
        name: "mass_cancel",
        shows:
            "the drop of many parked sends, the oldest first, the newest first, in random order; and one token that \
                gives up as many: its cancel, and the poll by which each send learns of it. Afterwards the channel \
                must be as it was. One thread, a waker that does nothing.",
        hides: "real wakers, contention; the tasks that would be dropped with their sends. Left out: postage, \
                crossfire-spsc and futures-channel (see `park_cancel`).",
        max_rounds: 9,
        cells,
    }
}

struct Cells {
    cells: Vec<Cell>,
    scale: Scale,
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), scale };
    peers::each(&mut all);
    all.cells
}

impl Visitor for Cells {
    fn visit<P: Peer>(&mut self) {
        let many = self.scale.pick(4_096, 32_768);
        let orders = [
            (Order::Oldest, "the oldest first"),
            (Order::Newest, "the newest first"),
            (Order::Random, "in random order"),
        ];
        for (order, title) in orders {
            let case = format!("drop {many} parked sends, {title}");
            self.cells.push(Cell::new(case, P::NAME, move || dropped::<P>(many, order)));
        }
        let case = format!("cancel {many} parked sends by one token");
        self.cells.push(Cell::new(case, P::NAME, move || cancelled::<P>(many)));
    }
}

/// Parks `many` sends, drops them in `order`; then the channel must be as it was.
fn dropped<P: Peer>(many: usize, order: Order) -> Run {
    let (tx, mut rx) = full::<P>()?;
    let mut residents = Residents::new(many);
    let parked = residents.park(|number| P::send(&tx, number as u64 + 1));
    Failure::unless_equal("sends parked", parked, many)?;
    residents.arrange(order, SEED);
    let watch = Stopwatch::start();
    residents.cancel();
    let lap = watch.stop();
    take_only::<P>(&mut rx)?;
    Ok(vec![lap.each("drop", residents.len())])
}

fn cancelled<P: Peer>(many: usize) -> Run {
    let (tx, mut rx) = full::<P>()?;
    let token = P::Token::new();
    let mut residents = Residents::new(many);
    let parked = residents.park(|number| P::send_until(&tx, number as u64 + 1, &token));
    Failure::unless_equal("sends parked", parked, many)?;
    let (mut sent, mut returned) = (0, 0);
    let watch = Stopwatch::start();
    token.cancel();
    let pending = residents.poll(|_, end| match end.outcome() {
        Outcome::Sent => sent += 1,
        Outcome::Returned(_) => returned += 1,
        Outcome::Lost => {}
    });
    let lap = watch.stop();
    Failure::unless_equal("sends that did not end", pending, 0)?;
    Failure::unless_equal("sends that went through", sent, 0)?;
    take_only::<P>(&mut rx)?;
    Ok(vec![lap.each("a send", many), Metric::new("values returned", Unit::Count, f64::from(returned))])
}
