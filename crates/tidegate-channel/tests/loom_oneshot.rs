//! The oneshot channel under loom: production code, every interleaving within the preemption bound.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p tidegate-channel --test loom_oneshot`
//!
//! Every end of a sender beside every end of a receiver, with and without a limit that fires, with changed wakers and
//! spurious polls. Each model asks: is the value in exactly one place, does a pending operation end only after a wake, and
//! does it end at all?
#![cfg(loom)]

mod support;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use loom::thread::{self, JoinHandle};
use support::{Counted, Ledger, Look, Woken};
use tidegate_channel::oneshot::{self, Receiver, Sender};
use tidegate_channel::{Operation, RecvError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

const MS: Duration = Duration::from_millis(1);

fn spawn<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    // Batches of wakers are larger than loom's stacks.
    thread::Builder::new().stack_size(1 << 15).spawn(f).unwrap()
}

fn check(f: impl Fn() + Send + Sync + Copy + 'static) {
    check_within(bound(), f);
}

/// For three threads and more, which take minutes at 2.
fn check_shorter(f: impl Fn() + Send + Sync + Copy + 'static) {
    check_within(bound() - 1, f);
}

fn bound() -> usize {
    loom::model::Builder::new().preemption_bound.unwrap_or(2).max(1)
}

fn check_within(bound: usize, f: impl Fn() + Send + Sync + Copy + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.max_branches = 20_000;
    builder.check(move || spawn(f).join().unwrap());
}

/// Polls as an executor may, each time with another waker; `Err`: pending, with the waker that counts.
fn look_at<F: Future + ?Sized>(operation: &mut Pin<Box<F>>, polls: usize) -> Result<F::Output, Arc<Woken>> {
    let mut last = Woken::new();
    for _ in 0..polls {
        last = Woken::new();
        if let Poll::Ready(end) = operation.look_with(&last.1) {
            return Ok(end);
        }
    }
    Err(last.0)
}

/// Its end, when everything that could end it has happened. If it was pending, it must have been woken.
fn end_of<F: Future + ?Sized>(operation: &mut Pin<Box<F>>, before: Result<F::Output, Arc<Woken>>) -> F::Output {
    before.unwrap_or_else(|woken| {
        assert_eq!(woken.count(), 1, "one end, one wake");
        operation.ends()
    })
}

/// What a sender does with its half; true: the value was sent.
type Tx = fn(Sender<Counted>, Counted) -> bool;

const SENDERS: [(&str, Tx); 4] = [
    ("sends", |tx, value| sent(tx, value)),
    ("asks, then sends", |tx, value| {
        let closed = tx.is_closed();
        let sent = sent(tx, value);
        assert!(!(closed && sent), "closed for good");
        sent
    }),
    ("stops waiting for the close, then sends", |tx, value| {
        let mut wait = Box::pin(tx.closed());
        let closed = look_at(&mut wait, 2).is_ok();
        drop(wait);
        assert!(!closed || tx.is_closed());
        let sent = sent(tx, value);
        assert!(!(closed && sent), "closed for good");
        sent
    }),
    ("goes", |_, _| false),
];

fn sent(tx: Sender<Counted>, value: Counted) -> bool {
    match tx.send(value) {
        Ok(()) => true,
        Err(error) => {
            assert!(error.is_closed() && error.into_inner() == 1, "the value comes back");
            false
        }
    }
}

/// What a receiver does, while the sender is at it, and what it does when the sender is done (`join` says whether the value
/// was sent). True: the value was received.
type Rx = fn(Receiver<Counted>, &mut dyn FnMut() -> bool) -> bool;

fn received(end: Result<Counted, RecvError>) -> bool {
    match end {
        Ok(value) => {
            assert!(value == 1);
            true
        }
        Err(error) => {
            assert_eq!(error, RecvError::Closed);
            false
        }
    }
}

