//! Limits in time, on a clock that stands still until it is moved.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tidegate_channel::{bounded, Operation, RecvError, SendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::support::{Ledger, Look, Woken};

const MS: Duration = Duration::from_millis(1);

/// G6, CASE 12: time runs from the first park; never early; the task is woken, and the value comes back.
#[test]
fn a_parked_send_times_out() {
    let clock = ManualClock::new();
    clock.enter(|| {
        let (tx, rx) = bounded(1);
        tx.try_send(0).unwrap();
        let (woken, waker) = Woken::new();
        let mut send = Box::pin(tx.send(1).timeout(10 * MS));
        clock.advance(100 * MS);
        send.parks_with(&waker);
        clock.advance(10 * MS - Duration::from_nanos(1));
        assert_eq!(woken.count(), 0);
        send.parks_with(&waker);
        clock.advance(Duration::from_nanos(1));
        assert_eq!(woken.count(), 1);
        assert_eq!(rx.try_recv(), Ok(0));
        assert_eq!(tx.try_send(2), Ok(()), "it left no gap, and takes nobody's turn (G2)");
        assert_eq!(send.ends(), Err(SendError::TimedOut(1)));
        assert!(send.look().is_pending());
        assert_eq!((rx.try_recv(), clock.armed()), (Ok(2), 0));
    });
}

/// G6: the same for a receive, which says so again when it is polled again.
#[test]
fn a_parked_receive_times_out() {
    let clock = ManualClock::new();
    clock.enter(|| {
        let (tx, rx) = bounded(1);
        let (woken, waker) = Woken::new();
        let mut receive = Box::pin(rx.recv().deadline(clock.now() + 10 * MS));
        receive.parks_with(&waker);
        clock.advance(10 * MS);
        assert_eq!(woken.count(), 1);
        tx.try_send(1).unwrap();
        assert_eq!(tx.len(), 1, "nobody is parked any more");
        (0..2).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::TimedOut)));
        assert_eq!((rx.try_recv(), clock.armed()), (Ok(1), 0));
    });
}

/// G6, CASE 40: zero and a past deadline are one try: a success if there is room or a value, the end if closed.
#[test]
fn no_time_is_one_try() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(1));
    clock.enter(|| {
        let past = clock.now() - MS;
        let (tx, rx) = bounded(1);
        assert_eq!(rx.recv().timeout(Duration::ZERO).wait(), Err(RecvError::TimedOut));
        assert_eq!(rx.recv().deadline(past).wait(), Err(RecvError::TimedOut));
        assert_eq!(tx.send(1).timeout(Duration::ZERO).wait(), Ok(()));
        assert_eq!(tx.send(2).timeout(Duration::ZERO).wait(), Err(SendError::TimedOut(2)));
        assert_eq!(tx.send(2).deadline(past).wait(), Err(SendError::TimedOut(2)));
        assert_eq!(rx.recv().deadline(past).wait(), Ok(1));
        let mut receive = Box::pin(rx.recv());
        receive.parks();
        assert_eq!(tx.send(3).deadline(past).wait(), Ok(()), "a parked receive is room enough");
        assert_eq!(receive.ends(), Ok(3));
        tx.try_send(4).unwrap();
        let mut send = Box::pin(tx.send(5));
        send.parks();
        assert_eq!(rx.recv().timeout(Duration::ZERO).wait(), Ok(4));
        assert_eq!((send.ends(), rx.try_recv()), (Ok(()), Ok(5)));
        let mut delivered = Box::pin(rx.recv());
        delivered.parks();
        tx.try_send(6).unwrap();
        drop(delivered);
        assert_eq!(rx.recv().timeout(Duration::ZERO).wait(), Ok(6), "a returned value is there, too");
        tx.close();
        assert_eq!(rx.recv().timeout(Duration::ZERO).wait(), Err(RecvError::Closed));
        assert_eq!(tx.send(7).deadline(past).wait(), Err(SendError::Closed(7)));
        assert_eq!(clock.armed(), 0);
    });
}

/// G6, CASE 40: `Duration::MAX` is for ever and arms nothing; a far deadline neither overflows nor fires.
#[test]
fn the_longest_time_is_for_ever() {
    let clock = ManualClock::new();
    clock.enter(|| {
        let (tx, rx) = bounded(1);
        let mut receive = Box::pin(rx.recv().timeout(Duration::MAX));
        receive.parks();
        assert_eq!(clock.armed(), 0);
        let far = clock.now() + Duration::from_secs(400 * 365 * 86_400);
        let mut later = Box::pin(rx.recv().deadline(far).timeout(Duration::MAX));
        later.parks();
        clock.advance(Duration::from_secs(300 * 365 * 86_400));
        receive.parks();
        later.parks();
        tx.try_send(1).unwrap();
        tx.try_send(2).unwrap();
        assert_eq!((receive.ends(), later.ends()), (Ok(1), Ok(2)));
        assert_eq!(clock.armed(), 0);
    });
}

