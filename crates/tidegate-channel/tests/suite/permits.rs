//! Permits: a slot first, the value later (M1–M4, CASES 7, 25).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_channel::{Operation, Parked, RecvError, ReserveError, SendError};
use tidegate_wait::cancel::CancelToken;

use crate::flavors::{drain, each_flavor, each_manner, with_clock, Flavor};
use crate::support::{hooked, on_first_wake, Hooks, Ledger, Look, Woken};

/// Without a buffer there is nothing to reserve; that is said at once.
fn has_slots(flavor: &Flavor) -> bool {
    if flavor.capacity == 0 {
        let (tx, _rx) = flavor.make::<u8>();
        assert_eq!(tx.try_reserve().err(), Some(ReserveError::Rendezvous));
        assert_eq!(tx.reserve().wait().err(), Some(ReserveError::Rendezvous));
        let owned = tx.clone().into_reserve().timeout(Duration::ZERO).wait();
        assert_eq!(owned.err(), Some(ReserveError::Rendezvous));
        assert_eq!(tx.sender_count(), 1, "an owned reservation gives its half back");
        flavor.skip("no slots to reserve");
    }
    flavor.capacity != 0
}

/// M1: a promised slot is nobody's to claim, and counts in no length; a permit's value comes in the order of `send`.
#[test]
fn m1_a_promised_slot_is_kept() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        if !has_slots(flavor) {
            return;
        }
        let (tx, rx) = flavor.make();
        let mut permits: Vec<_> = (0..flavor.capacity).map(|_| tx.try_reserve().unwrap()).collect();
        assert!(tx.is_full() && tx.is_empty());
        assert_eq!(tx.try_reserve().err(), Some(ReserveError::Full));
        assert_eq!(tx.try_send(999), Err(SendError::Full(999)));
        assert_eq!(rx.try_recv(), Err(RecvError::Empty));
        permits.reverse();
        for (n, permit) in permits.into_iter().enumerate() {
            permit.send(n).unwrap();
        }
        assert_eq!(drain(&rx), ((0..flavor.capacity).collect(), RecvError::Empty));
        assert!(!tx.is_full());
        tx.try_send(7).unwrap();
    });
}

/// M2, G2: reservations and sends stand in one line; a freed slot goes to the first of it, whatever it is.
#[test]
fn m2_a_freed_slot_goes_to_the_first_in_line() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        if !has_slots(flavor) {
            return;
        }
        let (tx, rx) = flavor.make();
        let mut permits: Vec<_> = (0..flavor.capacity).map(|_| tx.try_reserve().unwrap()).collect();
        let first = manner.park_send(&tx, tx.clone().into_send(1));
        let second = manner.park_send(&tx, tx.clone().into_reserve());
        let mut third = Box::pin(tx.send(3));
        third.parks();
        drop(permits.pop());
        assert_eq!((first.ends(), tx.len()), (Ok(()), 1), "published in the freed slot");
        assert_eq!(rx.try_recv(), Ok(1));
        let second = second.ends().unwrap();
        assert!(third.look().is_pending(), "the slot of the value that was received went to the reservation");
        drop(second);
        assert_eq!((third.ends(), rx.try_recv()), (Ok(()), Ok(3)));
        drop(permits);
        assert!(!tx.is_full());
    });
}

/// M2: with a receive parked, the value of the first send goes across, and the slot goes on to the next in line.
#[test]
fn m2_across_to_a_parked_receive() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        if !has_slots(flavor) {
            return;
        }
        let (tx, rx) = flavor.make();
        let mut permits: Vec<_> = (0..flavor.capacity).map(|_| tx.try_reserve().unwrap()).collect();
        let send = manner.park_send(&tx, tx.clone().into_send(1));
        let receive = manner.park_recv(&rx, rx.clone().into_recv());
        let reserve = manner.park_send(&tx, tx.clone().into_reserve());
        drop(permits.pop());
        assert_eq!((send.ends(), receive.ends()), (Ok(()), Ok(1)));
        reserve.ends().unwrap().send(2).unwrap();
        assert_eq!(rx.try_recv(), Ok(2));
        drop(permits);
        (0..flavor.capacity).for_each(|n| tx.try_send(n).unwrap());
        assert!(tx.is_full());
    });
}

