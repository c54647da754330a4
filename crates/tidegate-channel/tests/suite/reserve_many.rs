//! Many slots by one reservation (N1–N4): what it collects in line, and where that goes when it does not get all.

use std::mem::forget;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use tidegate_channel::{unbounded, Operation, Parked, Permits, RecvError, ReserveError, SendError, Sender};
use tidegate_wait::cancel::CancelToken;

use crate::flavors::{drain, each_flavor, each_manner, with_clock, Flavor};
use crate::support::{on_wake, panics, quiet_panic, Ledger, Look, Rng, Woken};

const MS: Duration = Duration::from_millis(1);

/// At least two slots: less is a single reservation.
fn has_many(flavor: &Flavor) -> bool {
    if flavor.has_limit() && flavor.capacity < 2 {
        flavor.skip("nothing to collect");
    }
    flavor.sends_wait() && flavor.capacity >= 2
}

/// All slots are free, and nobody is promised any.
#[track_caller]
fn all_free<T>(tx: &Sender<T>, capacity: usize) {
    assert_eq!(tx.parked_senders(), 0);
    assert_eq!(tx.try_reserve_many(capacity).map(|permits| permits.len()).ok(), Some(capacity));
    assert!(!tx.is_full());
}

/// Bad input: said at once, by the numbers, and nothing is promised. None is no bad input: none is given.
#[test]
fn bad_input_claims_nothing() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (cap, (tx, rx)) = (flavor.capacity, flavor.make::<u8>());
        for slots in [cap + 1, usize::MAX] {
            let refusal = match cap {
                0 => ReserveError::Rendezvous,
                capacity => ReserveError::TooMany { wanted: slots, capacity },
            };
            assert_eq!(tx.try_reserve_many(slots).err(), Some(refusal));
            assert_eq!(tx.reserve_many(slots).wait().err(), Some(refusal));
            let mut owned = Box::pin(tx.clone().into_reserve_many(slots).timeout(Duration::ZERO));
            assert_eq!(owned.ends().err(), Some(refusal));
            assert!(owned.look().is_pending(), "over");
            drop(owned);
            assert_eq!(tx.sender_count(), 1, "the half is given back");
        }
        assert_eq!(
            ReserveError::TooMany { wanted: 9, capacity: 4 }.to_string(),
            "no slot was reserved: the channel has 4, and 9 were wanted"
        );
        let mut none = tx.clone().into_reserve_many(0).wait().unwrap();
        assert!(none.is_empty() && none.next().is_none());
        assert_eq!(none.send(1), Err(SendError::Full(1)));
        assert_eq!(tx.sender_count(), 2);
        drop(none);
        assert_eq!((tx.sender_count(), tx.is_full()), (1, cap == 0));
        tx.close();
        assert_eq!(tx.try_reserve_many(0).ok().map(|none| none.len()), Some(0), "nothing is asked of the channel");
        assert_eq!(rx.try_recv(), Err(RecvError::Closed));
        if cap != 0 {
            assert_eq!(tx.reserve_many(1).wait().err(), Some(ReserveError::Closed));
            assert_eq!(tx.clone().into_reserve_many(1).wait().err(), Some(ReserveError::Closed));
            assert_eq!(tx.sender_count(), 1);
        }
    });
}

/// An unbounded channel gives as many as it can count; receivers see the end after the last.
#[test]
#[cfg(target_pointer_width = "64")]
fn unbounded_promises() {
    let (tx, rx) = unbounded();
    let most = 1 << 48;
    let refusal = ReserveError::TooMany { wanted: most + 1, capacity: most };
    assert_eq!(tx.reserve_many(most + 1).wait().err(), Some(refusal));
    let mut permits = tx.reserve_many(most).wait().unwrap();
    permits.send(1).unwrap();
    tx.try_send(2).unwrap();
    assert!(!tx.is_full());
    if !cfg!(miri) {
        too_many_to_be_counted(&tx, most);
    }
    tx.close();
    permits.send(3).unwrap();
    assert_eq!(drain(&rx), (vec![1, 2, 3], RecvError::Empty));
}

