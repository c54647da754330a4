//! Close from either side, the last drops, and what becomes of the values.

use std::sync::{Arc, Mutex};

use tidegate_channel::{Operation, OwnedSending, Parked, RecvError, SendError, Sender};

use crate::flavors::{drain, each_flavor, each_manner, Waiting};
use crate::support::{on_wake, panics, Counted, Ledger, Look, WakeLog, Woken};

/// G7, CASE 21, ELIO (close wakes a sender blocked on full): close, from either side, once: parked sends get their values
/// back, woken in the order in which they parked, more of them than one hold of the lock settles.
#[test]
fn close_gives_parked_values_back_in_order() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        for (by_sender, named) in [(true, false), (false, false), (true, true), (false, true)] {
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| 1000 + n);
            let log = WakeLog::default();
            let mut sends: Vec<_> = (0..70).map(|n| Box::pin(tx.send(n))).collect();
            sends.iter_mut().enumerate().for_each(|(n, send)| send.parks_with(&log.waker(n)));
            assert!(match (by_sender, named) {
                (true, false) => tx.close(),
                (false, false) => rx.close(),
                (true, true) => tx.close_with(Parked::GiveBack),
                (false, true) => rx.close_with(Parked::default()),
            });
            assert!(!tx.close() && !rx.close(), "the second is told that it was not the first");
            assert!(!tx.close_with(Parked::Admit) && !rx.close_with(Parked::Admit));
            assert!(tx.is_closed() && rx.is_closed());
            assert_eq!(log.woken(), (0..70).collect::<Vec<_>>());
            for (n, send) in sends.iter_mut().enumerate() {
                assert_eq!(send.ends(), Err(SendError::Closed(n)));
            }
            assert_eq!(drain(&rx), ((1000..1000 + flavor.capacity).collect(), RecvError::Closed));
        }
    });
}

/// G7, CASE 21: the same for tasks and threads: all get their value back, nobody is left parked.
#[test]
fn close_ends_every_parked_send() {
    let parked = if cfg!(miri) { 4 } else { 50 };
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| 1000 + n);
        let sends: Vec<_> = (0..parked).map(|n| manner.park_send(&tx, tx.clone().into_send(n))).collect();
        assert!(rx.close());
        for (n, send) in sends.into_iter().enumerate() {
            assert_eq!(send.ends(), Err(SendError::Closed(n)));
        }
        assert_eq!((tx.parked_senders(), drain(&rx).0.len()), (0, flavor.capacity));
    });
}

/// G7, ELIO (close wakes parked receivers): close wakes every parked receive, in order, and each says so again when
/// polled again.
#[test]
fn close_ends_parked_receives() {
    each_flavor(|flavor| {
        for mode in [Parked::GiveBack, Parked::Admit] {
            let (tx, rx) = flavor.make::<u8>();
            let log = WakeLog::default();
            let mut receives: Vec<_> = (0..70).map(|_| Box::pin(rx.recv())).collect();
            receives.iter_mut().enumerate().for_each(|(n, receive)| receive.parks_with(&log.waker(n)));
            tx.close_with(mode);
            assert_eq!(log.woken(), (0..70).collect::<Vec<_>>());
            for receive in &mut receives {
                (0..2).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::Closed)));
            }
        }
    });
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make::<u8>();
        let receives: Vec<_> = (0..3).map(|_| manner.park_recv(&rx, rx.clone().into_recv())).collect();
        drop(tx);
        receives.into_iter().for_each(|receive| assert_eq!(receive.ends(), Err(RecvError::Closed)));
    });
}

/// G7, ELIO (success, closed and cancelled told apart): after the close no send is admitted, by any way, also where there
/// is room; every other question has its answer.
#[test]
fn nothing_is_sent_after_the_close() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        rx.close();
        let limit = std::time::Duration::ZERO;
        assert_eq!(tx.try_send(1), Err(SendError::Closed(1)));
        assert_eq!(manner.run(tx.send(2)), Err(SendError::Closed(2)));
        assert_eq!(manner.run(tx.clone().into_send(3)), Err(SendError::Closed(3)));
        assert_eq!(manner.run(tx.send_with(|| 4)), Err(SendError::Closed(4)));
        assert_eq!(manner.run(tx.send(5).timeout(limit)), Err(SendError::Closed(5)), "closed before late");
        assert_eq!(manner.run(rx.recv().timeout(limit)), Err(RecvError::Closed));
        assert_eq!((rx.try_recv(), manner.run(rx.recv())), (Err(RecvError::Closed), Err(RecvError::Closed)));
        assert_eq!((manner.run(rx.clone().into_recv()), rx.iter().next()), (Err(RecvError::Closed), None));
        assert_eq!((tx.len(), tx.is_full(), tx.capacity()), (0, flavor.capacity == 0, flavor.limit()));
        assert!(!tx.close() && !rx.close_with(Parked::Admit));
        manner.run(tx.closed());
        manner.run(rx.closed());
        assert!(tx.clone().is_closed() && rx.clone().is_closed());
        assert!(tx.downgrade().upgrade().unwrap().is_closed() && rx.downgrade().upgrade().unwrap().is_closed());
        assert!(format!("{tx:?}").contains("closed: true"));
    });
}

