//! Halves that do not keep a channel open.

use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_channel::{Parked, RecvError, SendError, WeakReceiver, WeakSender};

use crate::flavors::{each_flavor, each_manner};
use crate::support::{on_wake, Ledger, Look};

/// G7: a weak half counts for nothing; upgraded it is a half as any other, and makes the channel last.
#[test]
fn weak_halves_do_not_count() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
        let more: Vec<_> = (0..10).map(|_| (weak_tx.clone(), weak_rx.clone())).collect();
        assert_eq!((tx.sender_count(), tx.receiver_count()), (1, 1));
        let (up_tx, up_rx) = (weak_tx.upgrade().unwrap(), weak_rx.upgrade().unwrap());
        assert!(up_tx.same_channel(&tx) && up_rx.same_channel(&rx));
        assert_eq!((tx.sender_count(), tx.receiver_count()), (2, 2));
        drop((tx, rx));
        assert!(!up_tx.is_closed());
        let receive = manner.park_recv(&up_rx, up_rx.clone().into_recv());
        assert_eq!((manner.run(up_tx.send(7)), receive.ends()), (Ok(()), Ok(7)));
        drop(up_tx);
        assert!(up_rx.is_closed() && weak_tx.upgrade().is_none());
        assert!(weak_rx.upgrade().is_some(), "each side has its own count");
        assert_eq!(manner.run(up_rx.recv()), Err(RecvError::Closed));
        drop(up_rx);
        assert!(weak_rx.upgrade().is_none());
        drop((weak_tx, weak_rx));
        assert!(more.iter().all(|(tx, rx)| tx.upgrade().is_none() && rx.upgrade().is_none()));
    });
}

/// CASE 24: upgrade never succeeds after the last strong half is gone, whatever else is left.
#[test]
fn no_upgrade_after_the_last_half() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make::<u8>();
        let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
        drop(tx);
        (0..3).for_each(|_| assert!(weak_tx.upgrade().is_none() && weak_tx.clone().upgrade().is_none()));
        let upgraded = weak_rx.upgrade().unwrap();
        drop((rx, upgraded));
        (0..3).for_each(|_| assert!(weak_rx.upgrade().is_none()));
        let (tx, rx) = flavor.make::<u8>();
        let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
        drop(rx);
        assert!(weak_rx.upgrade().is_none() && weak_tx.upgrade().is_some());
        assert_eq!(weak_tx.upgrade().unwrap().try_send(1), Err(SendError::Closed(1)));
    });
}

/// G7: an operation with a half of its own is one; a close is not the end of the halves.
#[test]
fn operations_and_closes() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
        flavor.fill(&tx, |n| n);
        let mut send = Box::pin(tx.into_send(100));
        send.parks();
        let up = weak_tx.upgrade().unwrap();
        assert!(up.close_with(Parked::Admit));
        assert_eq!((up.sender_count(), send.ends()), (2, Ok(())));
        drop(up);
        assert!(weak_tx.upgrade().is_some_and(|tx| tx.is_closed()));
        drop(send);
        assert!(weak_tx.upgrade().is_none());
        let receive = rx.into_recv();
        assert_eq!(weak_rx.upgrade().unwrap().iter().count(), flavor.capacity + 1);
        drop(receive);
        assert!(weak_rx.upgrade().is_none());
    });
}

/// G7, CASE 18: weak halves keep memory, not values: these go with the last receiver, admitted and returned ones too.
#[test]
fn values_go_with_the_last_receiver() {
    each_flavor(|flavor| {
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
        let mut untaken = Box::pin(rx.recv());
        untaken.parks();
        assert!(tx.try_send(ledger.value(0)).is_ok());
        drop(untaken);
        flavor.fill(&tx, |n| ledger.value(n));
        let mut send = Box::pin(tx.send(ledger.value(100)));
        let parked = send.look().is_pending();
        assert!(tx.close_with(Parked::Admit) && send.look().is_ready() == parked);
        drop(send);
        drop(rx);
        ledger.settled();
        drop(tx);
        assert!(weak_tx.upgrade().is_none() && weak_rx.upgrade().is_none());
    });
}

