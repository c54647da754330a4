//! The unbounded channel: what differs from the other flavors, above all at the borders of its blocks (U1–U7).
#![cfg(not(loom))]

mod support;

use std::collections::{BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use support::{panics, quiet_panic, within, Ledger, Look, Rng, Woken};
use tidegate_channel::{unbounded, unbounded_from, Operation, RecvError, ReserveError, SendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::ManualClock;

/// Slots of a block of small values.
const BLOCK: usize = 64;
const MINUTE: Duration = Duration::from_secs(60);

/// Fewer under an interpreter.
const fn scaled(n: usize) -> usize {
    if cfg!(miri) {
        n / 400
    } else {
        n
    }
}

/// G2: in order, whatever the fill, up to some blocks.
#[test]
fn values_leave_in_order_across_borders() {
    for fill in [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK - 1, 3 * BLOCK, 10 * BLOCK] {
        let (tx, rx) = unbounded();
        for round in 0..3 {
            (0..fill).for_each(|n| tx.try_send((round, n)).unwrap());
            assert_eq!(rx.len(), fill);
            (0..fill).for_each(|n| assert_eq!(rx.try_recv(), Ok((round, n))));
            assert_eq!(rx.try_recv(), Err(RecvError::Empty));
        }
    }
}

/// The same as a queue does, at random fills, by every manner of sending and receiving.
#[test]
fn it_is_a_queue() {
    let mut rng = Rng(7);
    let (tx, rx) = unbounded();
    let mut queue = VecDeque::new();
    for n in 0..scaled(100_000) {
        if rng.below(100) < 50 + 10 * (n / 500 % 2) {
            match rng.below(4) {
                0 => tx.send(n).wait().unwrap(),
                1 => tx.try_send(n).unwrap(),
                2 => tx.send_with(|| n).wait().unwrap(),
                _ => tx.try_reserve().unwrap().send(n).unwrap(),
            }
            queue.push_back(n);
        } else {
            match rng.below(2) {
                0 => assert_eq!(rx.try_recv().ok(), queue.pop_front()),
                _ => assert_eq!(rx.recv().timeout(Duration::ZERO).wait().ok(), queue.pop_front()),
            }
        }
        assert_eq!((tx.len(), rx.is_empty()), (queue.len(), queue.is_empty()));
    }
}

#[test]
fn it_is_never_full() {
    let (tx, rx) = unbounded();
    assert_eq!((tx.capacity(), rx.capacity(), tx.is_full()), (usize::MAX, usize::MAX, false));
    (0..200).for_each(|n| tx.try_send(n).unwrap());
    assert!(!tx.is_full() && tx.len() == 200 && tx.parked_senders() == 0);
    assert!(format!("{tx:?}").contains("len: 200"));
}

/// G10: the block is fitted to the payload: nothing, small, a few a block, one a block, wide alignment.
#[test]
fn payloads_of_all_sizes() {
    fn round<T: PartialEq + std::fmt::Debug>(make: impl Fn(usize) -> T, n: usize) {
        let (tx, rx) = unbounded();
        for fill in [1, n] {
            (0..fill).for_each(|n| tx.try_send(make(n)).unwrap());
            (0..fill).for_each(|n| assert!(rx.try_recv() == Ok(make(n))));
        }
        (0..n).for_each(|n| tx.try_send(make(n)).unwrap());
    }
    #[derive(PartialEq, Debug)]
    #[repr(align(4096))]
    struct Page(usize);
    #[derive(PartialEq, Debug)]
    #[repr(align(128))]
    struct Wide(usize, u8);
    let all = || {
        round(|_| (), 200);
        round(|n| n as u8, 200);
        round(|n| n.to_string(), 200);
        round(|n| Wide(n, 1), 200);
        round(|n| [n; 500], 40);
        round(Page, 20);
        if !cfg!(miri) {
            round(|n| [n as u8; 40_000], 5);
            round(|n| [n as u8; 1 << 20], 5);
        }
    };
    thread::Builder::new().stack_size(32 << 20).spawn(all).unwrap().join().unwrap();
}

/// G2: parked receives are served in order, and the hand-off works wherever the words stand.
#[test]
fn parked_receives_are_served_in_order() {
    for start in [0, 1, BLOCK - 1, BLOCK] {
        let (tx, rx) = unbounded();
        for n in 0..start {
            tx.try_send(n).unwrap();
            rx.try_recv().unwrap();
        }
        let mut receives: Vec<_> = (0..3).map(|_| Box::pin(rx.recv())).collect();
        receives.iter_mut().for_each(Look::parks);
        (0..4).for_each(|n| tx.try_send(n).unwrap());
        assert_eq!(rx.len(), 1);
        for (n, receive) in receives.iter_mut().enumerate() {
            assert_eq!(receive.ends(), Ok(n));
        }
        assert_eq!(rx.try_recv(), Ok(3));
    }
}

/// G2: deliveries that nobody took come back ahead of everything, in hand-off order, also at a border.
#[test]
fn dropped_deliveries_come_first() {
    for start in [0, BLOCK - 3, BLOCK - 2, BLOCK - 1] {
        let (tx, rx) = unbounded();
        for _ in 0..start {
            tx.try_send(0).unwrap();
            rx.try_recv().unwrap();
        }
        let mut receives: Vec<_> = (0..3).map(|_| Box::pin(rx.recv())).collect();
        receives.iter_mut().for_each(Look::parks);
        (0..3 + 2 * BLOCK).for_each(|n| tx.try_send(n).unwrap());
        // Newest first: the order is that of the hand-offs.
        while let Some(receive) = receives.pop() {
            drop(receive);
        }
        assert_eq!(rx.len(), 3 + 2 * BLOCK);
        (0..3 + 2 * BLOCK).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
        assert!(rx.is_empty());
    }
}

/// G2: a dropped delivery goes to the next parked receive.
#[test]
fn a_dropped_delivery_goes_on() {
    let (tx, rx) = unbounded();
    let (mut first, mut second) = (Box::pin(rx.recv()), Box::pin(rx.recv()));
    first.parks();
    let (woken, waker) = Woken::new();
    second.parks_with(&waker);
    tx.try_send(1).unwrap();
    drop(first);
    assert_eq!(woken.count(), 1);
    assert_eq!(second.ends(), Ok(1));
}

/// G7: closed to senders at once, to receivers after the last value.
#[test]
fn a_closed_channel_drains() {
    for fill in [0, 1, BLOCK, 3 * BLOCK + 1] {
        let (tx, rx) = unbounded();
        (0..fill).for_each(|n| tx.try_send(n).unwrap());
        let mut closed = Box::pin(tx.closed());
        closed.parks();
        assert!(rx.close() && !tx.close());
        closed.ends();
        assert_eq!(tx.try_send(7), Err(SendError::Closed(7)));
        assert_eq!(tx.send(7).wait(), Err(SendError::Closed(7)));
        assert_eq!(tx.try_reserve().err(), Some(ReserveError::Closed));
        (0..fill).for_each(|n| assert_eq!(rx.recv().wait(), Ok(n)));
        assert_eq!(rx.recv().wait(), Err(RecvError::Closed));
        assert_eq!(rx.try_recv(), Err(RecvError::Closed));
    }
}

/// G7: the last sender's drop ends who is parked.
#[test]
fn the_last_sender_ends_parked_receives() {
    let (tx, rx) = unbounded::<u8>();
    let mut receives: Vec<_> = (0..40).map(|_| Box::pin(rx.recv())).collect();
    receives.iter_mut().for_each(Look::parks);
    drop(tx);
    receives.iter_mut().for_each(|receive| assert_eq!(receive.ends(), Err(RecvError::Closed)));
}

/// G1, G7: what is left is dropped, once, when the last receiver goes: not with the memory.
#[test]
fn values_go_with_the_last_receiver() {
    for (sent, received) in [(1, 0), (BLOCK, 1), (BLOCK, BLOCK - 1), (3 * BLOCK, BLOCK), (1_000, 500)] {
        let ledger = Ledger::default();
        let (tx, rx) = unbounded();
        (0..sent).for_each(|n| tx.try_send(ledger.value(n)).unwrap());
        (0..received).for_each(|n| assert!(rx.try_recv().unwrap() == n));
        let weak = rx.downgrade();
        drop(rx);
        ledger.settled();
        assert!(tx.try_send(ledger.value(0)).is_err());
        drop(tx);
        assert!(weak.upgrade().is_none());
        ledger.settled();
    }
}

/// G7: past destructors that panic.
#[test]
fn panicking_destructors_keep_nobody() {
    struct Bomb(Arc<AtomicUsize>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            quiet_panic();
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let (tx, rx) = unbounded();
    (0..3 * BLOCK).for_each(|_| assert!(tx.try_send(Bomb(dropped.clone())).is_ok()));
    assert!(!panics(|| drop(rx)));
    assert_eq!(dropped.load(Ordering::SeqCst), 3 * BLOCK);
}

/// Permits: at once, in the order of `Permit::send`, across a border, counted by the end.
#[test]
fn permits() {
    let (tx, rx) = unbounded();
    let permits: Vec<_> = (0..BLOCK + 2).map(|_| tx.reserve().wait().unwrap()).collect();
    tx.try_send(1_000).unwrap();
    for (n, permit) in permits.into_iter().enumerate() {
        if n % 3 == 0 {
            drop(permit);
        } else {
            permit.send(n).unwrap();
        }
    }
    assert_eq!(rx.try_recv(), Ok(1_000));
    (0..BLOCK + 2).filter(|n| n % 3 != 0).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
    assert_eq!(rx.try_recv(), Err(RecvError::Empty));
}

/// G7: permits outlive a close, and receivers see the end after the last one.
#[test]
fn the_end_comes_after_the_last_permit() {
    let (tx, rx) = unbounded();
    let (first, second) = (tx.try_reserve().unwrap(), tx.try_reserve().unwrap());
    let mut parked = Box::pin(rx.recv());
    parked.parks();
    tx.close();
    parked.parks();
    first.send(1).unwrap();
    assert_eq!(parked.ends(), Ok(1));
    let mut parked = Box::pin(rx.recv());
    parked.parks();
    drop(second);
    assert_eq!(parked.ends(), Err(RecvError::Closed));
    let (tx, rx) = unbounded();
    let permit = tx.clone().into_reserve().wait().unwrap();
    drop(rx);
    assert_eq!(permit.send(3), Err(SendError::Closed(3)));
}

/// G6: a receive runs into its limit; a send has no time to.
#[test]
fn limits_in_time() {
    let clock = ManualClock::new();
    clock.enter(|| {
        let (tx, rx) = unbounded();
        let limit = Duration::from_millis(1);
        let mut receive = Box::pin(rx.recv().timeout(limit));
        receive.parks();
        clock.advance(limit);
        assert_eq!(receive.ends(), Err(RecvError::TimedOut));
        assert_eq!(tx.send(1).timeout(Duration::ZERO).wait(), Ok(()));
        let mut receive = Box::pin(rx.recv().timeout(limit));
        assert_eq!(receive.ends(), Ok(1));
        assert_eq!(rx.parked_receivers(), 0);
    });
}

/// G8: cancelled wins at entry, afterwards the first event.
#[test]
fn tokens() {
    let (tx, rx) = unbounded();
    let (token, late) = (CancelToken::new(), CancelToken::new());
    token.cancel();
    assert_eq!(tx.send(1).cancel_on(&token).wait(), Err(SendError::Cancelled(1)));
    let mut receive = Box::pin(rx.recv().cancel_on(&late));
    receive.parks();
    tx.try_send(2).unwrap();
    late.cancel();
    assert_eq!(receive.ends(), Ok(2));
    assert_eq!(rx.recv().cancel_on(&token).wait(), Err(RecvError::Cancelled));
}

/// Positions far along, close to where the type's room ends, are as good as others.
#[test]
fn positions_far_along() {
    for first in [1 << 40, (1 << 58) - 100, (1 << 59) - 10_000] {
        let (tx, rx) = unbounded_from(first);
        for n in 0..5 * BLOCK {
            tx.try_send(n).unwrap();
            tx.try_send(n + 1).unwrap();
            assert_eq!(rx.len(), n + 2);
            rx.try_recv().unwrap();
        }
        let mut parked = {
            while rx.try_recv().is_ok() {}
            Box::pin(rx.recv())
        };
        parked.parks();
        tx.try_send(1).unwrap();
        assert_eq!(parked.ends(), Ok(1));
    }
}

/// G2: what one receiver gets of one sender is in order; G1: everything arrives, once.
fn cross(senders: usize, receivers: usize, each: usize) {
    let (tx, rx) = unbounded();
    let received = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for id in 0..senders {
            let tx = tx.clone();
            scope.spawn(move || {
                for n in 0..each {
                    match n % 3 {
                        0 => tx.send((id, n)).wait().unwrap(),
                        1 => tx.try_send((id, n)).unwrap(),
                        _ => assert!(poll_once(pin!(tx.send((id, n)))).is_ready(), "a send parked"),
                    }
                }
            });
        }
        for way in 0..receivers {
            let (rx, received) = (rx.clone(), &received);
            scope.spawn(move || {
                let mut own = Vec::new();
                loop {
                    let next = if way % 2 == 0 { rx.recv().wait() } else { rx.try_recv() };
                    match next {
                        Ok(value) => own.push(value),
                        Err(RecvError::Empty) => thread::yield_now(),
                        Err(_) => break,
                    }
                }
                for id in 0..senders {
                    assert!(own.iter().filter(|value| value.0 == id).is_sorted(), "out of order");
                }
                received.lock().unwrap().extend(own);
            });
        }
        drop((tx, rx));
    });
    let received = received.into_inner().unwrap();
    assert_eq!(received.len(), senders * each);
    assert_eq!(received.into_iter().collect::<BTreeSet<_>>().len(), senders * each, "received twice");
}

#[test]
fn one_sender_one_receiver() {
    within(MINUTE, "1 x 1", || cross(1, 1, scaled(100_000)));
}

#[test]
fn one_sender_many_receivers() {
    within(MINUTE, "1 x 4", || cross(1, 4, scaled(50_000)));
}

#[test]
fn many_senders_one_receiver() {
    within(MINUTE, "4 x 1", || cross(4, 1, scaled(20_000)));
}

#[test]
fn many_senders_many_receivers() {
    within(MINUTE, "4 x 4", || cross(4, 4, scaled(20_000)));
}

/// G1: every value ends once, whatever becomes of the operations: dropped delivered or parked, timed out, cancelled; and
/// the last receiver may go at any moment.
#[test]
fn every_value_ends_once() {
    for (seed, early) in [(1, false), (2, false), (3, true), (4, true)] {
        within(MINUTE, &format!("seed {seed}"), || storm(seed, early));
    }
}

/// `early`: the receivers leave in the middle.
fn storm(seed: u64, early: bool) {
    let each = scaled(10_000);
    let ledger = Ledger::default();
    let (tx, rx) = unbounded();
    let token = CancelToken::new();
    let (sent, returned, received) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for id in 0..3 {
            let (tx, ledger, sent, returned) = (tx.clone(), &ledger, &sent, &returned);
            let mut rng = Rng(seed * 10 + id);
            scope.spawn(move || {
                for n in 0..each {
                    let value = ledger.value(n);
                    let end = match rng.below(4) {
                        0 => tx.try_send(value),
                        1 => tx.send(value).timeout(Duration::from_millis(1)).wait(),
                        2 => match tx.try_reserve() {
                            Ok(permit) => permit.send(value),
                            Err(_) => Err(SendError::Closed(value)),
                        },
                        _ => tx.send(value).wait(),
                    };
                    if end.is_ok() { sent } else { returned }.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for id in 0..3 {
            let (rx, received, token) = (rx.clone(), &received, &token);
            let mut rng = Rng(seed * 10 + 5 + id);
            scope.spawn(move || {
                let mut got = 0;
                while !early || got < each / 2 {
                    let next = match rng.below(5) {
                        0 => rx.try_recv(),
                        1 => rx.recv().timeout(Duration::from_micros(20)).wait(),
                        2 => rx.recv().cancel_on(token).timeout(Duration::from_micros(50)).wait(),
                        3 => {
                            // Parked, perhaps delivered, dropped.
                            let mut receive = Box::pin(rx.recv());
                            let first = receive.look();
                            thread::yield_now();
                            match first {
                                std::task::Poll::Ready(end) => end,
                                std::task::Poll::Pending => continue,
                            }
                        }
                        _ => rx.recv().timeout(Duration::from_millis(1)).wait(),
                    };
                    match next {
                        Ok(value) => {
                            drop(value);
                            got += 1;
                            received.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(RecvError::Closed) => break,
                        Err(_) => {}
                    }
                }
            });
        }
        drop((tx, rx));
    });
    ledger.settled();
    let (sent, returned, received) = (sent.into_inner(), returned.into_inner(), received.into_inner());
    assert_eq!(sent + returned, 3 * each);
    assert!(early || (sent, returned) == (received, 0), "sent {sent}, returned {returned}, received {received}");
}

/// G7: values in flight when the last receiver goes are dropped with the others, not with the channel.
#[test]
fn the_last_receiver_leaves_senders_in_flight() {
    for round in 0..scaled(200).max(5) {
        let ledger = Ledger::default();
        let (tx, rx) = unbounded();
        thread::scope(|scope| {
            for _ in 0..2 {
                let (tx, ledger) = (tx.clone(), &ledger);
                scope.spawn(move || while tx.try_send(ledger.value(0)).is_ok() {});
            }
            (0..round).for_each(|_| drop(rx.recv().wait()));
            drop(rx);
        });
        ledger.settled();
        assert!(tx.is_empty() && tx.is_closed());
    }
}

/// `len` never exceeds what was sent, nor underflows, while everything moves.
#[test]
fn len_under_load() {
    let (tx, rx) = unbounded();
    let each = scaled(50_000);
    thread::scope(|scope| {
        for _ in 0..2 {
            let tx = tx.clone();
            scope.spawn(move || (0..each).for_each(|n| tx.try_send(n).unwrap()));
        }
        let other = rx.clone();
        scope.spawn(move || (0..each).for_each(|_| assert!(other.recv().wait().is_ok())));
        (0..each / 10).for_each(|_| assert!(rx.len() <= 2 * each));
    });
    assert_eq!(rx.len(), each);
}

/// R1, R4: batches across the borders of blocks, in order; a parked receive gets the first value.
#[test]
fn batches_cross_borders() {
    for many in [1, 63, 64, 65, 500] {
        let (tx, rx) = unbounded();
        let receive = std::thread::spawn({
            let rx = rx.clone();
            move || rx.recv().wait()
        });
        while rx.parked_receivers() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(tx.send_many(0..many).wait(), Ok(many));
        assert_eq!(receive.join().unwrap(), Ok(0));
        let mut seen = Vec::new();
        while seen.len() + 1 < many {
            let before = seen.len();
            let taken = rx.recv_many(&mut seen, 100).wait().unwrap();
            assert!((1..=100).contains(&taken) && before + taken == seen.len());
        }
        assert_eq!(seen, (1..many).collect::<Vec<_>>());
        assert!(rx.try_recv_many(&mut seen, 1).is_err());
    }
}

/// G1: whatever is left when the receivers go is dropped, across borders, past one that panics.
#[test]
fn the_last_receiver_drops_what_is_left() {
    struct Noisy(std::sync::Arc<std::sync::atomic::AtomicUsize>, bool);
    impl Drop for Noisy {
        fn drop(&mut self) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if self.1 {
                std::panic::resume_unwind(Box::new(()));
            }
        }
    }
    for many in [1, 64, 200] {
        let dropped = std::sync::Arc::default();
        let (tx, rx) = unbounded();
        let sent = tx.send_many((0..many).map(|n| Noisy(std::sync::Arc::clone(&dropped), n % 63 == 0))).wait();
        assert!(sent.is_ok());
        drop(rx);
        assert_eq!(dropped.load(std::sync::atomic::Ordering::Relaxed), many);
    }
}
