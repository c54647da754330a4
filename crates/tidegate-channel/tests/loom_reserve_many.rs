//! A reservation of many slots that has collected some (N1–N4), beside everything that may happen to it and its channel: it
//! gets all, or what it had goes on; nobody is left waiting who could go on, and receivers see the end.
#![cfg(loom)]

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate_channel::{bounded, Operation, OwnedPermits, OwnedSending, Parked, Receiver, RecvError, Sender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{Cancellable, Unlimited};

/// Counts its drops.
struct Value(Arc<AtomicUsize>);

impl Drop for Value {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn look<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

type Many = tidegate_channel::OwnedReservingMany<Value, Cancellable<'static, Unlimited>>;

/// Two slots: one with a value, the other collected by the reservation, which wants both; a send behind it, or nobody.
struct Start {
    tx: Sender<Value>,
    rx: Receiver<Value>,
    many: Pin<Box<Many>>,
    behind: Option<Pin<Box<OwnedSending<Value>>>>,
    token: CancelToken,
    dropped: Arc<AtomicUsize>,
}

fn start(behind: bool) -> Start {
    let (tx, rx) = bounded(2);
    let dropped: Arc<AtomicUsize> = Arc::default();
    assert!(tx.try_send(Value(dropped.clone())).is_ok());
    let token = CancelToken::new();
    let mut many = Box::pin(tx.clone().into_reserve_many(2).cancel_on_owned(token.clone()));
    assert!(look(&mut many).is_pending());
    let behind = behind.then(|| {
        let mut send = Box::pin(tx.clone().into_send(Value(dropped.clone())));
        assert!(look(&mut send).is_pending());
        send
    });
    Start { tx, rx, many, behind, token, dropped }
}

/// What the other thread does, while this one receives the value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Nothing,
    Cancel,
    Drop,
    Close,
    Admit,
    TrySend,
}

fn run(event: Event, behind: bool) {
    let Start { tx, rx, mut many, mut behind, token, dropped } = start(behind);
    let made = 2 + usize::from(behind.is_some());
    let (other_tx, extra) = (tx.clone(), Value(dropped.clone()));
    let other = loom::thread::spawn(move || {
        let tx = other_tx;
        match event {
            Event::Nothing => {}
            Event::Cancel => assert!(token.cancel()),
            Event::Drop => return None,
            Event::Close => assert!(tx.close()),
            Event::Admit => assert!(tx.close_with(Parked::Admit)),
            Event::TrySend => {
                drop(tx.try_send(extra));
                return Some((many, None));
            }
        }
        let ended = match look(&mut many) {
            Poll::Ready(ended) => Some(ended.ok()),
            Poll::Pending => None,
        };
        Some((many, ended))
    });
    let received = rx.try_recv();
    assert!(received.is_ok(), "it was there");
    let left = other.join().unwrap();
    settle(event, &tx, &rx, left, &mut behind);
    drop((received, behind));
    drop((tx, rx));
    assert_eq!(dropped.load(SeqCst), made, "each value was dropped once");
}

type Left = Option<(Pin<Box<Many>>, Option<Option<OwnedPermits<Value>>>)>;

fn settle(
    event: Event,
    tx: &Sender<Value>,
    rx: &Receiver<Value>,
    left: Left,
    behind: &mut Option<Pin<Box<OwnedSending<Value>>>>,
) {
    let mut permits = None;
    if let Some((mut many, ended)) = left {
        permits = match ended {
            Some(ended) => ended,
            None => match look(&mut many) {
                Poll::Ready(ended) => ended.ok(),
                Poll::Pending => panic!("both slots are free, or it was ended"),
            },
        };
    }
    let closed = matches!(event, Event::Close | Event::Admit);
    if let Some(permits) = &permits {
        assert_eq!(permits.len(), 2);
        assert!(closed || tx.is_full());
        if closed {
            while rx.try_recv().is_ok() {}
            assert_eq!(rx.try_recv().err(), Some(RecvError::Empty), "permits are out");
        }
    }
    if permits.is_some() && !closed {
        // It was first: the one behind waits.
        assert!(behind.as_mut().is_none_or(|behind| look(behind).is_pending()));
    }
    drop(permits);
    if let Some(behind) = behind {
        assert!(look(behind).is_ready(), "there is room for the one behind, or it was ended");
    }
    let mut last = rx.try_recv();
    while last.is_ok() {
        last = rx.try_recv();
    }
    match closed {
        true => assert_eq!(last.err(), Some(RecvError::Closed)),
        false => assert_eq!(tx.try_reserve_many(2).map(|permits| permits.len()).ok(), Some(2), "a slot was lost"),
    }
}

fn every(behind: bool) {
    for event in [Event::Nothing, Event::Cancel, Event::Drop, Event::Close, Event::Admit, Event::TrySend] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = model.preemption_bound.or(Some(2));
        model.check(move || run(event, behind));
    }
}

#[test]
fn alone_in_line() {
    every(false);
}

#[test]
fn with_a_send_behind() {
    every(true);
}

/// N3: who is behind does not wait for a look at the end of the first: the token's thread passes its slot on. Beside it a
/// permit is dropped, whose slot looks for an owner at the same time.
#[test]
fn what_is_owed_is_passed_on_beside_a_dropped_permit() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(2));
    model.check(|| {
        let (tx, rx) = bounded::<u8>(2);
        let permit = tx.try_reserve_many(1).unwrap();
        let token = CancelToken::new();
        let mut many = Box::pin(tx.reserve_many(2).cancel_on(&token));
        assert!(look(&mut many).is_pending());
        let mut behind = Box::pin(tx.clone().into_reserve_many(2));
        assert!(look(&mut behind).is_pending());
        let cancel = token.clone();
        let other = loom::thread::spawn(move || cancel.cancel());
        drop(permit);
        other.join().unwrap();
        // The first got both, or was cancelled, and then the second has both.
        match look(&mut many) {
            Poll::Ready(Ok(permits)) => drop(permits),
            Poll::Ready(Err(error)) => assert!(error.is_cancelled()),
            Poll::Pending => panic!("it was cancelled"),
        }
        assert!(look(&mut behind).is_ready());
        drop((behind, rx));
    });
}
