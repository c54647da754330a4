//! Sleeps and the limits on them, in virtual time: G6, G8, G9, CASES 40 and 41.

mod support;

use std::pin::{pin, Pin};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use support::{poll, Woken};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::{sleep, sleep_until, timeout, timeout_at, Elapsed, ManualClock};
use tidegate_wait::wait_queue::{ParkError, WaitQueue};
use tidegate_wait::{Limit, Operation};

const MS: Duration = Duration::from_millis(1);
const NS: Duration = Duration::from_nanos(1);
/// A clock costs Miri seconds.
const CLOCKS: usize = if cfg!(miri) { 2 } else { usize::MAX };
const YEAR: Duration = Duration::from_secs(365 * 86_400);

fn in_virtual_time(f: impl FnOnce(&ManualClock)) {
    let clock = ManualClock::new();
    clock.enter(|| f(&clock));
}

/// G6: a relative sleep counts from its first poll, not from its making.
#[test]
fn g6_a_sleep_counts_from_its_first_poll() {
    in_virtual_time(|clock| {
        let mut nap = pin!(sleep(10 * MS));
        clock.advance(20 * MS);
        assert!(poll_once(nap.as_mut()).is_pending());
        clock.advance(10 * MS - NS);
        assert!(poll_once(nap.as_mut()).is_pending());
        clock.advance(NS);
        assert!(poll_once(nap.as_mut()).is_ready());
    });
}

/// G6, CASE 40: zero and past deadlines end at once, one after the other, whatever else is armed and was cancelled.
#[test]
fn case_40_zero_and_past_deadlines_end_at_once() {
    in_virtual_time(|clock| {
        let now = clock.now();
        clock.advance(100 * MS);
        for _ in 0..3 {
            assert!(poll_once(pin!(sleep(Duration::ZERO))).is_ready());
            assert!(poll_once(pin!(sleep_until(now))).is_ready());
            assert!(poll_once(pin!(sleep_until(now + MS))).is_ready());
            assert!(poll_once(pin!(sleep_until(clock.now()))).is_ready());
            assert!(poll_once(pin!(sleep_until(clock.now() + NS))).is_pending());
        }
        let long_ago = now.checked_sub(Duration::from_secs(1 << 20));
        assert!(poll_once(pin!(sleep_until(long_ago.unwrap_or(now)))).is_ready());
        assert_eq!(clock.armed(), 0);
    });
}

/// G6, CASE 40: `Duration::MAX` is for ever, on a sleep and as a limit, and nothing overflows.
#[test]
fn case_40_max_is_for_ever() {
    in_virtual_time(|clock| {
        let mut forever = pin!(sleep(Duration::MAX));
        let mut limited = pin!(sleep(Duration::MAX).timeout(Duration::MAX));
        let queue = WaitQueue::<()>::new();
        let mut park = pin!(queue.park().timeout(Duration::MAX));
        assert!(poll_once(forever.as_mut()).is_pending());
        assert!(poll_once(limited.as_mut()).is_pending());
        assert!(poll_once(park.as_mut()).is_pending());
        assert_eq!(clock.armed(), 0, "for ever needs no timer");
        assert!(!clock.advance_to_next());
        clock.advance(500 * YEAR);
        assert!(poll_once(forever.as_mut()).is_pending());
        assert!(poll_once(limited.as_mut()).is_pending());
        assert!(poll_once(park.as_mut()).is_pending());
        // Beyond what the clock can count.
        clock.advance(Duration::MAX);
        assert!(poll_once(forever.as_mut()).is_pending());
    });
}

/// G6: centuries ahead a timer is never early either. (Above 2^54 ns deadlines are kept in microseconds, rounded up.)
#[test]
fn g6_far_deadlines_are_not_early() {
    for years in [572, 20, 1, 200, 500, 569, 580].into_iter().take(CLOCKS) {
        in_virtual_time(|clock| {
            let mut nap = pin!(sleep(years * YEAR));
            assert!(poll_once(nap.as_mut()).is_pending());
            clock.advance(years * YEAR - NS);
            assert!(poll_once(nap.as_mut()).is_pending(), "{years}");
            clock.advance(Duration::from_micros(1));
            assert_eq!(poll_once(nap.as_mut()).is_ready(), years < 570, "{years}: beyond 570 is for ever");
        });
    }
}

