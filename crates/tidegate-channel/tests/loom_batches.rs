//! Batches under loom (R1–R4): production code, every interleaving within the preemption bound.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p tidegate-channel --test loom_batches`
//!
//! A batch beside each thing that can happen to it, at capacities 1 and 2: each value goes to one place, what is received
//! is in order and adjoins what came back, the count of what was sent is right, and nobody waits who could go on. (Who
//! blocks and is not woken is a deadlock, which loom reports.)
#![cfg(loom)]

mod support;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

use loom::thread;
use support::{Counted, Ledger, Look, Woken};
use tidegate_channel::{bounded, Operation, Parked, Receiver, RecvError, SendError, Sender, SendingMany, Unsent};

/// More than either capacity.
const MANY: usize = 3;

fn check(
    bound: usize,
    capacity: usize,
    f: impl Fn(&Ledger, Sender<Counted>, Receiver<Counted>) + Send + Sync + Copy + 'static,
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(model.preemption_bound.unwrap_or(2).min(bound));
    model.max_branches = 20_000;
    model.check(move || {
        let ledger = Ledger::default();
        let (tx, rx) = bounded(capacity);
        f(&ledger, tx, rx);
        ledger.settled();
    });
}

/// On both capacities.
fn each(f: impl Fn(&Ledger, Sender<Counted>, Receiver<Counted>) + Send + Sync + Copy + 'static) {
    [1, 2].into_iter().for_each(|capacity| check(3, capacity, f));
}

/// The same for what would take many minutes at a third preemption.
fn each_within_two(f: impl Fn(&Ledger, Sender<Counted>, Receiver<Counted>) + Send + Sync + Copy + 'static) {
    [1, 2].into_iter().for_each(|capacity| check(2, capacity, f));
}

fn values(ledger: &Ledger) -> Vec<Counted> {
    (0..MANY).map(|n| ledger.value(n)).collect()
}

fn ids(values: &[Counted]) -> Vec<usize> {
    values.iter().map(|value| value.id).collect()
}

fn drain(rx: &Receiver<Counted>) -> Vec<usize> {
    std::iter::from_fn(|| rx.try_recv().ok()).map(|value| value.id).collect()
}

type Outcome = Result<usize, SendError<Unsent<Counted>>>;

/// What was received is the beginning, what came back is the rest, and the count says where one ends.
fn adjoins(received: &[usize], sent: Outcome) {
    let (sent, rest) = match sent {
        Ok(sent) => (sent, Vec::new()),
        Err(error) => {
            let unsent = error.into_inner();
            (unsent.sent, ids(&unsent.rest))
        }
    };
    assert_eq!((received.len(), sent + rest.len()), (sent, MANY));
    assert!(received.iter().chain(&rest).copied().eq(0..MANY), "{received:?}, then {rest:?}");
}

/// An operation that has been polled once.
struct Waiting<F: Future> {
    operation: Pin<Box<F>>,
    woken: Arc<Woken>,
    end: Option<F::Output>,
}

impl<F: Future> Waiting<F> {
    fn new(mut operation: Pin<Box<F>>) -> Waiting<F> {
        let (woken, waker) = Woken::new();
        let end = match operation.look_with(&waker) {
            Poll::Ready(end) => Some(end),
            Poll::Pending => None,
        };
        Waiting { operation, woken, end }
    }

    /// Polls it again if it has not ended: who has ended it meanwhile has woken it, once.
    fn look_again(&mut self) {
        if self.end.is_none() {
            if let Poll::Ready(end) = self.operation.look_with(&Waker::from(self.woken.clone())) {
                assert_eq!(self.woken.count(), 1, "it was not woken");
                self.end = Some(end);
            }
        }
    }
}

/// A batch whose first values are in the channel, and who has parked with the others.
fn parked<'t>(ledger: &Ledger, tx: &'t Sender<Counted>) -> Pin<Box<SendingMany<'t, Counted>>> {
    let mut batch = Box::pin(tx.send_many(values(ledger)));
    batch.parks();
    batch
}

/// R1, R3: a batch that blocks beside receives that block.
#[test]
fn a_batch_beside_receives() {
    each_within_two(|ledger, tx, rx| {
        let other = thread::spawn(move || (0..MANY).for_each(|n| assert!(rx.recv().wait().unwrap() == n)));
        assert_eq!(tx.send_many(values(ledger)).wait().ok(), Some(MANY));
        other.join().unwrap();
    });
}

