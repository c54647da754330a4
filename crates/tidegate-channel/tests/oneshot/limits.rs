//! Limits on the receive and on the wait for the close, and what is still possible afterwards.

use std::time::Duration;

use tidegate_channel::{oneshot, Operation, RecvError, SendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;
use tidegate_wait::Limit;

use crate::support::{Ledger, Look, Woken};

const MS: Duration = Duration::from_millis(1);

fn with_clock(f: impl FnOnce(&ManualClock)) {
    let clock = ManualClock::new();
    clock.enter(|| f(&clock));
    assert_eq!(clock.armed(), 0, "a timer is left");
}

/// G6, G8: a borrowed receive that timed out or was cancelled is over; the receiver tries again and again, and gets the
/// value whenever it is sent.
#[test]
fn a_receive_can_be_tried_again() {
    with_clock(|clock| {
        let (woken, waker) = Woken::new();
        let (tx, mut rx) = oneshot::channel();
        for round in 1..4 {
            let token = CancelToken::new();
            let mut receive = Box::pin(rx.recv().timeout(MS).cancel_on(&token));
            receive.parks_with(&waker);
            clock.advance(MS);
            assert_eq!(woken.count(), 2 * round - 1);
            (0..2).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::TimedOut)));
            drop(receive);
            let mut receive = Box::pin(rx.recv().cancel_on(&token).deadline(clock.now() + MS));
            receive.parks_with(&waker);
            token.cancel();
            assert_eq!(woken.count(), 2 * round);
            (0..2).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::Cancelled)));
        }
        assert!(!tx.is_closed());
        tx.send(1).unwrap();
        assert_eq!(rx.recv().timeout(MS).wait(), Ok(1));
    });
}

/// CASE 11: a limit and the send, one after the other, before the task looks: the first wins, and the value is there for
/// the next receive.
#[test]
fn a_limit_beside_the_send() {
    for send_first in [false, true] {
        for by_token in [false, true] {
            with_clock(|clock| {
                let (woken, waker) = Woken::new();
                let (tx, mut rx) = oneshot::channel();
                let token = CancelToken::new();
                let mut receive = Box::pin(rx.recv().timeout(MS).cancel_on(&token));
                receive.parks_with(&waker);
                let limit = || match by_token {
                    true => assert!(token.cancel()),
                    false => clock.advance(MS),
                };
                if send_first {
                    tx.send(1).unwrap();
                    limit();
                } else {
                    limit();
                    tx.send(1).unwrap();
                }
                assert_eq!(woken.count(), 1, "one end, one wake");
                let late = if by_token { RecvError::Cancelled } else { RecvError::TimedOut };
                let expected = if send_first { Ok(1) } else { Err(late) };
                assert_eq!(receive.ends(), expected);
                drop(receive);
                assert_eq!(rx.try_recv(), if send_first { Err(RecvError::Closed) } else { Ok(1) });
            });
        }
    }
}

/// The same beside the drop of the sender.
#[test]
fn a_limit_beside_the_end() {
    for end_first in [false, true] {
        with_clock(|clock| {
            let (tx, mut rx) = oneshot::channel::<u8>();
            let mut receive = Box::pin(rx.recv().timeout(MS));
            receive.parks();
            if end_first {
                drop(tx);
                clock.advance(MS);
                assert_eq!(receive.ends(), Err(RecvError::Closed));
            } else {
                clock.advance(MS);
                drop(tx);
                assert_eq!(receive.ends(), Err(RecvError::TimedOut));
            }
            drop(receive);
            assert_eq!(rx.recv().timeout(MS).wait(), Err(RecvError::Closed));
        });
    }
}

/// An owned receive that a limit has ended was the last: the task has only to look at it, and a reply is refused, although
/// the operation is still there; who waits for the close is told.
#[test]
fn an_owned_receive_ends_the_channel() {
    with_clock(|clock| {
        let (woken, waker) = Woken::new();
        let token = CancelToken::new();
        let (tx, rx) = oneshot::channel();
        let mut closed = Box::pin(tx.closed());
        closed.parks_with(&waker);
        let mut receive = Box::pin(rx.into_recv().cancel_on(&token).timeout(MS));
        receive.parks();
        clock.advance(MS);
        assert_eq!(receive.ends(), Err(RecvError::TimedOut));
        assert_eq!(woken.count(), 1);
        closed.ends();
        drop(closed);
        assert_eq!(tx.send(1), Err(SendError::Closed(1)));
        assert_eq!(receive.ends(), Err(RecvError::TimedOut));

        let (tx, rx) = oneshot::channel();
        token.cancel();
        let mut receive = Box::pin(rx.into_recv().cancel_on(&token));
        assert_eq!(receive.ends(), Err(RecvError::Cancelled));
        assert_eq!(tx.send(2), Err(SendError::Closed(2)));

        let (tx, rx) = oneshot::channel();
        assert_eq!(rx.into_recv().timeout(Duration::ZERO).wait(), Err(RecvError::TimedOut));
        assert_eq!(tx.send(3), Err(SendError::Closed(3)));
    });
}

