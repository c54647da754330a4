//! One model: a channel brought into a state, a few threads with one action each, and the questions at the end.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use loom::thread;
use tidegate_channel::{
    bounded, Operation, Parked as Close, Receiver, RecvError, SendError, Sender, WeakReceiver, WeakSender,
};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::support::{Counted, Ledger, Look, Woken};

/// What one thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Send,
    Recv,
    TrySend,
    TryRecv,
    Close,
    CloseAdmit,
    /// Waits for the close.
    Closed,
    /// Polls a send once and withdraws it.
    Withdraw,
    /// Polls an operation once and drops it: unparked, parked, or delivered meanwhile.
    DropSend,
    DropRecv,
    /// Drops the operation that was parked before the threads began: parked still, or delivered and unpolled.
    DropParked,
    /// Polls it, with another waker.
    PollParked,
    /// Ends it.
    TimeOut,
    Cancel,
    /// The last drop of a side, or the drop of the last but the operations'.
    LastTx,
    LastRx,
    /// A weak half becomes one, if there still is one, and goes.
    UpgradeTx,
    UpgradeRx,
    Len,
}

pub(crate) const ACTS: [Act; 19] = {
    use Act::*;
    [
        Send, Recv, TrySend, TryRecv, Close, CloseAdmit, Closed, Withdraw, DropSend, DropRecv, DropParked, PollParked,
        TimeOut, Cancel, LastTx, LastRx, UpgradeTx, UpgradeRx, Len,
    ]
};

/// Who is parked when the threads begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parked {
    Nobody,
    Sends(usize),
    Receives(usize),
    /// A receive that has been handed its value, before the ring was filled.
    Delivered,
}

/// The state in which the threads begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) cap: usize,
    pub(crate) filled: usize,
    pub(crate) parked: Parked,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) start: Start,
    pub(crate) acts: Vec<Act>,
    /// Polls parked operations again, with another waker.
    pub(crate) spurious: bool,
}

impl Case {
    /// One preemption less: twice as long, or alike.
    fn is_lighter(&self) -> bool {
        let two = matches!(self.start.parked, Parked::Sends(2..) | Parked::Receives(2..));
        self.spurious || self.start.cap > 1 || two
    }
}

enum Op {
    Send(usize, Pin<Box<dyn Future<Output = Result<(), SendError<Counted>>> + Send>>),
    Recv(Pin<Box<dyn Future<Output = Result<Counted, RecvError>> + Send>>),
    Closed(Pin<Box<dyn Future<Output = ()> + Send>>),
}

struct Running {
    op: Op,
    woken: Arc<Woken>,
    /// The one that it was polled with last.
    waker: Waker,
    /// Parked before the threads began, as the n-th: nobody may pass it.
    turn: Option<usize>,
}

/// What happened to values and operations, as seen by one thread.
#[derive(Default)]
struct Seen {
    sent: Vec<usize>,
    returned: Vec<usize>,
    abandoned: Vec<usize>,
    received: Vec<usize>,
    pending: Vec<Running>,
    /// A parked operation that was ended by something else than the other side.
    unserved: bool,
}

impl Seen {
    fn end_send(&mut self, id: usize, end: Result<(), SendError<Counted>>) {
        match end {
            Ok(()) => self.sent.push(id),
            Err(error) => {
                let value = error.into_inner();
                assert!(value == id, "another value came back");
                self.returned.push(id);
            }
        }
    }

    fn end_receive(&mut self, end: Result<Counted, RecvError>) -> bool {
        end.map(|value| self.received.push(value.id)).is_ok()
    }

    /// Polls; if it is over, notes how, and whether it was woken for it.
    fn look(&mut self, mut running: Running, must_be_woken: bool) -> Option<Running> {
        let over = match &mut running.op {
            Op::Send(id, send) => match send.look_with(&running.waker) {
                Poll::Ready(end) => {
                    self.unserved |= end.is_err();
                    self.end_send(*id, end);
                    true
                }
                Poll::Pending => false,
            },
            Op::Recv(receive) => match receive.look_with(&running.waker) {
                Poll::Ready(end) => {
                    self.unserved |= !self.end_receive(end);
                    true
                }
                Poll::Pending => false,
            },
            Op::Closed(closed) => closed.look_with(&running.waker).is_ready(),
        };
        assert!(!(over && must_be_woken) || running.woken.count() > 0, "it ended, and its task was not woken");
        (!over).then_some(running)
    }

