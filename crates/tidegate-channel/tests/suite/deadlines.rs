//! Limits in time, on a clock that stands still until it is moved.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tidegate_channel::{Operation, RecvError, SendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

use crate::flavors::{drain, each_flavor, each_manner, until_armed, with_clock, Flavor};
use crate::support::{Counted, Ledger, Look, Rng, Woken};

const MS: Duration = Duration::from_millis(1);

/// G6, CASE 12: time runs from the first park; never early; the task is woken, and the value comes back.
#[test]
fn a_parked_send_times_out() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        with_clock(|clock| {
            let (tx, rx) = flavor.make();
            flavor.fill(&tx, |n| n);
            let (woken, waker) = Woken::new();
            let mut send = Box::pin(tx.send(100).timeout(10 * MS));
            clock.advance(100 * MS);
            send.parks_with(&waker);
            clock.advance(10 * MS - Duration::from_nanos(1));
            assert_eq!(woken.count(), 0);
            send.parks_with(&waker);
            clock.advance(Duration::from_nanos(1));
            assert_eq!((woken.count(), tx.parked_senders()), (1, 0));
            let mut behind = Box::pin(tx.send(101));
            behind.parks();
            assert!(rx.try_recv().is_ok());
            assert_eq!(behind.ends(), Ok(()), "it left no gap, and takes nobody's turn (G2)");
            assert_eq!(send.ends(), Err(SendError::TimedOut(100)));
            assert!(send.look().is_pending());
            assert_eq!((drain(&rx).0.len(), clock.armed()), (flavor.capacity, 0));
        });
    });
}

/// G6: the same for a receive, which says so again when it is polled again.
#[test]
fn a_parked_receive_times_out() {
    each_flavor(|flavor| {
        with_clock(|clock| {
            let (tx, rx) = flavor.make();
            let (woken, waker) = Woken::new();
            let mut receive = Box::pin(rx.recv().deadline(clock.now() + 10 * MS));
            receive.parks_with(&waker);
            clock.advance(10 * MS - Duration::from_nanos(1));
            assert_eq!(woken.count(), 0);
            clock.advance(Duration::from_nanos(1));
            assert_eq!((woken.count(), rx.parked_receivers()), (1, 0));
            flavor.hold(&tx, &rx, 1);
            (0..2).for_each(|_| assert_eq!(receive.ends(), Err(RecvError::TimedOut)));
            assert_eq!((rx.try_recv(), clock.armed()), (Ok(1), 0));
        });
    });
}

/// G6: time-outs of both sides, in both manners, and a wake that comes before the time-out.
#[test]
fn the_parked_time_out() {
    each_manner(|flavor, manner| {
        with_clock(|clock| {
            let (tx, rx) = flavor.make();
            let late = manner.park_recv(&rx, rx.clone().into_recv().timeout(MS));
            let early = manner.park_recv(&rx, rx.clone().into_recv().timeout(5 * MS));
            until_armed(clock, 2);
            clock.advance(2 * MS);
            tx.try_send(1).unwrap();
            assert_eq!((late.ends(), early.ends(), clock.armed()), (Err(RecvError::TimedOut), Ok(1), 0));
            if !flavor.sends_wait() {
                return;
            }
            flavor.fill(&tx, |n| n);
            let late = manner.park_send(&tx, tx.clone().into_send(100).timeout(MS));
            let early = manner.park_send(&tx, tx.clone().into_send(101).deadline(clock.now() + 5 * MS));
            until_armed(clock, 2);
            clock.advance(2 * MS);
            assert!(rx.try_recv().is_ok());
            assert_eq!((late.ends(), early.ends(), clock.armed()), (Err(SendError::TimedOut(100)), Ok(()), 0));
        });
    });
}

