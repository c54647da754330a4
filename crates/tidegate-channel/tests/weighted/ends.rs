//! The end of a weighted channel, and of whatever stands in it (G1, G7, G9).

use std::mem::forget;
use std::time::Duration;

use tidegate_channel::{bounded_by, Operation, Parked, RecvError, WeightedSendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::support::{quiet_panic, Counted, Ledger, Look};
use crate::{by_itself, drain};

const MS: Duration = Duration::from_millis(1);

/// G7: parked sends get their values back in order, or are let in beyond the limit; what is buffered drains; then the end.
#[test]
fn g7_both_ways_to_close() {
    for (parked, many) in [(Parked::GiveBack, 5), (Parked::Admit, 5), (Parked::GiveBack, 80), (Parked::Admit, 80)] {
        let (tx, rx) = by_itself(100);
        tx.try_send(60).unwrap();
        tx.try_send(40).unwrap();
        let mut line: Vec<_> = (0..many).map(|n| Box::pin(tx.send(100 - n % 7))).collect();
        line.iter_mut().for_each(Look::parks);
        let mut closed = Box::pin(tx.closed());
        closed.parks();
        assert!(tx.close_with(parked) && !tx.close() && tx.is_closed());
        closed.ends();
        let mut expected = vec![60, 40];
        for (n, send) in (0..many).zip(&mut line) {
            let value = 100 - n % 7;
            match parked {
                Parked::Admit => {
                    assert_eq!(send.ends(), Ok(()));
                    expected.push(value);
                }
                _ => assert_eq!(send.ends(), Err(WeightedSendError::Closed(value))),
            }
        }
        assert_eq!((rx.len(), tx.weight()), (expected.len(), 100));
        assert_eq!(tx.send(1).wait(), Err(WeightedSendError::Closed(1)));
        assert_eq!(tx.try_send(1), Err(WeightedSendError::Closed(1)));
        assert_eq!(drain(&rx), (expected, RecvError::Closed));
    }
}

/// G7: the last half of either side closes; receives end, sends get their values back; what is buffered is dropped at once.
#[test]
fn g7_the_last_half_closes() {
    let ledger = Ledger::default();
    let (tx, rx) = bounded_by(100, |_: &Counted| 1);
    (0..100).for_each(|n| tx.try_send(ledger.value(n)).unwrap());
    let mut send = Box::pin(tx.send(ledger.value(100)));
    send.parks();
    drop(rx);
    assert_eq!(ledger.dropped(), 100);
    assert!(send.ends().unwrap_err().into_inner() == 100);
    drop(send);
    drop(tx);
    ledger.settled();

    let (tx, rx) = by_itself(5);
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    let weak = tx.downgrade();
    drop(tx.clone());
    assert!(receive.look().is_pending());
    drop(tx);
    assert_eq!((receive.ends(), weak.upgrade().is_none()), (Err(RecvError::Closed), true));
}

/// G1: every value ends once: received, returned, dropped with a future, the channel, or a receive that it had been given.
#[test]
fn g1_each_value_ends_once() {
    let ledger = Ledger::default();
    for (sent, received) in [(0, 0), (1, 0), (63, 1), (64, 64), (65, 64), (200, 70), (200, 200)] {
        let (tx, rx) = bounded_by(200, |_: &Counted| 1);
        drop(tx.send(ledger.value(0)));
        (0..sent).for_each(|n| tx.try_send(ledger.value(n)).unwrap());
        for n in 0..received {
            assert!(rx.try_recv().unwrap() == n);
        }
        drop(drain(&rx).0.into_iter().take(3));
        let mut delivered = Box::pin(rx.recv());
        delivered.parks();
        tx.try_send(ledger.value(7)).unwrap();
        (0..200).for_each(|n| tx.try_send(ledger.value(n)).unwrap());
        drop(delivered);
        let mut parked: Vec<_> = (0..70).map(|n| Box::pin(tx.send(ledger.value(n)))).collect();
        parked.iter_mut().for_each(Look::parks);
        drop(parked.remove(0));
        assert!(rx.try_recv().unwrap() == 7, "ahead of everything undelivered");
        drop(rx.try_recv());
        tx.close_with(Parked::Admit);
        drop((rx, parked));
        drop(tx);
        ledger.settled();
    }
}

/// G1: destructors that panic keep no value from its end.
#[test]
fn destructors_that_panic() {
    struct Broken(#[expect(dead_code)] Counted);
    impl Drop for Broken {
        fn drop(&mut self) {
            quiet_panic();
        }
    }
    let ledger = Ledger::default();
    let (tx, rx) = bounded_by(200, |_: &Broken| 1);
    (0..150).for_each(|n| assert!(tx.try_send(Broken(ledger.value(n))).is_ok()));
    drop(rx);
    drop(tx);
    ledger.settled();
    // The destructor of a send's value: those behind it have been let in by then.
    let (tx, rx) = bounded_by(10, |&(_, weight): &(Option<Broken>, u64)| weight);
    assert!(tx.try_send((None, 6)).is_ok());
    let mut first = Box::pin(tx.send((Some(Broken(ledger.value(1))), 10)));
    first.parks();
    let mut second = Box::pin(tx.send((None, 4)));
    second.parks();
    assert!(crate::support::panics(|| drop(first)));
    assert!(second.ends().is_ok());
    drop((second, rx));
    drop(tx);
    ledger.settled();
}

/// G9: forgotten sends, in every state: nothing is freed under a timer or a token that ends them later.
#[test]
fn g9_forgotten_sends() {
    let clock = ManualClock::new();
    clock.enter(|| {
        for fire_first in [false, true] {
            let token = CancelToken::new();
            let (tx, rx) = by_itself(10);
            tx.try_send(6).unwrap();
            let mut plain = Box::pin(tx.clone().into_send(5));
            plain.parks();
            forget(plain);
            let mut limited = Box::pin(tx.clone().into_send(10).timeout(MS).cancel_on_owned(token.clone()));
            limited.parks();
            forget(limited);
            let mut borrowed = Box::pin(tx.send(3).timeout(MS));
            borrowed.parks();
            forget(borrowed);
            if fire_first {
                clock.advance(MS);
                assert_eq!(tx.parked_senders(), 1);
                assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(6), Ok(5)), "a turn of a forgotten one is a turn");
            }
            drop(rx);
            drop(tx);
            clock.advance(MS);
            token.cancel();
        }
    });
}

/// Spurious polls, another waker; polled after the end.
#[test]
fn g9_polls() {
    let (tx, rx) = by_itself(1);
    tx.try_send(1).unwrap();
    let ((old, first), (new, second)) = (crate::support::Woken::new(), crate::support::Woken::new());
    let mut send = Box::pin(tx.send(1));
    send.parks_with(&first);
    send.parks_with(&second);
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!((old.count(), new.count()), (0, 1));
    assert_eq!(send.ends(), Ok(()));
    assert!(send.look().is_pending());
}