/// G6: an operation that is done at once arms nothing, whatever its limits.
#[test]
fn a_ready_operation_arms_nothing() {
    let clock = ManualClock::new();
    clock.enter(|| {
        let token = CancelToken::new();
        let (tx, rx) = bounded(1);
        let mut send = Box::pin(tx.send(1).timeout(MS).cancel_on(&token).timeout(2 * MS));
        assert_eq!((send.ends(), clock.armed()), (Ok(()), 0));
        let mut receive = Box::pin(rx.recv().cancel_on_owned(token.clone()).deadline(clock.now() + MS));
        assert_eq!((receive.ends(), clock.armed()), (Ok(1), 0));
    });
}

/// CASE 11 (G1): a time-out in the same tick as a delivery, in both orders, with the task polled before or after: what was
/// received and what came back is what was sent.
#[test]
fn a_time_out_beside_a_delivery_loses_nothing() {
    let rounds = if cfg!(miri) { 60 } else { 100_000 };
    let clock = ManualClock::new();
    let ledger = Ledger::default();
    clock.enter(|| {
        let (tx, rx) = bounded(1);
        let mut rng = crate::support::Rng(11);
        let (mut sent, mut received, mut returned) = (0, 0, 0);
        for round in 0..rounds {
            let mut receive = Box::pin(rx.recv().timeout(MS));
            receive.parks();
            let timer_first = rng.below(2) == 0;
            if timer_first {
                clock.advance(MS);
            }
            sent += 1;
            assert!(tx.try_send(ledger.value(round)).is_ok(), "handed over or buffered");
            if !timer_first {
                clock.advance(MS);
            }
            match (rng.below(3), timer_first) {
                (0, _) => drop(receive),
                (_, true) => assert!(matches!(receive.ends(), Err(RecvError::TimedOut))),
                (_, false) => {
                    assert!(receive.ends().unwrap() == round);
                    received += 1;
                    continue;
                }
            }
            assert!(rx.try_recv().unwrap() == round);
            received += 1;
            // And on the other side.
            sent += 2;
            assert!(tx.try_send(ledger.value(0)).is_ok());
            let mut send = Box::pin(tx.send(ledger.value(1)).timeout(MS));
            send.parks();
            if timer_first {
                clock.advance(MS);
                assert!(rx.try_recv().unwrap() == 0);
                assert!(matches!(send.ends(), Err(SendError::TimedOut(value)) if value == 1));
                returned += 1;
            } else {
                assert!(rx.try_recv().unwrap() == 0);
                clock.advance(MS);
                assert!(send.ends().is_ok());
                assert!(rx.try_recv().unwrap() == 1);
                received += 1;
            }
            received += 1;
        }
        assert_eq!(received + returned, sent);
        assert_eq!((tx.len(), clock.armed()), (0, 0));
    });
    ledger.settled();
}

type Ended = Pin<Box<dyn Future<Output = &'static str>>>;

fn sending<F: Future<Output = Result<(), SendError<u8>>> + 'static>(send: F) -> Ended {
    Box::pin(async move {
        match send.await {
            Ok(()) => "sent",
            Err(SendError::TimedOut(1)) => "late",
            Err(SendError::Cancelled(1)) => "cancelled",
            Err(SendError::Closed(1)) => "closed",
            Err(_) => "wrong",
        }
    })
}

fn receiving<F: Future<Output = Result<u8, RecvError>> + 'static>(receive: F) -> Ended {
    Box::pin(async move {
        match receive.await {
            Ok(_) => "received",
            Err(RecvError::TimedOut) => "late",
            Err(RecvError::Cancelled) => "cancelled",
            Err(RecvError::Closed) => "closed",
            Err(_) => "wrong",
        }
    })
}

/// Both operations under limits in every combination and order: one in time after 2 ms, one after 3 ms, a token.
fn combinations(at: Instant, token: &CancelToken, full: bool) -> Vec<(&'static str, Ended)> {
    let t = || token.clone();
    let send = || {
        let (tx, rx) = bounded(1);
        if full {
            tx.try_send(0).unwrap();
        }
        std::mem::forget(rx);
        tx.into_send(1)
    };
    let recv = || {
        let (tx, rx) = bounded::<u8>(1);
        std::mem::forget(tx);
        rx.into_recv()
    };
    vec![
        ("T", sending(send().timeout(2 * MS))),
        ("T", sending(send().deadline(at + 2 * MS))),
        ("T", sending(send().timeout(2 * MS).deadline(at + 3 * MS))),
        ("T", sending(send().timeout(3 * MS).deadline(at + 2 * MS))),
        ("C", sending(send().cancel_on_owned(t()))),
        ("TC", sending(send().cancel_on_owned(t()).timeout(2 * MS))),
        ("TC", sending(send().timeout(2 * MS).cancel_on_owned(t()))),
        ("TC", sending(send().timeout(3 * MS).cancel_on_owned(t()).deadline(at + 2 * MS))),
        ("TC", sending(send().cancel_on_owned(t().child()).timeout(2 * MS).cancel_on_owned(t()).timeout(3 * MS))),
        ("T", receiving(recv().timeout(2 * MS))),
        ("T", receiving(recv().deadline(at + 2 * MS))),
        ("T", receiving(recv().deadline(at + 3 * MS).timeout(2 * MS))),
        ("C", receiving(recv().cancel_on_owned(t()))),
        ("TC", receiving(recv().cancel_on_owned(t()).timeout(2 * MS))),
        ("TC", receiving(recv().timeout(2 * MS).cancel_on_owned(t()))),
        ("TC", receiving(recv().deadline(at + 2 * MS).cancel_on_owned(t()).deadline(at + 3 * MS))),
        ("TC", receiving(recv().cancel_on_owned(t().child()).timeout(3 * MS).cancel_on_owned(t()).timeout(2 * MS))),
    ]
}

