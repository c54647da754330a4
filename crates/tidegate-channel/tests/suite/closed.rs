//! Waiting for the close itself: `closed()` of either half.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_core::FusedFuture;
use tidegate_channel::{Closed, Operation, Parked, Receiver, Sender};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::Limit;

use crate::flavors::{each_flavor, each_manner, until_armed, with_clock, Manner};
use crate::support::{on_first_wake, on_wake, quiet_panic, Hooks, Look, WakeLog, Woken};

const MS: Duration = Duration::from_millis(1);

/// Every way in which a channel is closed while a half of either side still waits for it.
const CLOSES: [(&str, Close); 6] = [
    ("sender's close", |tx, rx| {
        assert!(tx.close());
        (Some(tx), Some(rx))
    }),
    ("receiver's close", |tx, rx| {
        assert!(rx.close());
        (Some(tx), Some(rx))
    }),
    ("sender's admission", |tx, rx| {
        assert!(tx.close_with(Parked::Admit));
        (Some(tx), Some(rx))
    }),
    ("receiver's admission", |tx, rx| {
        assert!(rx.close_with(Parked::Admit));
        (Some(tx), Some(rx))
    }),
    ("last sender", |tx, rx| {
        drop(tx);
        (None, Some(rx))
    }),
    ("last receiver", |tx, rx| {
        drop(rx);
        (Some(tx), None)
    }),
];

/// Returns the halves that are left.
type Close = fn(Sender<u8>, Receiver<u8>) -> Kept;
type Kept = (Option<Sender<u8>>, Option<Receiver<u8>>);

/// G7: it ends with the close, whoever closes, on the half that is still there; and at once if the channel is closed
/// already. It holds no half of its own, is not counted as parked, and values may still be buffered.
#[test]
fn it_ends_with_every_close() {
    each_flavor(|flavor| {
        for (name, close) in CLOSES {
            // The waiting half stands where it does not move while the close consumes another one.
            let (tx, rx) = flavor.make();
            flavor.hold(&tx, &rx, 7);
            let (last_tx, last_rx) = (name == "last sender", name == "last receiver");
            let ((waiting_tx, tx), (waiting_rx, rx)) = (
                if last_tx { (None, tx) } else { (Some(tx.clone()), tx) },
                if last_rx { (None, rx) } else { (Some(rx.clone()), rx) },
            );
            let log = WakeLog::default();
            let halves = [waiting_tx.as_ref().map(Sender::closed), waiting_rx.as_ref().map(Receiver::closed)];
            let mut waits: Vec<_> = halves.into_iter().flatten().map(Box::pin).collect();
            waits.iter_mut().enumerate().for_each(|(n, wait)| wait.parks_with(&log.waker(n)));
            assert_eq!((tx.parked_senders(), tx.parked_receivers()), (0, 0));
            let _kept = close(tx, rx);
            assert_eq!(log.woken(), (0..waits.len()).collect::<Vec<_>>(), "{name}");
            waits.iter_mut().for_each(Look::ends);
            drop(waits);
            if let Some(tx) = waiting_tx {
                Box::pin(tx.closed()).ends();
                tx.closed().wait();
            }
            if let Some(rx) = waiting_rx {
                rx.closed().wait();
                assert_eq!((rx.len(), rx.try_recv()), (1, Ok(7)));
            }
        }
    });
}

/// G7, G9: a thread waits for it on each half, and is woken by every close.
#[test]
fn threads_wait_for_it() {
    each_flavor(|flavor| {
        for (name, close) in CLOSES {
            let (tx, rx) = flavor.make();
            let started = std::sync::Barrier::new(3);
            std::thread::scope(|scope| {
                let sender = (name != "last sender").then(|| tx.clone());
                let receiver = (name != "last receiver").then(|| rx.clone());
                scope.spawn(|| {
                    started.wait();
                    sender.map(|tx| tx.closed().wait())
                });
                scope.spawn(|| {
                    started.wait();
                    receiver.map(|rx| rx.closed().timeout(Duration::from_secs(3600)).wait().unwrap())
                });
                started.wait();
                // Long enough for one of them to sleep, now and then.
                std::thread::yield_now();
                let _kept = close(tx, rx);
            });
        }
    });
}

