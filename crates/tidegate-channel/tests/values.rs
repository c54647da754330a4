//! The channel beside its specification: random operations from one thread, each compared with what it should have done.
//!
//! One thread sees every state between two operations, and every parked operation may be polled, given up, timed out,
//! cancelled or withdrawn in any of them; whoever ends one has woken it; after each step the counts are compared, too. Both ways to close, from capacity 0 up
//! and without a limit, with up to 100 parked operations; permits, before and after the close; batches; weak halves; the
//! last drop of either side at the end (G1, G2, G6, G7, G8; M1–M4, R3; CASES 1, 2, 3, 7, 12, 13, 17, 21, 25).
#![cfg(not(loom))]

#[path = "support/spec.rs"]
mod spec;
mod support;
#[path = "support/watchdog.rs"]
mod watchdog;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use spec::{End, Fault, Spec, Why, UNBOUNDED};
use support::{Counted, Ledger, Look, Rng, Woken};
use tidegate_channel::{
    bounded, unbounded, Operation, OwnedPermit, OwnedReceiving, OwnedReserving, OwnedSending, Parked, Receiver,
    RecvError, ReserveError, SendError, Sender, Unsent,
};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{Cancellable, Timed, Unlimited};
use tidegate_wait::timer::ManualClock;
use watchdog::watched;

type Limits = Timed<Cancellable<'static, Unlimited>>;
type SentMany = Result<usize, SendError<Unsent<Counted>>>;
type ReceivedMany = (Result<usize, RecvError>, Vec<Counted>);

enum Op {
    Send(u32, Pin<Box<OwnedSending<Counted, Limits>>>),
    /// A send that builds its value borrows the half: it is here for the channel's sake, not for the half's.
    SendWith(u32, Pin<Box<dyn Future<Output = Result<(), SendError<Counted>>>>>),
    Recv(Pin<Box<OwnedReceiving<Counted, Limits>>>),
    Reserve(Pin<Box<OwnedReserving<Counted, Limits>>>),
    /// A batch of so many values, from the first number on; like the next one it has a half beside it.
    SendMany(u32, u8, Pin<Box<dyn Future<Output = SentMany>>>),
    RecvMany(u8, Pin<Box<dyn Future<Output = ReceivedMany>>>),
    Closed(Pin<Box<dyn Future<Output = bool>>>),
}

