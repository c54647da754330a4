//! The channel beside its specification: random operations from one thread, each compared with what it should have done.
//!
//! One thread sees every state between two operations, and every parked operation may be polled, given up, timed out,
//! cancelled or withdrawn in any of them; after each the counts are compared, too. Both ways to close, from capacity 0 up,
//! with up to 100 parked operations; weak halves; the last drop of either side at the end (G1, G2, G6, G7, G8; CASES 1, 2,
//! 3, 12, 13, 17, 21, 25).
#![cfg(not(loom))]

#[path = "support/spec.rs"]
mod spec;
mod support;
#[path = "support/watchdog.rs"]
mod watchdog;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use spec::{End, Fault, Spec};
use support::{Counted, Ledger, Look, Rng};
use tidegate_channel::{
    bounded, Operation, OwnedReceiving, OwnedSending, Parked, Receiver, RecvError, SendError, Sender,
};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{Cancellable, Timed, Unlimited};
use tidegate_wait::timer::ManualClock;
use watchdog::watched;

type Limits = Timed<Cancellable<'static, Unlimited>>;

enum Op {
    Send(u32, Pin<Box<OwnedSending<Counted, Limits>>>),
    /// A send that builds its value borrows the half: it is here for the channel's sake, not for the half's.
    SendWith(u32, Pin<Box<dyn Future<Output = Result<(), SendError<Counted>>>>>),
    Recv(Pin<Box<OwnedReceiving<Counted, Limits>>>),
    Closed(Pin<Box<dyn Future<Output = bool>>>),
}

struct Waiting {
    id: usize,
    op: Op,
    token: CancelToken,
    /// In ms on the clock.
    deadline: u64,
}

fn sent(value: u32, end: Result<(), SendError<Counted>>) -> End {
    match end {
        Ok(()) => End::Sent,
        Err(error) => {
            let end = match error {
                SendError::Closed(_) => End::Closed,
                SendError::Full(_) => End::Full,
                _ => End::GivenUp,
            };
            assert!(error.into_inner() == value as usize, "another value came back");
            end
        }
    }
}

fn received(end: Result<Counted, RecvError>) -> End {
    match end {
        Ok(value) => End::Got(value.id as u32),
        Err(RecvError::Closed) => End::Closed,
        Err(RecvError::Empty) => End::Empty,
        Err(_) => End::GivenUp,
    }
}

fn look(op: &mut Op) -> Option<End> {
    let end = match op {
        Op::Send(value, send) => send.look().map(|end| sent(*value, end)),
        Op::SendWith(value, send) => send.look().map(|end| sent(*value, end)),
        Op::Recv(receive) => receive.look().map(received),
        Op::Closed(closed) => closed.look().map(|closed| if closed { End::Closed } else { End::GivenUp }),
    };
    match end {
        Poll::Ready(end) => Some(end),
        Poll::Pending => None,
    }
}

/// One run: the channel, what it should be, and whoever waits.
struct Run {
    rng: Rng,
    clock: Arc<ManualClock>,
    ledger: Ledger,
    tx: Sender<Counted>,
    rx: Receiver<Counted>,
    cap: usize,
    spec: Spec,
    waiting: Vec<Waiting>,
    now: u64,
    next: u32,
}

impl Run {
    fn value(&mut self) -> Counted {
        self.next += 1;
        self.ledger.value(self.next as usize)
    }

    /// Begins an operation with a token and a time-out; it must do, or wait, as the specification says.
    fn begin(&mut self, id: usize) {
        let (token, limit) = (CancelToken::new(), [1, 3, 10, u64::MAX][self.rng.below(4)]);
        let wait = if limit == u64::MAX { Duration::MAX } else { Duration::from_millis(limit) };
        let (mut op, expected) = match self.rng.below(8) {
            0..=2 => {
                let send = self.tx.clone().into_send(self.value());
                let send = Box::pin(send.cancel_on_owned(token.clone()).timeout(wait));
                (Op::Send(self.next, send), self.spec.send(Some(id), self.next))
            }
            3 => {
                let (tx, value, token) = (self.tx.clone(), self.value(), token.clone());
                let send = async move { tx.send_with(|| value).cancel_on(&token).timeout(wait).await };
                (Op::SendWith(self.next, Box::pin(send)), self.spec.send(Some(id), self.next))
            }
            4..=6 => {
                let receive = self.rx.clone().into_recv().cancel_on_owned(token.clone()).timeout(wait);
                (Op::Recv(Box::pin(receive)), self.spec.recv(Some(id)))
            }
            _ => {
                let (rx, token) = (self.rx.clone(), token.clone());
                let closed = async move { rx.closed().cancel_on(&token).timeout(wait).await.is_ok() };
                (Op::Closed(Box::pin(closed)), self.spec.wait(id))
            }
        };
        assert_eq!(look(&mut op), expected);
        if expected.is_none() {
            self.waiting.push(Waiting { id, op, token, deadline: self.now.saturating_add(limit) });
        }
    }

    /// A limit ends this operation, if nothing has yet.
    fn end_by_limit(&mut self, id: usize) {
        if self.spec.is_parked(id) {
            self.spec.leave(id);
            self.spec.ended.insert(id, (End::GivenUp, 0));
        }
    }

    fn close(&mut self) {
        let admit = self.rng.below(2) == 0;
        let parked = if admit { Parked::Admit } else { Parked::GiveBack };
        let closed = if self.rng.below(2) == 0 { self.rx.close_with(parked) } else { self.tx.close_with(parked) };
        assert_eq!(closed, self.spec.close(admit));
    }

