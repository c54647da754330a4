//! Halves and operations that are forgotten instead of dropped: memory stays safe, whatever goes first.

use std::future::Future;
use std::mem::forget;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_channel::{oneshot, Operation, RecvError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::RawOperation;
use tidegate_wait::timer::ManualClock;

use crate::support::{on_first_wake, Ledger, Look};

const MS: Duration = Duration::from_millis(1);

fn forget_parked<F: Future>(operation: F) {
    let mut operation = Box::pin(operation);
    operation.parks();
    forget(operation);
}

fn forget_limited(operation: impl RawOperation, limit: usize, token: &CancelToken) {
    match limit {
        0 => forget_parked(operation),
        1 => forget_parked(operation.timeout(MS)),
        2 => forget_parked(operation.cancel_on_owned(token.clone())),
        _ => forget_parked(operation.timeout(MS).cancel_on_owned(token.clone())),
    }
}

/// G9: forgotten while parked, under each limit; the halves end in each way, before or after the limits fire. The wheel
/// and the token keep the channel as long as they know of the operation, and no longer.
#[test]
fn forgotten_while_parked() {
    for limit in 0..4 {
        for fired_first in [false, true] {
            for end in 0..4 {
                let clock = ManualClock::new();
                clock.enter(|| {
                    let ledger = Ledger::default();
                    let token = CancelToken::new();
                    let (tx, mut rx) = oneshot::channel();
                    forget_limited(rx.recv(), limit, &token);
                    forget_limited(tx.closed(), limit, &token);
                    forget_limited(rx.recv(), limit, &token);
                    let fire = || {
                        clock.advance(MS);
                        token.cancel();
                    };
                    if fired_first {
                        fire();
                    }
                    match end {
                        0 => drop((tx, rx)),
                        1 => drop((rx, tx)),
                        2 => {
                            assert!(tx.send(ledger.value(1)).is_ok());
                            assert!(rx.recv().wait().unwrap() == 1, "a forgotten receive swallows nothing");
                        }
                        _ => {
                            rx.close();
                            assert!(tx.send(ledger.value(2)).is_err());
                        }
                    }
                    ledger.settled();
                    fire();
                    drop(token);
                    assert_eq!(clock.armed(), 0);
                });
            }
        }
    }
}

/// More forgotten waits than one hold of the lock ends, and a live one behind them.
#[test]
fn behind_many_forgotten_ones() {
    let (tx, mut rx) = oneshot::channel();
    (0..100).for_each(|_| forget_parked(rx.recv()));
    (0..100).for_each(|_| forget_parked(tx.closed()));
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    tx.send(1).unwrap();
    assert_eq!(receive.ends(), Ok(1));
    drop(receive);
    assert_eq!(rx.try_recv(), Err(RecvError::Closed));
}

/// H1, H2: the same, and in the first of the wakers, between two holds of the send, somebody takes the value: the next hold
/// leaves it taken. Until the last one has been told, somebody waits.
#[test]
fn a_value_is_taken_between_two_holds() {
    let ledger = Ledger::default();
    let (tx, rx) = oneshot::channel();
    let rx = Arc::new(Mutex::new(rx));
    let inside = rx.clone();
    let mut first = rx.lock().unwrap();
    let mut receive = Box::pin(first.recv());
    receive.parks_with(&on_first_wake(move || {
        let mut rx = inside.lock().unwrap();
        assert_eq!(format!("{rx:?}"), "Receiver { value: true, closed: true, waiting: true }");
        assert!(rx.try_recv().unwrap() == 1);
    }));
    forget(receive);
    (0..100).for_each(|_| forget_parked(first.recv()));
    drop(first);
    assert!(tx.send(ledger.value(1)).is_ok());
    let mut rx = rx.lock().unwrap();
    assert_eq!(rx.try_recv().err(), Some(RecvError::Closed));
    assert_eq!(format!("{rx:?}"), "Receiver { value: false, closed: true, waiting: false }");
    ledger.settled();
}

/// An owned receive that is forgotten takes its half along: sends succeed into the void.
#[test]
fn a_forgotten_owned_receive() {
    let (tx, rx) = oneshot::channel();
    forget_parked(rx.into_recv());
    assert!(!tx.is_closed());
    assert_eq!(tx.send(1), Ok(()));
}

/// Forgotten halves: the other waits in vain, or until its limit.
#[test]
fn forgotten_halves() {
    let (tx, mut rx) = oneshot::channel::<u8>();
    forget(tx);
    assert_eq!(rx.recv().timeout(MS).wait(), Err(RecvError::TimedOut));
    let (tx, rx) = oneshot::channel();
    forget(rx);
    assert!(tx.closed().timeout(MS).wait().is_err());
    assert_eq!(tx.send(1), Ok(()));
}

/// Forgotten after the end: nothing is lost but what it stood for.
#[test]
fn forgotten_after_the_end() {
    let ledger = Ledger::default();
    let (tx, mut rx) = oneshot::channel();
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    assert!(tx.send(ledger.value(1)).is_ok());
    forget(receive);
    assert!(rx.try_recv().unwrap() == 1);
    ledger.settled();
}
