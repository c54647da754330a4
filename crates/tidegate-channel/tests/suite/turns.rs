//! Whose turn it is: order among the parked, hand-off, and what becomes of a turn whose owner goes away.

use std::sync::Arc;
use std::task::Poll;

use tidegate_channel::{bounded, Operation, RecvError, SendError};

use crate::support::{Ledger, Look, Woken};

/// G2: parked sends are admitted and parked receives served in the order in which they parked.
#[test]
fn the_parked_are_served_in_order() {
    for cap in [1, 2, 5] {
        let (tx, rx) = bounded(cap);
        (0..cap).for_each(|n| tx.try_send(n).unwrap());
        let mut sends: Vec<_> = (cap..cap + 20).map(|n| Box::pin(tx.send(n))).collect();
        sends.iter_mut().for_each(Look::parks);
        for n in 0..cap + 20 {
            assert_eq!(rx.try_recv(), Ok(n));
            let done = sends.iter_mut().filter_map(|send| match send.look() {
                Poll::Ready(Ok(())) => Some(()),
                _ => None,
            });
            assert_eq!(done.count(), usize::from(n < 20), "one is let in for each one taken");
        }
        let mut receives: Vec<_> = (0..20).map(|_| Box::pin(rx.recv())).collect();
        receives.iter_mut().for_each(Look::parks);
        (0..20).for_each(|n| tx.try_send(n).unwrap());
        assert_eq!(tx.len(), 0, "handed over, not buffered");
        for (n, receive) in receives.iter_mut().enumerate() {
            assert_eq!(receive.ends(), Ok(n));
        }
    }
}

/// G2, CASE 17: nobody passes a parked send: not a `try_send`, not a new send; a buffered value precedes a parked one's.
#[test]
fn nobody_passes_a_parked_send() {
    let (tx, rx) = bounded(1);
    tx.try_send(0).unwrap();
    let mut first = Box::pin(tx.send(1));
    first.parks();
    assert_eq!(tx.try_send(9), Err(SendError::Full(9)));
    let mut second = Box::pin(tx.send(2));
    second.parks();
    assert_eq!(rx.try_recv(), Ok(0));
    assert_eq!(tx.try_send(9), Err(SendError::Full(9)), "the freed slot is the first one's");
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(2)));
    assert_eq!((first.ends(), second.ends()), (Ok(()), Ok(())));
}

/// G1, CASE 1: a delivered receive is dropped unpolled: the next parked one gets the value.
#[test]
fn a_dropped_delivery_goes_to_the_next_parked() {
    let (tx, rx) = bounded(1);
    let (woken, waker) = Woken::new();
    let (mut a, mut b) = (Box::pin(rx.recv()), Box::pin(rx.recv()));
    a.parks();
    b.parks_with(&waker);
    tx.try_send(7).unwrap();
    assert_eq!(woken.count(), 0);
    drop(a);
    assert_eq!(woken.count(), 1);
    assert_eq!(b.ends(), Ok(7));
}

/// CASE 2: the same for sends: an admitted one is dropped, its value stays sent, and the next one is not stranded.
#[test]
fn a_dropped_admission_strands_nobody() {
    let (tx, rx) = bounded(1);
    tx.try_send(0).unwrap();
    let (mut one, mut two) = (Box::pin(tx.send(1)), Box::pin(tx.send(2)));
    one.parks();
    two.parks();
    assert_eq!(rx.try_recv(), Ok(0));
    drop(one);
    assert_eq!(rx.try_recv(), Ok(1), "it was delivered before it was dropped");
    assert_eq!(two.ends(), Ok(()));
    assert_eq!(rx.try_recv(), Ok(2));
}

/// CASE 3: an admitted send that nobody ever polls again blocks nobody.
#[test]
fn an_unpolled_admission_blocks_nobody() {
    let (tx, rx) = bounded(1);
    tx.try_send(0).unwrap();
    let (mut one, mut two) = (Box::pin(tx.send(1)), Box::pin(tx.send(2)));
    one.parks();
    two.parks();
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(0), Ok(1)));
    assert_eq!(two.ends(), Ok(()));
    drop(one);
    assert_eq!(rx.try_recv(), Ok(2));
}