/// M2: the same by `Permit::send`: its own value goes across, and its slot to the line.
#[test]
fn m2_a_permit_sends_to_a_parked_receive() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        if !has_slots(flavor) {
            return;
        }
        let (tx, rx) = flavor.make();
        let mut permits: Vec<_> = (0..flavor.capacity).map(|_| tx.try_reserve().unwrap()).collect();
        let send = manner.park_send(&tx, tx.clone().into_send(2));
        let receive = manner.park_recv(&rx, rx.clone().into_recv());
        permits.pop().unwrap().send(1).unwrap();
        assert_eq!((receive.ends(), send.ends()), (Ok(1), Ok(())));
        assert_eq!(drain(&rx).0, [2]);
    });
}

/// More sends and receives wait for one slot than one hold of the lock serves.
#[test]
fn m3_a_slot_serves_a_long_line() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        if !has_slots(flavor) {
            return;
        }
        let (tx, rx) = flavor.make();
        let mut permits: Vec<_> = (0..flavor.capacity).map(|_| tx.try_reserve().unwrap()).collect();
        let mut sends: Vec<_> = (0..101).map(|n| Box::pin(tx.send(n))).collect();
        sends.iter_mut().for_each(Look::parks);
        let mut receives: Vec<_> = (0..100).map(|_| Box::pin(rx.recv())).collect();
        receives.iter_mut().for_each(Look::parks);
        drop(permits.pop());
        for (n, receive) in receives.iter_mut().enumerate() {
            assert_eq!(receive.ends(), Ok(n));
        }
        sends.iter_mut().for_each(|send| assert_eq!(send.ends(), Ok(())));
        assert_eq!(drain(&rx).0, [100]);
    });
}

/// M4, G7, CASE 7: permits outlive a close; receivers see the end after the last one, sent or dropped.
#[test]
fn m4_case_7_the_last_permit_ends_the_parked_receives() {
    each_manner(|flavor, manner| {
        if !has_slots(flavor) {
            return;
        }
        for by_send in [false, true] {
            let (tx, rx) = flavor.make();
            let permit = tx.try_reserve().unwrap();
            assert!(tx.close());
            assert_eq!(rx.try_recv(), Err(RecvError::Empty), "a value may still come");
            let first = manner.park_recv(&rx, rx.clone().into_recv());
            let second = manner.park_recv(&rx, rx.clone().into_recv());
            assert_eq!(tx.try_reserve().err(), Some(ReserveError::Closed));
            match by_send {
                true => permit.send(1).unwrap(),
                false => drop(permit),
            }
            assert_eq!(first.ends(), if by_send { Ok(1) } else { Err(RecvError::Closed) });
            assert_eq!(second.ends(), Err(RecvError::Closed));
            assert_eq!(rx.try_recv(), Err(RecvError::Closed));
        }
        // The same with nobody parked.
        let (tx, rx) = flavor.make();
        let permit = tx.try_reserve().unwrap();
        assert!(tx.close());
        permit.send(1).unwrap();
        assert_eq!(drain(&rx), (vec![1], RecvError::Closed));
    });
}

/// M4: values of permits come after those that a close admits, and a parked reservation is refused by both ways to close.
#[test]
fn m4_permits_come_after_the_admitted() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        if !has_slots(flavor) {
            return;
        }
        for parked in [Parked::GiveBack, Parked::Admit] {
            let (tx, rx) = flavor.make();
            let permit = tx.try_reserve().unwrap();
            (1..flavor.capacity).for_each(|n| tx.try_send(n).unwrap());
            let mut reserve = Box::pin(tx.reserve());
            reserve.parks();
            let mut send = Box::pin(tx.send(flavor.capacity));
            send.parks();
            tx.close_with(parked);
            assert_eq!(reserve.ends().err(), Some(ReserveError::Closed));
            assert_eq!(send.ends().is_ok(), parked == Parked::Admit);
            permit.send(999).unwrap();
            let mut expected: Vec<_> = (1..flavor.capacity).collect();
            if parked == Parked::Admit {
                expected.push(flavor.capacity);
            }
            expected.push(999);
            assert_eq!(drain(&rx), (expected, RecvError::Closed));
        }
    });
}