    fn merge(&mut self, other: Seen) {
        self.sent.extend(other.sent);
        self.returned.extend(other.returned);
        self.abandoned.extend(other.abandoned);
        self.received.extend(other.received);
        self.pending.extend(other.pending);
        self.unserved |= other.unserved;
    }
}

/// What a thread has in hand.
struct Hand {
    tx: Option<Sender<Counted>>,
    rx: Option<Receiver<Counted>>,
    parked: Option<Running>,
    value: Option<Counted>,
    clock: Option<Arc<ManualClock>>,
    token: Option<CancelToken>,
    weak: Option<(WeakSender<Counted>, WeakReceiver<Counted>)>,
    spurious: bool,
    /// What may come on top of the capacity: returned deliveries, admitted sends.
    extra: usize,
}

fn begin(seen: &mut Seen, op: Op, spurious: bool) -> Option<Running> {
    let (woken, waker) = Woken::new();
    let running = seen.look(Running { op, woken, waker, turn: None }, false)?;
    if !spurious {
        return Some(running);
    }
    let (woken, waker) = Woken::new();
    seen.look(Running { woken, waker, ..running }, false)
}

fn act(act: Act, mut hand: Hand) -> Seen {
    let mut seen = Seen::default();
    match act {
        Act::Send | Act::DropSend => {
            let value = hand.value.take().unwrap();
            let op = Op::Send(value.id, Box::pin(hand.tx.take().unwrap().into_send(value)));
            let parked = begin(&mut seen, op, hand.spurious);
            match parked {
                Some(Running { op: Op::Send(id, send), .. }) if act == Act::DropSend => {
                    seen.abandoned.push(id);
                    drop(send);
                }
                parked => seen.pending.extend(parked),
            }
        }
        Act::Recv | Act::DropRecv => {
            let op = Op::Recv(Box::pin(hand.rx.take().unwrap().into_recv()));
            let parked = begin(&mut seen, op, hand.spurious);
            if act == Act::Recv {
                seen.pending.extend(parked);
            }
        }
        Act::TrySend => {
            let value = hand.value.take().unwrap();
            let (id, end) = (value.id, hand.tx.as_ref().unwrap().try_send(value));
            seen.end_send(id, end);
        }
        Act::TryRecv => {
            let end = hand.rx.as_ref().unwrap().try_recv();
            seen.end_receive(end);
        }
        Act::Close => drop(hand.rx.as_ref().unwrap().close().then_some(())),
        Act::CloseAdmit => drop(hand.rx.as_ref().unwrap().close_with(Close::Admit).then_some(())),
        Act::Closed => {
            let tx = hand.tx.take().unwrap();
            let op = Op::Closed(Box::pin(async move { tx.closed().await }));
            let parked = begin(&mut seen, op, hand.spurious);
            seen.pending.extend(parked);
        }
        Act::Withdraw => {
            let value = hand.value.take().unwrap();
            let id = value.id;
            let mut send = Box::pin(hand.tx.take().unwrap().into_send(value));
            match send.look() {
                Poll::Ready(end) => seen.end_send(id, end),
                Poll::Pending => match send.as_mut().withdraw() {
                    Some(value) => seen.end_send(id, Err(SendError::Cancelled(value))),
                    None => seen.sent.push(id),
                },
            }
        }
        Act::Len => {
            let rx = hand.rx.as_ref().unwrap();
            assert!(rx.len() <= rx.capacity() + hand.extra);
        }
        Act::DropParked => {
            if let Some(Running { op: Op::Send(id, _), .. }) = &hand.parked {
                seen.abandoned.push(*id);
            }
            seen.unserved = true;
            drop(hand.parked.take());
        }
        Act::PollParked => {
            let (woken, waker) = Woken::new();
            let running = Running { woken, waker, ..hand.parked.take().unwrap() };
            let still = seen.look(running, false);
            seen.pending.extend(still);
        }
        Act::TimeOut => {
            seen.unserved = true;
            hand.clock.take().unwrap().advance(Duration::from_millis(1));
        }
        Act::Cancel => {
            seen.unserved = true;
            assert!(hand.token.take().unwrap().cancel());
        }
        Act::LastTx => drop(hand.tx.take()),
        Act::LastRx => drop(hand.rx.take()),
        Act::UpgradeTx => drop(hand.weak.take().unwrap().0.upgrade()),
        Act::UpgradeRx => drop(hand.weak.take().unwrap().1.upgrade()),
    }
    seen
}

