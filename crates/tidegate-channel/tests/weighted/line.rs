//! Who stands in line: in order, and nobody sleeps beside room (A4, A5).

use std::mem::forget;
use std::time::Duration;

use tidegate_channel::{Operation, RecvError, WeightedSendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::support::{Look, Woken};
use crate::{by_itself, drain};

const MS: Duration = Duration::from_millis(1);

/// A4, G2: a heavy send that waits is not passed by lighter ones, parked or not; then they go on together.
#[test]
fn a4_nobody_passes_a_heavy_send() {
    let (tx, rx) = by_itself(10);
    tx.try_send(5).unwrap();
    tx.try_send(4).unwrap();
    let mut heavy = Box::pin(tx.send(10));
    heavy.parks();
    assert_eq!(tx.try_send(1), Err(WeightedSendError::Full(1)), "there is room for it, but it would pass");
    let mut light = Box::pin(tx.send(1));
    light.parks();
    assert_eq!(rx.try_recv(), Ok(5));
    assert!(heavy.look().is_pending() && light.look().is_pending() && tx.is_full());
    assert_eq!((tx.parked_senders(), tx.weight()), (2, 4));
    assert_eq!(rx.try_recv(), Ok(4));
    assert_eq!((heavy.ends(), tx.weight()), (Ok(()), 10));
    assert!(light.look().is_pending());
    assert_eq!(rx.try_recv(), Ok(10));
    assert_eq!((light.ends(), rx.try_recv()), (Ok(()), Ok(1)));
}

/// A5: one receive makes room for many, more than one hold lets in and more than a block holds; as many as fit.
#[test]
fn a5_a_receive_lets_in_all_who_fit() {
    for heavy in [20, 31, 32, 33, 64, 100, 150] {
        let (tx, rx) = by_itself(heavy);
        tx.try_send(heavy).unwrap();
        let (woken, waker) = Woken::new();
        let mut line: Vec<_> = (0..heavy + 5).map(|_| Box::pin(tx.send(1))).collect();
        line.iter_mut().for_each(|send| send.parks_with(&waker));
        assert_eq!(rx.try_recv(), Ok(heavy));
        assert_eq!((woken.count() as u64, tx.weight(), tx.parked_senders()), (heavy, heavy, 5));
        assert!(line.iter_mut().take(heavy as usize).all(|send| send.ends().is_ok()));
        assert_eq!(drain(&rx).0.len() as u64, heavy + 5);
    }
}

/// How the first in line leaves.
const WAYS: [&str; 6] = ["timer", "token", "drop", "withdraw", "timer, forgotten", "timer, dropped later"];

/// A5: limit 10, 6 used; the first in line wants 10, behind it 4, 1 and 9. The first leaves; the 4 goes on at once, although
/// nobody looks at the end of the first and nothing is received; the others stay.
#[test]
fn a5_those_behind_who_fit_go_on_at_once() {
    let clock = ManualClock::new();
    clock.enter(|| {
        for way in WAYS {
            let token = CancelToken::new();
            let (tx, rx) = by_itself(10);
            tx.try_send(6).unwrap();
            let (woken, waker) = Woken::new();
            // Without limits where no limit ends it: its own task then has no reference on the channel to give back.
            let (mut limited, mut plain) = (None, None);
            match way {
                "drop" | "withdraw" => plain = Some(Box::pin(tx.send(10))),
                _ => limited = Some(Box::pin(tx.send(10).timeout(MS).cancel_on(&token))),
            }
            limited.iter_mut().for_each(|send| send.parks());
            plain.iter_mut().for_each(|send| send.parks());
            let mut line: Vec<_> = [3, 1, 9].map(|n| Box::pin(tx.send(n))).into();
            line.iter_mut().for_each(|send| send.parks_with(&waker));
            assert_eq!(woken.count(), 0);
            match way {
                "token" => assert!(token.cancel()),
                "drop" => drop(plain.take()),
                "withdraw" => assert_eq!(plain.as_mut().unwrap().as_mut().withdraw(), Some(10)),
                _ => clock.advance(MS),
            }
            assert_eq!((woken.count(), tx.weight(), tx.parked_senders()), (2, 10, 1), "{way}");
            assert_eq!((line[0].ends(), line[1].ends()), (Ok(()), Ok(())));
            match way {
                "timer" => assert_eq!(limited.take().unwrap().ends(), Err(WeightedSendError::TimedOut(10))),
                "token" => assert_eq!(limited.take().unwrap().ends(), Err(WeightedSendError::Cancelled(10))),
                "timer, forgotten" => forget(limited.take()),
                _ => {}
            }
            assert_eq!((rx.try_recv(), line[2].look().is_pending()), (Ok(6), true));
            assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(3), Ok(1)));
            assert_eq!((line[2].ends(), rx.try_recv(), tx.weight()), (Ok(()), Ok(9), 0));
        }
    });
}