/// M4, E3: the last permit goes between two slices of an admission (of 32 sends): a receive that is parked there gets the
/// next value, not the end.
#[test]
fn m4_the_last_permit_goes_during_an_admission() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() || !has_slots(flavor) {
            return;
        }
        let cap = flavor.capacity;
        let (tx, rx) = flavor.make();
        let permit = tx.clone().into_reserve().wait().unwrap();
        (1..cap).for_each(|n| tx.try_send(n).unwrap());
        let mut sends: Vec<_> = (0..70).map(|n| Box::pin(tx.send(cap + n))).collect();
        let parked = Arc::new(Mutex::new(None));
        let (inside, place) = (rx.clone(), parked.clone());
        sends[0].parks_with(&on_first_wake(move || {
            assert_eq!(drain(&inside), ((1..cap + 32).collect(), RecvError::Empty));
            let mut receive = Box::pin(inside.into_recv());
            receive.parks();
            drop(permit);
            *place.lock().unwrap() = Some(receive);
        }));
        sends[1..].iter_mut().for_each(Look::parks);
        assert!(tx.close_with(Parked::Admit));
        sends.iter_mut().for_each(|send| assert_eq!(send.ends(), Ok(())));
        let mut receive = parked.lock().unwrap().take().unwrap();
        assert_eq!(receive.ends(), Ok(cap + 32));
        assert_eq!(drain(&rx), ((cap + 33..cap + 70).collect(), RecvError::Closed));
    });
}

/// M4, G5: a line of sends, with receives parked, then reservations, about as long as one hold of an admission: the ones go
/// across, which makes two wakes each, the others are refused, and all are woken.
#[test]
fn m4_a_long_line_is_admitted() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() || !has_slots(flavor) {
            return;
        }
        for n in [29, 30, 31, 32, 33] {
            let (tx, rx) = flavor.make();
            let permits: Vec<_> = (0..flavor.capacity).map(|_| tx.try_reserve().unwrap()).collect();
            let (woken, waker) = Woken::new();
            let mut sends = [0, 1, 2].map(|value| Box::pin(tx.send(value)));
            sends.iter_mut().for_each(|send| send.parks_with(&waker));
            let mut reserves: Vec<_> = (0..n).map(|_| Box::pin(tx.reserve())).collect();
            reserves.iter_mut().for_each(|reserve| reserve.parks_with(&waker));
            let mut receives = [0, 1, 2].map(|_| Box::pin(rx.recv()));
            receives.iter_mut().for_each(|receive| receive.parks_with(&waker));
            assert!(tx.close_with(Parked::Admit));
            assert_eq!(woken.count(), n + 6);
            reserves.iter_mut().for_each(|reserve| assert_eq!(reserve.ends().err(), Some(ReserveError::Closed)));
            sends.iter_mut().for_each(|send| assert_eq!(send.ends(), Ok(())));
            assert_eq!(receives.each_mut().map(Look::ends), [Ok(0), Ok(1), Ok(2)]);
            drop(permits);
            assert_eq!(drain(&rx), (vec![], RecvError::Closed));
        }
    });
}

/// G1, G7: nobody is left to receive: a permit gives its value back, and its slot.
#[test]
fn g1_a_permit_without_receivers_returns_its_value() {
    each_flavor(|flavor| {
        if !has_slots(flavor) {
            return;
        }
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        let permit = tx.clone().into_reserve().wait().unwrap();
        let borrowed = tx.try_reserve().ok();
        drop(rx);
        let refused = permit.send(ledger.value(1)).unwrap_err();
        assert!(refused.is_closed() && refused.into_inner() == 1);
        drop(borrowed);
        assert_eq!(tx.sender_count(), 1, "an owned permit gives its half back");
        drop(tx);
        ledger.settled();
    });
}

