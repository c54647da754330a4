//! Wakers that panic, or use the channel that wakes them (G5).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_channel::Operation;
use tidegate_wait::timer::ManualClock;

use crate::support::{on_first_wake, on_wake, panics, quiet_panic, Look};
use crate::{by_itself, drain};

/// All who fit are let in, whatever their wakers do.
#[test]
fn g5_wakers_that_panic() {
    let clock = ManualClock::new();
    clock.enter(|| {
        for by_timer in [false, true] {
            let (tx, rx) = by_itself(100);
            tx.try_send(if by_timer { 20 } else { 100 }).unwrap();
            let mut first = by_timer.then(|| Box::pin(tx.send(100).timeout(Duration::from_millis(1))));
            let waker = on_wake(quiet_panic);
            first.iter_mut().for_each(|first| first.parks_with(&waker));
            let mut line: Vec<_> = (0..80).map(|_| Box::pin(tx.send(1))).collect();
            line.iter_mut().for_each(|send| send.parks_with(&waker));
            let unwound = panics(|| match by_timer {
                true => clock.advance(Duration::from_millis(1)),
                false => assert_eq!(rx.try_recv(), Ok(100)),
            });
            assert!(!unwound && tx.parked_senders() == 0);
            assert!(line.iter_mut().all(|send| send.ends().is_ok()));
        }
    });
}

/// A waker that receives, sends and drops other sends of its channel while a long line is let in.
#[test]
fn g5_wakers_that_come_back() {
    let (tx, rx) = by_itself(50);
    tx.try_send(50).unwrap();
    let doomed = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (inside, others, own_tx, own_rx) = (doomed.clone(), kept.clone(), tx.clone(), rx.clone());
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let log = seen.clone();
    let waker = on_first_wake(move || {
        inside.lock().unwrap().clear();
        log.lock().unwrap().extend(own_rx.try_recv());
        let mut send = Box::pin(own_tx.clone().into_send(50));
        assert!(send.look().is_pending(), "behind the line");
        others.lock().unwrap().push(send);
    });
    let mut line: Vec<_> = (0..40).map(|_| Box::pin(tx.send(1))).collect();
    line.iter_mut().for_each(|send| send.parks_with(&waker));
    for _ in 0..3 {
        let mut send = Box::pin(tx.clone().into_send(20));
        send.parks();
        doomed.lock().unwrap().push(send);
    }
    let mut last = Box::pin(tx.send(2));
    last.parks();
    assert_eq!(rx.try_recv(), Ok(50));
    assert!(line.iter_mut().all(|send| send.ends().is_ok()));
    assert_eq!(last.ends(), Ok(()));
    assert_eq!(*seen.lock().unwrap(), [1]);
    drop(line);
    assert_eq!(kept.lock().unwrap().len(), 1);
    assert_eq!(drain(&rx).0.iter().sum::<u64>(), 39 + 2 + 50);
}