/// R3: the same without the blocking: a batch that has parked, or not yet, beside receives; who ended it woke it.
#[test]
fn a_batch_beside_tries() {
    each(|ledger, tx, rx| {
        let receiver = rx.clone();
        let other = thread::spawn(move || [receiver.try_recv(), receiver.try_recv()].map(|end| end.ok()));
        let mut batch = Waiting::new(Box::pin(tx.send_many(values(ledger))));
        let mut seen: Vec<_> = other.join().unwrap().into_iter().flatten().map(|value| value.id).collect();
        batch.look_again();
        assert!(batch.end.is_some() || tx.is_full(), "it waits beside room");
        seen.extend(drain(&rx));
        batch.look_again();
        seen.extend(drain(&rx));
        adjoins(&seen, batch.end.take().unwrap());
    });
}

/// R4: a batch of receives, parked or not, beside sends; who delivered woke it.
#[test]
fn a_batch_of_receives_beside_tries() {
    each(|ledger, tx, rx| {
        let (first, second) = (ledger.value(0), ledger.value(1));
        let other = thread::spawn(move || [tx.try_send(first).ok(), tx.try_send(second).ok()]);
        let mut seen = Vec::new();
        let mut receive = Waiting::new(Box::pin(rx.recv_many(&mut seen, 2)));
        let sent = other.join().unwrap().into_iter().flatten().count();
        receive.look_again();
        let taken = receive.end.take().unwrap().unwrap();
        drop(receive);
        assert_eq!(taken, seen.len());
        let all: Vec<_> = ids(&seen).into_iter().chain(drain(&rx)).collect();
        assert!(all.len() == sent && all.iter().copied().eq(0..sent), "{all:?}");
    });
}

/// R1, R3, R4: both sides are batches; the one that waits is woken.
#[test]
fn a_batch_beside_a_batch_of_receives() {
    each(|ledger, tx, rx| {
        let receiver = rx.clone();
        let other = thread::spawn(move || {
            let mut seen = Vec::new();
            let _nothing_perhaps = receiver.try_recv_many(&mut seen, MANY);
            ids(&seen)
        });
        let mut batch = Waiting::new(Box::pin(tx.send_many(values(ledger))));
        let mut seen = other.join().unwrap();
        batch.look_again();
        assert!(batch.end.is_some() || tx.is_full(), "it waits beside room");
        seen.extend(drain(&rx));
        batch.look_again();
        seen.extend(drain(&rx));
        adjoins(&seen, batch.end.take().unwrap());
    });
}

/// The same, the receives waiting.
#[test]
fn a_batch_of_receives_beside_a_batch() {
    each(|ledger, tx, rx| {
        let values = values(ledger);
        let other = thread::spawn(move || tx.try_send_many(values));
        let mut seen = Vec::new();
        let mut receive = Waiting::new(Box::pin(rx.recv_many(&mut seen, MANY)));
        let sent = other.join().unwrap();
        receive.look_again();
        assert!(receive.end.take().unwrap().is_ok());
        drop(receive);
        let all: Vec<_> = ids(&seen).into_iter().chain(drain(&rx)).collect();
        adjoins(&all, sent);
    });
}

/// G7, R3: a close, in both ways: what was sent is there, what was not comes back.
#[test]
fn a_batch_beside_a_close() {
    for mode in [Parked::GiveBack, Parked::Admit] {
        each_within_two(move |ledger, tx, rx| {
            let closer = rx.clone();
            let other = thread::spawn(move || assert!(closer.close_with(mode)));
            let sent = tx.send_many(values(ledger)).wait();
            other.join().unwrap();
            assert!(sent.as_ref().map_or_else(SendError::is_closed, |_| mode == Parked::Admit));
            adjoins(&drain(&rx), sent);
            assert_eq!(rx.try_recv().err(), Some(RecvError::Closed));
        });
    }
}

/// G7: the last receiver goes: what was sent is dropped with it, what was not comes back.
#[test]
fn a_batch_beside_the_last_receiver_s_drop() {
    each_within_two(|ledger, tx, rx| {
        let other = thread::spawn(move || drop(rx));
        let mut batch = Waiting::new(Box::pin(tx.send_many(values(ledger))));
        other.join().unwrap();
        batch.look_again();
        let unsent = batch.end.take().unwrap().unwrap_err().into_inner();
        assert_eq!(unsent.sent, ledger.dropped());
        assert_eq!(ids(&unsent.rest), (unsent.sent..MANY).collect::<Vec<_>>());
    });
}

