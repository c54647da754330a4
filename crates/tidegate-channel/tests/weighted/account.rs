//! What is counted, and what is refused (A1, A3).

use std::mem::forget;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

use tidegate_channel::{bounded_by, try_bounded_by, CapacityError, Operation, Parked, RecvError, WeightedSendError};

use crate::support::{panics, quiet_panic, Ledger, Look, Rng};
use crate::{by_itself, drain};

/// A1: the sum of what is buffered, up to the limit and no further; what is received counts no more.
#[test]
fn a1_the_sum_is_limited() {
    let (tx, rx) = by_itself(10);
    assert_eq!((tx.limit(), tx.weight(), tx.len(), tx.is_empty(), tx.is_full()), (10, 0, 0, true, false));
    assert_eq!(rx.capacity(), usize::MAX, "values are not counted");
    tx.send(6).wait().unwrap();
    tx.try_send(3).unwrap();
    assert_eq!(tx.try_send(2), Err(WeightedSendError::Full(2)));
    assert!(!tx.is_full());
    tx.try_send(1).unwrap();
    assert_eq!((tx.weight(), tx.len(), rx.len(), tx.is_full(), rx.is_full()), (10, 3, 3, true, true));
    assert_eq!(rx.try_recv(), Ok(6));
    assert_eq!((tx.weight(), tx.is_full()), (4, false));
    tx.try_send(6).unwrap();
    assert_eq!(drain(&rx), (vec![3, 1, 6], RecvError::Empty));
    assert_eq!((tx.weight(), tx.len()), (0, 0));
}

/// Bad input: a limit of 0, as a value and as a panic; a message heavier than the limit, with both numbers and the value.
#[test]
fn bad_input_claims_nothing() {
    assert_eq!(try_bounded_by(0, |_: &u8| 1).err(), Some(CapacityError::NoWeight));
    assert!(panics(|| drop(bounded_by(0, |_: &u8| 1))));
    let (tx, rx) = by_itself(5);
    for weight in [6, u64::MAX] {
        let refused = WeightedSendError::TooHeavy { value: weight, weight, limit: 5 };
        assert_eq!(tx.try_send(weight), Err(refused));
        let mut send = Box::pin(tx.send(weight));
        assert_eq!(send.ends(), Err(refused));
        assert!(send.look().is_pending(), "over");
        assert_eq!(tx.clone().into_send(weight).wait(), Err(refused));
        assert!(refused.is_too_heavy() && refused.into_inner() == weight);
    }
    // Not even to a receive that waits: it is told at once, whoever is there.
    let mut receive = Box::pin(rx.recv());
    receive.parks();
    assert!(tx.send(6).wait().unwrap_err().is_too_heavy());
    assert!(receive.look().is_pending());
    drop(receive);
    assert_eq!((tx.sender_count(), tx.weight(), tx.len()), (1, 0, 0));
    tx.close();
    assert!(tx.send(6).wait().unwrap_err().is_too_heavy());
    let shown = format!("{:?}", WeightedSendError::TooHeavy { value: (), weight: 6, limit: 5 });
    assert_eq!(shown, "TooHeavy { weight: 6, limit: 5, .. }");
}

/// No weight counts as 1: the number of values is limited, too.
#[test]
fn a_weight_of_zero_counts_as_one() {
    let (tx, rx) = bounded_by(3, |_: &()| 0);
    (0..3).for_each(|_| tx.try_send(()).unwrap());
    assert_eq!((tx.try_send(()), tx.weight()), (Err(WeightedSendError::Full(())), 3));
    let mut send = Box::pin(tx.send(()));
    send.parks();
    assert_eq!(rx.try_recv(), Ok(()));
    assert_eq!((send.ends(), tx.weight()), (Ok(()), 3));
}

/// The largest numbers there are: no sum overflows, and no weight is taken for something else.
#[test]
fn the_largest_weights() {
    let (tx, rx) = by_itself(u64::MAX);
    tx.try_send(u64::MAX).unwrap();
    let mut send = Box::pin(tx.send(u64::MAX));
    send.parks();
    let mut next = Box::pin(tx.send(1 << 63));
    next.parks();
    assert_eq!((tx.weight(), tx.try_send(1)), (u64::MAX, Err(WeightedSendError::Full(1))));
    assert_eq!(rx.try_recv(), Ok(u64::MAX));
    assert_eq!((send.ends(), next.look().is_pending()), (Ok(()), true));
    tx.close_with(Parked::Admit);
    assert_eq!(next.ends(), Ok(()));
    assert_eq!(drain(&rx), (vec![u64::MAX, 1 << 63], RecvError::Closed));
}