/// A5: the same with more behind than one hold lets in, and blocks to be made by the thread of the timer.
#[test]
fn a5_a_timer_lets_in_a_long_line() {
    let clock = ManualClock::new();
    clock.enter(|| {
        let (tx, rx) = by_itself(1_000);
        tx.try_send(1).unwrap();
        let mut first = Box::pin(tx.send(1_000).timeout(MS));
        first.parks();
        let mut line: Vec<_> = (0..200).map(|_| Box::pin(tx.send(1))).collect();
        line.iter_mut().for_each(Look::parks);
        clock.advance(MS);
        assert_eq!((tx.weight(), tx.parked_senders()), (201, 0));
        assert!(line.iter_mut().all(|send| send.ends().is_ok()));
        assert_eq!(drain(&rx).0.len(), 201);
    });
}

/// G2, G8: from the middle and the end of the line: the others keep their places.
#[test]
fn g2_leaving_from_anywhere() {
    let clock = ManualClock::new();
    clock.enter(|| {
        let (tx, rx) = by_itself(10);
        tx.try_send(10).unwrap();
        let mut first = Box::pin(tx.send(7));
        first.parks();
        let mut middle = Box::pin(tx.send(3).timeout(MS));
        middle.parks();
        let mut next = Box::pin(tx.send(2));
        next.parks();
        let last = {
            let mut last = Box::pin(tx.clone().into_send(1));
            last.parks();
            last
        };
        clock.advance(MS);
        assert_eq!(middle.ends(), Err(WeightedSendError::TimedOut(3)));
        drop(last);
        assert_eq!((tx.parked_senders(), tx.sender_count(), tx.weight()), (2, 1, 10));
        assert_eq!(rx.try_recv(), Ok(10));
        assert_eq!((first.ends(), next.ends(), tx.weight()), (Ok(()), Ok(()), 9));
        assert_eq!(drain(&rx).0, [7, 2]);
    });
}

/// G6, G8: limits at once; a cancelled token wins before anything moves; a ready send reads no clock and arms nothing.
#[test]
fn limits_at_once() {
    let (tx, rx) = by_itself(3);
    let token = CancelToken::new();
    assert_eq!(tx.send(1).timeout(Duration::ZERO).wait(), Ok(()), "one try");
    tx.try_send(2).unwrap();
    assert_eq!(tx.send(3).timeout(Duration::ZERO).wait(), Err(WeightedSendError::TimedOut(3)));
    token.cancel();
    assert_eq!(tx.send(3).cancel_on(&token).wait(), Err(WeightedSendError::Cancelled(3)));
    assert_eq!(drain(&rx).0, [1, 2]);
    assert_eq!(tx.send(3).cancel_on(&token).wait(), Err(WeightedSendError::Cancelled(3)));
    assert_eq!(tx.send(4).cancel_on(&token).wait(), Err(WeightedSendError::Cancelled(4)), "also before it is refused");
    assert!(tx.send(4).timeout(Duration::ZERO).wait().unwrap_err().is_too_heavy());
    let soon = std::time::Instant::now() + Duration::from_millis(2);
    assert_eq!((tx.send(3).deadline(soon).wait(), tx.weight()), (Ok(()), 3));
    assert_eq!(tx.send(1).deadline(soon).wait(), Err(WeightedSendError::TimedOut(1)));
    assert!(std::time::Instant::now() >= soon, "never early");
}

/// A receive meets the first in line while nothing is buffered only in between; parked receives are served by sends in order.
#[test]
fn parked_receives_are_served_in_order() {
    let (tx, rx) = by_itself(4);
    let mut receives: Vec<_> = (0..3).map(|_| Box::pin(rx.recv())).collect();
    receives.iter_mut().for_each(Look::parks);
    for n in 1..=4 {
        tx.send(n).wait().unwrap();
    }
    let values: Vec<_> = receives.iter_mut().map(Look::ends).collect();
    assert_eq!((values, rx.try_recv()), (vec![Ok(1), Ok(2), Ok(3)], Ok(4)));
    assert_eq!(rx.try_recv(), Err(RecvError::Empty));
}