/// Refused, not wrapped, and the half comes back.
#[cfg(target_pointer_width = "64")]
fn too_many_to_be_counted(tx: &Sender<i32>, most: usize) {
    (0..(1 << 16) - 2).for_each(|_| forget(tx.try_reserve_many(most).unwrap()));
    let refusal = ReserveError::TooMany { wanted: most, capacity: most };
    assert_eq!(tx.clone().into_reserve_many(most).wait().err(), Some(refusal));
    assert_eq!(tx.sender_count(), 1);
    assert!(!tx.is_full());
}

/// M1, N1: what there is, at once; the values come in the order of `send`; what is left goes back.
#[test]
fn m1_slots_are_kept() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let cap = flavor.capacity;
        if cap == 0 {
            return flavor.skip("no slots to reserve");
        }
        let (tx, rx) = flavor.make();
        let mut permits = tx.try_reserve_many(cap).unwrap();
        assert_eq!((permits.len(), tx.is_full(), tx.len()), (cap, true, 0));
        assert_eq!(tx.try_send(999), Err(SendError::Full(999)));
        assert_eq!(tx.try_reserve_many(1).err(), Some(ReserveError::Full));
        let single = permits.next().unwrap();
        (1..cap).for_each(|n| permits.send(n).unwrap());
        assert_eq!(permits.send(999), Err(SendError::Full(999)), "none is left");
        single.send(cap).unwrap();
        drop(permits);
        assert_eq!(drain(&rx).0, (1..=cap).collect::<Vec<_>>());
        all_free(&tx, cap);
    });
}

/// N1, N2, G2: in line it collects slot by slot; nobody passes it, and it passes nobody.
#[test]
fn n2_the_first_in_line_collects() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        let cap = flavor.capacity;
        if cap == 0 {
            return flavor.skip("no slots to reserve");
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let mut many = Box::pin(tx.reserve_many(cap));
        many.parks();
        let later = manner.park_send(&tx, tx.clone().into_send(777));
        let mut second = Box::pin(tx.reserve_many(cap));
        second.parks();
        for n in 0..cap {
            assert!(many.look().is_pending(), "{n} of {cap}");
            assert_eq!(rx.try_recv(), Ok(n));
            assert_eq!(tx.try_send(999), Err(SendError::Full(999)));
            assert_eq!(tx.len(), cap - n - 1, "nobody passes");
        }
        let mut permits = many.ends().unwrap();
        assert_eq!((permits.len(), rx.try_recv()), (cap, Err(RecvError::Empty)));
        (0..cap).for_each(|n| permits.send(n).unwrap());
        for n in 0..cap {
            assert!(second.look().is_pending());
            assert_eq!(rx.try_recv(), Ok(n));
        }
        assert_eq!(later.ends(), Ok(()));
        assert!(second.look().is_pending(), "one slot is the send's");
        assert_eq!(rx.try_recv(), Ok(777));
        assert_eq!(second.ends().unwrap().len(), cap);
        all_free(&tx, cap);
    });
}

/// N1: the slots that are free when it parks are its own at once.
#[test]
fn n1_free_slots_are_taken_at_the_park() {
    each_flavor(|flavor| {
        if !has_many(flavor) {
            return;
        }
        let (tx, rx) = flavor.make();
        tx.try_send(0).unwrap();
        let mut many = Box::pin(tx.reserve_many(flavor.capacity));
        many.parks();
        assert_eq!((tx.len(), tx.is_full(), tx.try_send(9)), (1, true, Err(SendError::Full(9))));
        assert_eq!(rx.try_recv(), Ok(0));
        assert_eq!(many.ends().unwrap().len(), flavor.capacity);
        all_free(&tx, flavor.capacity);
    });
}

