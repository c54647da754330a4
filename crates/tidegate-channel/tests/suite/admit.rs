//! Closing with `Parked::Admit`: parked sends succeed beyond the capacity (G7, Elio's rule).

use std::pin::Pin;

use tidegate_channel::{Operation, Parked, RecvError, SendError, Sender, Sending};

use crate::flavors::{drain, each_flavor, each_manner, Flavor};
use crate::support::{on_wake, quiet_panic, Counted, Ledger, Look, WakeLog};

/// A full channel: sends park that go on with the numbers where the buffered ones end.
fn park_on_full<'t>(flavor: &Flavor, tx: &'t Sender<usize>, n: usize) -> Vec<Pin<Box<Sending<'t, usize>>>> {
    flavor.fill(tx, |n| n);
    let mut sends: Vec<_> = (0..n).map(|n| Box::pin(tx.send(flavor.capacity + n))).collect();
    sends.iter_mut().for_each(Look::parks);
    sends
}

/// G7, ELIO (buffered and parked senders' values all drain to receivers; those senders succeed, beyond capacity): in
/// order, from either side, for less than a slice of parked sends, a slice, more than one, more than two.
#[test]
fn parked_sends_are_admitted_in_order() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let sizes: &[usize] = if cfg!(miri) { &[1, 32, 65] } else { &[1, 2, 31, 32, 33, 64, 65, 100] };
        for (&n, by_sender) in sizes.iter().zip([true, false].into_iter().cycle()) {
            let (tx, rx) = flavor.make();
            let mut sends = park_on_full(flavor, &tx, n);
            let log = WakeLog::default();
            sends.iter_mut().enumerate().for_each(|(n, send)| send.parks_with(&log.waker(n)));
            assert!(if by_sender { tx.close_with(Parked::Admit) } else { rx.close_with(Parked::Admit) });
            assert!(!tx.close_with(Parked::Admit) && !rx.close() && tx.is_closed());
            assert_eq!(log.woken(), (0..n).collect::<Vec<_>>());
            sends.iter_mut().for_each(|send| assert_eq!(send.ends(), Ok(())));
            assert_eq!(tx.try_send(999), Err(SendError::Closed(999)));
            let total = flavor.capacity + n;
            assert_eq!((tx.parked_senders(), tx.len(), rx.is_full()), (0, total, true));
            for seen in 0..total {
                assert_eq!((rx.len(), rx.try_recv()), (total - seen, Ok(seen)));
            }
            assert_eq!((rx.len(), rx.try_recv()), (0, Err(RecvError::Closed)));
        }
    });
}

/// G7: the same for tasks and threads, and for receivers of both kinds.
#[test]
fn tasks_and_threads_are_admitted() {
    let n = if cfg!(miri) { 3 } else { 40 };
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let cap = flavor.capacity;
        let sends: Vec<_> = (0..n).map(|n| manner.park_send(&tx, tx.clone().into_send(cap + n))).collect();
        assert!(rx.close_with(Parked::Admit));
        sends.into_iter().for_each(|send| assert_eq!(send.ends(), Ok(())));
        (0..cap + n).for_each(|n| assert_eq!(manner.run(rx.recv()), Ok(n)));
        assert_eq!(manner.run(rx.recv()), Err(RecvError::Closed));
    });
}

/// G7: with nobody parked it is a close like the other.
#[test]
fn nobody_to_admit() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        assert!(rx.close_with(Parked::Admit));
        assert_eq!(manner.run(tx.send(999)), Err(SendError::Closed(999)));
        assert_eq!(rx.iter().collect::<Vec<_>>(), (0..flavor.capacity).collect::<Vec<_>>());
        let (tx, rx) = flavor.make::<u8>();
        let receives: Vec<_> = (0..3).map(|_| manner.park_recv(&rx, rx.clone().into_recv())).collect();
        assert!(tx.close_with(Parked::Admit));
        receives.into_iter().for_each(|receive| assert_eq!(receive.ends(), Err(RecvError::Closed)));
    });
}

