//! Sends whose value is built in its place.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_core::FusedFuture;
use tidegate_channel::{Operation, Parked, RecvError, SendError, Sender};
use tidegate_wait::cancel::CancelToken;

use crate::flavors::{drain, each_flavor, each_manner, with_clock, Flavor, Manner};
use crate::support::{panics, quiet_panic, Counted, Ledger, Look};

const MS: Duration = Duration::from_millis(1);

/// G1: the value is built at the first poll, once, however often it is polled; a limit put on it builds nothing.
#[test]
fn it_is_built_once_and_late() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let built = Cell::new(0);
        let build = || {
            built.set(built.get() + 1);
            100
        };
        let mut send = Box::pin(tx.send_with(build).timeout(Duration::MAX));
        assert_eq!((built.get(), tx.parked_senders(), send.is_terminated()), (0, 0, false));
        (0..5).for_each(|_| send.parks());
        assert_eq!((built.get(), tx.parked_senders()), (1, 1));
        assert!(rx.try_recv().is_ok());
        assert_eq!((send.ends(), built.get(), send.is_terminated()), (Ok(()), 1, true));
        assert!(send.look().is_pending());
        assert_eq!(built.get(), 1);
        drain(&rx);
        drop(send);
        let mut receive = Box::pin(rx.recv());
        receive.parks();
        assert_eq!(Box::pin(tx.send_with(build)).ends(), Ok(()));
        assert_eq!((receive.ends(), built.get()), (Ok(100), 2));
    });
}

/// G1: both manners: into the buffer, into a parked receive, out of a parked send.
#[test]
fn it_is_sent_as_any_other() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        let receive = manner.park_recv(&rx, rx.clone().into_recv());
        assert_eq!((manner.run(tx.send_with(|| String::from("a"))), receive.ends().as_deref()), (Ok(()), Ok("a")));
        (0..flavor.capacity).for_each(|n| assert_eq!(manner.run(tx.send_with(|| n.to_string())), Ok(())));
        assert_eq!(tx.len(), flavor.capacity);
        if !flavor.sends_wait() {
            return;
        }
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| tx.send_with(|| String::from("last")).wait());
            crate::support::until(|| tx.parked_senders() == 1);
            let values = (0..flavor.capacity).map(|n| n.to_string()).chain([String::from("last")]);
            values.for_each(|value| assert_eq!(manner.run(rx.recv()), Ok(value)));
            assert_eq!(sender.join().unwrap(), Ok(()));
        });
    });
}

/// G1: dropped or withdrawn before its first poll, nothing is built, and what `build` holds is dropped once.
#[test]
fn it_is_not_built_if_it_is_not_polled() {
    each_flavor(|flavor| {
        let ledger = Ledger::default();
        let held = Rc::new(());
        let (tx, rx) = flavor.make::<Counted>();
        let make = || {
            let (held, ledger) = (held.clone(), ledger.clone());
            tx.send_with(move || {
                drop(held);
                ledger.value(0)
            })
        };
        drop(make());
        drop(make().timeout(MS).cancel_on_owned(CancelToken::new()));
        let mut withdrawn = Box::pin(make());
        assert_eq!(Rc::strong_count(&held), 2);
        assert!(withdrawn.as_mut().withdraw().is_none());
        assert_eq!(Rc::strong_count(&held), 1, "`build` goes with the withdrawal");
        assert!(withdrawn.as_mut().withdraw().is_none() && withdrawn.look().is_pending() && withdrawn.is_terminated());
        drop(withdrawn);
        assert_eq!((ledger.made(), rx.len()), (0, 0));
    });
}

/// G1: `build` panics: the panic comes out of the poll, nothing has happened to the channel, the operation is over.
#[test]
fn a_panicking_builder_changes_nothing() {
    each_flavor(|flavor| {
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make::<Counted>();
        let build = || {
            let _half_done = ledger.value(0);
            quiet_panic();
            ledger.value(1)
        };
        let mut send = Box::pin(tx.send_with(build).timeout(MS));
        assert!(panics(|| assert!(send.look().is_ready())));
        assert_eq!((tx.len(), tx.parked_senders(), tx.is_closed()), (0, 0, false));
        assert!(send.look().is_pending() && send.as_mut().withdraw().is_none() && send.is_terminated());
        drop(send);
        assert!(panics(|| drop(tx.send_with(build).wait())));
        assert_eq!(ledger.made(), 2);
        ledger.settled();
        let mut receive = Box::pin(rx.recv());
        receive.parks();
        assert!(panics(|| drop(tx.send_with(build).wait())));
        receive.parks();
        assert!(tx.send_with(|| ledger.value(7)).wait().is_ok());
        assert!(receive.ends().unwrap() == 7);
    });
}