/// A3: the weigher is asked once for each send, before its first poll; a value that waits is not weighed again.
#[test]
fn a3_each_value_is_weighed_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let (tx, rx) = bounded_by(1, move |_: &u8| {
        counter.fetch_add(1, SeqCst);
        1
    });
    tx.try_send(1).unwrap();
    let mut send = Box::pin(tx.send(2));
    assert_eq!(asked.load(SeqCst), 2);
    send.parks();
    assert_eq!(rx.try_recv(), Ok(1));
    assert_eq!((send.ends(), rx.try_recv()), (Ok(()), Ok(2)));
    assert_eq!(asked.load(SeqCst), 2);
    drop(send);
    drop((tx, rx));
    assert_eq!(Arc::strong_count(&asked), 1, "the weigher goes with the last half");
}

/// G5, bad input: a weigher that panics: nothing is half-claimed, no value is kept, and an owned half is given back.
#[test]
fn a_weigher_that_panics() {
    let ledger = Ledger::default();
    let (tx, rx) = bounded_by(4, |value: &crate::support::Counted| {
        if value.id == 13 {
            quiet_panic();
        }
        1
    });
    assert!(tx.try_send(ledger.value(1)).is_ok());
    let mut parked = Vec::new();
    (2..7).for_each(|n| parked.push(Box::pin(tx.send(ledger.value(n)))));
    parked.iter_mut().for_each(|send| drop(send.look()));
    let (len, weight, line) = (tx.len(), tx.weight(), tx.parked_senders());
    let owned = tx.clone();
    assert!(panics(|| drop(tx.try_send(ledger.value(13)))));
    assert!(panics(|| drop(tx.send(ledger.value(13)))));
    assert!(panics(|| drop(owned.into_send(ledger.value(13)))));
    assert_eq!((tx.len(), tx.weight(), tx.parked_senders(), tx.sender_count()), (len, weight, line, 1));
    assert_eq!(ledger.dropped(), 3, "they are gone with the call");
    assert_eq!(drain(&rx).0.len(), 6);
    drop((parked, rx));
    drop(tx);
    ledger.settled();
}

/// G5: a weigher may use its own channel.
#[test]
fn a_weigher_may_come_back() {
    let own: Arc<std::sync::OnceLock<tidegate_channel::WeakWeightedSender<u64>>> = Arc::default();
    let inside = own.clone();
    let (tx, rx) = bounded_by(9, move |&n: &u64| {
        if let (true, Some(tx)) = (n > 1, inside.get().and_then(|weak| weak.upgrade())) {
            tx.try_send(1).unwrap();
            assert!(tx.weight() > 0);
        }
        n
    });
    own.set(tx.downgrade()).unwrap();
    tx.try_send(5).unwrap();
    assert_eq!(drain(&rx).0, [1, 5]);
    assert!(own.get().unwrap().upgrade().is_some_and(|half| half.same_channel(&tx)));
    drop(tx);
    assert!(own.get().unwrap().upgrade().is_none() && rx.is_closed());
}

/// A1: a value from hand to hand weighs nothing; nor does one that comes back from a dropped receive, ahead of all others.
#[test]
fn a1_hand_offs_and_returned_values_weigh_nothing() {
    let (tx, rx) = by_itself(5);
    let (mut first, mut second) = (Box::pin(rx.recv()), Box::pin(rx.recv()));
    first.parks();
    second.parks();
    tx.try_send(5).unwrap();
    tx.try_send(4).unwrap();
    assert_eq!((tx.weight(), tx.len()), (0, 0));
    tx.try_send(3).unwrap();
    drop(second);
    drop(first);
    assert_eq!((tx.weight(), tx.len(), rx.len()), (3, 3, 3));
    tx.try_send(2).unwrap();
    assert_eq!(drain(&rx), (vec![5, 4, 3, 2], RecvError::Empty));
    assert_eq!((tx.weight(), tx.len()), (0, 0));
}

/// A model: random sends and receives, without waiting; through many blocks.
#[test]
fn a1_a_model_of_the_account() {
    let mut rng = Rng(7);
    let (tx, rx) = by_itself(1_000);
    let mut model = std::collections::VecDeque::new();
    for _ in 0..if cfg!(miri) { 500 } else { 50_000 } {
        let used: u64 = model.iter().sum();
        assert_eq!((tx.weight(), tx.len()), (used, model.len()));
        if rng.below(2) == 0 {
            let n = 1 + rng.below(20) as u64;
            match tx.try_send(n) {
                Ok(()) => model.push_back(n),
                Err(error) => assert!(error.is_full() && used + n > 1_000),
            }
        } else {
            assert_eq!(rx.try_recv().ok(), model.pop_front());
        }
    }
}

/// Batches of the receiving side.
#[test]
fn receives_of_many() {
    let (tx, rx) = by_itself(1_000);
    (1..=40).for_each(|n| tx.try_send(n).unwrap());
    let mut send = Box::pin(tx.send(700));
    send.parks();
    let mut some = Vec::new();
    assert_eq!(rx.recv_many(&mut some, 30).wait(), Ok(30));
    assert!(send.look().is_pending());
    assert_eq!(rx.drain().count(), 10);
    assert_eq!((send.ends(), rx.try_recv()), (Ok(()), Ok(700)));
    forget(some);
}