/// G6: the sum of now and the time-out may be more than the clock can count.
#[test]
fn g6_overflowing_deadlines_do_not_panic() {
    in_virtual_time(|clock| {
        clock.advance(300 * YEAR);
        let mut nap = pin!(sleep(400 * YEAR));
        let mut limited = pin!(sleep(Duration::MAX).timeout(400 * YEAR));
        assert!(poll_once(nap.as_mut()).is_pending());
        assert!(poll_once(limited.as_mut()).is_pending());
        clock.advance(200 * YEAR);
        assert!(poll_once(nap.as_mut()).is_pending());
        assert!(poll_once(limited.as_mut()).is_pending());
    });
}

/// G6: the earlier of a sleep's own deadline and its limits ends it, and it says which; on a tie it has slept.
#[test]
fn g6_the_earlier_of_sleep_and_limit_wins() {
    for (own, limit, expected) in
        [(5, 5, Ok(())), (9, 5, Err(Limit::TimedOut)), (5, 9, Ok(())), (0, 0, Ok(())), (5, 0, Err(Limit::TimedOut))]
            .into_iter()
            .take(CLOCKS)
    {
        in_virtual_time(|clock| {
            let mut relative = pin!(sleep(own * MS).timeout(limit * MS));
            let mut absolute = pin!(sleep_until(clock.now() + own * MS).deadline(clock.now() + limit * MS));
            let end = own.min(limit);
            if end != 0 {
                assert!(poll_once(relative.as_mut()).is_pending());
                assert!(poll_once(absolute.as_mut()).is_pending());
                assert_eq!(clock.armed(), 2, "one entry each");
                clock.advance(end * MS - NS);
                assert!(poll_once(relative.as_mut()).is_pending());
                assert!(poll_once(absolute.as_mut()).is_pending());
                clock.advance(NS);
            }
            assert_eq!(poll_once(relative.as_mut()), Poll::Ready(expected), "{own} {limit}");
            assert_eq!(poll_once(absolute.as_mut()), Poll::Ready(expected), "{own} {limit}");
            assert_eq!(poll_once(relative.as_mut()), Poll::Ready(expected), "again (G9)");
            assert_eq!(clock.armed(), 0);
        });
    }
}

/// G6, G8: a token and a time-out in both orders; the first event wins.
#[test]
fn g8_token_and_timeout_in_both_orders() {
    in_virtual_time(|clock| {
        let token = CancelToken::new();
        {
            let mut a = pin!(sleep(9 * MS).timeout(5 * MS).cancel_on(&token));
            let mut b = pin!(sleep(9 * MS).cancel_on(&token).timeout(5 * MS));
            let mut c = pin!(sleep(5 * MS).cancel_on(&token).timeout(9 * MS));
            assert!(poll_once(a.as_mut()).is_pending());
            assert!(poll_once(b.as_mut()).is_pending());
            assert!(poll_once(c.as_mut()).is_pending());
            clock.advance(5 * MS);
            token.cancel();
            assert_eq!(poll_once(a.as_mut()), Poll::Ready(Err(Limit::TimedOut)));
            assert_eq!(poll_once(b.as_mut()), Poll::Ready(Err(Limit::TimedOut)));
            assert_eq!(poll_once(c.as_mut()), Poll::Ready(Ok(())));
        }
        let token = CancelToken::new();
        let mut a = pin!(sleep(9 * MS).timeout(5 * MS).cancel_on(&token));
        let mut b = pin!(sleep(9 * MS).cancel_on(&token).timeout(5 * MS));
        let (woken, waker) = Woken::new();
        assert!(poll(a.as_mut(), &waker).is_pending());
        assert!(poll(b.as_mut(), &waker).is_pending());
        clock.advance(4 * MS);
        token.cancel();
        assert_eq!(woken.count(), 2);
        assert_eq!(clock.armed(), 0, "a cancelled sleep stands in no wheel");
        clock.advance(9 * MS);
        assert_eq!(poll_once(a.as_mut()), Poll::Ready(Err(Limit::Cancelled)));
        assert_eq!(poll_once(b.as_mut()), Poll::Ready(Err(Limit::Cancelled)));
        // Cancelled already: wins at entry, even over what is due.
        assert_eq!(poll_once(pin!(sleep(Duration::ZERO).cancel_on(&token))), Poll::Ready(Err(Limit::Cancelled)));
        let both = sleep(Duration::ZERO).timeout(Duration::ZERO).cancel_on(&token);
        assert_eq!(poll_once(pin!(both)), Poll::Ready(Err(Limit::Cancelled)));
    });
}