/// G2, CASE 17: deliveries that nobody took come back ahead of everything buffered, in hand-off order, in whatever order
/// their receives are dropped; a full ring does not keep them out.
#[test]
fn returned_deliveries_come_first_in_hand_off_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let (tx, rx) = bounded(2);
        let mut receives: Vec<_> = (0..3).map(|_| Some(Box::pin(rx.recv()))).collect();
        receives.iter_mut().flatten().for_each(Look::parks);
        (0..3).for_each(|n| tx.try_send(n).unwrap());
        (3..5).for_each(|n| tx.try_send(n).unwrap());
        let mut late = Box::pin(tx.send(5));
        late.parks();
        order.iter().for_each(|&i| drop(receives[i].take()));
        assert_eq!(rx.len(), 5);
        (0..3).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
        assert!(late.look().is_pending(), "a returned value takes no slot, so its departure frees none");
        (3..6).for_each(|n| assert_eq!(rx.recv().wait(), Ok(n)));
        assert_eq!(late.ends(), Ok(()));
        assert_eq!(rx.try_recv(), Err(RecvError::Empty));
    }
}

/// G2: a value keeps its first ticket through a second delivery that is dropped again.
#[test]
fn a_value_keeps_the_ticket_of_its_first_hand_off() {
    let (tx, rx) = bounded(4);
    let mut receives: Vec<_> = (0..4).map(|_| Some(Box::pin(rx.recv()))).collect();
    receives.iter_mut().flatten().for_each(Look::parks);
    (0..3).for_each(|n| tx.try_send(n).unwrap());
    // 0, handed to the first, goes on to the fourth. Dropped there, it still belongs ahead of 1 and 2.
    drop(receives[0].take());
    drop(receives[1].take());
    drop(receives[2].take());
    drop(receives[3].take());
    assert_eq!((rx.try_recv(), rx.try_recv(), rx.try_recv()), (Ok(0), Ok(1), Ok(2)));
}

/// G2, G7: returned deliveries survive the close, and precede what is buffered.
#[test]
fn returned_deliveries_survive_the_close() {
    let (tx, rx) = bounded(2);
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    tx.try_send(1).unwrap();
    tx.try_send(2).unwrap();
    assert!(tx.close());
    drop(receive);
    assert_eq!(rx.recv().wait(), Ok(1));
    assert_eq!(rx.recv().wait(), Ok(2));
    assert_eq!(rx.recv().wait(), Err(RecvError::Closed));
}

/// G7: a receive may see the end while a delivery is still untaken; dropped later, it goes to the next receive.
#[test]
fn a_delivery_dropped_after_the_end_is_not_lost() {
    let (tx, rx) = bounded(1);
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    tx.try_send(1).unwrap();
    drop(tx);
    assert_eq!(rx.try_recv(), Err(RecvError::Closed));
    drop(receive);
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!(rx.try_recv(), Err(RecvError::Closed));
}

/// G9, CASE 4: the waker may change between polls: the latest one is woken, the former is dropped.
#[test]
fn the_latest_waker_is_woken() {
    for swap in [false, true] {
        let (tx, rx) = bounded(1);
        let ((old, old_waker), (new, new_waker)) = (Woken::new(), Woken::new());
        let mut receive = Box::pin(rx.recv());
        receive.parks_with(&old_waker);
        if swap {
            receive.parks_with(&new_waker);
            assert_eq!(Arc::strong_count(&old), 2, "the former waker is let go at once");
        }
        tx.try_send(1).unwrap();
        assert_eq!((old.count(), new.count()), if swap { (0, 1) } else { (1, 0) });
        assert_eq!(receive.ends(), Ok(1));
        tx.try_send(1).unwrap();
        let mut send = Box::pin(tx.send(2));
        send.parks_with(&old_waker);
        if swap {
            send.parks_with(&new_waker);
        }
        assert_eq!(rx.try_recv(), Ok(1));
        assert_eq!((old.count(), new.count()), if swap { (0, 2) } else { (2, 0) });
        assert_eq!(send.ends(), Ok(()));
        assert_eq!((Arc::strong_count(&old), Arc::strong_count(&new)), (2, 2), "no waker is left");
    }
}