/// G6, G8: limits end it, the earliest first, in any order; afterwards it says so again.
#[test]
fn limits_end_it() {
    each_flavor(|flavor| {
        with_clock(|clock| {
            let (tx, rx) = flavor.make::<u8>();
            let token = CancelToken::new();
            let (woken, waker) = Woken::new();
            let mut timed = Box::pin(tx.closed().timeout(MS).cancel_on(&token));
            let mut dated = Box::pin(rx.closed().cancel_on_owned(token.child()).deadline(clock.now() + MS));
            let mut both = Box::pin(rx.closed().timeout(MS).cancel_on(&token).timeout(2 * MS));
            let mut cancelled = Box::pin(tx.closed().timeout(10 * MS).cancel_on(&token));
            let mut stays = Box::pin(rx.closed().timeout(Duration::MAX));
            timed.parks_with(&waker);
            dated.parks_with(&waker);
            both.parks_with(&waker);
            cancelled.parks_with(&waker);
            stays.parks();
            clock.advance(MS - Duration::from_nanos(1));
            assert_eq!(woken.count(), 0, "never early");
            clock.advance(Duration::from_nanos(1));
            assert_eq!(woken.count(), 3);
            assert!(token.cancel());
            assert_eq!(woken.count(), 4);
            for _ in 0..2 {
                assert_eq!((timed.ends(), dated.ends(), both.ends()), {
                    (Err(Limit::TimedOut), Err(Limit::TimedOut), Err(Limit::TimedOut))
                });
                assert_eq!(cancelled.ends(), Err(Limit::Cancelled));
            }
            assert_eq!(clock.armed(), 0);
            assert!(tx.close());
            assert_eq!((stays.ends(), timed.ends()), (Ok(()), Err(Limit::TimedOut)), "an end stays");
        });
    });
}

/// G6, G8, CASE 40: no time is one look; already cancelled wins at entry, also over a close.
#[test]
fn limits_at_entry() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make::<u8>();
        let token = CancelToken::new();
        token.cancel();
        assert_eq!(manner.run(tx.closed().timeout(Duration::ZERO)), Err(Limit::TimedOut));
        assert_eq!(manner.run(rx.closed().deadline(std::time::Instant::now())), Err(Limit::TimedOut));
        assert_eq!(manner.run(rx.closed().cancel_on(&token)), Err(Limit::Cancelled));
        tx.close();
        assert_eq!(manner.run(tx.closed().timeout(Duration::ZERO)), Ok(()));
        assert_eq!(manner.run(rx.closed().timeout(Duration::MAX)), Ok(()));
        assert_eq!(manner.run(rx.closed().cancel_on(&token).timeout(MS)), Err(Limit::Cancelled));
    });
}

/// G6: limits on a thread's wait.
#[test]
fn limits_end_a_thread_s_wait() {
    each_flavor(|flavor| {
        with_clock(|clock| {
            let (tx, rx) = flavor.make::<u8>();
            let token = CancelToken::new();
            std::thread::scope(|scope| {
                let late = scope.spawn(|| clock.enter(|| tx.closed().timeout(MS).cancel_on(&token).wait()));
                let gone = scope.spawn(|| clock.enter(|| rx.closed().cancel_on(&token).timeout(3600_u32 * MS).wait()));
                until_armed(clock, 2);
                clock.advance(2 * MS);
                assert_eq!(late.join().unwrap(), Err(Limit::TimedOut));
                token.cancel();
                assert_eq!(gone.join().unwrap(), Err(Limit::Cancelled));
            });
            assert_eq!(clock.armed(), 0);
        });
    });
}

/// G9, CASE 4: the latest waker is woken, once; spurious polls change nothing; a poll after the end says so again.
#[test]
fn wakers_change_and_polls_repeat() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make::<u8>();
        let ((old, old_waker), (new, new_waker)) = (Woken::new(), Woken::new());
        let mut wait = Box::pin(rx.closed());
        assert!(!wait.is_terminated());
        wait.parks_with(&old_waker);
        (0..5).for_each(|_| wait.parks_with(&new_waker));
        assert_eq!(Arc::strong_count(&old), 2, "the former waker is let go at once");
        tx.close();
        assert_eq!((old.count(), new.count(), Arc::strong_count(&new)), (0, 1, 2));
        (0..3).for_each(|_| assert_eq!(wait.look(), Poll::Ready(())));
        assert!(!wait.is_terminated());
        assert_eq!(format!("{wait:?}").split(' ').next(), Some("Closed"));
    });
}

/// G3, G5: dropped while it waits, it is not woken; its waker goes with it.
#[test]
fn dropped_while_it_waits() {
    each_flavor(|flavor| {
        with_clock(|clock| {
            let (tx, rx) = flavor.make::<u8>();
            let token = CancelToken::new();
            let (woken, waker) = Woken::new();
            let mut waits: Vec<_> =
                (0..5).map(|_| Box::pin(tx.closed().timeout(MS).cancel_on_owned(token.clone()))).collect();
            waits.iter_mut().for_each(|wait| wait.parks_with(&waker));
            [4, 2, 0].into_iter().for_each(|place| drop(waits.remove(place)));
            assert_eq!((clock.armed(), Arc::strong_count(&woken)), (2, 4));
            assert!(rx.close());
            assert_eq!(woken.count(), 2);
            waits.iter_mut().for_each(|wait| assert_eq!(wait.ends(), Ok(())));
            drop(waits);
            assert_eq!((clock.armed(), Arc::strong_count(&woken)), (0, 2));
        });
    });
}