/// A receiver that stays until it knows gets the value if it was sent.
fn stays(polls: usize, mut rx: Receiver<Counted>, join: &mut dyn FnMut() -> bool) -> bool {
    let mut receive = Box::pin(rx.recv());
    let early = look_at(&mut receive, polls);
    let sent = join();
    let got = received(end_of(&mut receive, early));
    drop(receive);
    assert_eq!(got, sent);
    assert_eq!(rx.try_recv().unwrap_err(), RecvError::Closed);
    got
}

const RECEIVERS: [(&str, Rx); 10] = [
    ("receives", |rx, join| stays(1, rx, join)),
    ("receives, polled thrice", |rx, join| stays(3, rx, join)),
    ("receives, owned", |rx, join| {
        let mut receive = Box::pin(rx.into_recv());
        let early = look_at(&mut receive, 2);
        let sent = join();
        let got = received(end_of(&mut receive, early));
        assert_eq!(got, sent);
        got
    }),
    ("drops a receive, then tries again", |mut rx, join| {
        let mut receive = Box::pin(rx.recv());
        let early = look_at(&mut receive, 1);
        drop(receive);
        let sent = join();
        let got = match early {
            Ok(end) => received(end),
            Err(_) => received(rx.try_recv()),
        };
        assert_eq!(got, sent, "a delivery that was dropped stays");
        got
    }),
    ("drops a receive, then the receiver", |mut rx, join| {
        let mut receive = Box::pin(rx.recv());
        let early = look_at(&mut receive, 1);
        drop(receive);
        drop(rx);
        let sent = join();
        let got = early.is_ok_and(received);
        assert!(sent || !got);
        got
    }),
    ("drops an owned receive", |rx, join| {
        let mut receive = Box::pin(rx.into_recv());
        let early = look_at(&mut receive, 1);
        drop(receive);
        join();
        early.is_ok_and(received)
    }),
    ("goes", |rx, join| {
        drop(rx);
        join();
        false
    }),
    ("closes, then looks", |mut rx, join| {
        let first = rx.close();
        let end = rx.try_recv();
        let sent = join();
        assert!(!(first && sent), "what was closed first refuses");
        let got = received(end);
        assert_eq!(got, sent, "what was sent first is there");
        got
    }),
    ("closes, then receives", |mut rx, join| {
        rx.close();
        let got = received(rx.into_recv().wait());
        assert_eq!(got, join());
        got
    }),
    ("looks again and again", |mut rx, join| {
        let end = loop {
            match rx.try_recv() {
                Err(RecvError::Empty) => thread::yield_now(),
                end => break end,
            }
        };
        let got = received(end);
        assert_eq!(got, join(), "never closed before the value");
        got
    }),
];

fn explore(which: usize) {
    let (name, tx_act) = SENDERS[which];
    for (other, rx_act) in RECEIVERS {
        eprintln!("{name} || {other}");
        check(move || {
            let ledger = Ledger::default();
            let value = ledger.value(1);
            let (tx, rx) = oneshot::channel();
            let sender = spawn(move || tx_act(tx, value));
            let mut sender = Some(sender);
            let _got = rx_act(rx, &mut || sender.take().unwrap().join().unwrap());
            ledger.settled();
        });
    }
}

/// G1, G7, G9, CASES 1, 4, 5, 6, 8, 16, 19.
#[test]
fn sends() {
    explore(0);
}

#[test]
fn asks_then_sends() {
    explore(1);
}

#[test]
fn stops_waiting_for_the_close_then_sends() {
    explore(2);
}

#[test]
fn goes() {
    explore(3);
}

/// H2, H3: a receive that was parked before the threads began looks while the send, in the hold that has ended it, still has
/// the lock: what it takes stays taken.
#[test]
fn a_look_during_the_send() {
    check(|| {
        let ledger = Ledger::default();
        let (value, (tx, rx)) = (ledger.value(1), oneshot::channel());
        let mut receive = Box::pin(rx.into_recv());
        receive.parks();
        let receiver = spawn(move || (receive.look().map(received), receive));
        assert!(tx.send(value).is_ok());
        let (seen, mut receive) = receiver.join().unwrap();
        if seen.is_pending() {
            assert!(received(receive.ends()));
        }
        drop(receive);
        ledger.settled();
    });
}

