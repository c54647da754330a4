//! Whose turn it is: order among the parked, hand-off, and what becomes of a turn whose owner goes away.

use std::sync::Arc;
use std::task::Poll;

use tidegate_channel::{Operation, RecvError, SendError};
use tidegate_wait::cancel::CancelToken;

use crate::flavors::{drain, each_flavor, each_manner, Manner};
use crate::support::{Ledger, Look, Woken};

/// G2: parked sends are admitted and parked receives served in the order in which they parked.
#[test]
fn the_parked_are_served_in_order() {
    each_flavor(|flavor| {
        let cap = flavor.capacity;
        let (tx, rx) = flavor.make();
        let parked = if flavor.has_limit() { 20 } else { 0 };
        flavor.fill(&tx, |n| n);
        let mut sends: Vec<_> = (cap..cap + parked).map(|n| Box::pin(tx.send(n))).collect();
        sends.iter_mut().for_each(Look::parks);
        for n in 0..cap + parked {
            assert_eq!(rx.try_recv(), Ok(n));
            let done = sends.iter_mut().filter_map(|send| match send.look() {
                Poll::Ready(Ok(())) => Some(()),
                _ => None,
            });
            assert_eq!(done.count(), usize::from(n < parked), "one is let in for each one taken");
        }
        let mut receives: Vec<_> = (0..20).map(|_| Box::pin(rx.recv())).collect();
        receives.iter_mut().for_each(Look::parks);
        (0..20).for_each(|n| tx.try_send(n).unwrap());
        assert_eq!(tx.len(), 0, "handed over, not buffered");
        for (n, receive) in receives.iter_mut().enumerate() {
            assert_eq!(receive.ends(), Ok(n));
        }
    });
}

/// G2, G9: threads and tasks stand in one line, in the order in which they parked.
#[test]
fn threads_and_tasks_stand_in_one_line() {
    const WAYS: [Manner; 2] = [Manner::Async, Manner::Blocking];
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        let receives: Vec<_> = (0..6).map(|n| WAYS[n % 2].park_recv(&rx, rx.clone().into_recv())).collect();
        (0..6).for_each(|n| tx.try_send(n).unwrap());
        for (n, receive) in receives.into_iter().enumerate() {
            assert_eq!(receive.ends(), Ok(n));
        }
        flavor.fill(&tx, |n| n);
        if !flavor.sends_wait() {
            return;
        }
        let cap = flavor.capacity;
        let sends: Vec<_> = (0..6).map(|n| WAYS[n % 2].park_send(&tx, tx.clone().into_send(cap + n))).collect();
        assert_eq!(drain(&rx), ((0..cap + 6).collect(), RecvError::Empty));
        sends.into_iter().for_each(|send| assert_eq!(send.ends(), Ok(())));
    });
}

/// G2, CASE 17, ELIO (a buffered value precedes a parked sender's): nobody passes a parked send: not a `try_send`, not a
/// new send.
#[test]
fn nobody_passes_a_parked_send() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let cap = flavor.capacity;
        let mut first = Box::pin(tx.send(cap));
        first.parks();
        assert_eq!(tx.try_send(999), Err(SendError::Full(999)));
        let mut second = Box::pin(tx.send(cap + 1));
        second.parks();
        assert_eq!(rx.try_recv(), Ok(0));
        assert_eq!(tx.try_send(999), Err(SendError::Full(999)), "the freed slot is the first one's");
        assert_eq!(drain(&rx).0, (1..cap + 2).collect::<Vec<_>>());
        assert_eq!((first.ends(), second.ends()), (Ok(()), Ok(())));
    });
}

/// G2, ELIO (a sender arriving at or after the decision "nobody waits" is not stranded): a send after the last parked one
/// was let in goes on at once, or is let in by the next receive.
#[test]
fn a_send_after_the_last_parked_one_is_not_stranded() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let cap = flavor.capacity;
        let mut total = cap;
        for _ in 0..3 {
            let send = manner.park_send(&tx, tx.clone().into_send(total));
            assert_eq!(rx.try_recv(), Ok(total - cap));
            assert_eq!(send.ends(), Ok(()));
            let late = manner.park_send(&tx, tx.clone().into_send(total + 1));
            assert_eq!((rx.try_recv(), late.ends()), (Ok(total - cap + 1), Ok(())));
            total += 2;
        }
        assert_eq!(drain(&rx), ((total - cap..total).collect(), RecvError::Empty));
    });
}