/// G9: spurious polls change nothing, neither the place in the line nor the number of wakes.
#[test]
fn spurious_polls_keep_the_place() {
    let (tx, rx) = bounded(1);
    tx.try_send(0).unwrap();
    let (woken, waker) = Woken::new();
    let (mut one, mut two) = (Box::pin(tx.send(1)), Box::pin(tx.send(2)));
    one.parks_with(&waker);
    two.parks();
    (0..10).for_each(|_| one.parks_with(&waker));
    assert_eq!(rx.try_recv(), Ok(0));
    assert_eq!(woken.count(), 1);
    assert_eq!(one.ends(), Ok(()));
    assert_eq!(rx.try_recv(), Ok(1));
}

/// G9, CASE 23: a poll after the end neither panics nor acts: a send stays pending, a delivered receive too, and a closed
/// receive says so again and again.
#[test]
fn polls_after_the_end_are_harmless() {
    use futures_core::FusedFuture;
    let (tx, rx) = bounded(1);
    let mut send = Box::pin(tx.send(1));
    assert_eq!(send.ends(), Ok(()));
    assert!(send.is_terminated() && send.look().is_pending());
    let mut receive = Box::pin(rx.recv());
    assert!(!receive.is_terminated());
    assert_eq!(receive.ends(), Ok(1));
    assert!(receive.is_terminated() && receive.look().is_pending());
    assert_eq!(rx.len(), 0);
    tx.close();
    let mut receive = Box::pin(rx.recv());
    (0..3).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::Closed)));
    let mut send = Box::pin(tx.send(2));
    assert_eq!(send.ends(), Err(SendError::Closed(2)));
    assert!(send.is_terminated() && send.look().is_pending());
}

/// CASE 25: the only waiting receive is gone: a `try_send` finds the room.
#[test]
fn a_cancelled_receive_leaves_the_room() {
    let (tx, rx) = bounded(1);
    for _ in 0..3 {
        let mut receive = Box::pin(rx.recv());
        receive.parks();
        drop(receive);
        assert_eq!(tx.try_send(1), Ok(()));
        assert_eq!(tx.len(), 1);
        assert_eq!(rx.try_recv(), Ok(1));
    }
}

/// CASE 13 (G7): success is not undone by a close: the value was taken before the send resumed.
#[test]
fn success_is_not_undone_by_close() {
    let (tx, rx) = bounded(1);
    tx.try_send(0).unwrap();
    let mut send = Box::pin(tx.send(1));
    send.parks();
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(0), Ok(1)));
    rx.close();
    assert_eq!(send.ends(), Ok(()));
}

/// G1, CASES 10, 12: the losing arm of a select loses nothing: each of two channels' receives is polled, one is taken,
/// the other dropped, in random order, delivered or not.
#[test]
fn the_losing_arm_loses_nothing() {
    let rounds = if cfg!(miri) { 200 } else { 20_000 };
    let mut rng = crate::support::Rng(10);
    let ledger = Ledger::default();
    let ((tx_a, rx_a), (tx_b, rx_b)) = (bounded(2), bounded(2));
    let (mut sent, mut seen) = ([0; 2], [0; 2]);
    for _ in 0..rounds {
        let (mut a, mut b) = (Box::pin(rx_a.recv()), Box::pin(rx_b.recv()));
        let mut got = [a.look(), Poll::Pending];
        if got[0].is_pending() {
            got[1] = b.look();
        }
        for (i, tx) in [&tx_a, &tx_b].into_iter().enumerate() {
            if rng.below(2) == 0 && tx.try_send(ledger.value(sent[i])).is_ok() {
                sent[i] += 1;
            }
        }
        if got.iter().all(Poll::is_pending) {
            got = match rng.below(3) {
                0 => [a.look(), Poll::Pending],
                1 => [Poll::Pending, b.look()],
                _ => [Poll::Pending, Poll::Pending],
            };
        }
        for (i, got) in got.into_iter().enumerate() {
            if let Poll::Ready(Ok(value)) = got {
                assert_eq!(value, seen[i], "in order, none lost");
                seen[i] += 1;
            }
        }
    }
    drop((tx_a, tx_b));
    for (i, rx) in [rx_a, rx_b].into_iter().enumerate() {
        while let Ok(value) = rx.try_recv() {
            assert_eq!(value, seen[i]);
            seen[i] += 1;
        }
    }
    // A refused value was counted when it was made, and sent again under the same number.
    assert_eq!(seen, sent);
    ledger.settled();
}