/// G6: of several limits the earliest wins, wherever it stands among them.
#[test]
fn g6_the_earliest_of_six_limits_wins() {
    for first in (0..6).rev().take(CLOCKS) {
        in_virtual_time(|clock| {
            let limit = |n: usize| if n == first { 3 * MS } else { (10 + n as u32) * MS };
            let start = clock.now();
            let mut nap = pin!(sleep(9 * MS)
                .timeout(limit(0))
                .deadline(start + limit(1))
                .timeout(limit(2))
                .timeout(limit(3))
                .deadline(start + limit(4))
                .timeout(limit(5)));
            let queue = WaitQueue::<()>::new();
            let mut park = pin!(queue
                .park()
                .timeout(limit(0))
                .deadline(start + limit(1))
                .timeout(limit(2))
                .timeout(limit(3))
                .deadline(start + limit(4))
                .timeout(limit(5)));
            assert!(poll_once(nap.as_mut()).is_pending());
            assert!(poll_once(park.as_mut()).is_pending());
            assert_eq!(clock.armed(), 1 + 6);
            clock.advance(3 * MS - NS);
            assert!(poll_once(nap.as_mut()).is_pending());
            clock.advance(NS);
            assert_eq!(poll_once(nap.as_mut()), Poll::Ready(Err(Limit::TimedOut)));
            assert_eq!(poll_once(park.as_mut()), Poll::Ready(Err(ParkError::TimedOut)));
            assert_eq!(clock.armed(), 0, "an ended operation stands in no wheel");
        });
    }
}

/// G6: a limit that has passed means one try, also when limits that have not stand inside it or around it.
#[test]
fn g6_an_expired_limit_among_others_means_one_try() {
    in_virtual_time(|clock| {
        let past = clock.now();
        clock.advance(MS);
        let queue = WaitQueue::<()>::new();
        let timed_out = Poll::Ready(Err(Limit::TimedOut));
        assert_eq!(poll_once(pin!(sleep(MS).timeout(5 * MS).timeout(Duration::ZERO))), timed_out);
        assert_eq!(poll_once(pin!(sleep(MS).timeout(Duration::ZERO).timeout(5 * MS))), timed_out);
        assert_eq!(poll_once(pin!(sleep(MS).timeout(5 * MS).deadline(past))), timed_out);
        assert_eq!(poll_once(pin!(sleep(Duration::MAX).timeout(Duration::MAX).deadline(past))), timed_out);
        let slept = Poll::Ready(Ok(()));
        assert_eq!(poll_once(pin!(sleep_until(past).timeout(5 * MS).timeout(Duration::ZERO))), slept);
        assert_eq!(poll_once(pin!(sleep(Duration::ZERO).timeout(Duration::ZERO))), slept);
        let refused = Poll::Ready(Err(ParkError::TimedOut));
        assert_eq!(poll_once(pin!(queue.park().timeout(5 * MS).timeout(Duration::ZERO))), refused);
        assert_eq!(poll_once(pin!(queue.park().timeout(Duration::ZERO).deadline(past))), refused);
        assert_eq!(clock.armed(), 0);
        assert_eq!(queue.parked(), 0);
    });
}

/// G9, P3: an ended sleep says so again, and how, although the token has been cancelled since.
#[test]
fn g9_polled_after_its_end_a_sleep_says_the_same() {
    in_virtual_time(|clock| {
        let token = CancelToken::new();
        let past = clock.now();
        clock.advance(MS);
        let mut zero = pin!(sleep(Duration::ZERO).cancel_on(&token));
        let mut tried = pin!(sleep_until(past).timeout(Duration::ZERO).cancel_on(&token));
        let mut late = pin!(sleep(MS).timeout(Duration::ZERO).cancel_on(&token));
        let mut slept = pin!(sleep(MS).cancel_on(&token));
        assert!(poll_once(slept.as_mut()).is_pending());
        clock.advance(MS);
        for _ in 0..2 {
            assert_eq!(poll_once(zero.as_mut()), Poll::Ready(Ok(())));
            assert_eq!(poll_once(tried.as_mut()), Poll::Ready(Ok(())));
            assert_eq!(poll_once(late.as_mut()), Poll::Ready(Err(Limit::TimedOut)));
            assert_eq!(poll_once(slept.as_mut()), Poll::Ready(Ok(())));
            token.cancel();
        }
    });
}

