//! Receiving as an iterator.

use tidegate_channel::{Operation, Parked, RecvError};

use crate::flavors::{each_flavor, each_manner, Manner};
use crate::support::{Ledger, Look, Tasks};

/// G7, ELIO (sum through producer and consumer until close): `iter`, `&rx` and `rx` end when the channel is closed and
/// drained, and then stay at the end; a task or a thread sends.
#[test]
fn they_end_with_the_channel() {
    let total = if cfg!(miri) { 20 } else { 300 };
    each_manner(|flavor, manner| {
        for way in 0..3 {
            let (tx, rx) = flavor.make();
            let sender = std::thread::spawn(move || match manner {
                Manner::Blocking => (0..total).for_each(|n| tx.send(n).wait().unwrap()),
                Manner::Async => {
                    let mut tasks = Tasks::default();
                    tasks.spawn(async move {
                        for n in 0..total {
                            tx.send(n).await.unwrap();
                        }
                    });
                    tasks.run();
                }
            });
            let mut sum = 0;
            match way {
                0 => {
                    let mut values = rx.iter();
                    sum = values.by_ref().sum();
                    (0..3).for_each(|_| assert_eq!(values.next(), None));
                }
                1 => {
                    for n in &rx {
                        sum += n;
                    }
                    assert_eq!(rx.try_recv(), Err(RecvError::Closed));
                }
                _ => {
                    let mut values = rx.into_iter();
                    sum += values.by_ref().sum::<u64>();
                    (0..3).for_each(|_| assert_eq!(values.next(), None));
                }
            }
            assert_eq!(sum, (0..total).sum());
            sender.join().unwrap();
        }
    });
}

/// G2: they see what is returned, buffered, parked and admitted, in this order; `try_iter` waits for nothing and goes on
/// when values come.
#[test]
fn they_see_everything_in_order() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        let cap = flavor.capacity;
        let mut values = rx.try_iter();
        assert_eq!((values.next(), values.next()), (None, None));
        let mut untaken = Box::pin(rx.recv());
        untaken.parks();
        tx.try_send(0).unwrap();
        drop(untaken);
        flavor.fill(&tx, |n| 1 + n);
        let mut sends = [1, 2].map(|n| Box::pin(tx.send(cap + n)));
        sends.iter_mut().for_each(|send| assert_eq!(send.look().is_pending(), flavor.has_limit()));
        assert_eq!(values.by_ref().collect::<Vec<_>>(), (0..cap + 3).collect::<Vec<_>>());
        assert!(sends.iter_mut().all(|send| send.look().is_ready() == flavor.has_limit()));
        flavor.fill(&tx, |n| n);
        let mut sends = [0, 1].map(|n| Box::pin(tx.send(cap + n)));
        sends.iter_mut().for_each(|send| assert_eq!(send.look().is_pending(), flavor.has_limit()));
        tx.close_with(Parked::Admit);
        assert_eq!(values.by_ref().take(1).collect::<Vec<_>>(), [0], "they take no more than is asked for");
        assert_eq!(rx.iter().collect::<Vec<_>>(), (1..cap + 2).collect::<Vec<_>>());
        assert_eq!((values.next(), rx.iter().next()), (None, None));
    });
}

/// G7: `into_iter` has the half: dropped early, it closes the channel and drops what is buffered.
#[test]
fn the_owning_one_is_a_half() {
    each_flavor(|flavor| {
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        flavor.hold(&tx, &rx, ledger.value(0));
        (1..flavor.capacity).for_each(|n| assert!(tx.try_send(ledger.value(n)).is_ok()));
        let mut values = rx.into_iter();
        assert_eq!((values.next().map(|value| value.id), tx.receiver_count(), tx.is_closed()), (Some(0), 1, false));
        drop(values);
        assert_eq!((tx.receiver_count(), tx.is_closed(), tx.len()), (0, true, 0));
        ledger.settled();
    });
}