struct Waiting {
    id: usize,
    op: Op,
    token: CancelToken,
    woken: Arc<Woken>,
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

/// What came back of a batch of `all` values from `first` on is its end, in order.
fn sent_many(first: u32, all: u8, end: SentMany) -> End {
    let (why, unsent) = match end {
        Ok(sent) => (Why::Sent, Unsent { sent, rest: Vec::new() }),
        Err(error) => {
            let why = match error {
                SendError::Closed(_) => Why::Closed,
                SendError::Full(_) => Why::Full,
                _ => Why::GivenUp,
            };
            (why, error.into_inner())
        }
    };
    let rest = unsent.rest.iter().map(|value| value.id as u32);
    assert!(rest.eq(first + unsent.sent as u32..first + u32::from(all)), "{unsent:?} of {all} from {first}");
    End::SentMany(unsent.sent as u8, unsent.rest.len() as u8, why)
}

fn received_many((end, buffer): ReceivedMany) -> End {
    match end {
        Ok(many) => {
            assert_eq!(many, buffer.len());
            let mut values = [0; 3];
            values.iter_mut().zip(buffer).for_each(|(to, value)| *to = value.id as u32);
            End::GotMany(values)
        }
        Err(error) => {
            assert!(buffer.is_empty());
            received(Err(error))
        }
    }
}

/// A whole batch of the specification; `None`: it parks as `op`.
fn send_many(spec: &mut Spec, op: Option<usize>, first: u32, all: u8) -> Option<End> {
    for sent in 0..all {
        let next = first + u32::from(sent);
        match (spec.send(None, next), op) {
            (Some(End::Sent), _) => {}
            (Some(End::Closed), _) => return Some(spec.end_batch(all - sent, all, Why::Closed)),
            (_, None) => return Some(spec.end_batch(all - sent, all, Why::Full)),
            (_, Some(op)) => {
                spec.park_batch(op, next, all - sent, all);
                return None;
            }
        }
    }
    Some(spec.end_batch(0, all, Why::Sent))
}

/// The same on the other side; `first`: what it has been given already.
fn recv_many(spec: &mut Spec, op: Option<usize>, max: u8, first: Option<u32>) -> Option<End> {
    let mut values: Vec<_> = first.into_iter().collect();
    while values.len() < usize::from(max) {
        match spec.recv(None) {
            Some(End::Got(value)) => values.push(value),
            Some(End::Empty) if values.is_empty() && op.is_some() => return spec.recv(op),
            end if values.is_empty() => return end,
            _ => break,
        }
    }
    values.resize(3, 0);
    Some(End::GotMany(values.try_into().unwrap()))
}

fn look(op: &mut Op, woken: &Arc<Woken>, permits: &mut Vec<OwnedPermit<Counted>>) -> Option<End> {
    let waker = &Waker::from(woken.clone());
    let end = match op {
        Op::Send(value, send) => send.look_with(waker).map(|end| sent(*value, end)),
        Op::SendWith(value, send) => send.look_with(waker).map(|end| sent(*value, end)),
        Op::Recv(receive) => receive.look_with(waker).map(received),
        Op::Reserve(reserve) => reserve.look_with(waker).map(|end| match end {
            Ok(permit) => {
                permits.push(permit);
                End::Permit
            }
            Err(ReserveError::Closed) => End::Closed,
            Err(ReserveError::Rendezvous) => End::Full,
            Err(_) => End::GivenUp,
        }),
        Op::SendMany(first, all, send) => send.look_with(waker).map(|end| sent_many(*first, *all, end)),
        Op::RecvMany(_, receive) => receive.look_with(waker).map(received_many),
        Op::Closed(closed) => closed.look_with(waker).map(|closed| if closed { End::Closed } else { End::GivenUp }),
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
    spec: Spec,
    waiting: Vec<Waiting>,
    permits: Vec<OwnedPermit<Counted>>,
    now: u64,
    next: u32,
}

impl Run {
    fn value(&mut self) -> Counted {
        self.next += 1;
        self.ledger.value(self.next as usize)
    }

    /// A few values in a row, and the number of the first.
    fn values(&mut self) -> (u32, Vec<Counted>) {
        let first = self.next + 1;
        (first, (0..1 + self.rng.below(8)).map(|_| self.value()).collect())
    }

    /// Begins an operation with a token and a time-out; it must do, or wait, as the specification says.
    fn begin(&mut self, id: usize) {
        let (token, limit) = (CancelToken::new(), [1, 3, 10, u64::MAX][self.rng.below(4)]);
        let wait = if limit == u64::MAX { Duration::MAX } else { Duration::from_millis(limit) };
        let (mut op, expected) = match self.rng.below(12) {
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
            7 => {
                let reserve = self.tx.clone().into_reserve().cancel_on_owned(token.clone()).timeout(wait);
                (Op::Reserve(Box::pin(reserve)), self.spec.reserve(Some(id)))
            }
            8 | 9 => {
                let (tx, (first, values), token) = (self.tx.clone(), self.values(), token.clone());
                let all = values.len() as u8;
                let send = async move { tx.send_many(values).timeout(wait).cancel_on(&token).await };
                (Op::SendMany(first, all, Box::pin(send)), send_many(&mut self.spec, Some(id), first, all))
            }
            10 => {
                let (rx, max, token) = (self.rx.clone(), 1 + self.rng.below(3) as u8, token.clone());
                let receive = async move {
                    let mut buffer = Vec::new();
                    let end = rx.recv_many(&mut buffer, usize::from(max)).cancel_on(&token).timeout(wait).await;
                    (end, buffer)
                };
                (Op::RecvMany(max, Box::pin(receive)), recv_many(&mut self.spec, Some(id), max, None))
            }
            _ => {
                let (rx, token) = (self.rx.clone(), token.clone());
                let closed = async move { rx.closed().cancel_on(&token).timeout(wait).await.is_ok() };
                (Op::Closed(Box::pin(closed)), self.spec.wait(id))
            }
        };
        let woken = Arc::default();
        assert_eq!(look(&mut op, &woken, &mut self.permits), expected);
        if expected.is_none() {
            self.waiting.push(Waiting { id, op, token, woken, deadline: self.now.saturating_add(limit) });
        }
    }

    /// A limit ends this operation, if nothing has yet.
    fn end_by_limit(&mut self, id: usize) {
        if self.spec.is_parked(id) {
            let end = self.spec.give_up(id);
            self.spec.ended.insert(id, (end, 0));
        }
    }

    fn close(&mut self) {
        let admit = self.rng.below(2) == 0;
        let parked = if admit { Parked::Admit } else { Parked::GiveBack };
        let closed = if self.rng.below(2) == 0 { self.rx.close_with(parked) } else { self.tx.close_with(parked) };
        assert_eq!(closed, self.spec.close(admit));
    }

    /// Ends a permit; this may be the closed channel's last.
    fn end_permit(&mut self) {
        let permit = self.permits.swap_remove(self.rng.below(self.permits.len()));
        let (end, value) = match self.rng.below(3) {
            0 => {
                drop(permit);
                (End::GivenUp, None)
            }
            _ => {
                let value = self.value();
                (sent(self.next, permit.send(value)), Some(self.next))
            }
        };
        let (expected, last) = self.spec.permit_end(value);
        assert_eq!(end, expected);
        if last {
            self.spec.end_receives();
        }
    }

    /// The tries of batches.
    fn try_many(&mut self) {
        if self.rng.below(2) == 0 {
            let (first, values) = self.values();
            let all = values.len() as u8;
            let end = sent_many(first, all, self.tx.try_send_many(values));
            assert_eq!(Some(end), send_many(&mut self.spec, None, first, all));
        } else {
            let (mut buffer, max) = (Vec::new(), 1 + self.rng.below(3) as u8);
            let end = self.rx.try_recv_many(&mut buffer, usize::from(max));
            assert_eq!(Some(received_many((end, buffer))), recv_many(&mut self.spec, None, max, None));
        }
    }

    /// Receives until there is nothing.
    fn take_all(&mut self) {
        loop {
            let end = received(self.rx.try_recv());
            assert_eq!(Some(end), self.spec.recv(None));
            if !matches!(end, End::Got(_)) {
                return;
            }
        }
    }

    /// Polls one that waits.
    fn poll(&mut self) {
        let at = self.rng.below(self.waiting.len());
        let Waiting { id, op, woken, .. } = &mut self.waiting[at];
        let end = look(op, woken, &mut self.permits);
        assert!(end.is_none() || woken.count() != 0, "whoever has ended it has not woken it");
        let mut expected = self.spec.ended.remove(id).map(|(end, _)| end);
        if let (Op::RecvMany(max, _), Some(End::Got(first))) = (op, expected) {
            expected = recv_many(&mut self.spec, None, *max, Some(first));
        }
        assert_eq!(end, expected);
        if end.is_some() {
            self.waiting.swap_remove(at);
        }
    }

    fn step(&mut self, id: usize, may_close: bool) {
        match self.rng.below(18) {
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
            14 => self.try_many(),
            // Without a limit it would seldom be empty otherwise.
            17 if self.rng.below(3) == 0 => self.take_all(),
            15 | 16 if !self.permits.is_empty() => self.end_permit(),
            _ if self.waiting.is_empty() => {}
            8 => {
                let chosen = self.rng.below(self.waiting.len());
                self.waiting[chosen].token.cancel();
                self.end_by_limit(self.waiting[chosen].id);
            }
            9..=11 | 15 => self.poll(),
            12 => {
                let chosen = self.waiting.swap_remove(self.rng.below(self.waiting.len()));
                if self.spec.leave(chosen.id).1 {
                    self.spec.end_receives();
                }
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
        assert_eq!((tx.len(), tx.is_full()), (spec.len(), spec.is_full()));
        assert_eq!(self.rx.is_closed(), spec.closed);
        assert_eq!((tx.parked_senders(), tx.parked_receivers()), (spec.tx.len(), spec.rx.len()));
        let (mut senders, mut receivers) = (1 + self.permits.len(), 1);
        for waiting in &self.waiting {
            match waiting.op {
                Op::Send(..) | Op::SendWith(..) | Op::Reserve(_) | Op::SendMany(..) => senders += 1,
                Op::Recv(_) | Op::RecvMany(..) | Op::Closed(_) => receivers += 1,
            }
        }
        assert_eq!((tx.sender_count(), tx.receiver_count()), (senders, receivers));
    }

    /// The last half of one side goes, whatever is parked and buffered.
    fn end(self) {
        let Run { mut rng, clock, ledger, tx, rx, mut waiting, mut permits, .. } = self;
        let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
        let is_receiving = |op: &Op| matches!(op, Op::Recv(_) | Op::RecvMany(..) | Op::Closed(_));
        match rng.below(3) {
            0 => {
                waiting.retain(|waiting| !is_receiving(&waiting.op));
                drop(rx);
                assert!(weak_rx.upgrade().is_none() && tx.is_closed());
                assert_eq!((tx.len(), tx.parked_senders()), (0, 0));
                // What is alive is with the sends that have not been looked at.
                let mut ended = waiting.iter_mut().map(|waiting| look(&mut waiting.op, &waiting.woken, &mut permits));
                assert!(ended.all(|end| end.is_some()), "parked, and nobody receives");
                drop(waiting);
                ledger.settled();
                let refused = permits.drain(..).map(|permit| permit.send(ledger.value(0)));
                refused.for_each(|end| assert_eq!(sent(0, end), End::Closed));
            }
            1 => {
                waiting.retain(|waiting| is_receiving(&waiting.op));
                permits.clear();
                drop(tx);
                assert!(weak_tx.upgrade().is_none() && rx.is_closed());
                let mut ended = waiting.iter_mut().map(|waiting| look(&mut waiting.op, &waiting.woken, &mut permits));
                assert!(ended.all(|end| end.is_some()), "parked, and nobody sends");
                while rx.try_recv().is_ok() {}
                assert_eq!((rx.len(), rx.parked_receivers()), (0, 0));
            }
            _ => {
                waiting.clear();
                permits.clear();
                assert_eq!((tx.parked_senders(), tx.parked_receivers()), (0, 0));
                drop((tx, rx));
            }
        }
        assert_eq!(clock.armed(), 0);
        ledger.settled();
    }
}

fn run(seed: u64, cap: usize, steps: usize) {
    let (tx, rx) = if cap == UNBOUNDED { unbounded() } else { bounded(cap) };
    let mut run = Run {
        rng: Rng(seed),
        clock: Arc::new(ManualClock::new()),
        ledger: Ledger::default(),
        tx,
        rx,
        spec: Spec::new(cap, Fault::None),
        waiting: Vec::new(),
        permits: Vec::new(),
        now: 0,
        next: 0,
    };
    let clock = run.clock.clone();
    clock.enter(|| {
        for id in 0..steps {
            run.step(id, id * 10 > steps * 8);
            run.compare();
        }
        run.end();
    });
}

#[test]
fn every_operation_does_as_specified() {
    let (runs, steps) = if cfg!(miri) { (1, 100) } else { (100, 1_500) };
    for seed in 0..runs {
        for cap in [0, 1, 2, 3, 64, UNBOUNDED] {
            watched(("values", seed, cap), || run(seed, cap, steps));
        }
    }
}