    fn step(&mut self, id: usize, may_close: bool) {
        match self.rng.below(14) {
            0..=3 if self.waiting.len() < 100 => self.begin(id),
            4 => {
                let value = self.value();
                let end = sent(self.next, self.tx.try_send(value));
                assert_eq!(Some(end), self.spec.send(None, self.next));
            }
            5 | 6 => assert_eq!(Some(received(self.rx.try_recv())), self.spec.recv(None)),
            7 => {
                self.now += 1;
                self.clock.advance(Duration::from_millis(1));
                let now = self.now;
                let expired: Vec<_> = self.waiting.iter().filter(|one| one.deadline <= now).map(|one| one.id).collect();
                expired.into_iter().for_each(|id| self.end_by_limit(id));
            }
            8 if may_close && self.rng.below(10) == 0 => self.close(),
            9 if self.rng.below(4) == 0 => {
                let halves = (self.tx.downgrade().upgrade(), self.rx.downgrade().upgrade());
                assert!(halves.0.is_some_and(|tx| tx.same_channel(&self.tx)));
                assert!(halves.1.is_some_and(|rx| rx.same_channel(&self.rx)));
            }
            _ if self.waiting.is_empty() => {}
            8 => {
                let chosen = self.rng.below(self.waiting.len());
                self.waiting[chosen].token.cancel();
                self.end_by_limit(self.waiting[chosen].id);
            }
            9..=11 => {
                let at = self.rng.below(self.waiting.len());
                let end = look(&mut self.waiting[at].op);
                assert_eq!(end, self.spec.ended.remove(&self.waiting[at].id).map(|(end, _)| end));
                if end.is_some() {
                    self.waiting.swap_remove(at);
                }
            }
            12 => {
                let chosen = self.waiting.swap_remove(self.rng.below(self.waiting.len()));
                self.spec.leave(chosen.id);
                drop(chosen.op);
            }
            _ => self.withdraw(),
        }
    }

    fn withdraw(&mut self) {
        let at = self.rng.below(self.waiting.len());
        let id = self.waiting[at].id;
        if let Op::Send(value, send) = &mut self.waiting[at].op {
            let back = send.as_mut().withdraw().map(|value| value.id as u32);
            let gone = self.spec.ended.get(&id).is_some_and(|&(end, _)| end == End::Sent);
            assert_eq!(back, (!gone).then_some(*value));
            self.spec.leave(id);
            self.waiting.swap_remove(at);
        }
    }

    fn compare(&self) {
        let (tx, spec) = (&self.tx, &self.spec);
        assert_eq!((tx.len(), tx.is_full()), (spec.len(), spec.ring.len() == self.cap));
        assert_eq!(self.rx.is_closed(), spec.closed);
        assert_eq!((tx.parked_senders(), tx.parked_receivers()), (spec.tx.len(), spec.rx.len()));
        let (mut senders, mut receivers) = (1, 1);
        for waiting in &self.waiting {
            match waiting.op {
                Op::Send(..) | Op::SendWith(..) => senders += 1,
                Op::Recv(_) | Op::Closed(_) => receivers += 1,
            }
        }
        assert_eq!((tx.sender_count(), tx.receiver_count()), (senders, receivers));
    }

    /// The last half of one side goes, whatever is parked and buffered.
    fn end(self) {
        let Run { mut rng, clock, ledger, tx, rx, mut waiting, .. } = self;
        let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
        let is_receiving = |op: &Op| matches!(op, Op::Recv(_) | Op::Closed(_));
        match rng.below(3) {
            0 => {
                waiting.retain(|waiting| !is_receiving(&waiting.op));
                drop(rx);
                assert!(weak_rx.upgrade().is_none() && tx.is_closed());
                assert_eq!((tx.len(), tx.parked_senders()), (0, 0));
                // What is alive is with the sends that have not been looked at.
                let ended = waiting.iter_mut().map(|waiting| look(&mut waiting.op));
                assert!(ended.into_iter().all(|end| end.is_some()), "parked, and nobody receives");
                drop(waiting);
                ledger.settled();
            }
            1 => {
                waiting.retain(|waiting| is_receiving(&waiting.op));
                drop(tx);
                assert!(weak_tx.upgrade().is_none() && rx.is_closed());
                let ended = waiting.iter_mut().map(|waiting| look(&mut waiting.op));
                assert!(ended.into_iter().all(|end| end.is_some()), "parked, and nobody sends");
                while rx.try_recv().is_ok() {}
                assert_eq!((rx.len(), rx.parked_receivers()), (0, 0));
            }
            _ => {
                waiting.clear();
                assert_eq!((tx.parked_senders(), tx.parked_receivers()), (0, 0));
                drop((tx, rx));
            }
        }
        assert_eq!(clock.armed(), 0);
        ledger.settled();
    }
}

fn run(seed: u64, cap: usize, steps: usize) {
    let (tx, rx) = bounded(cap);
    let mut run = Run {
        rng: Rng(seed),
        clock: Arc::new(ManualClock::new()),
        ledger: Ledger::default(),
        tx,
        rx,
        cap,
        spec: Spec::new(cap, Fault::None),
        waiting: Vec::new(),
        now: 0,
        next: 0,
    };
    let clock = run.clock.clone();
    clock.enter(|| {
        for id in 0..steps {
            run.step(id, id * 10 > steps * 9);
            run.compare();
        }
        run.end();
    });
}

#[test]
fn every_operation_does_as_specified() {
    let (runs, steps) = if cfg!(miri) { (1, 100) } else { (100, 1_500) };
    for seed in 0..runs {
        for cap in [0, 1, 2, 3, 64] {
            watched(("values", seed, cap), || run(seed, cap, steps));
        }
    }
}
