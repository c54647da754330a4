//! Operations that are forgotten instead of dropped: safe, whatever they stand in, and whatever goes first.

use std::future::Future;
use std::mem::forget;
use std::time::Duration;

use tidegate_channel::{Operation, Parked, Receiver, Sender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::RawOperation;
use tidegate_wait::timer::ManualClock;

use crate::flavors::{each_flavor, with_clock};
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

/// The same under limits.
fn forget_limited(operation: impl RawOperation, limit: Limit, token: &CancelToken, then: impl FnOnce()) {
    match limit {
        Limit::None => forget_parked(operation, then),
        Limit::Timer => forget_parked(operation.timeout(MS), then),
        Limit::Token => forget_parked(operation.cancel_on_owned(token.clone()), then),
        Limit::Both => forget_parked(operation.timeout(MS).cancel_on_owned(token.clone()), then),
    }
}

/// Forgets operations that borrow their half: nothing counts for them any more. The channel is full before, empty after.
fn forget_borrowed(tx: &Sender<Counted>, rx: &Receiver<Counted>, ledger: &Ledger, limit: Limit, token: &CancelToken) {
    if tx.is_full() {
        forget_limited(tx.send(ledger.value(2)), limit, token, || ());
        forget_limited(tx.send_with(|| ledger.value(3)), limit, token, || ());
    }
    forget_limited(tx.closed(), limit, token, || ());
    forget_limited(rx.closed(), limit, token, || ());
    while rx.try_recv().is_ok() {}
    forget_limited(rx.recv(), limit, token, || ());
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

/// G9, CASES 3, 33: forgotten while parked, with each limit, the halves dropped before or after the limits fire. Memory
/// stays safe (Miri, AddressSanitizer), the timer and the token let go of the channel, and no value is dropped twice.
#[test]
fn forgotten_while_parked() {
    each_flavor(|flavor| {
        with_clock(|clock| {
            let orders = [(true, true), (true, false), (false, true), (false, false)];
            for (limit, (timer_first, freed_first)) in LIMITS.into_iter().flat_map(|l| orders.map(|order| (l, order))) {
                let ledger = Ledger::default();
                let (tx, rx) = flavor.make();
                let token = CancelToken::new();
                flavor.fill(&tx, |n| ledger.value(n));
                if flavor.has_limit() {
                    forget_limited(tx.clone().into_send(ledger.value(1)), limit, &token, || ());
                }
                let empty = flavor.make::<Counted>();
                forget_limited(empty.1.clone().into_recv(), limit, &token, || ());
                forget_borrowed(&tx, &rx, &ledger, limit, &token);
                if freed_first {
                    drop((tx, rx, empty));
                    fire(clock, token, timer_first);
                } else {
                    fire(clock, token, timer_first);
                    // A parked receive that was forgotten may have swallowed one turn, the channel goes on.
                    let _may = tx.try_send(ledger.value(3));
                    while rx.try_recv().is_ok() {}
                    let mut receive = Box::pin(rx.recv());
                    receive.parks();
                    assert!(tx.try_send(ledger.value(4)).is_ok() && receive.ends().unwrap() == 4);
                    drop(receive);
                    drop((tx, rx, empty));
                }
                assert!(ledger.dropped() <= ledger.made(), "{limit:?}");
            }
        });
    });
}

/// G9: forgotten after the delivery, still armed. The value of a delivered receive is never seen; everything else is.
#[test]
fn forgotten_after_the_delivery() {
    each_flavor(|flavor| {
        with_clock(|clock| {
            for (limit, timer_first) in LIMITS.into_iter().flat_map(|limit| [(limit, true), (limit, false)]) {
                let ledger = Ledger::default();
                let (tx, rx) = flavor.make();
                let token = CancelToken::new();
                forget_limited(rx.clone().into_recv(), limit, &token, || {
                    assert!(tx.try_send(ledger.value(0)).is_ok());
                });
                flavor.fill(&tx, |n| ledger.value(n));
                if flavor.has_limit() {
                    forget_limited(tx.clone().into_send(ledger.value(100)), limit, &token, || {
                        assert!(rx.try_recv().is_ok());
                    });
                }
                // Received: the forgotten receive's half keeps the channel from dropping them.
                let rest = rx.try_iter().last().map(|value| value.id);
                assert!(!flavor.has_limit() || flavor.capacity == 0 || rest == Some(100));
                drop((tx, rx));
                fire(clock, token, timer_first);
                assert_eq!(ledger.made() - ledger.dropped(), 1, "{limit:?}: the forgotten delivery");
            }
        });
    });
}

/// G9, G7: forgotten operations stand in the line when the channel closes: they are settled like the others, in both
/// modes. An admitted value is received, although its send never saw it.
#[test]
fn forgotten_in_a_line_that_closes() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        for mode in [Parked::GiveBack, Parked::Admit] {
            let ledger = Ledger::default();
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| ledger.value(n));
            forget_parked(tx.send(ledger.value(101)), || ());
            let mut behind = Box::pin(tx.send(ledger.value(102)));
            behind.parks();
            forget_parked(tx.send_with(|| ledger.value(103)), || ());
            forget_parked(tx.closed(), || ());
            rx.close_with(mode);
            assert_eq!(behind.ends().is_ok(), mode == Parked::Admit);
            drop(behind);
            drop((tx, rx));
            let forgotten = if mode == Parked::Admit { 0 } else { 2 };
            assert_eq!(ledger.made() - ledger.dropped(), forgotten, "{mode:?}: all but what was forgotten");
        }
    });
}

/// G9: what a forgotten parked receive swallows is one value, once.
#[test]
fn a_forgotten_receive_swallows_one_turn() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        forget_parked(rx.recv(), || ());
        let mut receive = Box::pin(rx.recv());
        receive.parks();
        tx.try_send(1).unwrap();
        tx.try_send(2).unwrap();
        assert_eq!(receive.ends(), Ok(2));
        flavor.hold(&tx, &rx, 3);
        assert_eq!(rx.try_recv(), Ok(3));
    });
}

/// G4, CASE 33: many expired waits leave nothing behind: no timer, no waiter.
#[test]
fn expired_waits_leave_nothing() {
    let rounds = if cfg!(miri) { 30 } else { 10_000 };
    each_flavor(|flavor| {
        with_clock(|clock| {
            let (tx, rx) = flavor.make();
            let (full, _rx) = flavor.make();
            flavor.fill(&full, |n| n);
            for round in 0..rounds {
                let mut receive = Box::pin(rx.recv().timeout(MS));
                receive.parks();
                let mut send = flavor.has_limit().then(|| Box::pin(full.send(round).timeout(MS)));
                send.iter_mut().for_each(Look::parks);
                clock.advance(MS);
                assert!(receive.ends().is_err() && send.is_none_or(|mut send| send.ends().is_err()));
            }
            assert_eq!((clock.armed(), rx.parked_receivers(), full.parked_senders()), (0, 0, 0));
            flavor.hold(&tx, &rx, 1_usize);
            assert_eq!(tx.len(), 1, "nobody is parked");
        });
    });
}