/// G7, CASES 16, 22: what is buffered drains, then the end comes, for good, by every way to ask.
#[test]
fn buffered_values_drain_before_the_end() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        flavor.hold(&tx, &rx, 0);
        (1..flavor.capacity).for_each(|n| tx.try_send(n).unwrap());
        drop(tx);
        assert!(rx.is_closed());
        for n in 0..flavor.capacity.max(1) {
            assert_eq!(if n % 2 == 0 { manner.run(rx.recv()) } else { manner.run(rx.clone().into_recv()) }, Ok(n));
        }
        for _ in 0..3 {
            assert_eq!((rx.try_recv(), manner.run(rx.recv())), (Err(RecvError::Closed), Err(RecvError::Closed)));
        }
    });
}

/// CASE 22: two loops that drain each other's channel both return when either of them closes.
#[test]
fn drain_loops_return() {
    each_flavor(|flavor| {
        for closes_first in [true, false] {
            let ((to, from), (back, returned)) = (flavor.make(), flavor.make());
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    for value in &from {
                        if back.send(value).wait().is_err() {
                            break;
                        }
                    }
                });
                (0..5).for_each(|n| {
                    let _sent = to.send(n).wait();
                    assert_eq!(returned.recv().wait(), Ok(n));
                });
                if closes_first {
                    drop(to);
                    assert_eq!(returned.iter().count(), 0);
                } else {
                    returned.close();
                    let _refused = to.send(6).wait();
                }
            });
        }
    });
}

/// G7: the last sender's drop closes, a clone's does not; an operation with a half of its own counts until it is dropped,
/// even when it has long ended.
#[test]
fn the_last_sender_closes() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        let clone = tx.clone();
        drop(tx);
        let mut owned = Box::pin(clone.into_send(1));
        assert!(!rx.is_closed());
        let receive = manner.park_recv(&rx, rx.clone().into_recv());
        assert_eq!((owned.ends(), receive.ends()), (Ok(()), Ok(1)));
        let receive = manner.park_recv(&rx, rx.clone().into_recv());
        assert_eq!((rx.sender_count(), rx.is_closed()), (1, false));
        drop(owned);
        assert_eq!(receive.ends(), Err(RecvError::Closed));
    });
}

/// CASE 18 (G7): with the last receiver everything buffered is dropped at once, returned deliveries too, while senders
/// still live; parked sends get their values back.
#[test]
fn the_last_receiver_drops_what_is_buffered() {
    each_manner(|flavor, manner| {
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        let mut delivered = Box::pin(rx.clone().into_recv());
        delivered.parks();
        assert!(tx.try_send(ledger.value(0)).is_ok());
        flavor.fill(&tx, |n| ledger.value(1 + n));
        let send = flavor.has_limit().then(|| manner.park_send(&tx, tx.clone().into_send(ledger.value(1000))));
        drop(rx);
        assert_eq!(ledger.dropped(), 0, "the receive has a half of its own");
        assert!(!tx.is_closed());
        drop(delivered);
        assert!(tx.is_closed());
        assert_eq!((ledger.dropped(), tx.len()), (flavor.capacity + 1, 0));
        let back = send.map(Waiting::ends);
        assert!(back.is_none_or(|end| matches!(end, Err(SendError::Closed(value)) if value == 1000)));
        assert!(matches!(tx.try_send(ledger.value(4)), Err(SendError::Closed(value)) if value == 4));
        ledger.settled();
    });
}

/// CASE 38 (G5): what the last receiver drops, it drops outside the lock, with the channel closed already: in a destructor
/// another thread asks the channel for everything, and the destructor waits for it.
#[test]
fn destructors_run_outside_the_lock() {
    struct Asks(Option<Sender<Asks>>);
    impl Drop for Asks {
        fn drop(&mut self) {
            let Some(tx) = self.0.take() else { return };
            let asks = move || {
                assert!(tx.is_closed() && !tx.close());
                assert!(tx.try_send(Asks(None)).is_err() && tx.send(Asks(None)).wait().is_err());
                tx.closed().wait();
                (tx.len(), tx.parked_senders())
            };
            assert_eq!(std::thread::spawn(asks).join().unwrap().1, 0);
        }
    }
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        flavor.hold(&tx, &rx, Asks(Some(tx.clone())));
        (1..flavor.capacity.min(3)).for_each(|_| assert!(tx.try_send(Asks(Some(tx.clone()))).is_ok()));
        drop(rx);
        assert_eq!(tx.sender_count(), 1, "all values are gone");
    });
}