/// G9, CASE 4: the waker of the latest poll is woken, once; spurious polls change nothing.
#[test]
fn case_4_the_waker_changes_between_polls() {
    in_virtual_time(|clock| {
        let queue = WaitQueue::<()>::new();
        let mut nap = pin!(sleep(5 * MS));
        let mut park = pin!(queue.park().timeout(5 * MS));
        let ((a, a_waker), (b, b_waker)) = (Woken::new(), Woken::new());
        for waker in [&a_waker, &a_waker, &b_waker, &b_waker] {
            assert!(poll(nap.as_mut(), waker).is_pending());
            assert!(poll(park.as_mut(), waker).is_pending());
            clock.advance(MS);
        }
        assert_eq!(clock.armed(), 2);
        clock.advance(MS);
        assert_eq!((a.count(), b.count()), (0, 2));
        assert!(poll(nap.as_mut(), &a_waker).is_ready());
        assert_eq!(poll(park.as_mut(), &a_waker), Poll::Ready(Err(ParkError::TimedOut)));
    });
}

/// G4's other half: dropping a sleep or a timed park that waits takes its timer out.
#[test]
fn g3_a_dropped_operation_leaves_the_wheel() {
    in_virtual_time(|clock| {
        let queue = WaitQueue::<()>::new();
        let mut sleeps: Vec<Pin<Box<_>>> = (0..10).map(|n| Box::pin(sleep(n % 3 * MS + NS))).collect();
        let mut parks: Vec<Pin<Box<_>>> = (0..10).map(|n| Box::pin(queue.park().timeout(n * MS + NS))).collect();
        for nap in &mut sleeps {
            assert!(poll_once(nap.as_mut()).is_pending());
        }
        for park in &mut parks {
            assert!(park.as_mut().enter());
        }
        assert_eq!(clock.armed(), 20);
        drop(sleeps.remove(4));
        drop(parks.remove(4));
        drop(sleeps.pop());
        assert_eq!(clock.armed(), 17);
        drop((sleeps, parks));
        assert_eq!((clock.armed(), queue.parked()), (0, 0));
        assert!(!clock.advance_to_next());
    });
}

/// G9, T3: a leaked sleep fires into memory that is still there.
#[test]
fn g9_a_forgotten_sleep_fires() {
    in_virtual_time(|clock| {
        let (woken, waker) = Woken::new();
        let mut nap = Box::pin(sleep(MS));
        assert!(poll(nap.as_mut(), &waker).is_pending());
        std::mem::forget(nap);
        clock.advance(MS);
        assert_eq!((woken.count(), clock.armed()), (1, 0));
    });
}

/// G9, T3, O3: a leaked park's timer holds the queue's memory after the queue's handle is gone, and gives it back: when
/// it fires, or when its wheel dies.
#[test]
fn g9_a_forgotten_timed_park_holds_its_queue() {
    for fires in [true, false] {
        let clock = ManualClock::new();
        clock.enter(|| {
            let queue = WaitQueue::<u64>::new();
            let (woken, waker) = Woken::new();
            for limit in [MS, 2 * MS] {
                let mut park = Box::pin(queue.park().timeout(limit).deadline(clock.now() + 3 * MS));
                assert!(poll(park.as_mut(), &waker).is_pending());
                std::mem::forget(park);
            }
            drop(queue);
            assert_eq!(woken.count(), 2, "the queue closed");
            assert_eq!(clock.armed(), 4);
            if fires {
                clock.advance(5 * MS);
                assert_eq!((clock.armed(), woken.count()), (0, 2));
            }
        });
        drop(clock);
    }
}