/// M2, M3, N2: what is left of the permits serves the line: sends, reservations, reservations of many, in order, and more
/// of them than one hold ends.
#[test]
fn m2_dropped_permits_serve_the_line() {
    each_flavor(|flavor| {
        let cap = flavor.capacity;
        if !has_many(flavor) {
            return;
        }
        let (tx, rx) = flavor.make();
        let mut permits = tx.try_reserve_many(cap).unwrap();
        // Across to the receives, one after the other, by one slot.
        let mut sends: Vec<_> = (0..70).map(|n| Box::pin(tx.send(n))).collect();
        sends.iter_mut().for_each(Look::parks);
        let mut receives: Vec<_> = (0..70).map(|_| Box::pin(rx.recv())).collect();
        receives.iter_mut().for_each(Look::parks);
        let mut many = Box::pin(tx.reserve_many(cap - 1));
        many.parks();
        let mut send = Box::pin(tx.send(70));
        send.parks();
        let mut last = Box::pin(tx.reserve_many(1));
        last.parks();
        drop(permits.next());
        for (n, receive) in receives.iter_mut().enumerate() {
            assert_eq!(receive.ends(), Ok(n));
        }
        sends.iter_mut().for_each(|send| assert_eq!(send.ends(), Ok(())));
        if cap > 2 {
            assert!(many.look().is_pending());
        }
        drop(permits);
        let many = many.ends().unwrap();
        assert_eq!((many.len(), send.ends(), rx.len()), (cap - 1, Ok(()), 1));
        assert!(last.look().is_pending());
        drop(many);
        assert_eq!((last.ends().unwrap().len(), rx.try_recv()), (1, Ok(70)));
        drop((last, sends));
        all_free(&tx, cap);
    });
}

/// N3: by a timer, a token, its drop, at the head of the line with some slots: those behind get them at once, without a
/// look of its task at its end.
#[test]
fn n3_collected_slots_go_on_at_once() {
    each_flavor(|flavor| {
        if !has_many(flavor) {
            return;
        }
        with_clock(|clock| {
            for how in ["timer", "token", "drop", "timer, forgotten"] {
                let (tx, rx) = flavor.make();
                let token = CancelToken::new();
                flavor.fill(&tx, |n| n);
                let mut first = Box::pin(tx.reserve_many(2).timeout(MS).cancel_on(&token));
                first.parks();
                let (woken, waker) = Woken::new();
                let mut send = Box::pin(tx.send(777));
                send.parks_with(&waker);
                let mut single = Box::pin(tx.reserve());
                single.parks();
                assert_eq!(rx.try_recv(), Ok(0));
                assert_eq!((woken.count(), tx.parked_senders()), (0, 3));
                match how {
                    "token" => assert!(token.cancel()),
                    "drop" => {
                        drop(std::mem::replace(&mut first, Box::pin(tx.reserve_many(0).timeout(MS).cancel_on(&token))))
                    }
                    _ => clock.advance(MS),
                }
                assert_eq!((woken.count(), tx.parked_senders(), tx.len()), (1, 1, flavor.capacity), "{how}");
                assert_eq!(send.ends(), Ok(()));
                match how {
                    "timer" => assert_eq!(first.ends().err(), Some(ReserveError::TimedOut)),
                    "token" => assert_eq!(first.ends().err(), Some(ReserveError::Cancelled)),
                    "drop" => {}
                    _ => forget(first),
                }
                assert!(single.look().is_pending());
                assert_eq!(rx.try_recv(), Ok(1));
                drop(single.ends());
                drop((single, send));
                drain(&rx);
                all_free(&tx, flavor.capacity);
            }
        });
    });
}

/// N3: by its drop alone, with no limit whose reference on the channel would be given back.
#[test]
fn n3_a_drop_passes_on_what_was_collected() {
    each_flavor(|flavor| {
        if !has_many(flavor) {
            return;
        }
        let (tx, rx) = flavor.make();
        tx.try_send(0).unwrap();
        let mut first = Box::pin(tx.reserve_many(flavor.capacity));
        first.parks();
        let mut behind: Vec<_> = (1..flavor.capacity).map(|n| Box::pin(tx.send(n))).collect();
        behind.iter_mut().for_each(Look::parks);
        drop(first);
        assert!(behind.iter_mut().all(|send| send.ends().is_ok()) && tx.is_full());
        assert_eq!(drain(&rx).0, (0..flavor.capacity).collect::<Vec<_>>());
        all_free(&tx, flavor.capacity);
    });
}

