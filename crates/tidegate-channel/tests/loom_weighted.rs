//! A weighted channel beside everything that may happen to it (A1–A5): each value once, never more than the limit, and
//! nobody is left in line who fits.
#![cfg(loom)]

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_channel::{bounded_by, Operation, OwnedSendingWeighed, Parked, Receiver, RecvError, WeightedSender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{Cancellable, Unlimited};
use tidegate_wait::timer::ManualClock;

/// Weighs `.0`, and counts its drops.
struct Value(u64, Arc<AtomicUsize>);

impl Drop for Value {
    fn drop(&mut self) {
        self.1.fetch_add(1, SeqCst);
    }
}

const LIMIT: u64 = 10;

fn channel() -> (WeightedSender<Value>, Receiver<Value>, Arc<AtomicUsize>) {
    let (tx, rx) = bounded_by(LIMIT, |value: &Value| value.0);
    (tx, rx, Arc::default())
}

fn look<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn check(f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(2));
    model.check(f);
}

fn drain(rx: &Receiver<Value>) -> (Vec<u64>, RecvError) {
    let mut values = Vec::new();
    loop {
        match rx.try_recv() {
            Ok(value) => values.push(value.0),
            Err(end) => return (values, end),
        }
    }
}

/// A send beside a receive, at an empty and at a full channel: whoever parks is served by the other.
#[test]
fn a_send_beside_a_receive() {
    for full in [false, true] {
        check(move || {
            let (tx, rx, dropped) = channel();
            if full {
                assert!(tx.try_send(Value(8, dropped.clone())).is_ok());
            }
            let (sender, value) = (tx.clone(), Value(5, dropped.clone()));
            let other = loom::thread::spawn(move || {
                let mut send = Box::pin(sender.into_send(value));
                let pending = look(&mut send).is_pending();
                (send, pending)
            });
            let mut receive = Box::pin(rx.recv());
            let first = look(&mut receive);
            assert!(tx.weight() <= LIMIT);
            let (mut send, pending) = other.join().unwrap();
            assert!(!pending || look(&mut send).is_ready(), "there is room by now");
            match first {
                Poll::Ready(value) => assert_eq!(value.ok().map(|value| value.0), Some(if full { 8 } else { 5 })),
                Poll::Pending => assert!(!full && look(&mut receive).is_ready()),
            }
            drop(receive);
            assert_eq!(drain(&rx).0, if full { vec![5] } else { vec![] });
            assert_eq!(tx.weight(), 0);
            drop((send, rx));
            assert_eq!(dropped.load(SeqCst), 1 + usize::from(full));
        });
    }
}

type Limited = OwnedSendingWeighed<Value, Cancellable<'static, Unlimited>>;

/// 6 of 10 used; in line 10, under a token, and behind it 4 or two of 2.
struct Start {
    tx: WeightedSender<Value>,
    rx: Receiver<Value>,
    first: Pin<Box<Limited>>,
    behind: Vec<Pin<Box<OwnedSendingWeighed<Value>>>>,
    token: CancelToken,
    dropped: Arc<AtomicUsize>,
}

fn start(behind: &[u64]) -> Start {
    let (tx, rx, dropped) = channel();
    assert!(tx.try_send(Value(6, dropped.clone())).is_ok());
    let token = CancelToken::new();
    let mut first = Box::pin(tx.clone().into_send(Value(10, dropped.clone())).cancel_on_owned(token.clone()));
    assert!(look(&mut first).is_pending());
    let park = |&weight: &u64| {
        let mut send = Box::pin(tx.clone().into_send(Value(weight, dropped.clone())));
        assert!(look(&mut send).is_pending());
        send
    };
    let behind = behind.iter().map(park).collect();
    Start { tx, rx, first, behind, token, dropped }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Recv,
    TrySend,
    Close,
    Admit,
    DropBehind,
    DropReceiver,
}

const EVENTS: [Event; 6] =
    [Event::Recv, Event::TrySend, Event::Close, Event::Admit, Event::DropBehind, Event::DropReceiver];