/// G1, G6, G8: every error has the built value inside: closed, late at once and after a wait, cancelled at entry and after
/// a wait.
#[test]
fn errors_give_the_built_value_back() {
    each_manner(|flavor, manner| {
        if !flavor.sends_wait() {
            return;
        }
        with_clock(|clock| {
            let ledger = Ledger::default();
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| ledger.value(n));
            let cancelled = CancelToken::new();
            cancelled.cancel();
            let build = |id| {
                let ledger = ledger.clone();
                move || ledger.value(id)
            };
            let at_once = manner.run(tx.send_with(build(101)).timeout(Duration::ZERO));
            assert!(matches!(at_once, Err(SendError::TimedOut(value)) if value == 101));
            let at_entry = manner.run(tx.send_with(build(102)).cancel_on(&cancelled));
            assert!(matches!(at_entry, Err(SendError::Cancelled(value)) if value == 102));
            let mut late = Box::pin(tx.send_with(build(103)).deadline(clock.now() + MS));
            let token = CancelToken::new();
            let mut gone = Box::pin(tx.send_with(build(104)).cancel_on(&token).timeout(2 * MS));
            let mut closed = Box::pin(tx.send_with(build(105)));
            late.parks();
            gone.parks();
            closed.parks();
            clock.advance(MS);
            token.cancel();
            tx.close();
            assert!(matches!(late.ends(), Err(SendError::TimedOut(value)) if value == 103));
            assert!(matches!(gone.ends(), Err(SendError::Cancelled(value)) if value == 104));
            assert!(matches!(closed.ends(), Err(SendError::Closed(value)) if value == 105));
            let after = manner.run(tx.send_with(build(106)));
            assert!(matches!(after, Err(SendError::Closed(value)) if value == 106));
            assert_eq!(ledger.dropped(), 6);
            drop((late, gone, closed));
            assert_eq!((clock.armed(), drain(&rx).0.len()), (0, flavor.capacity));
            ledger.settled();
        });
    });
}

/// G6, G8: under limits in any order it parks, is delivered, and ends by the earliest.
#[test]
fn limits_in_any_order() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        with_clock(|clock| {
            let token = CancelToken::new();
            ends_as(flavor, clock.now(), &token, || clock.advance(2 * MS), [true, true, false]);
            let token = CancelToken::new();
            ends_as(flavor, clock.now(), &token, || assert!(token.cancel()), [true, false, true]);
            assert_eq!(clock.armed(), 0);
        });
    });
}

/// `event` ends those with a time limit, or those with a token.
fn ends_as(flavor: &Flavor, now: Instant, token: &CancelToken, event: impl Fn(), ends: [bool; 3]) {
    let (tx, rx) = flavor.make();
    flavor.fill(&tx, |n| n);
    let mut first = Box::pin(tx.send_with(|| 1).timeout(MS).cancel_on(token));
    let mut second = Box::pin(tx.send_with(|| 2).deadline(now + MS).cancel_on(token));
    let mut other = Box::pin(tx.send_with(|| 3).cancel_on_owned(token.child()).timeout(MS));
    let mut timed = Box::pin(tx.send_with(|| 4).timeout(MS).timeout(3 * MS));
    let mut tied = Box::pin(tx.send_with(|| 5).cancel_on(token));
    first.parks();
    second.parks();
    other.parks();
    timed.parks();
    tied.parks();
    event();
    let over = [first.look(), second.look(), other.look()].map(|look| look.is_ready());
    assert_eq!(over, [ends[0]; 3]);
    assert_eq!((timed.look().is_ready(), tied.look().is_ready()), (ends[1], ends[2]));
    let stays: Vec<_> = [(4, ends[1]), (5, ends[2])].into_iter().filter(|(_, over)| !over).map(|(n, _)| n).collect();
    assert_eq!(drain(&rx).0.split_off(flavor.capacity), stays);
}