/// G2, G8: from the middle and the end of the line; the others keep their places, and what it had (nothing) is not missed.
#[test]
fn g2_leaving_from_anywhere() {
    each_flavor(|flavor| {
        let cap = flavor.capacity;
        if !has_many(flavor) {
            return;
        }
        with_clock(|clock| {
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| n);
            let mut first = Box::pin(tx.reserve_many(2));
            first.parks();
            let mut middle = Box::pin(tx.reserve_many(2).timeout(MS));
            middle.parks();
            let mut send = Box::pin(tx.send(cap));
            send.parks();
            let mut last = Box::pin(tx.clone().into_reserve_many(2));
            last.parks();
            assert_eq!(rx.try_recv(), Ok(0));
            clock.advance(MS);
            assert_eq!(middle.ends().err(), Some(ReserveError::TimedOut));
            assert_eq!(middle.ends().err(), Some(ReserveError::TimedOut), "and says so again");
            drop(last);
            assert_eq!((tx.sender_count(), tx.parked_senders()), (1, 2));
            assert_eq!(rx.try_recv(), Ok(1));
            let permits = first.ends().unwrap();
            assert!(send.look().is_pending());
            drop(permits);
            assert_eq!(send.ends(), Ok(()));
            assert_eq!(drain(&rx).0, (2..=cap).collect::<Vec<_>>());
            all_free(&tx, cap);
        });
    });
}

/// G6, G8: limits at once; a cancelled token wins before anything is promised.
#[test]
fn limits_at_once() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let cap = flavor.capacity;
        if cap == 0 {
            return flavor.skip("no slots to reserve");
        }
        let token = CancelToken::new();
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        assert_eq!(tx.reserve_many(cap).timeout(Duration::ZERO).wait().err(), Some(ReserveError::TimedOut));
        token.cancel();
        drain(&rx);
        assert_eq!(tx.reserve_many(cap).cancel_on(&token).wait().err(), Some(ReserveError::Cancelled));
        assert_eq!(tx.reserve_many(cap).timeout(Duration::ZERO).wait().unwrap().len(), cap);
        all_free(&tx, cap);
    });
}

/// N4, CASES 1, 3: granted, and dropped unseen: all of it goes on.
#[test]
fn n4_a_dropped_grant_goes_on() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        let cap = flavor.capacity;
        if cap == 0 {
            return flavor.skip("no slots to reserve");
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let mut granted = Box::pin(tx.clone().into_reserve_many(cap));
        granted.parks();
        let next = manner.park_send(&tx, tx.clone().into_send(777));
        drain(&rx);
        assert!(tx.is_full() && tx.is_empty() && tx.parked_senders() == 1);
        drop(granted);
        assert_eq!((next.ends(), rx.try_recv()), (Ok(()), Ok(777)));
        assert_eq!(tx.sender_count(), 1);
        all_free(&tx, cap);
    });
}

/// G7, E3, N3: refused by both ways to close, with some slots: they hold up no receiver. Permits that are out do.
#[test]
fn e3_a_close_takes_back_what_was_collected() {
    each_manner(|flavor, manner| {
        if !has_many(flavor) {
            return;
        }
        for parked in [Parked::GiveBack, Parked::Admit] {
            let (tx, rx) = flavor.make();
            tx.try_send(0).unwrap();
            let mut many = Box::pin(tx.reserve_many(flavor.capacity));
            many.parks();
            let mut send = Box::pin(tx.send(1));
            send.parks();
            tx.close_with(parked);
            assert_eq!(many.ends().err(), Some(ReserveError::Closed));
            assert_eq!(send.ends().is_ok(), parked == Parked::Admit);
            let values = if parked == Parked::Admit { vec![0, 1] } else { vec![0] };
            assert_eq!(drain(&rx), (values, RecvError::Closed), "nothing keeps the end from coming");

            let (tx, rx) = flavor.make::<u8>();
            let permit = tx.try_reserve().unwrap();
            let mut many = Box::pin(tx.reserve_many(flavor.capacity));
            many.parks();
            let receive = manner.park_recv(&rx, rx.clone().into_recv());
            tx.close_with(parked);
            assert_eq!((many.ends().err(), rx.try_recv()), (Some(ReserveError::Closed), Err(RecvError::Empty)));
            drop(permit);
            assert_eq!(receive.ends(), Err(RecvError::Closed));
        }
    });
}