/// The channel and everything about it, on the main thread.
struct World {
    tx: Option<Sender<Counted>>,
    rx: Option<Receiver<Counted>>,
    ledger: Ledger,
    seen: Seen,
    /// Values of the beginning, in order: of one sender, as it were.
    early: usize,
    /// Values that a thread sends come later than those.
    made: usize,
    returns: bool,
}

impl World {
    /// At the end of a model, with all threads joined.
    fn finish(mut self, case: &Case) {
        // Without a half of our own an operation may still hold one of either side, but hardly both.
        let closed = match (&self.tx, &self.rx) {
            (Some(tx), _) => tx.is_closed(),
            (_, Some(rx)) => rx.is_closed(),
            _ => true,
        };
        for running in std::mem::take(&mut self.seen.pending) {
            let still = self.seen.look(running, true);
            self.seen.pending.extend(still);
        }
        let stuck = |is: fn(&Op) -> bool, pending: &[Running]| pending.iter().any(|running| is(&running.op));
        let send: fn(&Op) -> bool = |op| matches!(op, Op::Send(..));
        let receive: fn(&Op) -> bool = |op| matches!(op, Op::Recv(..));
        assert!(!closed || self.seen.pending.is_empty(), "parked on a closed channel");
        if let Some(rx) = &self.rx {
            assert!(!stuck(send, &self.seen.pending) || rx.len() >= rx.capacity(), "a send is parked beside room");
            assert!(!stuck(receive, &self.seen.pending) || rx.is_empty(), "a receive is parked beside a value");
            let side = (stuck(send, &self.seen.pending), stuck(receive, &self.seen.pending));
            assert_ne!(side, (true, true), "a send and a receive should meet");
            let count = |is: fn(&Op) -> bool| self.seen.pending.iter().filter(|running| is(&running.op)).count();
            assert_eq!((rx.parked_senders(), rx.parked_receivers()), (count(send), count(receive)));
            let tx_left = self.tx.is_some() || side.0 || stuck(|op| matches!(op, Op::Closed(_)), &self.seen.pending);
            assert!(rx.is_closed() || tx_left, "the last sender has gone");
        }
        let in_threads = self.seen.received.len();
        self.drain();
        self.check_order(in_threads, case);
        self.check_values(closed || case.acts.contains(&Act::LastRx));
        if self.rx.is_none() && self.seen.pending.is_empty() {
            // G7: the last receiver, or a close that lets sends in beside it, drops what is buffered, at once.
            self.ledger.settled();
        }
        self.feed(closed);
        let ledger = self.ledger.clone();
        drop(self);
        ledger.settled();
    }

    /// Takes everything; each parked send is let in on the way.
    fn drain(&mut self) {
        let Some(rx) = self.rx.take() else { return };
        while let Ok(value) = rx.try_recv() {
            self.seen.received.push(value.id);
            for running in std::mem::take(&mut self.seen.pending) {
                let still = self.seen.look(running, false);
                self.seen.pending.extend(still);
            }
        }
        let sleeps = self.seen.pending.iter().any(|running| matches!(running.op, Op::Send(..)));
        assert!(!sleeps, "a send sleeps for ever");
        self.rx = Some(rx);
    }

    /// G2. Early values arrive in order, and before any that a thread sent while an early send was parked. A delivery that
    /// was dropped may come back late, beside receives in other threads.
    fn check_order(&self, in_threads: usize, case: &Case) {
        let received = &self.seen.received;
        if self.returns {
            return;
        }
        let threads = case
            .acts
            .iter()
            .filter(|act| matches!(act, Act::Recv | Act::TryRecv | Act::DropRecv | Act::PollParked))
            .count();
        // What one thread received is in its order, and everything in threads came before the drain.
        let from = if threads > 1 { in_threads } else { 0 };
        let early: Vec<_> = received[from..].iter().filter(|&&id| id < self.early).collect();
        assert!(early.is_sorted(), "early values out of order: {received:?}");
        if let Parked::Sends(_) = case.start.parked {
            let last_early = received.iter().rposition(|&id| id < self.early && !self.seen.abandoned.contains(&id));
            let first_late = received.iter().position(|&id| id >= self.early);
            if let (Some(last_early), Some(first_late), 0..=1) = (last_early, first_late, threads) {
                assert!(last_early < first_late, "a parked send was passed: {received:?}");
            }
        }
    }

