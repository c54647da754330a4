//! The unbounded channel: what differs from the other flavors, above all at the borders of its blocks (U1–U7). What it has
//! in common with them is in `suite/`.
#![cfg(not(loom))]

mod support;

use std::collections::{BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use support::{within, Ledger, Look, Rng};
use tidegate_channel::{unbounded, unbounded_from, Operation, RecvError, ReserveError, SendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::poll_once;

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