/// G2, G7: drained in this order: deliveries that nobody took, the buffer, what was admitted; a delivery out of the
/// admitted ones goes back ahead of them all.
#[test]
fn returned_then_buffered_then_admitted() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        let mut untaken = Box::pin(rx.recv());
        untaken.parks();
        tx.try_send(500).unwrap();
        let mut sends = park_on_full(flavor, &tx, 3);
        assert!(tx.close_with(Parked::Admit));
        drop(untaken);
        let total = flavor.capacity + 3;
        assert_eq!(rx.len(), total + 1);
        assert_eq!(drain(&rx).0, [500].into_iter().chain(0..total).collect::<Vec<_>>());
        sends.iter_mut().for_each(|send| assert_eq!(send.ends(), Ok(())));
    });
}

/// G1, G8, G6: who has left the line by a limit, a drop or a withdrawal is not admitted; who is admitted is not late,
/// cancelled or to be withdrawn any more.
#[test]
fn only_the_waiting_are_admitted() {
    use std::time::Duration;
    use tidegate_wait::cancel::CancelToken;
    const MS: Duration = Duration::from_millis(1);
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        crate::flavors::with_clock(|clock| {
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |_| 1000);
            let (early, late) = (CancelToken::new(), CancelToken::new());
            let park = |n, limit, token: &CancelToken| {
                let mut send = Box::pin(tx.send(n).timeout(limit).cancel_on_owned(token.clone()));
                send.parks();
                send
            };
            let (mut timed, mut cancelled) = (park(0, MS, &late), park(1, 3 * MS, &early));
            let (mut withdrawn, mut stays) = (park(2, 3 * MS, &late), park(3, 3 * MS, &late));
            let mut too_late = park(4, 3 * MS, &late);
            drop(park(5, 3 * MS, &late));
            clock.advance(MS);
            early.cancel();
            assert_eq!(withdrawn.as_mut().withdraw(), Some(2));
            assert!(tx.close_with(Parked::Admit));
            clock.advance(5 * MS);
            late.cancel();
            assert_eq!((timed.ends(), cancelled.ends()), (Err(SendError::TimedOut(0)), Err(SendError::Cancelled(1))));
            assert_eq!((stays.ends(), too_late.as_mut().withdraw()), (Ok(()), None));
            assert_eq!(drain(&rx).0.split_off(flavor.capacity), [3, 4]);
            assert_eq!(clock.armed(), 0);
        });
    });
}

/// CASE 18 (G7): receivers gone, admitted values are dropped at once, each once, while senders still live; also if some
/// have been received.
#[test]
fn admitted_values_go_with_the_last_receiver() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        for received in [0, 1, flavor.capacity + 2] {
            let ledger = Ledger::default();
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| ledger.value(n));
            let mut sends: Vec<_> = (0..40).map(|n| Box::pin(tx.send(ledger.value(n)))).collect();
            sends.iter_mut().for_each(Look::parks);
            assert!(tx.close_with(Parked::Admit));
            assert!(sends.iter_mut().all(|send| send.ends().is_ok()));
            (0..received).for_each(|_| assert!(rx.try_recv().is_ok()));
            assert_eq!(ledger.dropped(), received);
            drop(rx);
            assert_eq!(tx.len(), 0);
            ledger.settled();
        }
    });
}

/// G7, CASE 19: no receiver, so no admission: the values go back, and a channel that nobody holds drops what is left.
#[test]
fn without_receivers_values_go_back() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| ledger.value(n));
        let mut send = Box::pin(tx.clone().into_send(ledger.value(100)));
        send.parks();
        drop(rx);
        assert!(!tx.close_with(Parked::Admit));
        assert!(matches!(send.ends(), Err(SendError::Closed(value)) if value == 100));
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| ledger.value(n));
        let mut send = Box::pin(tx.clone().into_send(ledger.value(100)));
        send.parks();
        assert!(rx.close_with(Parked::Admit));
        drop((tx, rx));
        assert!(send.ends().is_ok());
        drop(send);
        ledger.settled();
    });
}