/// G7: a batch of receives beside a send and the close: the value or the end, and no value after the end.
#[test]
fn a_batch_of_receives_beside_a_close() {
    each(|ledger, tx, rx| {
        let value = ledger.value(0);
        let other = thread::spawn(move || {
            assert!(tx.try_send(value).is_ok());
            assert!(tx.close());
        });
        let mut seen = Vec::new();
        let mut receive = Waiting::new(Box::pin(rx.recv_many(&mut seen, 2)));
        other.join().unwrap();
        receive.look_again();
        assert_eq!(receive.end.take().unwrap(), Ok(1));
        drop(receive);
        assert_eq!(rx.try_recv_many(&mut seen, 2), Err(RecvError::Closed));
        assert_eq!(ids(&seen), [0]);
    });
}

/// G7: the close alone, beside one that parks.
#[test]
fn a_batch_of_receives_beside_a_close_alone() {
    each(|_, tx, rx| {
        let other = thread::spawn(move || drop(tx));
        let mut seen = Vec::new();
        let mut receive = Waiting::new(Box::pin(rx.recv_many(&mut seen, 2)));
        other.join().unwrap();
        receive.look_again();
        assert_eq!(receive.end.take().unwrap(), Err(RecvError::Closed));
    });
}

/// R3, G2: a parked batch is dropped, or withdrawn, beside receives: its unsent values go nowhere else, and the send behind
/// it is not stranded.
#[test]
fn a_parked_batch_leaves_beside_receives() {
    for withdraws in [false, true] {
        each(move |ledger, tx, rx| {
            let mut batch = parked(ledger, &tx);
            let mut behind = Box::pin(tx.send(ledger.value(MANY)));
            behind.parks();
            let receiver = rx.clone();
            let other = thread::spawn(move || [receiver.try_recv(), receiver.try_recv()].map(|end| end.ok()));
            let rest = withdraws.then(|| ids(&batch.as_mut().withdraw()));
            drop(batch);
            let mut seen: Vec<_> = other.join().unwrap().into_iter().flatten().map(|value| value.id).collect();
            let sent_behind = match behind.look() {
                Poll::Ready(end) => end.is_ok(),
                Poll::Pending => {
                    assert!(tx.is_full(), "it waits beside room");
                    false
                }
            };
            seen.extend(drain(&rx));
            // Also if the last look let it in just now.
            assert!(sent_behind || behind.look().is_ready());
            assert_eq!(seen.pop(), Some(MANY));
            let rest = rest.unwrap_or_else(|| (seen.len()..MANY).collect());
            assert!(seen.iter().chain(&rest).copied().eq(0..MANY), "{seen:?}, then {rest:?}");
        });
    }
}

/// R1, R3: a batch that is polled once and dropped, beside a receive that blocks: it gets the first value, there is room
/// for that in any case; of the others the first ones are there.
#[test]
fn a_batch_is_polled_once_beside_a_receive() {
    each(|ledger, tx, rx| {
        let receiver = rx.clone();
        let other = thread::spawn(move || receiver.recv().wait().unwrap().id);
        let mut batch = Box::pin(tx.send_many(values(ledger)));
        let _sent_or_parked = batch.look();
        drop(batch);
        assert_eq!(other.join().unwrap(), 0);
        let seen = drain(&rx);
        assert!(seen.iter().copied().eq(1..=seen.len()), "{seen:?}");
    });
}

/// G1: a batch of receives that is parked, delivered perhaps, is dropped beside a batch of sends: nothing is lost, and the
/// order stays.
#[test]
fn a_parked_batch_of_receives_is_dropped_beside_a_batch() {
    each(|ledger, tx, rx| {
        let mut buffer = Vec::new();
        let mut receive = Box::pin(rx.recv_many(&mut buffer, 2));
        receive.parks();
        let values = values(ledger);
        let other = thread::spawn(move || tx.try_send_many(values));
        drop(receive);
        let sent = other.join().unwrap();
        assert!(buffer.is_empty());
        adjoins(&drain(&rx), sent);
    });
}

/// G2, R1, R3: two batches, in order each, whatever stands in between.
#[test]
fn two_batches_beside_each_other() {
    each(|ledger, tx, rx| {
        let (others, sender) = (vec![ledger.value(10), ledger.value(11)], tx.clone());
        let other = thread::spawn(move || sender.try_send_many(others));
        let mut batch = Waiting::new(Box::pin(tx.send_many(values(ledger))));
        let sent = other.join().unwrap().unwrap_or_else(|error| error.into_inner().sent);
        let mut seen = drain(&rx);
        batch.look_again();
        assert!(matches!(batch.end, Some(Ok(MANY))));
        seen.extend(drain(&rx));
        assert!(seen.iter().copied().filter(|&id| id < 10).eq(0..MANY), "{seen:?}");
        assert!(seen.iter().copied().filter(|&id| id >= 10).eq(10..10 + sent), "{seen:?}");
    });
}