    /// G1.
    fn check_values(&self, receivers_gone: bool) {
        let received: BTreeSet<_> = self.seen.received.iter().copied().collect();
        assert_eq!(received.len(), self.seen.received.len(), "received twice: {:?}", self.seen.received);
        let returned: BTreeSet<_> = self.seen.returned.iter().copied().collect();
        assert!(received.is_disjoint(&returned), "received and returned");
        for id in &self.seen.sent {
            assert!(!returned.contains(id), "sent and returned");
            assert!(received.contains(id) || (receivers_gone && self.rx.is_none()), "sent and lost: {id}");
        }
    }

    /// Who is still parked to receive is served by the next sends, in order; who waits for the close, by that.
    fn feed(&mut self, closed: bool) {
        assert!(!closed || self.seen.pending.is_empty());
        let (waits, pending): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.seen.pending).into_iter().partition(|running| matches!(running.op, Op::Closed(_)));
        let mut waits = Some(waits).filter(|waits| !waits.is_empty());
        match &self.tx {
            Some(tx) => pending.iter().for_each(|_| assert!(tx.try_send(self.ledger.value(self.made)).is_ok())),
            // These held the last sender.
            None => assert!(waits.take().is_some() || pending.is_empty()),
        }
        for running in pending {
            assert!(self.seen.look(running, true).is_none(), "a parked receive was not served");
        }
        for running in waits.into_iter().flatten() {
            let _was_first = self.tx.as_ref().is_some_and(Sender::close);
            assert!(self.seen.look(running, true).is_none(), "a wait for the close goes on after it");
        }
    }
}

/// Parks an operation of the main thread's, with limits if some thread will end it.
fn park_first(world: &mut World, case: &Case, clock: Option<&ManualClock>, token: &CancelToken, send: Option<Counted>) {
    let (time, cancel) = (case.acts.contains(&Act::TimeOut), case.acts.contains(&Act::Cancel));
    let limit = Duration::from_millis(1);
    let op = match send {
        Some(value) => {
            let (id, send) = (value.id, world.tx.as_ref().unwrap().clone().into_send(value));
            Op::Send(
                id,
                match (time, cancel) {
                    (false, false) => Box::pin(send),
                    (true, false) => Box::pin(send.timeout(limit)),
                    (false, true) => Box::pin(send.cancel_on_owned(token.clone())),
                    (true, true) => Box::pin(send.timeout(limit).cancel_on_owned(token.clone())),
                },
            )
        }
        None => {
            let receive = world.rx.as_ref().unwrap().clone().into_recv();
            Op::Recv(match (time, cancel) {
                (false, false) => Box::pin(receive),
                (true, false) => Box::pin(receive.timeout(limit)),
                (false, true) => Box::pin(receive.cancel_on_owned(token.clone())),
                (true, true) => Box::pin(receive.cancel_on_owned(token.clone()).timeout(limit)),
            })
        }
    };
    let (woken, waker) = Woken::new();
    let running = Running { op, woken, waker, turn: Some(world.seen.pending.len()) };
    let look = || world.seen.look(running, false);
    let parked = match clock {
        Some(clock) => clock.enter(look),
        None => look(),
    };
    world.seen.pending.push(parked.expect("it parks"));
}