/// G6, CASE 40: zero and a past deadline are one try: a success if there is room or a value, the end if closed.
#[test]
fn no_time_is_one_try() {
    each_manner(|flavor, manner| {
        with_clock(|clock| {
            clock.advance(Duration::from_secs(1));
            let past = clock.now() - MS;
            let (tx, rx) = flavor.make();
            assert_eq!(manner.run(rx.recv().timeout(Duration::ZERO)), Err(RecvError::TimedOut));
            assert_eq!(manner.run(rx.recv().deadline(past)), Err(RecvError::TimedOut));
            for n in 0..flavor.capacity {
                assert_eq!(manner.run(tx.send(n).timeout(Duration::ZERO)), Ok(()));
            }
            if flavor.has_limit() {
                assert_eq!(manner.run(tx.send(100).timeout(Duration::ZERO)), Err(SendError::TimedOut(100)));
                assert_eq!(manner.run(tx.send(100).deadline(past)), Err(SendError::TimedOut(100)));
            }
            for n in 0..flavor.capacity {
                assert_eq!(manner.run(rx.recv().deadline(past)), Ok(n));
            }
            let mut receive = Box::pin(rx.recv());
            receive.parks();
            assert_eq!(manner.run(tx.send(3).deadline(past)), Ok(()), "a parked receive is room enough");
            assert_eq!(receive.ends(), Ok(3));
            flavor.fill(&tx, |n| n);
            let mut send = Box::pin(tx.send(flavor.capacity));
            assert_eq!(send.look().is_pending(), flavor.has_limit());
            assert_eq!(manner.run(rx.recv().timeout(Duration::ZERO)), Ok(0), "a parked send is value enough");
            assert_eq!(send.look().is_ready(), flavor.has_limit());
            drain(&rx);
            let mut delivered = Box::pin(rx.recv());
            delivered.parks();
            tx.try_send(6).unwrap();
            drop(delivered);
            assert_eq!(manner.run(rx.recv().timeout(Duration::ZERO)), Ok(6), "a returned value is there, too");
            tx.close();
            assert_eq!(manner.run(rx.recv().timeout(Duration::ZERO)), Err(RecvError::Closed));
            assert_eq!(manner.run(tx.send(7).deadline(past)), Err(SendError::Closed(7)));
            assert_eq!((clock.armed(), tx.parked_senders(), tx.parked_receivers()), (0, 0, 0));
        });
    });
}

/// G6, CASE 40: `Duration::MAX` is for ever and arms nothing; a far deadline neither overflows nor fires.
#[test]
fn the_longest_time_is_for_ever() {
    each_flavor(|flavor| {
        with_clock(|clock| {
            let (tx, rx) = flavor.make();
            let mut receive = Box::pin(rx.recv().timeout(Duration::MAX));
            receive.parks();
            assert_eq!(clock.armed(), 0);
            let far = clock.now() + Duration::from_secs(400 * 365 * 86_400);
            let mut later = Box::pin(rx.recv().deadline(far).timeout(Duration::MAX));
            later.parks();
            let (full, _rx) = flavor.make();
            flavor.fill(&full, |n| n);
            let mut send = Box::pin(full.send(100).timeout(Duration::MAX).deadline(far));
            assert_eq!(send.look().is_pending(), flavor.has_limit());
            clock.advance(Duration::from_secs(300 * 365 * 86_400));
            receive.parks();
            later.parks();
            assert!(send.look().is_pending());
            tx.try_send(1).unwrap();
            tx.try_send(2).unwrap();
            assert_eq!((receive.ends(), later.ends()), (Ok(1), Ok(2)));
            drop(send);
            assert_eq!(clock.armed(), 0);
        });
    });
}

/// G6: an operation that is done at once arms nothing, whatever its limits.
#[test]
fn a_ready_operation_arms_nothing() {
    each_flavor(|flavor| {
        with_clock(|clock| {
            let token = CancelToken::new();
            let (tx, rx) = flavor.make();
            let mut receive = Box::pin(rx.recv());
            receive.parks();
            let mut send = Box::pin(tx.send(1).timeout(MS).cancel_on(&token).timeout(2 * MS));
            assert_eq!((send.ends(), clock.armed(), receive.ends()), (Ok(()), 0, Ok(1)));
            flavor.hold(&tx, &rx, 2);
            let mut receive = Box::pin(rx.recv().cancel_on_owned(token.clone()).deadline(clock.now() + MS));
            assert_eq!((receive.ends(), clock.armed()), (Ok(2), 0));
        });
    });
}