/// G8: withdrawn in every state.
#[test]
fn withdrawn_in_every_state() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        with_clock(|clock| {
            let ledger = Ledger::default();
            let token = CancelToken::new();
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| ledger.value(n));
            let park = |id| {
                let ledger = &ledger;
                let mut send = Box::pin(tx.send_with(move || ledger.value(id)).timeout(MS).cancel_on(&token));
                send.parks();
                send
            };
            let mut parked = park(100);
            assert!(parked.as_mut().withdraw().unwrap() == 100 && parked.look().is_pending());
            let mut delivered = park(101);
            let taken = rx.try_recv();
            assert!(taken.is_ok() && delivered.as_mut().withdraw().is_none());
            let mut late = park(102);
            clock.advance(MS);
            assert!(late.as_mut().withdraw().unwrap() == 102);
            let mut cancelled = park(103);
            token.cancel();
            assert!(cancelled.as_mut().withdraw().unwrap() == 103 && cancelled.as_mut().withdraw().is_none());
            let mut closed = Box::pin(tx.send_with(|| ledger.value(104)));
            closed.parks();
            tx.close();
            assert!(closed.as_mut().withdraw().unwrap() == 104);
            assert_eq!(clock.armed(), 0);
            drop((parked, delivered, late, cancelled, taken));
            drain(&rx);
            ledger.settled();
        });
    });
}

/// G1: dropped in every state after the build, the value is dropped once, or stays sent.
#[test]
fn dropped_in_every_state() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let ledger = Ledger::default();
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| ledger.value(n));
        let park = || {
            let mut send = Box::pin(tx.send_with(|| ledger.value(100)));
            send.parks();
            send
        };
        drop(park());
        assert_eq!(ledger.dropped(), 1);
        let delivered = park();
        drop(rx.try_recv().unwrap());
        drop(delivered);
        assert_eq!((ledger.dropped(), tx.len()), (2, flavor.capacity), "what was delivered stays so");
        let (admitted, closed) = (park(), park());
        tx.close_with(Parked::Admit);
        drop((admitted, closed));
        assert_eq!((drain(&rx).0.len(), rx.try_recv().err()), (flavor.capacity + 2, Some(RecvError::Closed)));
        ledger.settled();
    });
}

/// G5: `build` uses the channel that it builds for: sends, receives, parks, closes; the value then meets whatever it finds.
#[test]
fn the_builder_uses_its_channel() {
    each_manner(|flavor, manner| {
        let (tx, rx) = flavor.make();
        let receive = manner.park_recv(&rx, rx.clone().into_recv());
        let sent = manner.run(
            tx.send_with(|| {
                tx.try_send(1).unwrap();
                2
            })
            .timeout(Duration::ZERO),
        );
        assert_eq!((receive.ends(), sent.is_ok()), (Ok(1), flavor.capacity != 0));
        drain(&rx);
        let closing = manner.run(tx.send_with(|| {
            assert!(rx.close());
            3
        }));
        assert_eq!(closing, Err(SendError::Closed(3)));
        let (tx, rx) = flavor.make();
        let nested = manner.run(tx.send_with(|| {
            assert_eq!(tx.send_with(|| 4).timeout(Duration::ZERO).wait().is_ok(), flavor.capacity != 0);
            drop(rx);
            5
        }));
        assert_eq!((nested, tx.len()), (Err(SendError::Closed(5)), 0));
    });
}

/// G10, CASE 44: a megabyte, built in the operation's own place: on a stack that has no room for two of them, boxed.
#[test]
fn a_megabyte_in_its_place() {
    const BYTES: usize = if cfg!(miri) { 1 << 10 } else { 1 << 20 };
    fn parked(
        tx: &Sender<[u8; BYTES]>,
    ) -> Pin<Box<impl std::future::Future<Output = Result<(), SendError<[u8; BYTES]>>> + '_>> {
        Box::pin(tx.send_with(|| [7; BYTES]))
    }
    let test = || {
        each_flavor(|flavor| {
            if flavor.capacity > 2 {
                return flavor.skip("64 MiB at a time, and nothing that two slots do not show");
            }
            let (tx, rx) = flavor.make();
            for _ in 0..flavor.capacity {
                assert!(parked(&tx).ends().is_ok());
            }
            let mut last = parked(&tx);
            last.parks();
            for _ in 0..=flavor.capacity {
                assert!(rx.try_recv().unwrap().iter().all(|&byte| byte == 7));
            }
            assert!(last.ends().is_ok());
        });
    };
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    std::thread::Builder::new().name(name).stack_size(32 << 20).spawn(test).unwrap().join().unwrap();
}

/// It says whether it has been built.
#[test]
fn it_reports() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let mut send = Box::pin(tx.send_with(|| 100));
        assert_eq!(format!("{send:?}"), "SendingWith { built: false, sending: Sending { state: Spent, .. }, .. }");
        send.parks();
        assert_eq!(format!("{send:?}"), "SendingWith { built: true, sending: Sending { state: Waiting, .. }, .. }");
        assert!(Manner::Async.run(rx.recv()).is_ok());
        assert!(format!("{send:?}").contains("state: Done"));
    });
}