/// G1: an owned send that is parked when the receivers go gets its value back; dropped, it drops it.
#[test]
fn owned_sends_end_with_the_receivers() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| ledger.value(n));
        let mut back = Box::pin(tx.clone().into_send(ledger.value(1000)));
        let mut dropped = Box::pin(tx.into_send(ledger.value(1001)));
        back.parks();
        dropped.parks();
        drop(rx);
        assert!(matches!(back.ends(), Err(SendError::Closed(value)) if value == 1000));
        drop((back, dropped));
        ledger.settled();
    });
}

/// CASE 18: a reply channel inside a buffered request is closed when the server goes, so nobody hangs on it.
#[test]
fn a_reply_channel_inside_a_value_closes() {
    each_manner(|flavor, manner| {
        let (requests, server) = flavor.make();
        let (reply, replies) = flavor.make::<u8>();
        flavor.hold(&requests, &server, reply);
        let receive = manner.park_recv(&replies, replies.clone().into_recv());
        drop(server);
        assert_eq!(receive.ends(), Err(RecvError::Closed));
    });
}

/// G7: a channel inside its own buffer is freed with it: the last receiver empties it, and with that goes the last
/// sender.
#[test]
fn a_channel_inside_itself_ends() {
    struct Inside(#[allow(dead_code)] Option<Sender<Inside>>, #[allow(dead_code)] Counted);
    each_flavor(|flavor| {
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        flavor.hold(&tx, &rx, Inside(Some(tx.clone()), ledger.value(0)));
        drop(tx);
        assert!(!rx.is_closed());
        drop(rx);
        ledger.settled();
    });
}

/// G7, G8: sends that `close` has not reached yet, and such that it has, are dropped in a waker that the same close runs;
/// the others still end, in both modes. (Nodes leave the private list of a close under way.)
#[test]
fn parked_operations_may_leave_during_a_close() {
    type Line = Arc<Mutex<Vec<Option<std::pin::Pin<Box<OwnedSending<usize>>>>>>>;
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        for mode in [Parked::GiveBack, Parked::Admit] {
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| 1000 + n);
            let line = Line::default();
            let inside = line.clone();
            // The first to be woken drops all even ones, of which some have been settled and the rest have not.
            let waker = on_wake(move || {
                let even: Vec<_> = inside.lock().unwrap().iter_mut().step_by(2).map(Option::take).collect();
                drop(even);
            });
            let mut first = Box::pin(tx.clone().into_send(999));
            first.parks_with(&waker);
            for n in 0..100 {
                let mut send = Box::pin(tx.clone().into_send(n));
                send.parks();
                line.lock().unwrap().push(Some(send));
            }
            rx.close_with(mode);
            let admitted = mode == Parked::Admit;
            assert_eq!(first.ends(), if admitted { Ok(()) } else { Err(SendError::Closed(999)) });
            let mut line = line.lock().unwrap();
            let staying = line.iter_mut().enumerate().filter_map(|(n, send)| Some((n, send.as_mut()?)));
            let ended = staying.map(|(n, send)| {
                assert_eq!(send.ends(), if admitted { Ok(()) } else { Err(SendError::Closed(n)) });
            });
            assert_eq!(ended.count(), 50);
            let buffered = 1000..1000 + flavor.capacity;
            // The first of a slice of 32 is 999; of the other 31 the even ones were in already when they were dropped.
            let late = [999].into_iter().chain((0..100).filter(|n| *n < 31 || n % 2 == 1)).filter(|_| admitted);
            assert_eq!(drain(&rx), (buffered.chain(late).collect(), RecvError::Closed));
        }
    });
}

/// G7, G5: a waker that the close runs closes again, in both ways: it is told that the channel is closed, and nothing
/// else happens.
#[test]
fn a_close_inside_a_close() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let (inner_tx, inner_rx) = (tx.clone(), rx.clone());
        let waker = on_wake(move || {
            assert!(!inner_tx.close() && !inner_rx.close_with(Parked::Admit) && inner_rx.is_closed());
        });
        let mut sends: Vec<_> = (0..70).map(|n| Box::pin(tx.send(n))).collect();
        sends.iter_mut().for_each(|send| send.parks_with(&waker));
        assert!(tx.close());
        for (n, send) in sends.iter_mut().enumerate() {
            assert_eq!(send.ends(), Err(SendError::Closed(n)));
        }
    });
}

/// G5, CASE 30: a close past panicking wakers: all others are told; the close itself does not panic.
#[test]
fn a_close_past_panicking_wakers() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make::<u8>();
        let (woken, waker) = Woken::new();
        let loud = on_wake(crate::support::quiet_panic);
        let mut receives: Vec<_> = (0..70).map(|_| Box::pin(rx.recv())).collect();
        for (n, receive) in receives.iter_mut().enumerate() {
            receive.parks_with(if n % 3 == 0 { &loud } else { &waker });
        }
        assert!(!panics(|| assert!(tx.close())));
        assert_eq!(woken.count(), 46);
        receives.iter_mut().for_each(|receive| assert_eq!(receive.ends(), Err(RecvError::Closed)));
    });
}