/// G7: more of them than two slices, woken in the order in which they parked, behind all sends and receives: who is told
/// of the close finds nobody parked.
#[test]
fn sends_and_receives_end_before_it() {
    each_flavor(|flavor| {
        for (mode, side) in [(Parked::GiveBack, 0), (Parked::Admit, 0), (Parked::GiveBack, 1), (Parked::Admit, 1)] {
            if side == 0 && !flavor.has_limit() {
                continue;
            }
            let (tx, rx) = flavor.make();
            let log = WakeLog::default();
            let (inside_tx, inside_rx, seen) = (tx.clone(), rx.clone(), Arc::new(Mutex::new(None)));
            let report = seen.clone();
            let mut first = Box::pin(tx.closed());
            first.parks_with(&on_wake(move || {
                *report.lock().unwrap() = Some((inside_tx.parked_senders(), inside_rx.parked_receivers()));
            }));
            let mut waits: Vec<_> = (0..70).map(|_| Box::pin(rx.closed())).collect();
            waits.iter_mut().enumerate().for_each(|(n, wait)| wait.parks_with(&log.waker(1000 + n)));
            let (mut sends, mut receives) = (Vec::new(), Vec::new());
            if side == 0 {
                flavor.fill(&tx, |n| n);
                sends.extend((0..40).map(|n| Box::pin(tx.send(n))));
            } else {
                receives.extend((0..40).map(|_| Box::pin(rx.recv())));
            }
            sends.iter_mut().enumerate().for_each(|(n, send)| send.parks_with(&log.waker(n)));
            receives.iter_mut().enumerate().for_each(|(n, receive)| receive.parks_with(&log.waker(n)));
            assert!(tx.close_with(mode));
            assert_eq!(log.woken(), (0..40).chain(1000..1070).collect::<Vec<_>>(), "{mode:?}");
            assert_eq!(*seen.lock().unwrap(), Some((0, 0)));
            first.ends();
            waits.iter_mut().for_each(Look::ends);
            assert!(sends.iter_mut().all(|send| send.ends().is_ok() == (mode == Parked::Admit)));
            assert!(receives.iter_mut().all(|receive| receive.ends().is_err()));
        }
    });
}

/// G5, CASES 28, 30: wakers that panic, that close again, wait anew, and drop other waits between two slices.
#[test]
fn reentrant_wakers() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make::<u8>();
        let (woken, waker) = Woken::new();
        // The waits borrow this half, and are reached from a waker, which lives for ever.
        let raw = Box::into_raw(Box::new(tx));
        // SAFETY: freed below, after whatever borrows it.
        let half: &'static Sender<u8> = unsafe { &*raw };
        let line = Arc::new(Mutex::new(Vec::<Option<Pin<Box<Closed<'static>>>>>::new()));
        let inside = line.clone();
        let mut first = Box::pin(half.closed());
        first.parks_with(&on_first_wake(move || {
            assert!(!half.close() && !half.close_with(Parked::Admit));
            half.closed().wait();
            let odd: Vec<_> = inside.lock().unwrap().iter_mut().step_by(2).map(Option::take).collect();
            drop(odd);
            quiet_panic();
        }));
        for n in 0..80 {
            let mut wait = Box::pin(half.closed());
            wait.parks_with(if n % 2 == 0 { std::task::Waker::noop() } else { &waker });
            line.lock().unwrap().push(Some(wait));
        }
        assert!(rx.close());
        assert_eq!(woken.count(), 40);
        line.lock().unwrap().iter_mut().flatten().for_each(Look::ends);
        first.ends();
        drop((first, line));
        // SAFETY: made by `Box::into_raw` above; nothing borrows it any more.
        drop(unsafe { Box::from_raw(raw) });
    });
}

/// G5: a waker's clone that closes the channel, before the wait is parked: it ends at once.
#[test]
fn closed_by_the_clone_of_its_waker() {
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make::<u8>();
        let inside = tx.clone();
        let hooks = Arc::new(Hooks { clone: Some(Box::new(move || assert!(inside.close()))), ..Hooks::default() });
        hooks.activate(true);
        let waker = crate::support::hooked(&hooks);
        assert_eq!(Box::pin(rx.closed()).look_with(&waker), Poll::Ready(()));
        drop(waker);
        assert_eq!((hooks.alive(), tx.is_closed()), (0, true));
    });
}

/// G7, G9: many threads wait on one channel, in both manners, while it is closed; all are told, over many rounds.
#[test]
fn a_close_beside_waits() {
    let rounds = if cfg!(miri) { 4 } else { 300 };
    each_manner(|flavor, manner| {
        for round in 0..rounds {
            let (tx, rx) = flavor.make::<u8>();
            std::thread::scope(|scope| {
                scope.spawn(|| match manner {
                    Manner::Blocking => rx.closed().wait(),
                    Manner::Async => {
                        tidegate_wait::op::block_on(async { rx.closed().timeout(Duration::MAX).await }).unwrap()
                    }
                });
                (0..round % 8).for_each(|_| std::thread::yield_now());
                assert!(tx.close());
            });
        }
    });
}
