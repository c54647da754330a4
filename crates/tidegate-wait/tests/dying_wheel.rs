//! Wheels that die with timers in them, and their numbers, which are used again: T4, T5, G9.

mod support;

use std::pin::{pin, Pin};
use std::task::Poll;
use std::time::Duration;

use support::{poll, Woken};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::{block_on, poll_once};
use tidegate_wait::timer::{sleep, ManualClock};
use tidegate_wait::wait_queue::{ParkError, WaitQueue};
use tidegate_wait::{Limit, Operation};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// T5: what was armed on a clock that goes is roused, and arms again on the clock of whoever polls it next, with the
/// deadline it had.
#[test]
fn t5_roused_operations_arm_again_elsewhere() {
    let (old, new) = (ManualClock::new(), ManualClock::new());
    let queue = WaitQueue::<u64>::new();
    let (woken, waker) = Woken::new();
    let due = old.now() + HOUR;
    let mut nap = pin!(sleep(HOUR));
    let mut limited = pin!(sleep(2 * HOUR).timeout(HOUR));
    let mut park = pin!(queue.park().timeout(2 * HOUR).timeout(HOUR));
    let mut forever = pin!(sleep(Duration::MAX));
    old.enter(|| {
        assert!(poll(nap.as_mut(), &waker).is_pending());
        assert!(poll(limited.as_mut(), &waker).is_pending());
        assert!(poll(park.as_mut(), &waker).is_pending());
        assert!(poll(forever.as_mut(), &waker).is_pending());
    });
    assert_eq!(old.armed(), 4);
    drop(old);
    assert_eq!(woken.count(), 3, "each once, and for ever needs no wheel");
    new.enter(|| {
        for _ in 0..2 {
            assert!(poll(nap.as_mut(), &waker).is_pending());
            assert!(poll(limited.as_mut(), &waker).is_pending());
            assert!(poll(park.as_mut(), &waker).is_pending());
            assert!(poll(forever.as_mut(), &waker).is_pending());
        }
        assert_eq!((new.armed(), queue.parked()), (4, 1), "still in its place in the queue");
        new.advance_to(due - Duration::from_nanos(1));
        assert_eq!(woken.count(), 3);
        new.advance(Duration::from_nanos(1));
        assert_eq!(woken.count(), 6);
        assert!(poll_once(nap.as_mut()).is_ready());
        assert_eq!(poll_once(limited.as_mut()), Poll::Ready(Err(Limit::TimedOut)));
        assert_eq!(poll_once(park.as_mut()), Poll::Ready(Err(ParkError::TimedOut)));
    });
    assert_eq!(new.armed(), 0);
}

/// T5, G6: an operation whose time has come when it arms again is not forgotten: it ends, at the latest, when the new
/// wheel is turned, and its task is woken.
#[test]
fn t5_roused_too_late_it_ends() {
    let (old, new) = (ManualClock::new(), ManualClock::new());
    let queue = WaitQueue::<u64>::new();
    let (woken, waker) = Woken::new();
    let mut nap = pin!(sleep(MS));
    let mut limited = pin!(sleep(HOUR).timeout(MS));
    let mut park = pin!(queue.park().timeout(MS));
    old.enter(|| {
        assert!(poll(nap.as_mut(), &waker).is_pending());
        assert!(poll(limited.as_mut(), &waker).is_pending());
        assert!(poll(park.as_mut(), &waker).is_pending());
    });
    drop(old);
    assert_eq!(woken.count(), 3);
    new.advance(HOUR / 2);
    new.enter(|| {
        let _ = poll(nap.as_mut(), &waker);
        let _ = poll(limited.as_mut(), &waker);
        let _ = poll(park.as_mut(), &waker);
        new.advance(Duration::ZERO);
        assert_eq!((woken.count(), new.armed()), (6, 0));
        assert!(poll_once(nap.as_mut()).is_ready());
        assert_eq!(poll_once(limited.as_mut()), Poll::Ready(Err(Limit::TimedOut)));
        assert_eq!(poll_once(park.as_mut()), Poll::Ready(Err(ParkError::TimedOut)));
    });
}

/// T5, G6: the same with the driver's wheel as the next one: whoever waits is woken by it.
#[test]
#[cfg_attr(miri, ignore = "needs the real clock")]
fn t5_the_driver_takes_over() {
    let start = std::time::Instant::now();
    let old = ManualClock::new();
    let mut past = Box::pin(sleep(MS));
    let mut coming = Box::pin(sleep(100 * MS).timeout(HOUR));
    let queue = WaitQueue::<u64>::new();
    let mut park = Box::pin(queue.park().timeout(50 * MS));
    old.enter(|| {
        assert!(poll_once(past.as_mut()).is_pending());
        assert!(poll_once(coming.as_mut()).is_pending());
        assert!(poll_once(park.as_mut()).is_pending());
    });
    while start.elapsed() < 10 * MS {
        std::thread::yield_now();
    }
    drop(old);
    block_on(past);
    assert_eq!(block_on(park), Err(ParkError::TimedOut));
    assert!(start.elapsed() >= 50 * MS);
    assert_eq!(block_on(coming), Ok(()));
    assert!(start.elapsed() >= 100 * MS);
}

