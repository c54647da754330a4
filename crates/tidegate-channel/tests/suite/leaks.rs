//! Operations that are forgotten instead of dropped: safe, whatever they stand in, and whatever goes first.

use std::future::Future;
use std::mem::forget;
use std::time::Duration;

use tidegate_channel::{bounded, Operation, OwnedReceiving, OwnedSending, Receiver, Sender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::support::{Counted, Ledger, Look};

const MS: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    None,
    Timer,
    Token,
    Both,
}

const LIMITS: [Limit; 4] = [Limit::None, Limit::Timer, Limit::Token, Limit::Both];

/// Parks an operation, lets `then` happen to it, and forgets it.
fn forget_parked<F: Future>(operation: F, then: impl FnOnce()) {
    let mut operation = Box::pin(operation);
    operation.parks();
    then();
    forget(operation);
}

fn forget_send(send: OwnedSending<Counted>, limit: Limit, token: &CancelToken, then: impl FnOnce()) {
    match limit {
        Limit::None => forget_parked(send, then),
        Limit::Timer => forget_parked(send.timeout(MS), then),
        Limit::Token => forget_parked(send.cancel_on_owned(token.clone()), then),
        Limit::Both => forget_parked(send.timeout(MS).cancel_on_owned(token.clone()), then),
    }
}

fn forget_receive(receive: OwnedReceiving<Counted>, limit: Limit, token: &CancelToken, then: impl FnOnce()) {
    match limit {
        Limit::None => forget_parked(receive, then),
        Limit::Timer => forget_parked(receive.timeout(MS), then),
        Limit::Token => forget_parked(receive.cancel_on_owned(token.clone()), then),
        Limit::Both => forget_parked(receive.cancel_on_owned(token.clone()).timeout(MS), then),
    }
}

/// Forgets operations that borrow their half: nothing counts for them any more.
fn forget_borrowed(tx: &Sender<Counted>, rx: &Receiver<Counted>, value: Counted, limit: Limit, token: &CancelToken) {
    match limit {
        Limit::None => forget_parked(tx.send(value), || ()),
        Limit::Timer => forget_parked(tx.send(value).timeout(MS), || ()),
        Limit::Token => forget_parked(tx.send(value).cancel_on_owned(token.clone()), || ()),
        Limit::Both => forget_parked(tx.send(value).timeout(MS).cancel_on_owned(token.clone()), || ()),
    }
    while rx.try_recv().is_ok() {}
    match limit {
        Limit::None => forget_parked(rx.recv(), || ()),
        Limit::Timer => forget_parked(rx.recv().timeout(MS), || ()),
        Limit::Token => forget_parked(rx.recv().cancel_on_owned(token.clone()), || ()),
        Limit::Both => forget_parked(rx.recv().timeout(MS).cancel_on_owned(token.clone()), || ()),
    }
}

/// What happens after the halves are gone, in both orders: the timer fires into, or the token is cancelled over, a channel
/// that nobody holds but they.
fn fire(clock: &ManualClock, token: CancelToken, timer_first: bool) {
    if timer_first {
        clock.advance(MS);
    }
    token.cancel();
    drop(token);
    clock.advance(MS);
    assert_eq!(clock.armed(), 0);
}

/// G9, CASE 33: forgotten while parked, with each limit, the halves dropped before or after the limits fire. Memory stays
/// safe (Miri, AddressSanitizer), the timer and the token let go of the channel, and no value is dropped twice.
#[test]
fn forgotten_while_parked() {
    let clock = ManualClock::new();
    clock.enter(|| {
        for (limit, timer_first) in LIMITS.into_iter().flat_map(|limit| [(limit, true), (limit, false)]) {
            for freed_first in [true, false] {
                let ledger = Ledger::default();
                let (tx, rx) = bounded(1);
                let token = CancelToken::new();
                assert!(tx.try_send(ledger.value(0)).is_ok());
                forget_send(tx.clone().into_send(ledger.value(1)), limit, &token, || ());
                let empty = bounded(1);
                forget_receive(empty.1.clone().into_recv(), limit, &token, || ());
                forget_borrowed(&tx, &rx, ledger.value(2), limit, &token);
                if freed_first {
                    drop((tx, rx, empty));
                    fire(&clock, token, timer_first);
                } else {
                    fire(&clock, token, timer_first);
                    // A parked send that was forgotten may have swallowed one turn, the channel goes on.
                    while rx.try_recv().is_ok() {}
                    assert!(tx.try_send(ledger.value(3)).is_ok());
                    drop((tx, rx, empty));
                }
                assert!(ledger.dropped() <= ledger.made(), "{limit:?}");
            }
        }
    });
}

/// G9: forgotten after the delivery, still armed. The value of a delivered receive is never seen; everything else is.
#[test]
fn forgotten_after_the_delivery() {
    let clock = ManualClock::new();
    clock.enter(|| {
        for (limit, timer_first) in LIMITS.into_iter().flat_map(|limit| [(limit, true), (limit, false)]) {
            let ledger = Ledger::default();
            let (tx, rx) = bounded(1);
            let token = CancelToken::new();
            forget_receive(rx.clone().into_recv(), limit, &token, || {
                assert!(tx.try_send(ledger.value(0)).is_ok());
            });
            assert!(tx.try_send(ledger.value(1)).is_ok());
            forget_send(tx.clone().into_send(ledger.value(2)), limit, &token, || {
                assert!(rx.try_recv().unwrap() == 1);
            });
            assert!(rx.try_recv().unwrap() == 2);
            drop((tx, rx));
            fire(&clock, token, timer_first);
            assert_eq!((ledger.made(), ledger.dropped()), (3, 2), "{limit:?}: the forgotten delivery");
        }
    });
}

/// G9, G7: forgotten operations stand in the line when the channel closes: they are settled like the others.
#[test]
fn forgotten_in_a_line_that_closes() {
    let ledger = Ledger::default();
    let (tx, rx) = bounded(1);
    assert!(tx.try_send(ledger.value(0)).is_ok());
    forget_parked(tx.send(ledger.value(1)), || ());
    let mut behind = Box::pin(tx.send(ledger.value(2)));
    behind.parks();
    forget_parked(tx.send(ledger.value(3)), || ());
    rx.close();
    assert!(behind.ends().is_err());
    drop(behind);
    drop((tx, rx));
    assert_eq!(ledger.dropped(), 2, "all but the two that were forgotten");
}

/// G9: what a forgotten parked receive swallows is one value, once.
#[test]
fn a_forgotten_receive_swallows_one_turn() {
    let (tx, rx) = bounded(1);
    forget_parked(rx.recv(), || ());
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    assert_eq!(receive.ends(), Ok(2));
    tx.try_send(3).unwrap();
    assert_eq!(rx.try_recv(), Ok(3));
}

/// G4, CASE 33: many expired waits leave nothing behind: no timer, no waiter.
#[test]
fn expired_waits_leave_nothing() {
    let rounds = if cfg!(miri) { 50 } else { 100_000 };
    let clock = ManualClock::new();
    clock.enter(|| {
        let (tx, rx) = bounded::<usize>(1);
        for _ in 0..rounds {
            let mut receive = Box::pin(rx.recv().timeout(MS));
            receive.parks();
            clock.advance(MS);
            assert!(receive.ends().is_err());
        }
        assert_eq!(clock.armed(), 0);
        tx.try_send(1).unwrap();
        assert_eq!(tx.len(), 1, "nobody is parked");
    });
}