/// G1, CASE 1: a delivered receive is dropped unpolled: the next parked one gets the value.
#[test]
fn a_dropped_delivery_goes_to_the_next_parked() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        let mut a = Box::pin(rx.recv());
        a.parks();
        let b = manner.park_recv(&rx, rx.clone().into_recv());
        tx.try_send(7).unwrap();
        assert_eq!(rx.parked_receivers(), 1);
        drop(a);
        assert_eq!((rx.parked_receivers(), b.ends(), tx.len()), (0, Ok(7), 0));
    });
}

/// CASE 2: the same for sends: an admitted one is dropped, its value stays sent, and the next one is not stranded.
#[test]
fn a_dropped_admission_strands_nobody() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let cap = flavor.capacity;
        let mut one = Box::pin(tx.send(cap));
        one.parks();
        let two = manner.park_send(&tx, tx.clone().into_send(cap + 1));
        assert_eq!(rx.try_recv(), Ok(0));
        drop(one);
        if cap != 0 {
            assert_eq!(rx.try_recv(), Ok(1), "it was delivered before it was dropped");
        } else {
            assert_eq!(rx.try_recv(), Ok(1), "the next one in the line");
        }
        assert_eq!(two.ends(), Ok(()));
        assert_eq!(drain(&rx).0, (2..cap + 2).collect::<Vec<_>>());
    });
}

/// CASE 3: an admitted send that nobody ever polls again blocks nobody.
#[test]
fn an_unpolled_admission_blocks_nobody() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let mut one = Box::pin(tx.send(flavor.capacity));
        one.parks();
        let two = manner.park_send(&tx, tx.clone().into_send(flavor.capacity + 1));
        assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(0), Ok(1)));
        assert_eq!(two.ends(), Ok(()));
        drop(one);
        assert_eq!(drain(&rx).0, (2..flavor.capacity + 2).collect::<Vec<_>>());
    });
}

/// G2, CASE 17: deliveries that nobody took come back ahead of everything buffered, in hand-off order, in whatever order
/// their receives are dropped; a full ring does not keep them out.
#[test]
fn returned_deliveries_come_first_in_hand_off_order() {
    each_manner(|flavor, manner| {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let (tx, rx) = flavor.make();
            let mut receives: Vec<_> = (0..3).map(|_| Some(Box::pin(rx.recv()))).collect();
            receives.iter_mut().flatten().for_each(Look::parks);
            (0..3).for_each(|n| tx.try_send(n).unwrap());
            flavor.fill(&tx, |n| 3 + n);
            let late = 3 + flavor.capacity;
            let mut send = Box::pin(tx.send(late));
            let parked = usize::from(send.look().is_pending());
            order.iter().for_each(|&i| drop(receives[i].take()));
            assert_eq!((parked, rx.len()), (usize::from(flavor.has_limit()), late + 1 - parked));
            (0..3).for_each(|n| assert_eq!(rx.try_recv(), Ok(n)));
            assert!(send.look().is_pending());
            assert_eq!(tx.parked_senders(), parked, "a returned value takes no slot, so its departure frees none");
            (3..=late).for_each(|n| assert_eq!(manner.run(rx.recv()), Ok(n)));
            assert_eq!(send.look().is_ready(), flavor.has_limit());
            assert_eq!(rx.try_recv(), Err(RecvError::Empty));
        }
    });
}

/// G2: a value keeps its first ticket through a second delivery that is dropped again.
#[test]
fn a_value_keeps_the_ticket_of_its_first_hand_off() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        let mut receives: Vec<_> = (0..4).map(|_| Some(Box::pin(rx.recv()))).collect();
        receives.iter_mut().flatten().for_each(Look::parks);
        (0..3).for_each(|n| tx.try_send(n).unwrap());
        // 0, handed to the first, goes on to the fourth. Dropped there, it still belongs ahead of 1 and 2.
        (0..4).for_each(|n| drop(receives[n].take()));
        assert_eq!(drain(&rx).0, [0, 1, 2]);
    });
}

/// G2, G7: returned deliveries survive the close, and precede what is buffered.
#[test]
fn returned_deliveries_survive_the_close() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        let mut receive = Box::pin(rx.recv());
        receive.parks();
        tx.try_send(0).unwrap();
        flavor.fill(&tx, |n| 1 + n);
        assert!(tx.close());
        drop(receive);
        assert_eq!(rx.len(), flavor.capacity + 1);
        (0..flavor.capacity + 1).for_each(|n| assert_eq!(manner.run(rx.recv()), Ok(n)));
        assert_eq!(manner.run(rx.recv()), Err(RecvError::Closed));
    });
}

