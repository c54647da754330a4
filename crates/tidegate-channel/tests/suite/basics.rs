//! Sending, receiving, counting, and what can't be made.

use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_channel::{bounded, bounded_from_lap, try_bounded, CapacityError, Operation, RecvError, SendError};

use crate::support::Look;

/// G2: what one sender sends arrives in order, through many laps of rings of every shape. Also from positions that a
/// channel reaches after decades (60 bits; the last laps before they would run into the flags).
#[test]
fn values_arrive_in_order_in_every_lap() {
    let caps: &[usize] = if cfg!(miri) { &[1, 2, 5] } else { &[1, 2, 3, 4, 5, 7, 8, 9, 64] };
    for &cap in caps {
        let lap = (cap as u64 + 1).next_power_of_two();
        for first in [0, 1, (1 << 59) / lap - 2, (1 << 60) / lap - 40] {
            let (tx, rx) = bounded_from_lap(cap, first).unwrap();
            let mut next = 0;
            for fill in (1..=cap).chain([cap; 4]) {
                (0..fill).for_each(|n| tx.try_send(next + n).unwrap());
                assert_eq!(tx.len(), fill);
                (0..fill).for_each(|n| assert_eq!(rx.try_recv(), Ok(next + n)));
                next += fill;
            }
            assert_eq!(rx.try_recv(), Err(RecvError::Empty));
        }
    }
}

/// G2, G7 near the end of the positions: parking, admission, hand-off and close on both sides.
#[test]
fn late_positions_park_and_close_as_early_ones() {
    for cap in [1_usize, 3] {
        let lap = (cap as u64 + 1).next_power_of_two();
        let (tx, rx) = bounded_from_lap(cap, (1 << 60) / lap - 30).unwrap();
        for round in 0..12 {
            let mut receive = Box::pin(rx.recv());
            receive.parks();
            tx.try_send(round).unwrap();
            assert_eq!(receive.ends(), Ok(round));
            (0..cap).for_each(|n| tx.try_send(n).unwrap());
            let mut send = Box::pin(tx.send(99));
            send.parks();
            assert_eq!(rx.try_recv(), Ok(0));
            assert_eq!(send.ends(), Ok(()));
            (1..cap).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
            assert_eq!(rx.try_recv(), Ok(99));
        }
        tx.try_send(1).unwrap();
        assert!(rx.close());
        assert_eq!(rx.try_recv(), Ok(1));
        assert_eq!(rx.try_recv(), Err(RecvError::Closed));
    }
}

/// G1, CASE 15: full, empty and closed are told apart, and a refused value comes back intact.
#[test]
fn try_twins_say_why() {
    let (tx, rx) = bounded(1);
    assert_eq!(rx.try_recv(), Err(RecvError::Empty));
    tx.try_send(String::from("one")).unwrap();
    let refused = tx.try_send(String::from("two")).unwrap_err();
    assert!(refused.is_full() && !refused.is_closed());
    assert_eq!(refused.into_inner(), "two");
    rx.close();
    assert_eq!(tx.try_send(String::from("three")), Err(SendError::Closed(String::from("three"))));
    assert_eq!(rx.try_recv().unwrap(), "one");
    assert_eq!(rx.try_recv(), Err(RecvError::Closed));
}

/// G2: an operation does nothing before its first poll.
#[test]
fn nothing_happens_before_the_first_poll() {
    let (tx, rx) = bounded(1);
    let send = tx.send(1);
    let receive = rx.recv();
    assert_eq!(tx.len(), 0);
    drop(send);
    tx.try_send(2).unwrap();
    drop(receive);
    assert_eq!(rx.try_recv(), Ok(2));
    let (tx, rx) = bounded(1);
    let owned = tx.clone().into_send(1);
    drop((owned, rx.clone().into_recv()));
    assert_eq!((tx.sender_count(), tx.receiver_count()), (1, 1));
}

/// G2, CASE 26: capacity belongs to the channel: clones add none.
#[test]
fn clones_add_no_capacity() {
    let (tx, _rx) = bounded(1);
    let clones: Vec<_> = (0..100).map(|_| tx.clone()).collect();
    assert_eq!(clones.iter().filter(|tx| tx.try_send(()).is_ok()).count(), 1);
    assert_eq!(tx.sender_count(), 101);
}