/// CASE 39: a timed wait sleeps: while it waits on the system's clock, its thread uses next to no processor time.
#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(miri, ignore = "a measurement")]
fn a_timed_wait_sleeps() {
    /// Nanoseconds that the current thread has spent on a processor.
    fn on_cpu() -> u64 {
        let Ok(stat) = std::fs::read_to_string("/proc/thread-self/schedstat") else { return 0 };
        stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
    }
    each_flavor(|flavor| {
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let (_empty_tx, empty) = flavor.make::<u8>();
        let wait = 300 * MS;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let before = (Instant::now(), on_cpu());
                let sent = tx.send(100).timeout(wait).wait();
                if !flavor.has_limit() {
                    return assert_eq!(sent, Ok(()));
                }
                assert_eq!(sent, Err(SendError::TimedOut(100)));
                assert!(before.0.elapsed() >= wait, "never early");
                assert!(on_cpu() - before.1 < 10_000_000, "{} ns", on_cpu() - before.1);
            });
            let before = (Instant::now(), on_cpu());
            assert_eq!(empty.recv().timeout(wait).wait(), Err(RecvError::TimedOut));
            assert!(before.0.elapsed() >= wait, "never early");
            assert!(on_cpu() - before.1 < 10_000_000, "{} ns", on_cpu() - before.1);
        });
        drop(rx);
    });
}

/// CASE 11 (G1): a time-out in the same tick as a delivery, in both orders, with the task polled before or after: what was
/// received and what came back is what was sent.
#[test]
fn a_time_out_beside_a_delivery_loses_nothing() {
    let rounds = if cfg!(miri) { 40 } else { 10_000 };
    each_flavor(|flavor| {
        let ledger = Ledger::default();
        with_clock(|clock| {
            let mut rng = Rng(11);
            for round in 0..rounds {
                let (tx, rx) = flavor.make();
                let (timer_first, look) = (rng.below(2) == 0, rng.below(3) != 0);
                time_out_a_receive(flavor, clock, &ledger, (timer_first, look), (&tx, &rx));
                if round % 8 == 0 && flavor.has_limit() {
                    time_out_a_send(flavor, clock, &ledger, (timer_first, look), (&tx, &rx));
                }
                assert_eq!((tx.len(), clock.armed()), (0, 0));
            }
        });
        ledger.settled();
    });
}

type Halves<'h> = (&'h tidegate_channel::Sender<Counted>, &'h tidegate_channel::Receiver<Counted>);

fn time_out_a_receive(flavor: &Flavor, clock: &ManualClock, ledger: &Ledger, how: (bool, bool), (tx, rx): Halves<'_>) {
    let (timer_first, look) = how;
    let mut receive = Box::pin(rx.recv().timeout(MS));
    receive.parks();
    if timer_first {
        clock.advance(MS);
    }
    let sent = tx.try_send(ledger.value(7));
    assert_eq!(sent.is_ok(), !timer_first || flavor.capacity != 0, "handed over or buffered");
    if !timer_first {
        clock.advance(MS);
    }
    match (look, timer_first) {
        (false, _) => drop(receive),
        (true, true) => assert!(matches!(receive.ends(), Err(RecvError::TimedOut))),
        (true, false) => return assert!(receive.ends().unwrap() == 7),
    }
    match sent {
        Ok(()) => assert!(rx.try_recv().unwrap() == 7),
        Err(error) => assert!(error.into_inner() == 7),
    }
}

fn time_out_a_send(flavor: &Flavor, clock: &ManualClock, ledger: &Ledger, how: (bool, bool), (tx, rx): Halves<'_>) {
    let (timer_first, look) = how;
    flavor.fill(tx, |n| ledger.value(n));
    let mut send = Box::pin(tx.send(ledger.value(100)).timeout(MS));
    send.parks();
    if timer_first {
        clock.advance(MS);
    }
    let first = rx.try_recv();
    clock.advance(MS);
    if !timer_first {
        assert!(first.is_ok() && send.ends().is_ok());
    } else if look {
        assert!(matches!(send.ends(), Err(SendError::TimedOut(value)) if value == 100));
    }
    drop(send);
    let left = drain(rx).0.len() + usize::from(first.is_ok());
    assert_eq!(left, flavor.capacity + usize::from(!timer_first));
}

type Ended = Pin<Box<dyn Future<Output = &'static str>>>;