/// G6, G8: of several limits the earliest ends the operation, in whatever order they were put on; nothing stays armed.
#[test]
fn the_earliest_limit_wins_in_any_combination() {
    let clock = ManualClock::new();
    clock.enter(|| {
        for cancel_first in [true, false] {
            let token = CancelToken::new();
            let mut operations = combinations(clock.now(), &token, true);
            operations.iter_mut().for_each(|(_, operation)| operation.parks());
            clock.advance(MS);
            if cancel_first {
                token.cancel();
            }
            clock.advance(MS);
            if !cancel_first {
                token.cancel();
            }
            for (limits, operation) in &mut operations {
                let expected =
                    if limits.contains('C') && (cancel_first || *limits == "C") { "cancelled" } else { "late" };
                assert_eq!(operation.ends(), expected, "{limits}");
            }
            assert_eq!(clock.armed(), 0);
        }
    });
}

/// G8, G6: a token that is cancelled already wins at entry, before a possible success and before an expired limit.
#[test]
fn an_early_cancel_wins_in_any_combination() {
    let clock = ManualClock::new();
    clock.enter(|| {
        for full in [true, false] {
            let token = CancelToken::new();
            let operations = combinations(clock.now(), &token, full);
            token.cancel();
            clock.advance(4 * MS);
            for (limits, mut operation) in operations {
                if limits.contains('C') {
                    assert_eq!(operation.ends(), "cancelled", "{limits}");
                }
            }
        }
    });
}

/// G8: `withdraw` in every state gives the value back as long as nobody else has it, takes the operation out of every
/// list, and ends it.
#[test]
fn withdraw_in_every_state() {
    let clock = ManualClock::new();
    clock.enter(|| {
        let token = CancelToken::new();
        let (tx, rx) = bounded(1);
        let mut unpolled = Box::pin(tx.send(1).timeout(MS));
        assert_eq!((unpolled.as_mut().withdraw(), unpolled.as_mut().withdraw()), (Some(1), None));
        assert!(unpolled.look().is_pending());
        let mut sent = Box::pin(tx.send(2).timeout(MS));
        assert_eq!((sent.ends(), sent.as_mut().withdraw()), (Ok(()), None));
        let limited = |value| Box::pin(tx.send(value).timeout(MS).cancel_on(&token));
        let mut parked = limited(3);
        parked.parks();
        assert_eq!((parked.as_mut().withdraw(), clock.armed()), (Some(3), 0));
        let mut delivered = limited(4);
        delivered.parks();
        assert_eq!(rx.try_recv(), Ok(2));
        assert_eq!((delivered.as_mut().withdraw(), clock.armed()), (None, 0));
        assert!(delivered.look().is_pending());
        let mut late = limited(5);
        late.parks();
        clock.advance(MS);
        assert_eq!(late.as_mut().withdraw(), Some(5));
        let mut cancelled = limited(6);
        cancelled.parks();
        token.cancel();
        assert_eq!((cancelled.as_mut().withdraw(), clock.armed()), (Some(6), 0));
        let mut closed = Box::pin(tx.send(7).timeout(MS));
        closed.parks();
        tx.close();
        assert_eq!((closed.as_mut().withdraw(), clock.armed()), (Some(7), 0));
        let mut again = Box::pin(tx.send(8));
        assert_eq!(again.ends(), Err(SendError::Closed(8)));
        assert_eq!(again.as_mut().withdraw(), None);
        assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(4), Err(RecvError::Closed)));
    });
}

/// G9: an operation that was polled under one clock and goes on under another keeps its deadline, also when the first
/// clock is gone: its wheel wakes it, and the next poll arms it elsewhere.
#[test]
fn a_limit_outlives_its_clock() {
    let (first, second) = (ManualClock::new(), ManualClock::new());
    let (tx, _rx) = bounded(1);
    tx.try_send(0).unwrap();
    let (woken, waker) = Woken::new();
    let mut send = Box::pin(tx.send(1).timeout(50 * MS));
    first.enter(|| send.parks_with(&waker));
    drop(first);
    assert_eq!(woken.count(), 1);
    second.enter(|| send.parks_with(&waker));
    assert_eq!(second.armed(), 1);
    second.advance(Duration::from_secs(3600));
    assert_eq!(woken.count(), 2);
    assert!(matches!(send.look(), Poll::Ready(Err(SendError::TimedOut(1)))));
}