/// Counts and reports of both halves; a full ring beside a returned delivery is not "full" by the sum.
#[test]
fn halves_report() {
    let (tx, rx) = bounded(2);
    assert!(tx.is_empty() && rx.is_empty() && !tx.is_full());
    assert_eq!((tx.capacity(), rx.capacity()), (2, 2));
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    tx.try_send(1).unwrap();
    drop(receive);
    tx.try_send(2).unwrap();
    assert_eq!((tx.len(), rx.len()), (2, 2));
    assert!(!tx.is_full(), "one in the ring, one returned: there is room");
    tx.try_send(3).unwrap();
    assert!(tx.is_full());
    assert_eq!(tx.len(), 3);
    assert!(tx.same_channel(&tx.clone()) && rx.same_channel(&rx.clone()));
    assert!(!tx.same_channel(&bounded(1).0));
    assert_eq!(
        format!("{tx:?}"),
        "Sender { len: 3, capacity: 2, closed: false, parked_senders: 0, parked_receivers: 0, .. }"
    );
    assert_eq!(
        format!("{rx:?}"),
        "Receiver { len: 3, capacity: 2, closed: false, parked_senders: 0, parked_receivers: 0, .. }"
    );
    assert_eq!(
        format!("{:?} {:?}", tx.send(1), rx.recv()),
        "Sending { state: Init, .. } Receiving { state: Init, .. }"
    );
}

/// G10, CASE 43: impossible capacities are errors at once.
#[test]
fn impossible_capacities_are_errors() {
    #[cfg(target_pointer_width = "64")]
    assert_eq!(try_bounded::<u8>((1 << 48) + 1).err(), Some(CapacityError::TooMany));
    #[cfg(target_pointer_width = "64")]
    assert_eq!(try_bounded::<u8>(1 << 63).err(), Some(CapacityError::TooMany));
    #[cfg(target_pointer_width = "64")]
    assert_eq!(try_bounded::<()>(usize::MAX).err(), Some(CapacityError::TooMany));
    #[cfg(target_pointer_width = "64")]
    assert_eq!(try_bounded::<[u64; 1 << 20]>(1 << 48).err(), Some(CapacityError::Layout));
    if !cfg!(miri) {
        // 2^51 bytes are a layout, but nobody's memory.
        assert_eq!(try_bounded::<()>(1 << 48).err(), Some(CapacityError::OutOfMemory));
    }
    #[cfg(target_pointer_width = "64")]
    {
        let panic = std::panic::catch_unwind(|| bounded::<u8>(1 << 63)).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert_eq!(
            text,
            "bounded(9223372036854775808): the capacity of a bounded channel is at most 2^48 (281,474,976,710,656) values"
        );
    }
}

/// CASES 14, 27 (G7): sampled under load from both halves, `len` stays within 0..=capacity and never contradicts itself.
#[test]
fn len_stays_within_the_capacity_under_load() {
    let rounds = if cfg!(miri) { 60 } else { 20_000 };
    for cap in [1, 2, 3, 8] {
        let (tx, rx) = bounded(cap);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (tx, rx) = (tx.clone(), rx.clone());
                scope.spawn(move || (0..rounds).for_each(|n| tx.send(n).wait().unwrap()));
                scope.spawn(move || (0..rounds).for_each(|_| assert!(rx.recv().wait().is_ok())));
            }
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert!(tx.len() <= cap);
                    assert!(rx.len() <= cap);
                    if cfg!(miri) {
                        std::thread::yield_now();
                    }
                }
            });
            while tx.sender_count() + rx.receiver_count() != 2 {
                std::thread::yield_now();
            }
            over.store(true, Ordering::Relaxed);
        });
        assert!(tx.is_empty());
    }
}

/// Owned operations work for borrowed payloads, too: they are `'static` only if the payload is.
#[test]
fn owned_operations_carry_borrowed_payloads() {
    let text = String::from("borrowed");
    let (tx, rx) = bounded(1);
    std::thread::scope(|scope| {
        scope.spawn(|| tx.into_send(text.as_str()).wait().unwrap());
        assert_eq!(rx.into_recv().wait(), Ok("borrowed"));
    });
}