/// G9: the memory is valid as long as a weak half is: it can be asked, shown, cloned and dropped when all else is gone, in
/// any order.
#[test]
fn memory_outlives_the_halves() {
    each_flavor(|flavor| {
        for first in [true, false] {
            let ledger = Ledger::default();
            let (tx, rx) = flavor.make();
            flavor.hold(&tx, &rx, ledger.value(0));
            let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
            drop((tx, rx));
            ledger.settled();
            let shown = format!("{weak_tx:?} {weak_rx:?}");
            assert!(shown.contains("len: 0") && shown.contains("closed: true"), "{shown}");
            let (clone_tx, clone_rx) = (weak_tx.clone(), weak_rx.clone());
            if first {
                drop((weak_tx, weak_rx));
            }
            assert!(clone_tx.upgrade().is_none() && clone_rx.upgrade().is_none());
        }
    });
}

/// CASE 29: a value holds a weak half of its own channel: no cycle, and its destructor finds that no upgrade succeeds.
#[test]
fn a_value_holds_a_weak_half() {
    struct Holds(Option<(WeakSender<Holds>, WeakReceiver<Holds>)>, #[allow(dead_code)] crate::support::Counted);
    impl Drop for Holds {
        fn drop(&mut self) {
            if let Some((_, weak_rx)) = &self.0 {
                assert!(weak_rx.upgrade().is_none(), "dropped with the last receiver");
            }
        }
    }
    each_flavor(|flavor| {
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        let holds = || Holds(Some((tx.downgrade(), rx.downgrade())), ledger.value(0));
        flavor.hold(&tx, &rx, holds());
        (1..flavor.capacity).for_each(|_| assert!(tx.try_send(holds()).is_ok()));
        drop(rx);
        ledger.settled();
        assert!(tx.is_closed());
    });
}

/// G5: upgrades in wakers that the last drop of a side runs: that side has none left, the other has.
#[test]
fn no_upgrade_in_the_wakers_of_the_last_drop() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make::<u8>();
        let (weak_tx, weak_rx) = (tx.downgrade(), rx.downgrade());
        let mut receive = Box::pin(rx.recv());
        receive.parks_with(&on_wake(move || {
            assert!(weak_tx.upgrade().is_none());
            assert!(weak_rx.upgrade().is_some_and(|rx| rx.is_closed()));
        }));
        drop(tx);
        assert_eq!(receive.ends(), Err(RecvError::Closed));
    });
}

/// CASE 24, under threads: upgrades race with the last drop, on each side, over many rounds: one that succeeds finds the
/// channel open and keeps it so; after the last half no one does.
#[test]
fn upgrades_race_with_the_last_drop() {
    let rounds = if cfg!(miri) { 10 } else { 400 };
    each_flavor(|flavor| {
        for round in 0..rounds {
            let ledger = Ledger::default();
            let (tx, rx) = flavor.make();
            let (weak_tx, weak_rx, gone) = (tx.downgrade(), rx.downgrade(), AtomicBool::new(false));
            let senders = round % 2 == 0;
            let (going, kept) = match senders {
                true => ((Some(tx), None), (None, Some(rx))),
                false => ((None, Some(rx)), (Some(tx), None)),
            };
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    (0..round % 5).for_each(|_| std::thread::yield_now());
                    drop(going);
                    gone.store(true, Ordering::Release);
                });
                let attempt = || {
                    let was_gone = gone.load(Ordering::Acquire);
                    let open = match senders {
                        true => weak_tx.upgrade().map(|tx| {
                            drop(tx.try_send(ledger.value(0)));
                            !tx.is_closed()
                        }),
                        false => weak_rx.upgrade().map(|rx| {
                            drop(rx.try_recv());
                            !rx.is_closed()
                        }),
                    };
                    assert_ne!(open, Some(false), "an upgraded half keeps the channel open");
                    assert!(!was_gone || open.is_none(), "after the last half");
                    open.is_some()
                };
                while attempt() {
                    std::thread::yield_now();
                }
            });
            assert_eq!((weak_tx.upgrade().is_none(), weak_rx.upgrade().is_none()), (senders, !senders));
            drop(kept);
            ledger.settled();
        }
    });
}