/// A5: the first leaves, by a token's thread or by its own drop, beside an event; its task does not look again.
fn leaves(by_token: bool, event: Event, line: &[u64]) {
    let Start { tx, rx, first, mut behind, token, dropped } = start(line);
    let made = 3 + line.len();
    let mut extra = Some(Value(1, dropped.clone()));
    let other = loom::thread::spawn(move || {
        if by_token {
            token.cancel();
            return Some(first);
        }
        None
    });
    let mut rx = Some(rx);
    let mut received = Vec::new();
    match event {
        Event::Recv => received.extend(rx.as_ref().and_then(|rx| rx.try_recv().ok()).map(|value| value.0)),
        Event::TrySend => drop(extra.take().map(|extra| tx.try_send(extra))),
        Event::Close => assert!(tx.close()),
        Event::Admit => assert!(tx.close_with(Parked::Admit)),
        Event::DropBehind => drop(behind.remove(0)),
        Event::DropReceiver => rx = None,
    }
    let first = other.join().unwrap();
    let used = tx.weight();
    assert!(used <= LIMIT, "A1");
    let closed = matches!(event, Event::Close | Event::Admit | Event::DropReceiver);
    // Nothing is received from here on before they are looked at: whoever fits has been let in.
    for send in &mut behind {
        if look(send).is_pending() {
            // Unless the receive was first, and the heavy one went in before it was to leave.
            assert!(!closed && used == LIMIT, "{event:?}: it sleeps beside room");
        }
    }
    if let Some(rx) = &rx {
        received.extend(drain(rx).0);
        assert!(received.first() == Some(&6), "{event:?}");
        assert_eq!(tx.weight(), 0);
        assert!(behind.iter_mut().all(|send| tx.parked_senders() == 0 || look(send).is_pending()));
        assert_eq!(rx.try_recv().err(), Some(if closed { RecvError::Closed } else { RecvError::Empty }));
        assert_eq!(tx.parked_senders(), 0);
    }
    drop((first, behind, rx, extra));
    drop(tx);
    assert_eq!(dropped.load(SeqCst), made, "each value was dropped once");
}

fn every(by_token: bool, line: &'static [u64]) {
    for event in EVENTS {
        check(move || leaves(by_token, event, line));
    }
}

#[test]
fn a5_a_token_ends_the_first_of_two() {
    every(true, &[4]);
}

#[test]
fn a5_the_first_of_two_is_dropped() {
    every(false, &[4]);
}

#[test]
fn a5_a_token_ends_the_first_of_three() {
    every(true, &[2, 2]);
}

/// Two sends, of which one is given up, beside a receive.
#[test]
fn two_sends_beside_a_receive() {
    check(|| {
        let (tx, rx, dropped) = channel();
        assert!(tx.try_send(Value(10, dropped.clone())).is_ok());
        let mut heavy = Box::pin(tx.clone().into_send(Value(9, dropped.clone())));
        assert!(look(&mut heavy).is_pending());
        let (sender, value) = (tx.clone(), Value(3, dropped.clone()));
        let other = loom::thread::spawn(move || {
            let mut light = Box::pin(sender.into_send(value));
            let _either = look(&mut light);
            drop(heavy);
            light
        });
        assert_eq!(rx.try_recv().ok().map(|value| value.0), Some(10));
        let mut light = other.join().unwrap();
        let used = tx.weight();
        let done = look(&mut light).is_ready();
        assert!(done || used == 9, "it sleeps beside room");
        let values = drain(&rx).0;
        assert!(values == [3] || values == [9, 3], "{values:?}");
        drop((light, rx));
        assert_eq!(dropped.load(SeqCst), 3);
    });
}

/// A5, O4: a timer lets in a line in two parts. Between them there comes a receive, a close, or one that leaves the line and
/// finds it owed.
#[test]
fn a_line_let_in_by_parts() {
    for way in ["receive", "close", "leave"] {
        check(move || {
            let clock = ManualClock::new();
            clock.enter(|| {
                let (tx, rx, dropped) = channel();
                assert!(tx.try_send(Value(1, dropped.clone())).is_ok());
                let limit = Duration::from_nanos(1);
                let mut heavy = Box::pin(tx.clone().into_send(Value(LIMIT, dropped.clone())).timeout(limit));
                assert!(look(&mut heavy).is_pending());
                let mut line: Vec<_> =
                    (0..3).map(|_| Box::pin(tx.clone().into_send(Value(2, dropped.clone())))).collect();
                assert!(line.iter_mut().all(|send| look(send).is_pending()));
                let (receiver, last) = (rx.clone(), line.pop());
                let other = loom::thread::spawn(move || match way {
                    "receive" => (receiver.try_recv().ok().map(|value| value.0), last),
                    "close" => (receiver.close().then_some(0), last),
                    _ => (None, None),
                });
                clock.advance(limit);
                let (seen, mut last) = other.join().unwrap();
                let ends: Vec<bool> =
                    line.iter_mut().chain(&mut last).map(|send| matches!(look(send), Poll::Ready(Ok(())))).collect();
                let sent = ends.iter().filter(|&&sent| sent).count();
                let expired = matches!(look(&mut heavy), Poll::Ready(Err(_)));
                match way {
                    // Before the timer it makes room for the heavy one.
                    "receive" => assert_eq!((seen, sent), (Some(1), if expired { 3 } else { 0 })),
                    "close" => assert!(seen.is_some() && ends.is_sorted_by(|a, b| a >= b)),
                    _ => assert_eq!((ends.len(), sent), (2, 2)),
                }
                assert!(expired || way == "receive");
                let values = drain(&rx).0;
                let first = usize::from(way != "receive" || !expired);
                assert!(values.len() >= first + sent && values.len() <= first + 3, "{values:?}");
                drop((heavy, line, last, tx, rx));
                assert_eq!(dropped.load(SeqCst), 5);
            });
        });
    }
}