/// G7, ELIO (a receiver that saw "empty" re-checks before it reports the end): a receive may see the end while a delivery
/// is still untaken; dropped later, it goes to the next receive.
#[test]
fn a_delivery_dropped_after_the_end_is_not_lost() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        let mut receive = Box::pin(rx.recv());
        receive.parks();
        tx.try_send(1).unwrap();
        drop(tx);
        assert_eq!(rx.try_recv(), Err(RecvError::Closed));
        drop(receive);
        assert_eq!(manner.run(rx.recv()), Ok(1));
        assert_eq!(rx.try_recv(), Err(RecvError::Closed));
    });
}

/// G9, CASE 4: the waker may change between polls: the latest one is woken, the former is dropped.
#[test]
fn the_latest_waker_is_woken() {
    each_flavor(|flavor| {
        for swap in [false, true] {
            let (tx, rx) = flavor.make();
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
            if !flavor.sends_wait() {
                continue;
            }
            flavor.fill(&tx, |n| n);
            let mut send = Box::pin(tx.send(2));
            send.parks_with(&old_waker);
            if swap {
                send.parks_with(&new_waker);
                assert_eq!(Arc::strong_count(&old), 2);
            }
            assert!(rx.try_recv().is_ok());
            assert_eq!((old.count(), new.count()), if swap { (0, 2) } else { (2, 0) });
            assert_eq!(send.ends(), Ok(()));
            assert_eq!((Arc::strong_count(&old), Arc::strong_count(&new)), (2, 2), "no waker is left");
        }
    });
}

/// CASE 4: a cancelled waiter absorbs no wake: its waker is not run for it, the next one's is.
#[test]
fn a_cancelled_waiter_absorbs_no_wake() {
    each_flavor(|flavor| {
        let token = CancelToken::new();
        let ((gone, gone_waker), (next, next_waker)) = (Woken::new(), Woken::new());
        let (tx, rx) = flavor.make();
        let (mut a, mut b) = (Box::pin(rx.recv().cancel_on(&token)), Box::pin(rx.recv()));
        a.parks_with(&gone_waker);
        b.parks_with(&next_waker);
        token.cancel();
        tx.try_send(1).unwrap();
        assert_eq!((gone.count(), next.count()), (1, 1), "one for the cancel, one for the value");
        assert_eq!((a.ends(), b.ends()), (Err(RecvError::Cancelled), Ok(1)));
    });
}

/// G9: spurious polls change nothing, neither the place in the line nor the number of wakes.
#[test]
fn spurious_polls_keep_the_place() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        let (woken, waker) = Woken::new();
        let (mut one, mut two) = (Box::pin(rx.recv()), Box::pin(rx.recv()));
        one.parks_with(&waker);
        two.parks();
        (0..10).for_each(|_| one.parks_with(&waker));
        tx.try_send(7).unwrap();
        assert_eq!((woken.count(), one.ends()), (1, Ok(7)));
        drop(two);
        flavor.fill(&tx, |n| n);
        if !flavor.sends_wait() {
            return;
        }
        let (mut one, mut two) = (Box::pin(tx.send(100)), Box::pin(tx.send(101)));
        one.parks_with(&waker);
        two.parks();
        (0..10).for_each(|_| one.parks_with(&waker));
        assert!(rx.try_recv().is_ok());
        assert_eq!(woken.count(), 2);
        assert_eq!(one.ends(), Ok(()));
        assert_eq!(drain(&rx).0.last(), Some(&101));
    });
}