/// G1: what is sent between the limit and the task's look is dropped by the look, once.
#[test]
fn a_value_that_came_too_late_is_dropped() {
    with_clock(|clock| {
        let ledger = Ledger::default();
        let (tx, rx) = oneshot::channel();
        let mut receive = Box::pin(rx.into_recv().timeout(MS));
        receive.parks();
        clock.advance(MS);
        assert!(tx.send(ledger.value(1)).is_ok());
        assert_eq!(ledger.dropped(), 0);
        assert_eq!(receive.ends().unwrap_err(), RecvError::TimedOut);
        assert_eq!(ledger.dropped(), 1);
        drop(receive);
        ledger.settled();
    });
}

/// G8: already cancelled wins at entry, over a value and over the end; the value stays.
#[test]
fn already_cancelled_wins_at_entry() {
    let token = CancelToken::new();
    token.cancel();
    let (tx, mut rx) = oneshot::channel();
    assert_eq!(tx.closed().cancel_on(&token).wait(), Err(Limit::Cancelled));
    tx.send(1).unwrap();
    assert_eq!(rx.recv().cancel_on(&token).wait(), Err(RecvError::Cancelled));
    assert_eq!(rx.recv().cancel_on_owned(token.child()).wait(), Err(RecvError::Cancelled));
    assert_eq!(rx.recv().wait(), Ok(1));
    assert_eq!(rx.recv().cancel_on(&token).wait(), Err(RecvError::Cancelled), "also after the end");
}

/// G6, CASE 40: zero and a past deadline are one try, `Duration::MAX` is for ever, several limits: the earliest.
#[test]
fn the_edges_of_time() {
    with_clock(|clock| {
        let (tx, mut rx) = oneshot::channel();
        assert_eq!(rx.recv().timeout(Duration::ZERO).wait(), Err(RecvError::TimedOut));
        assert_eq!(rx.recv().deadline(clock.now()).wait(), Err(RecvError::TimedOut));
        let mut forever = Box::pin(rx.recv().timeout(Duration::MAX).timeout(Duration::MAX));
        forever.parks();
        clock.advance(Duration::from_secs(3_600));
        assert!(forever.look().is_pending());
        drop(forever);
        let mut earliest = Box::pin(rx.recv().timeout(3 * MS).timeout(2 * MS).deadline(clock.now() + 4 * MS));
        earliest.parks();
        clock.advance(MS);
        assert!(earliest.look().is_pending());
        clock.advance(MS);
        assert_eq!(earliest.ends(), Err(RecvError::TimedOut));
        drop(earliest);
        tx.send(1).unwrap();
        assert_eq!(rx.recv().timeout(Duration::ZERO).wait(), Ok(1), "a value that is there needs no time");
        assert_eq!(rx.recv().timeout(Duration::ZERO).wait(), Err(RecvError::Closed));
    });
}

/// The wait for the close under limits, which end it without harm to anybody.
#[test]
fn the_wait_for_the_close_is_limited_too() {
    with_clock(|clock| {
        let token = CancelToken::new();
        let (tx, rx) = oneshot::channel::<u8>();
        let mut timed = Box::pin(tx.closed().timeout(MS));
        let mut cancelled = Box::pin(tx.closed().timeout(2 * MS).cancel_on(&token));
        let mut told = Box::pin(tx.closed().timeout(2 * MS).cancel_on(&token));
        timed.parks();
        cancelled.parks();
        clock.advance(MS);
        token.cancel();
        (0..2).for_each(|_| assert_eq!(timed.ends(), Err(Limit::TimedOut)));
        (0..2).for_each(|_| assert_eq!(cancelled.ends(), Err(Limit::Cancelled)));
        assert_eq!(told.ends(), Err(Limit::Cancelled));
        drop(rx);
        assert_eq!(tx.closed().timeout(MS).wait(), Ok(()));
    });
}

/// CASE 33: many expired waits leave nothing behind.
#[test]
fn expired_waits_leave_nothing() {
    with_clock(|clock| {
        let (tx, mut rx) = oneshot::channel();
        for _ in 0..if cfg!(miri) { 30 } else { 20_000 } {
            let mut receive = Box::pin(rx.recv().timeout(MS));
            receive.parks();
            clock.advance(MS);
            assert_eq!(receive.ends(), Err(RecvError::TimedOut));
        }
        assert_eq!(clock.armed(), 0);
        assert!(format!("{rx:?}").contains("waiting: false"));
        tx.send(1).unwrap();
        assert_eq!(rx.try_recv(), Ok(1));
    });
}