fn sending<F: Future<Output = Result<(), SendError<u8>>> + 'static>(send: F) -> Ended {
    Box::pin(async move {
        match send.await {
            Ok(()) => "sent",
            Err(SendError::TimedOut(1)) => "late",
            Err(SendError::Cancelled(1)) => "cancelled",
            Err(SendError::Closed(1)) => "closed",
            Err(_) => "wrong",
        }
    })
}

fn receiving<F: Future<Output = Result<u8, RecvError>> + 'static>(receive: F) -> Ended {
    Box::pin(async move {
        match receive.await {
            Ok(_) => "received",
            Err(RecvError::TimedOut) => "late",
            Err(RecvError::Cancelled) => "cancelled",
            Err(RecvError::Closed) => "closed",
            Err(_) => "wrong",
        }
    })
}

/// Both operations under limits in every combination and order: one in time after 2 ms, one after 3 ms, a token.
fn combinations(flavor: &Flavor, at: Instant, token: &CancelToken, full: bool) -> Vec<(&'static str, Ended)> {
    let t = || token.clone();
    let send = || {
        let (tx, rx) = flavor.make();
        if full {
            flavor.fill(&tx, |_| 0);
        }
        std::mem::forget(rx);
        tx.into_send(1)
    };
    let recv = || {
        let (tx, rx) = flavor.make::<u8>();
        std::mem::forget(tx);
        rx.into_recv()
    };
    vec![
        ("T", sending(send().timeout(2 * MS))),
        ("T", sending(send().deadline(at + 2 * MS))),
        ("T", sending(send().timeout(2 * MS).deadline(at + 3 * MS))),
        ("T", sending(send().timeout(3 * MS).deadline(at + 2 * MS))),
        ("C", sending(send().cancel_on_owned(t()))),
        ("TC", sending(send().cancel_on_owned(t()).timeout(2 * MS))),
        ("TC", sending(send().timeout(2 * MS).cancel_on_owned(t()))),
        ("TC", sending(send().timeout(3 * MS).cancel_on_owned(t()).deadline(at + 2 * MS))),
        ("TC", sending(send().cancel_on_owned(t().child()).timeout(2 * MS).cancel_on_owned(t()).timeout(3 * MS))),
        ("T", receiving(recv().timeout(2 * MS))),
        ("T", receiving(recv().deadline(at + 2 * MS))),
        ("T", receiving(recv().deadline(at + 3 * MS).timeout(2 * MS))),
        ("C", receiving(recv().cancel_on_owned(t()))),
        ("TC", receiving(recv().cancel_on_owned(t()).timeout(2 * MS))),
        ("TC", receiving(recv().timeout(2 * MS).cancel_on_owned(t()))),
        ("TC", receiving(recv().deadline(at + 2 * MS).cancel_on_owned(t()).deadline(at + 3 * MS))),
        ("TC", receiving(recv().cancel_on_owned(t().child()).timeout(3 * MS).cancel_on_owned(t()).timeout(2 * MS))),
    ]
}

/// On each flavor whose sends may wait, under a clock.
fn on_each(test: impl Fn(&Flavor, &ManualClock)) {
    each_flavor(|flavor| {
        if flavor.sends_wait() {
            with_clock(|clock| test(flavor, clock));
        }
    });
}

/// G6, G8: of several limits the earliest ends the operation, in whatever order they were put on; nothing stays armed.
#[test]
fn the_earliest_limit_wins_in_any_combination() {
    on_each(|flavor, clock| {
        for cancel_first in [true, false] {
            let token = CancelToken::new();
            let mut operations = combinations(flavor, clock.now(), &token, true);
            operations.iter_mut().for_each(|(_, operation)| operation.parks());
            clock.advance(MS);
            if cancel_first {
                token.cancel();
            }
            clock.advance(MS);
            if !cancel_first {
                token.cancel();
            }
            for (limits, operation) in &mut operations {
                let expected =
                    if limits.contains('C') && (cancel_first || *limits == "C") { "cancelled" } else { "late" };
                assert_eq!(operation.ends(), expected, "{limits}");
            }
            assert_eq!(clock.armed(), 0);
        }
    });
}