/// Both block: the operation, the parker and the channel together.
#[test]
fn threads_that_block() {
    check(|| {
        let (tx, rx) = oneshot::channel();
        let sender = spawn(move || tx.send(1).unwrap());
        assert_eq!(rx.into_recv().wait(), Ok(1));
        sender.join().unwrap();
    });
    check(|| {
        let (tx, rx) = oneshot::channel::<u8>();
        let receiver = spawn(move || drop(rx));
        tx.closed().wait();
        assert!(tx.send(1).is_err());
        receiver.join().unwrap();
    });
}

/// The wait for the close beside every way in which a receiver ends: always told, also the second of two.
#[test]
fn the_wait_for_the_close() {
    const ENDS: [fn(Receiver<u8>); 4] = [
        |rx| drop(rx),
        |mut rx| assert!(rx.close()),
        |rx| drop(rx.into_recv()),
        |rx| {
            let mut receive = Box::pin(rx.into_recv());
            receive.parks();
            drop(receive);
        },
    ];
    for end in ENDS {
        for polls in 1..3 {
            check(move || {
                let (tx, rx) = oneshot::channel();
                let receiver = spawn(move || end(rx));
                let mut wait = Box::pin(tx.closed());
                let early = look_at(&mut wait, polls);
                receiver.join().unwrap();
                end_of(&mut wait, early);
                assert!(tx.is_closed());
            });
        }
        // Two in line, and one that leaves it.
        check_shorter(move || {
            let (tx, rx) = oneshot::channel();
            let mut waits = [(); 3].map(|()| Box::pin(tx.closed()));
            let early = waits.each_mut().map(|wait| look_at(wait, 1));
            let receiver = spawn(move || end(rx));
            let [mut first, left, mut last] = waits;
            drop(left);
            receiver.join().unwrap();
            let [first_early, _, last_early] = early;
            end_of(&mut first, first_early);
            end_of(&mut last, last_early);
        });
    }
}

/// Who ends a wait beside the other half.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Timer,
    Token,
}

/// A parked receive under both limits; returns what fires one of them.
fn limits(limit: Limit) -> (Arc<ManualClock>, CancelToken, impl FnOnce(&ManualClock, &CancelToken)) {
    (Arc::new(ManualClock::new()), CancelToken::new(), move |clock: &ManualClock, token: &CancelToken| match limit {
        Limit::Timer => clock.advance(MS),
        Limit::Token => assert!(token.cancel()),
    })
}

/// CASES 11, 12, 42: the send, or the end of the sender, beside a limit of a parked receive, and a poll that changes the
/// waker: one end, one wake, and the value is received now or by the next try.
#[test]
fn a_limit_beside_the_sender() {
    for limit in [Limit::Timer, Limit::Token] {
        for (name, tx_act) in [SENDERS[0], SENDERS[3]] {
            for polls in 0..2 {
                eprintln!("{limit:?} || {name}, {polls}");
                check_shorter(move || {
                    let (clock, token, fire) = limits(limit);
                    let ledger = Ledger::default();
                    let value = ledger.value(1);
                    let (tx, mut rx) = oneshot::channel();
                    let mut receive = Box::pin(rx.recv().timeout(MS).cancel_on(&token));
                    let (woken, waker) = Woken::new();
                    clock.enter(|| receive.parks_with(&waker));
                    let sender = spawn(move || tx_act(tx, value));
                    let firing = spawn({
                        let (clock, token) = (clock.clone(), token.clone());
                        move || fire(&clock, &token)
                    });
                    let early = match polls {
                        0 => Err(woken),
                        _ => look_at(&mut receive, polls),
                    };
                    let sent = sender.join().unwrap();
                    firing.join().unwrap();
                    let end = end_of(&mut receive, early);
                    drop(receive);
                    match end {
                        Ok(value) => assert!(sent && value == 1),
                        Err(RecvError::Closed) => assert!(!sent),
                        Err(_) => assert_eq!(received(rx.try_recv()), sent),
                    }
                    drop(rx);
                    ledger.settled();
                    assert_eq!(clock.armed(), 0);
                });
            }
        }
    }
}

