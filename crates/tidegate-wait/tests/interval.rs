//! Intervals: no drift, three rules for missed ticks: G6, CASE 40.

use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tidegate_wait::op::poll_once;
use tidegate_wait::timer::{interval, interval_at, Interval, ManualClock, MissedTicks};

const MS: Duration = Duration::from_millis(1);
const NS: Duration = Duration::from_nanos(1);

fn in_virtual_time(f: impl FnOnce(&ManualClock)) {
    let clock = ManualClock::new();
    clock.enter(|| f(&clock));
}

fn tick(interval: &mut Interval) -> Option<Instant> {
    match poll_once(pin!(interval.tick())) {
        Poll::Ready(at) => Some(at),
        Poll::Pending => None,
    }
}

/// CASE 40: ticks come at multiples of the period, however late each is taken.
#[test]
fn case_40_ticks_do_not_drift() {
    in_virtual_time(|clock| {
        let start = clock.now();
        let mut beat = interval(10 * MS).expect("a period");
        assert_eq!(tick(&mut beat), Some(start));
        assert_eq!(tick(&mut beat), None);
        for n in 1..if cfg!(miri) { 5 } else { 500 } {
            let due = start + n * 10 * MS;
            clock.advance_to(due - NS);
            assert_eq!(tick(&mut beat), None);
            clock.advance(NS + n % 9 * MS);
            assert_eq!(tick(&mut beat), Some(due), "late by {} ms", n % 9);
            assert_eq!(tick(&mut beat), None);
        }
    });
}

/// G6: the three rules for ticks that nobody took.
#[test]
fn g6_missed_ticks() {
    for (rule, expected) in [
        // Missed at 10, 20 and 30; taken at 35.
        (MissedTicks::Burst, [10, 20, 30, 40]),
        (MissedTicks::Delay, [10, 45, 55, 65]),
        (MissedTicks::Skip, [10, 40, 50, 60]),
    ] {
        in_virtual_time(|clock| {
            let start = clock.now();
            let mut beat = interval(10 * MS).expect("a period").with_missed_ticks(rule);
            assert_eq!(tick(&mut beat), Some(start));
            clock.advance(35 * MS);
            for at in expected {
                let due = start + at * MS;
                if due > clock.now() {
                    clock.advance_to(due - NS);
                    assert_eq!(tick(&mut beat), None, "{rule:?} {at}");
                    clock.advance(NS);
                }
                assert_eq!(tick(&mut beat), Some(due), "{rule:?} {at}");
            }
            assert_eq!(tick(&mut beat), None);
        });
    }
}

/// G6: a tick taken exactly when the next one is due has missed it, under every rule the next comes no later.
#[test]
fn g6_a_tick_taken_a_whole_period_late() {
    for (rule, next) in [(MissedTicks::Burst, 20), (MissedTicks::Delay, 30), (MissedTicks::Skip, 30)] {
        in_virtual_time(|clock| {
            let start = clock.now();
            let mut beat = interval(10 * MS).expect("a period").with_missed_ticks(rule);
            assert!(tick(&mut beat).is_some());
            clock.advance(20 * MS);
            assert_eq!(tick(&mut beat), Some(start + 10 * MS));
            clock.advance_to(start + next * MS);
            assert_eq!(tick(&mut beat), Some(start + next * MS), "{rule:?}");
        });
    }
}

/// CASE 40: a period of zero is refused; one of `Duration::MAX` ticks once, and never again, without a panic.
#[test]
fn case_40_zero_and_endless_periods() {
    assert!(interval(Duration::ZERO).is_err());
    assert!(interval_at(Instant::now(), Duration::ZERO).is_err());
    for rule in [MissedTicks::Burst, MissedTicks::Delay, MissedTicks::Skip] {
        in_virtual_time(|clock| {
            let mut beat = interval(Duration::MAX).expect("a period").with_missed_ticks(rule);
            assert_eq!(beat.period(), Duration::MAX);
            assert!(tick(&mut beat).is_some());
            assert_eq!(tick(&mut beat), None);
            clock.advance(Duration::from_secs(400 * 365 * 86_400));
            assert_eq!(tick(&mut beat), None);
            beat.reset();
            assert_eq!(tick(&mut beat), None);
            assert_eq!(clock.armed(), 0);
        });
    }
}

/// G6: `interval_at` begins at its start; `reset` begins anew a whole period from now.
#[test]
fn g6_start_and_reset() {
    in_virtual_time(|clock| {
        let start = clock.now() + 3 * MS;
        let mut beat = interval_at(start, 10 * MS).expect("a period");
        assert_eq!(beat.period(), 10 * MS);
        assert_eq!(tick(&mut beat), None);
        clock.advance(3 * MS);
        assert_eq!(tick(&mut beat), Some(start));
        clock.advance(4 * MS);
        beat.reset();
        clock.advance(10 * MS - NS);
        assert_eq!(tick(&mut beat), None);
        clock.advance(NS);
        assert_eq!(tick(&mut beat), Some(start + 14 * MS));
    });
}

/// A tick that is dropped is not taken; one that was taken is not given again (G9: polls after completion).
#[test]
fn g9_dropped_and_overpolled_ticks() {
    in_virtual_time(|clock| {
        let start = clock.now();
        let mut beat = interval(10 * MS).expect("a period");
        drop(beat.tick());
        assert_eq!(tick(&mut beat), Some(start));
        assert_eq!(tick(&mut beat), None);
        assert_eq!(clock.armed(), 0, "the dropped tick has left the wheel");
        clock.advance(10 * MS);
        {
            let mut taken = pin!(beat.tick());
            assert_eq!(poll_once(taken.as_mut()), Poll::Ready(start + 10 * MS));
            assert_eq!(poll_once(taken.as_mut()), Poll::Pending);
            assert_eq!(poll_once(taken.as_mut()), Poll::Pending);
        }
        assert_eq!(tick(&mut beat), None, "the next one was not taken early");
        clock.advance(10 * MS);
        assert_eq!(tick(&mut beat), Some(start + 20 * MS));
    });
}