/// Runs one case once, inside a loom model.
pub(crate) fn run(case: &Case) {
    let Start { cap, filled, parked } = case.start;
    let (tx, rx) = bounded(cap);
    let token = CancelToken::new();
    let clock = case.acts.contains(&Act::TimeOut).then(|| Arc::new(ManualClock::new()));
    let ledger = Ledger::default();
    let mut world =
        World { tx: Some(tx), rx: Some(rx), ledger, seen: Seen::default(), early: 0, made: 0, returns: false };
    let fill = |world: &mut World| {
        for _ in 0..filled {
            assert!(world.tx.as_ref().unwrap().try_send(world.ledger.value(world.made)).is_ok());
            world.seen.sent.push(world.made);
            world.made += 1;
        }
    };
    if parked != Parked::Delivered {
        fill(&mut world);
    }
    let (sends, receives) = match parked {
        Parked::Nobody => (0, 0),
        Parked::Sends(n) => (n, 0),
        Parked::Receives(n) => (0, n),
        Parked::Delivered => (0, 1),
    };
    for _ in 0..sends {
        let value = world.ledger.value(world.made);
        world.made += 1;
        park_first(&mut world, case, clock.as_deref(), &token, Some(value));
    }
    (0..receives).for_each(|_| park_first(&mut world, case, clock.as_deref(), &token, None));
    if parked == Parked::Delivered {
        assert!(world.tx.as_ref().unwrap().try_send(world.ledger.value(world.made)).is_ok());
        world.seen.sent.push(world.made);
        world.made += 1;
        fill(&mut world);
    }
    world.early = world.made;
    // What was delivered may be seen late, or come back late.
    let gives_back = case.acts.iter().any(|act| matches!(act, Act::DropParked | Act::DropRecv)) && sends == 0;
    world.returns = gives_back || parked == Parked::Delivered;
    let token = Some(token);
    let upgrades = case.acts.iter().any(|act| matches!(act, Act::UpgradeTx | Act::UpgradeRx));
    let weak = upgrades.then(|| (world.tx.as_ref().unwrap().downgrade(), world.rx.as_ref().unwrap().downgrade()));
    let extra = if case.acts.contains(&Act::CloseAdmit) { sends + 2 } else { usize::from(sends == 0) };
    let hands: Vec<_> = case
        .acts
        .iter()
        .map(|act| {
            let value = matches!(act, Act::Send | Act::DropSend | Act::TrySend | Act::Withdraw).then(|| {
                world.made += 1;
                world.ledger.value(world.made - 1)
            });
            let takes_parked = matches!(act, Act::DropParked | Act::PollParked) && !world.seen.pending.is_empty();
            Hand {
                tx: (value.is_some() || *act == Act::Closed).then(|| world.tx.clone().unwrap()),
                rx: matches!(act, Act::Recv | Act::DropRecv | Act::TryRecv | Act::Close | Act::CloseAdmit | Act::Len)
                    .then(|| world.rx.clone().unwrap()),
                parked: takes_parked.then(|| world.seen.pending.remove(0)),
                value,
                clock: clock.clone().filter(|_| *act == Act::TimeOut),
                token: token.clone().filter(|_| *act == Act::Cancel),
                weak: weak.clone().filter(|_| matches!(act, Act::UpgradeTx | Act::UpgradeRx)),
                spurious: case.spurious,
                extra,
            }
        })
        .collect();
    let hands = case.acts.iter().zip(hands).map(|(&act, mut hand)| {
        match act {
            Act::LastTx => hand.tx = world.tx.take(),
            Act::LastRx => hand.rx = world.rx.take(),
            _ => {}
        }
        (act, hand)
    });
    let hands: Vec<_> = hands.collect();
    let mut hands = hands.into_iter();
    let own = hands.next();
    let threads: Vec<_> = hands.map(|(what, hand)| on_a_large_stack(move || act(what, hand))).collect();
    if let Some((what, hand)) = own {
        let seen = act(what, hand);
        world.seen.merge(seen);
    }
    for thread in threads {
        let seen = thread.join().unwrap();
        world.seen.merge(seen);
    }
    world.check_turns();
    world.finish(case);
    drop((clock, token));
    if let Some((tx, rx)) = weak {
        assert!(tx.upgrade().is_none() && rx.upgrade().is_none());
    }
}

impl World {
    /// G2: of two receives parked at the beginning the first is served first.
    fn check_turns(&mut self) {
        if self.seen.unserved {
            return;
        }
        let mut served = Vec::new();
        let mut pending = std::mem::take(&mut self.seen.pending);
        pending.sort_by_key(|running| running.turn);
        for running in pending {
            let (first, is_receive) = (running.turn.is_some(), matches!(running.op, Op::Recv(_)));
            let still = self.seen.look(running, true);
            if first && is_receive {
                served.push(still.is_none());
            }
            self.seen.pending.extend(still);
        }
        assert!(served.is_sorted_by(|a, b| a >= b), "a parked receive was passed");
    }
}

/// Loom's own stacks hold 4,096 words, a timer wheel is larger.
pub(crate) fn on_a_large_stack<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> thread::JoinHandle<R> {
    thread::Builder::new().stack_size(1 << 15).spawn(f).unwrap()
}

/// Explores a case.
pub(crate) fn explore(case: Case) {
    let (name, before) = (format!("{case:?}"), std::time::Instant::now());
    eprintln!("{name}");
    let mut builder = loom::model::Builder::new();
    let bound = *builder.preemption_bound.get_or_insert(2);
    if case.acts.len() > 2 || case.is_lighter() {
        // Minutes and more at 2.
        builder.preemption_bound = Some(bound - 1);
    }
    builder.max_branches = 20_000;
    builder.check(move || {
        let case = case.clone();
        on_a_large_stack(move || run(&case)).join().unwrap();
    });
    eprintln!("  {:?}", before.elapsed());
}