/// M4: permits outlive a close, one by one.
#[test]
fn m4_receivers_see_the_end_after_the_last_permit() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        let cap = flavor.capacity;
        if cap == 0 {
            return flavor.skip("no slots to reserve");
        }
        let (tx, rx) = flavor.make();
        let mut permits = tx.try_reserve_many(cap).unwrap();
        tx.close();
        let receives: Vec<_> = (0..=cap).map(|_| manner.park_recv(&rx, rx.clone().into_recv())).collect();
        (1..cap).for_each(|n| permits.send(n).unwrap());
        let single = permits.next().unwrap();
        drop(permits);
        assert_eq!(rx.parked_receivers(), 2, "one is still out");
        drop(single);
        let ends: Vec<_> = receives.into_iter().map(|receive| receive.ends().ok()).collect();
        assert_eq!(ends, (1..cap).map(Some).chain([None, None]).collect::<Vec<_>>());
    });
}

/// G1: nobody is left to receive: values come back, permits and halves are given back.
#[test]
fn g1_without_receivers_values_come_back() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        if flavor.capacity == 0 {
            return flavor.skip("no slots to reserve");
        }
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        let mut permits = tx.clone().into_reserve_many(flavor.capacity).wait().unwrap();
        permits.send(ledger.value(1)).unwrap();
        drop(rx);
        assert_eq!(ledger.dropped(), 1);
        if flavor.capacity > 1 {
            let refused = permits.send(ledger.value(2)).unwrap_err();
            assert!(refused.is_closed() && refused.into_inner() == 2);
        }
        let singles: Vec<_> = permits.by_ref().collect();
        assert_eq!(tx.sender_count(), 2 + singles.len(), "each has a half of its own");
        drop((permits, singles));
        assert_eq!(tx.sender_count(), 1);
        drop(tx);
        ledger.settled();
    });
}

/// G5: wakers that panic, and wakers that use the channel, while many slots are given up.
#[test]
fn g5_wakers_of_a_line() {
    each_flavor(|flavor| {
        let cap = flavor.capacity;
        if !has_many(flavor) {
            return;
        }
        let (tx, _rx) = flavor.make::<usize>();
        let permits = tx.try_reserve_many(cap).unwrap();
        let panicking = on_wake(quiet_panic);
        let other = tx.clone();
        let using = on_wake(move || {
            let _ = (other.try_reserve_many(1), other.len(), other.is_full());
        });
        let mut line: Vec<_> = (0..cap).map(|_| Box::pin(tx.reserve_many(1))).collect();
        for (n, reserve) in line.iter_mut().enumerate() {
            reserve.parks_with(if n % 2 == 0 { &panicking } else { &using });
        }
        assert!(!panics(|| drop(permits)));
        let granted: usize = line.iter_mut().map(|reserve| reserve.ends().unwrap().len()).sum();
        assert_eq!(granted, cap);
    });
}

/// G9: leaked, in every state; a timer and a token that end it later find no freed memory. What it had collected goes on.
#[test]
fn g9_leaked_reservations() {
    each_flavor(|flavor| {
        if !has_many(flavor) {
            return;
        }
        with_clock(|clock| {
            for limited in [false, true] {
                let token = CancelToken::new();
                let (tx, rx) = flavor.make();
                tx.try_send(0).unwrap();
                let mut many = Box::pin(tx.reserve_many(flavor.capacity));
                many.parks();
                forget(many);
                let mut behind = Box::pin(tx.clone().into_reserve_many(1).timeout(MS).cancel_on_owned(token.clone()));
                behind.parks();
                match limited {
                    true => forget(behind),
                    false => drop(behind),
                }
                assert_eq!(rx.try_recv(), Ok(0));
                drop((tx, rx));
                clock.advance(MS);
                token.cancel();
            }
        });
    });
}

/// G9: spurious polls and other wakers; the last one is woken, once, when it has all.
#[test]
fn g9_the_last_waker_is_woken_once() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let cap = flavor.capacity;
        if cap == 0 {
            return flavor.skip("no slots to reserve");
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let ((old, first), (new, second)) = (Woken::new(), Woken::new());
        let mut many = Box::pin(tx.reserve_many(cap));
        many.parks_with(&first);
        for _ in 0..cap {
            assert_eq!(new.count(), 0);
            many.parks_with(&second);
            rx.try_recv().unwrap();
        }
        assert_eq!((old.count(), new.count()), (0, 1));
        assert_eq!(many.ends().unwrap().len(), cap);
        assert!(many.look().is_pending(), "over");
    });
}