/// T4, T5: an operation that is dropped, delivered or cancelled after its wheel died, and after the wheel's number and
/// memory went to another one, touches nothing of it.
#[test]
fn t5_a_reborn_wheel_is_left_alone() {
    let queue = WaitQueue::<u64>::new();
    let token = CancelToken::new();
    let mut naps: Vec<Pin<Box<_>>> = Vec::new();
    let old = ManualClock::new();
    let (woken, waker) = Woken::new();
    let mut cancelled = pin!(sleep(HOUR).cancel_on(&token));
    let mut park = pin!(queue.park().timeout(HOUR));
    let mut refreshed = pin!(sleep(HOUR));
    old.enter(|| {
        for _ in 0..3 {
            let mut nap = Box::pin(sleep(HOUR));
            assert!(poll(nap.as_mut(), &waker).is_pending());
            naps.push(nap);
        }
        assert!(poll(cancelled.as_mut(), &waker).is_pending());
        assert!(poll(park.as_mut(), &waker).is_pending());
        assert!(poll(refreshed.as_mut(), &waker).is_pending());
    });
    drop(old);
    assert_eq!(woken.count(), 6);
    // Lowest number first: this is the old one's cell, unless another test was faster; then it shows nothing, and fails
    // in no way.
    let reborn = ManualClock::new();
    let mut stranger = pin!(sleep(HOUR));
    reborn.enter(|| assert!(poll_once(stranger.as_mut()).is_pending()));
    drop(naps.pop());
    assert_eq!(reborn.armed(), 1);
    token.cancel();
    assert_eq!(poll_once(cancelled.as_mut()), Poll::Ready(Err(Limit::Cancelled)));
    assert_eq!(queue.hand_over(7), Ok(()));
    assert_eq!(poll_once(park.as_mut()), Poll::Ready(Ok(Some(7))));
    assert_eq!(reborn.armed(), 1);
    reborn.enter(|| assert!(poll(refreshed.as_mut(), &waker).is_pending()));
    assert_eq!(reborn.armed(), 2);
    reborn.advance(2 * HOUR);
    assert!(poll_once(stranger.as_mut()).is_ready());
    assert!(poll_once(refreshed.as_mut()).is_ready());
    drop(naps);
    assert_eq!(reborn.armed(), 0);
}

/// T5: a wheel dies with more timers than one batch of wakers holds.
#[test]
fn t5_all_are_roused() {
    let clock = ManualClock::new();
    let queue = WaitQueue::<u64>::new();
    let count = if cfg!(miri) { 18 } else { 1_000 };
    let (woken, waker) = Woken::new();
    let mut naps: Vec<_> = (0..count).map(|n| Box::pin(sleep((1 + n) * (1 + n) * MS))).collect();
    let mut parks: Vec<_> = (0..count).map(|n| Box::pin(queue.park().timeout((1 + n) * MS))).collect();
    clock.enter(|| {
        for nap in &mut naps {
            assert!(poll(nap.as_mut(), &waker).is_pending());
        }
        for park in &mut parks {
            assert!(poll(park.as_mut(), &waker).is_pending());
        }
    });
    drop(clock);
    assert_eq!(woken.count(), 2 * count as usize);
    drop((naps, parks));
    assert_eq!(queue.parked(), 0);
}

/// T5, G9: a token that is cancelled, or a grant that comes, between the rousing and the next poll wins.
#[test]
fn t5_an_end_between_the_rousing_and_the_poll() {
    let clock = ManualClock::new();
    let queue = WaitQueue::<u64>::new();
    let token = CancelToken::new();
    let mut nap = pin!(sleep(HOUR).cancel_on(&token));
    let mut park = pin!(queue.park().timeout(HOUR));
    clock.enter(|| {
        assert!(poll_once(nap.as_mut()).is_pending());
        assert!(poll_once(park.as_mut()).is_pending());
    });
    drop(clock);
    token.cancel();
    assert_eq!(queue.hand_over(1), Ok(()));
    assert_eq!(poll_once(nap.as_mut()), Poll::Ready(Err(Limit::Cancelled)));
    assert_eq!(poll_once(park.as_mut()), Poll::Ready(Ok(Some(1))));
}