/// G9, CASE 23: a poll after the end neither panics nor acts: a send stays pending, a delivered receive too, and a closed
/// receive says so again and again.
#[test]
fn polls_after_the_end_are_harmless() {
    use futures_core::FusedFuture;
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        let mut receive = Box::pin(rx.recv());
        let mut send = Box::pin(tx.send(1));
        receive.parks();
        assert_eq!(send.ends(), Ok(()));
        assert!(send.is_terminated() && send.look().is_pending() && !receive.is_terminated());
        assert_eq!(receive.ends(), Ok(1));
        assert!(receive.is_terminated() && receive.look().is_pending());
        assert_eq!((rx.len(), rx.parked_receivers()), (0, 0));
        let token = CancelToken::new();
        token.cancel();
        let (mut send, mut receive) = (Box::pin(tx.send(3).cancel_on(&token)), Box::pin(rx.recv().cancel_on(&token)));
        assert_eq!(send.ends(), Err(SendError::Cancelled(3)));
        assert!(send.is_terminated() && send.look().is_pending());
        (0..3).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::Cancelled)));
        tx.close();
        let mut receive = Box::pin(rx.recv());
        (0..3).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::Closed)));
        let mut send = Box::pin(tx.send(2));
        assert_eq!(send.ends(), Err(SendError::Closed(2)));
        assert!(send.is_terminated() && send.look().is_pending());
    });
}

/// CASE 25: the only waiting receive is gone: a `try_send` finds the room, and none where there is none.
#[test]
fn a_cancelled_receive_leaves_the_room() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        for _ in 0..3 {
            let mut receive = Box::pin(rx.recv());
            receive.parks();
            drop(receive);
            if flavor.capacity == 0 {
                assert_eq!(tx.try_send(1), Err(SendError::Full(1)));
            } else {
                assert_eq!((tx.try_send(1), tx.len(), rx.try_recv()), (Ok(()), 1, Ok(1)));
            }
        }
    });
}

/// CASE 13 (G7), ELIO (success is not undone by close): a send stays successful when its value was taken by a receive, a
/// `try_recv`'s refill, or a rendezvous partner before it resumed, and the channel was then closed, in each way.
#[test]
fn success_is_not_undone_by_close() {
    use tidegate_channel::Parked;
    each_manner(|flavor, manner| {
        // A receive that took it: the value stays received.
        let (tx, rx) = flavor.make();
        let receive = manner.park_recv(&rx, rx.clone().into_recv());
        assert_eq!(manner.run(tx.send(1)), Ok(()));
        assert!(tx.close());
        assert_eq!(receive.ends(), Ok(1));
        if !flavor.sends_wait() {
            return;
        }
        for (close, by_try) in [(0, true), (0, false), (1, true), (2, false)] {
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| n);
            let mut send = Box::pin(tx.send(flavor.capacity));
            send.parks();
            let taken = if by_try { rx.try_recv() } else { manner.run(rx.recv()) };
            assert_eq!(taken, Ok(0));
            match close {
                0 => assert!(rx.close()),
                1 => assert!(tx.close_with(Parked::Admit)),
                _ => drop(rx),
            }
            assert_eq!(send.ends(), Ok(()));
        }
    });
}

/// G1, CASES 10, 12: the losing arm of a select loses nothing: each of two channels' receives is polled, one is taken,
/// the other dropped, in random order, delivered or not.
#[test]
fn the_losing_arm_loses_nothing() {
    let rounds = if cfg!(miri) { 100 } else { 10_000 };
    each_flavor(|flavor| {
        let mut rng = crate::support::Rng(10);
        let ledger = Ledger::default();
        let ((tx_a, rx_a), (tx_b, rx_b)) = (flavor.make(), flavor.make());
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
            for value in rx.try_iter() {
                assert_eq!(value, seen[i]);
                seen[i] += 1;
            }
        }
        // A refused value was counted when it was made, and sent again under the same number.
        assert_eq!(seen, sent);
        ledger.settled();
    });
}

/// CASE 10, on the send side: the losing arm is a send: it is withdrawn, with its value, unless it was delivered.
#[test]
fn the_losing_send_keeps_its_value() {
    let rounds = if cfg!(miri) { 60 } else { 5_000 };
    each_flavor(|flavor| {
        let mut rng = crate::support::Rng(12);
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        let (mut sent, mut seen, mut back) = (0, 0, 0);
        for round in 0..rounds {
            let mut send = Box::pin(tx.send(ledger.value(round)));
            let mut done = send.look().is_ready();
            while rng.below(2) == 0 && rx.try_recv().is_ok() {
                seen += 1;
            }
            if !done {
                match send.as_mut().withdraw() {
                    Some(value) => {
                        assert!(value == round);
                        back += 1;
                    }
                    None => done = true,
                }
            }
            sent += usize::from(done);
        }
        drop(tx);
        assert_eq!((seen + rx.iter().count(), sent + back), (sent, rounds));
        ledger.settled();
    });
}