/// G1, no deadlock: threads that reserve some, under limits that run out, and use a part of them. Each value comes once, and
/// all slots are free afterwards.
#[test]
fn g1_threads_that_reserve_many() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let cap = flavor.capacity;
        if cap == 0 {
            return flavor.skip("no slots to reserve");
        }
        let (threads, rounds) = if cfg!(miri) { (2, 20) } else { (3, 1_500) };
        let (tx, rx) = flavor.make();
        let sent = AtomicUsize::new(0);
        let received = thread::scope(|scope| {
            for id in 0..threads {
                let (tx, sent) = (tx.clone(), &sent);
                scope.spawn(move || reserve_and_send(&tx, cap, id, rounds, sent));
            }
            let receivers: Vec<_> = (0..2)
                .map(|_| {
                    let rx = rx.clone();
                    scope.spawn(move || rx.iter().count())
                })
                .collect();
            let tx = tx.clone();
            // The last thread closes: receivers end.
            scope.spawn(move || {
                while tx.sender_count() > 2 {
                    thread::sleep(MS);
                }
                all_free_once_received(&tx, cap);
                tx.close();
            });
            receivers.into_iter().map(|receiver| receiver.join().unwrap()).sum::<usize>()
        });
        assert_eq!(received, sent.load(SeqCst));
    });
}

fn reserve_and_send(tx: &Sender<usize>, cap: usize, id: usize, rounds: usize, sent: &AtomicUsize) {
    let mut rng = Rng(id as u64);
    let use_some = |permits: &mut Permits<'_, usize>, rng: &mut Rng| {
        for _ in 0..rng.below(permits.len() + 1) {
            permits.send(id).unwrap();
            sent.fetch_add(1, SeqCst);
        }
    };
    for round in 0..rounds {
        let reserve = tx.reserve_many(1 + rng.below(cap));
        let reserved = match rng.below(4) {
            0 => reserve.timeout(Duration::from_micros(rng.below(50) as u64)).wait(),
            1 => {
                tx.send(id).wait().unwrap();
                sent.fetch_add(1, SeqCst);
                continue;
            }
            _ => reserve.wait(),
        };
        match reserved {
            Ok(mut permits) => use_some(&mut permits, &mut rng),
            Err(error) => assert!(error.is_timeout(), "round {round}: {error}"),
        }
    }
}

fn all_free_once_received<T>(tx: &Sender<T>, cap: usize) {
    assert_eq!(tx.reserve_many(cap).timeout(Duration::from_secs(50)).wait().map(|permits| permits.len()), Ok(cap));
}

/// G9: a reservation that has given its permit away, with its half, outlives the channel: nothing of that is looked at.
#[test]
fn g9_a_spent_reservation_outlives_its_channel() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make::<u8>();
        let mut one = Box::pin(tx.clone().into_reserve());
        let mut many = Box::pin(tx.clone().into_reserve_many(flavor.capacity.min(2)));
        drop(one.ends());
        drop(many.ends());
        assert_eq!(tx.sender_count(), 1, "the halves went with the permits, or were refused");
        drop((tx, rx));
        assert!(one.look().is_pending() && many.look().is_pending());
        drop((one, many));
    });
}

/// All permits that can be counted are out: an unbounded channel has no line to wait in.
#[test]
#[cfg(all(target_pointer_width = "64", not(miri)))]
fn an_unbounded_channel_may_run_out_of_permits() {
    let (tx, rx) = unbounded::<u8>();
    let most = 1 << 48;
    for _ in 0..u16::MAX {
        std::mem::forget(tx.try_reserve_many(most).unwrap());
    }
    std::mem::forget(tx.try_reserve_many(most - 1).unwrap());
    assert_eq!(tx.try_reserve().err(), Some(ReserveError::Full));
    assert_eq!(tx.reserve().wait().err(), Some(ReserveError::Full));
    assert_eq!(tx.clone().into_reserve().wait().err(), Some(ReserveError::Full));
    assert_eq!((tx.sender_count(), tx.parked_senders()), (1, 0));
    assert_eq!(rx.try_recv(), Err(RecvError::Empty));
}