/// G8, G6: a token that is cancelled already wins at entry, before a possible success and before an expired limit.
#[test]
fn an_early_cancel_wins_in_any_combination() {
    on_each(|flavor, clock| {
        for full in [true, false] {
            let token = CancelToken::new();
            let operations = combinations(flavor, clock.now(), &token, full);
            token.cancel();
            clock.advance(4 * MS);
            for (limits, mut operation) in operations {
                if limits.contains('C') {
                    assert_eq!(operation.ends(), "cancelled", "{limits}");
                }
            }
        }
    });
}

/// G8: `withdraw` in every state gives the value back as long as nobody else has it, takes the operation out of every
/// list, and ends it.
#[test]
fn withdraw_in_every_state() {
    on_each(|flavor, clock| {
        let token = CancelToken::new();
        let (tx, rx) = flavor.make();
        let mut unpolled = Box::pin(tx.send(1).timeout(MS));
        assert_eq!((unpolled.as_mut().withdraw(), unpolled.as_mut().withdraw()), (Some(1), None));
        assert!(unpolled.look().is_pending());
        let mut receive = Box::pin(rx.recv());
        receive.parks();
        let mut sent = Box::pin(tx.send(2).timeout(MS));
        assert_eq!((sent.ends(), sent.as_mut().withdraw(), receive.ends()), (Ok(()), None, Ok(2)));
        flavor.fill(&tx, |n| 100 + n);
        let limited = |value| Box::pin(tx.send(value).timeout(MS).cancel_on(&token));
        let mut parked = limited(3);
        parked.parks();
        assert_eq!((parked.as_mut().withdraw(), clock.armed()), (Some(3), 0));
        let mut delivered = limited(4);
        delivered.parks();
        assert!(rx.try_recv().is_ok());
        assert_eq!((delivered.as_mut().withdraw(), clock.armed()), (None, 0));
        assert!(delivered.look().is_pending());
        let mut late = limited(5);
        late.parks();
        clock.advance(MS);
        assert_eq!(late.as_mut().withdraw(), Some(5));
        let mut cancelled = limited(6);
        cancelled.parks();
        token.cancel();
        assert_eq!((cancelled.as_mut().withdraw(), clock.armed()), (Some(6), 0));
        let mut closed = Box::pin(tx.send(7).timeout(MS));
        closed.parks();
        tx.close();
        assert_eq!((closed.as_mut().withdraw(), clock.armed()), (Some(7), 0));
        let mut again = Box::pin(tx.send(8));
        assert_eq!(again.ends(), Err(SendError::Closed(8)));
        assert_eq!(again.as_mut().withdraw(), None);
        let (left, end) = drain(&rx);
        assert_eq!((left.len(), left.last().copied()), (flavor.capacity, (flavor.capacity != 0).then_some(4)));
        assert_eq!(end, RecvError::Closed);
    });
}

/// G9: an operation that was polled under one clock and goes on under another keeps its deadline, also when the first
/// clock is gone: its wheel wakes it, and the next poll arms it elsewhere.
#[test]
fn a_limit_outlives_its_clock() {
    each_flavor(|flavor| {
        if !flavor.sends_wait() {
            return;
        }
        let (first, second) = (ManualClock::new(), ManualClock::new());
        let (tx, rx) = flavor.make();
        flavor.fill(&tx, |n| n);
        let (woken, waker) = Woken::new();
        let mut send = Box::pin(tx.send(100).timeout(Duration::from_secs(60)));
        let (_empty_tx, empty) = flavor.make::<u8>();
        let mut receive = Box::pin(empty.recv().timeout(Duration::from_secs(60)));
        first.enter(|| send.parks_with(&waker));
        first.enter(|| receive.parks_with(&waker));
        drop(first);
        assert_eq!(woken.count(), 2);
        second.enter(|| send.parks_with(&waker));
        second.enter(|| receive.parks_with(&waker));
        assert_eq!(second.armed(), 2);
        second.advance(Duration::from_secs(3600));
        assert_eq!(woken.count(), 4);
        assert!(matches!(send.look(), Poll::Ready(Err(SendError::TimedOut(100)))));
        assert!(matches!(receive.look(), Poll::Ready(Err(RecvError::TimedOut))));
        drop(rx);
    });
}