/// G5, CASE 30: every waker panics, in each slice: all are admitted, and the close does not panic.
#[test]
fn admitted_past_panicking_wakers() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        let mut sends = park_on_full(flavor, &tx, 70);
        let waker = on_wake(quiet_panic);
        sends.iter_mut().for_each(|send| send.parks_with(&waker));
        assert!(tx.close_with(Parked::Admit));
        sends.iter_mut().for_each(|send| assert_eq!(send.ends(), Ok(())));
        assert_eq!(drain(&rx), ((0..flavor.capacity + 70).collect(), RecvError::Closed));
    });
}

/// G10, CASE 44: admitted values of no size, of a page's alignment, and large ones, more than two slices of them.
#[test]
fn admitted_values_of_every_shape() {
    #[derive(Debug, PartialEq, Clone, Copy)]
    #[repr(align(4096))]
    struct Page(u8);
    fn admit<T: Copy + PartialEq + std::fmt::Debug>(flavor: &Flavor, value: impl Fn(usize) -> T) {
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, &value);
        let mut sends: Vec<_> = (0..70).map(|n| Box::pin(tx.send(value(n)))).collect();
        sends.iter_mut().for_each(Look::parks);
        assert!(rx.close_with(Parked::Admit));
        let expected = (0..flavor.capacity).chain(0..70);
        expected.for_each(|n| assert_eq!(rx.try_recv(), Ok(value(n))));
        assert_eq!(rx.try_recv(), Err(RecvError::Closed));
    }
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        admit(flavor, |_| ());
        admit(flavor, |n| Page(n as u8));
        admit(flavor, |n| [n as u8; if cfg!(miri) { 100 } else { 20_000 }]);
    });
}

/// G1, G7: threads send and receive while the channel is closed with their sends parked: what was sent is what was
/// received, in the order of each sender; nobody is left behind.
#[test]
fn an_admission_among_threads() {
    let rounds = if cfg!(miri) { 3 } else { 60 };
    each_flavor(|flavor| {
        for round in 0..rounds {
            let ledger = Ledger::default();
            let (tx, rx) = flavor.make::<Counted>();
            let (sent, received) = std::thread::scope(|scope| {
                let senders: Vec<_> = (0..3)
                    .map(|sender| {
                        let (tx, ledger) = (tx.clone(), &ledger);
                        scope.spawn(move || {
                            let send = |n: usize| tx.send(ledger.value(1000 * sender + n)).wait();
                            (0..500).take_while(|&n| send(n).is_ok()).count()
                        })
                    })
                    .collect();
                let receivers: Vec<_> = (0..2)
                    .map(|_| {
                        let rx = rx.clone();
                        scope.spawn(move || rx.iter().map(|value| value.id).collect::<Vec<_>>())
                    })
                    .collect();
                (0..round % 7).for_each(|_| std::thread::yield_now());
                assert!(tx.close_with(Parked::Admit));
                let sent: Vec<_> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
                (sent, receivers.into_iter().map(|receiver| receiver.join().unwrap()).collect::<Vec<_>>())
            });
            for one in &received {
                (0..3).for_each(|sender| assert!(one.iter().filter(|id| *id / 1000 == sender).is_sorted()));
            }
            let mut all: Vec<_> = received.into_iter().flatten().collect();
            all.sort_unstable();
            let expected = sent.iter().enumerate().flat_map(|(sender, &n)| (0..n).map(move |n| 1000 * sender + n));
            assert_eq!(all, expected.collect::<Vec<_>>());
            drop((tx, rx));
            ledger.settled();
        }
    });
}