/// An owned receive beside the send and a limit: received, refused, or dropped with the receive that was abandoned.
#[test]
fn a_limit_of_an_owned_receive() {
    for limit in [Limit::Timer, Limit::Token] {
        check(move || {
            let (clock, token, fire) = limits(limit);
            let ledger = Ledger::default();
            let value = ledger.value(1);
            let (tx, rx) = oneshot::channel();
            let mut receive = Box::pin(rx.into_recv().timeout(MS).cancel_on_owned(token.clone()));
            clock.enter(|| receive.parks());
            let sender = spawn(move || sent(tx, value));
            fire(&clock, &token);
            let end = receive.ends();
            let sent = sender.join().unwrap();
            assert!(sent || end.is_err());
            drop(end);
            ledger.settled();
            assert!(receive.ends_again());
        });
    }
}

trait EndsAgain {
    fn ends_again(&mut self) -> bool;
}

impl<F: Future<Output = Result<Counted, RecvError>>> EndsAgain for Pin<Box<F>> {
    /// After a value it stays pending, after an error it says so again.
    fn ends_again(&mut self) -> bool {
        match self.look() {
            Poll::Pending => true,
            Poll::Ready(end) => end.is_err(),
        }
    }
}

/// A wait for the close beside its limit and the end of the receiver.
#[test]
fn a_limit_of_the_wait_for_the_close() {
    for limit in [Limit::Timer, Limit::Token] {
        check(move || {
            let (clock, token, fire) = limits(limit);
            let (tx, rx) = oneshot::channel::<u8>();
            let mut closed = Box::pin(tx.closed().timeout(MS).cancel_on(&token));
            let (woken, waker) = Woken::new();
            clock.enter(|| closed.parks_with(&waker));
            let receiver = spawn(move || drop(rx));
            fire(&clock, &token);
            receiver.join().unwrap();
            let _either = end_of(&mut closed, Err(woken));
            drop(closed);
            assert!(tx.is_closed());
        });
    }
}

/// Drop of a parked, limited receive beside its limit, and the end of the sender: nobody touches what is gone.
#[test]
fn a_drop_beside_its_limit() {
    for limit in [Limit::Timer, Limit::Token] {
        check_shorter(move || {
            let (clock, token, fire) = limits(limit);
            let (tx, rx) = oneshot::channel::<u8>();
            let mut receive = Box::pin(rx.into_recv().timeout(MS).cancel_on_owned(token.clone()));
            clock.enter(|| receive.parks());
            let dropping = spawn(move || drop(receive));
            let sender = spawn(move || tx.send(1).is_ok());
            fire(&clock, &token);
            dropping.join().unwrap();
            sender.join().unwrap();
            assert_eq!(clock.armed(), 0);
        });
    }
}

/// G9: a forgotten receive in a wheel or a token keeps the channel, and they give it back: the last of the three frees it.
#[test]
fn a_forgotten_receive_beside_the_last_half() {
    for limit in [Limit::Timer, Limit::Token] {
        check_shorter(move || {
            let (clock, token, fire) = limits(limit);
            let (tx, mut rx) = oneshot::channel::<u8>();
            let mut receive = Box::pin(rx.recv().timeout(MS).cancel_on_owned(token.clone()));
            clock.enter(|| receive.parks());
            std::mem::forget(receive);
            let sender = spawn(move || tx.send(1).is_ok());
            let receiver = spawn(move || drop(rx));
            fire(&clock, &token);
            sender.join().unwrap();
            receiver.join().unwrap();
            fire_both(&clock, &token);
        });
    }
}

fn fire_both(clock: &ManualClock, token: &CancelToken) {
    clock.advance(MS);
    token.cancel();
    assert_eq!(clock.armed(), 0);
}