/// G6: `timeout` of any future: a value that is ready wins over a limit of zero; the limit counts from the first poll at
/// which the future is not ready.
#[test]
fn g6_timeout_of_any_future() {
    in_virtual_time(|clock| {
        assert_eq!(poll_once(pin!(timeout(Duration::ZERO, async { 7 }))), Poll::Ready(Ok(7)));
        assert_eq!(poll_once(pin!(timeout_at(clock.now(), async { 7 }))), Poll::Ready(Ok(7)));
        let never = || std::future::pending::<()>();
        assert!(matches!(poll_once(pin!(timeout(Duration::ZERO, never()))), Poll::Ready(Err(Elapsed { .. }))));
        assert!(matches!(poll_once(pin!(timeout_at(clock.now(), never()))), Poll::Ready(Err(Elapsed { .. }))));
        let mut limited = pin!(timeout(5 * MS, never()));
        let mut at = pin!(timeout_at(clock.now() + 15 * MS, never()));
        let mut max = pin!(timeout(Duration::MAX, never()));
        clock.advance(10 * MS);
        assert!(poll_once(limited.as_mut()).is_pending());
        assert!(poll_once(at.as_mut()).is_pending());
        assert!(poll_once(max.as_mut()).is_pending());
        clock.advance(5 * MS - NS);
        assert!(poll_once(limited.as_mut()).is_pending());
        assert!(poll_once(at.as_mut()).is_pending());
        clock.advance(NS);
        for _ in 0..2 {
            assert!(matches!(poll_once(limited.as_mut()), Poll::Ready(Err(Elapsed { .. }))));
            assert!(matches!(poll_once(at.as_mut()), Poll::Ready(Err(Elapsed { .. }))));
        }
        clock.advance(500 * YEAR);
        assert!(poll_once(max.as_mut()).is_pending());
        // A value that comes in the same step as the limit is taken.
        let queue = WaitQueue::<u64>::new();
        let mut tie = pin!(timeout(5 * MS, queue.park()));
        assert!(poll_once(tie.as_mut()).is_pending());
        clock.advance(5 * MS);
        assert_eq!(queue.hand_over(3), Ok(()));
        assert_eq!(poll_once(tie.as_mut()), Poll::Ready(Ok(Ok(Some(3)))));
    });
}

/// CASE 42's plain form: a timer is cancelled in the same turn in which it fires: by the waker of one before it.
#[test]
fn case_42_cancelled_in_the_turn_that_fires_it() {
    use std::sync::{Arc, Mutex};
    in_virtual_time(|clock| {
        let victims: Arc<Mutex<Vec<Pin<Box<tidegate_wait::timer::Sleep>>>>> = Arc::default();
        struct Killer(Arc<Mutex<Vec<Pin<Box<tidegate_wait::timer::Sleep>>>>>);
        impl std::task::Wake for Killer {
            fn wake(self: Arc<Self>) {
                let victims = std::mem::take(&mut *self.0.lock().expect("victims"));
                drop(victims);
            }
        }
        let mut nap = pin!(sleep(MS));
        assert!(poll(nap.as_mut(), &Waker::from(Arc::new(Killer(victims.clone())))).is_pending());
        for n in 0..if cfg!(miri) { 40 } else { 200 } {
            let mut victim = Box::pin(sleep(MS + n % 2 * NS));
            assert!(poll_once(victim.as_mut()).is_pending());
            victims.lock().expect("victims").push(victim);
        }
        clock.advance(MS + NS);
        assert!(poll_once(nap.as_mut()).is_ready());
        assert_eq!((clock.armed(), victims.lock().expect("victims").len()), (0, 0));
    });
}

/// G6: instants of a manual clock and of the system are on one axis.
#[test]
fn g6_a_manual_clock_starts_at_the_present() {
    let before = Instant::now();
    let clock = ManualClock::new();
    assert!(clock.now() >= before && clock.now() <= Instant::now());
    let start = clock.now();
    clock.advance_to(start + MS);
    clock.advance_to(start); // never back
    assert_eq!(clock.now(), start + MS);
}

/// G6: `advance_to_next` stops where something fires, and moves no further; an idle clock stays.
#[test]
fn g6_advance_to_next_stops_at_each_deadline() {
    in_virtual_time(|clock| {
        assert!(!clock.advance_to_next());
        let start = clock.now();
        let steps = [NS, MS, 7 * MS, Duration::from_secs(5), Duration::from_secs(86_400), YEAR / 2];
        let mut sleeps: Vec<_> = steps.iter().map(|&step| Box::pin(sleep(step))).collect();
        sleeps.iter_mut().for_each(|nap| assert!(poll_once(nap.as_mut()).is_pending()));
        for (nap, step) in sleeps.iter_mut().zip(steps) {
            assert!(poll_once(nap.as_mut()).is_pending());
            assert!(clock.advance_to_next());
            assert_eq!(clock.now(), start + step);
            assert!(poll_once(nap.as_mut()).is_ready());
        }
        let end = clock.now();
        assert!(!clock.advance_to_next());
        assert_eq!(clock.now(), end);
    });
}