/// CASES 1, 3 for reservations: a granted one that is dropped, or never polled again, takes no slot from others for ever.
#[test]
fn cases_1_3_a_dropped_grant_goes_on() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        if !has_slots(flavor) {
            return;
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let mut granted = Box::pin(tx.reserve());
        granted.parks();
        let next = manner.park_send(&tx, tx.clone().into_send(999));
        assert_eq!(rx.try_recv(), Ok(0));
        assert!(tx.is_full(), "the slot is promised");
        drop(granted);
        assert_eq!(next.ends(), Ok(()));
        assert_eq!(drain(&rx).0.last(), Some(&999));
    });
}

/// G6, G8: limits on a reservation, parked and at once; a cancelled token wins before anything is promised.
#[test]
fn limits_on_reservations() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        if !has_slots(flavor) {
            return;
        }
        with_clock(|clock| {
            let token = CancelToken::new();
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| n);
            let mut timed = Box::pin(tx.reserve().timeout(Duration::from_millis(5)).cancel_on(&token));
            let mut cancelled = Box::pin(tx.reserve().cancel_on(&token));
            timed.parks();
            cancelled.parks();
            clock.advance(Duration::from_millis(5));
            assert_eq!(timed.ends().err(), Some(ReserveError::TimedOut));
            token.cancel();
            assert_eq!(cancelled.ends().err(), Some(ReserveError::Cancelled));
            assert_eq!(tx.reserve().timeout(Duration::ZERO).wait().err(), Some(ReserveError::TimedOut));
            assert_eq!(tx.parked_senders(), 0);
            rx.try_recv().unwrap();
            assert_eq!(tx.reserve().cancel_on(&token).wait().err(), Some(ReserveError::Cancelled));
            assert!(tx.reserve().timeout(Duration::ZERO).wait().is_ok());
            assert!(!tx.is_full());
        });
    });
}

/// G5: a waker that drops a permit, or sends by one, while others are woken.
#[test]
fn g5_wakers_may_end_permits() {
    each_flavor(|flavor| {
        if !has_slots(flavor) {
            return;
        }
        let (tx, rx) = flavor.make::<usize>();
        let mut permits: Vec<_> = (0..flavor.capacity).map(|_| tx.clone().into_reserve().wait().unwrap()).collect();
        let last = std::sync::Mutex::new(permits.pop());
        let hooks = std::sync::Arc::new(Hooks {
            wake: Some(Box::new(move || {
                if let Some(permit) = last.lock().unwrap().take() {
                    permit.send(5).unwrap();
                }
            })),
            ..Hooks::default()
        });
        hooks.activate(true);
        let waker = hooked(&hooks);
        let (mut first, mut second) = (Box::pin(rx.recv()), Box::pin(rx.recv()));
        first.parks_with(&waker);
        second.parks();
        match permits.pop() {
            // Its wake sends by the last permit, to the second receive.
            Some(permit) => permit.send(4).unwrap(),
            None => drop(tx.reserve().timeout(Duration::ZERO).wait()),
        }
        if flavor.capacity > 1 {
            assert_eq!((first.ends(), second.ends()), (Ok(4), Ok(5)));
        }
    });
}

/// Wakes that a freed slot owes: exactly those who can go on.
#[test]
fn a_freed_slot_wakes_only_its_owner() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        if !has_slots(flavor) {
            return;
        }
        let (tx, _rx) = flavor.make::<usize>();
        let mut permits: Vec<_> = (0..flavor.capacity).map(|_| tx.try_reserve().unwrap()).collect();
        let (woken, waker) = Woken::new();
        let mut line: Vec<_> = (0..3).map(|_| Box::pin(tx.reserve())).collect();
        line.iter_mut().for_each(|reserve| reserve.parks_with(&waker));
        drop(permits.pop());
        assert_eq!(woken.count(), 1);
        let granted = line.remove(0).ends();
        assert!(granted.is_ok() && line[0].look().is_pending());
    });
}
