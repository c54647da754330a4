//! Timers on several threads at once: what loom does not see (links and words that only a lock protects), Miri and
//! ThreadSanitizer do. CASE 42, T1, T2, T4.

mod support;

use std::pin::pin;
use std::sync::Barrier;
use std::time::Duration;

use support::{poll, Woken};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::{sleep, ManualClock};
use tidegate_wait::wait_queue::WaitQueue;
use tidegate_wait::Operation;

const MS: Duration = Duration::from_millis(1);
const ROUNDS: usize = if cfg!(miri) { 8 } else { 2_000 };

/// CASE 42, T4: fire ∥ drop ∥ cancel ∥ insert on one clock: the memory of each operation is the task's again when its
/// drop, or its end, has come back.
#[test]
fn case_42_fire_beside_drop_cancel_and_insert() {
    let clock = ManualClock::new();
    let queue = WaitQueue::<u64>::new();
    let barrier = Barrier::new(3);
    let tokens: Vec<_> = (0..ROUNDS).map(|_| CancelToken::new()).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                barrier.wait();
                clock.advance(MS);
                barrier.wait();
            }
        });
        scope.spawn(|| {
            for token in &tokens {
                barrier.wait();
                let _nobody = queue.hand_over(1);
                token.cancel();
                barrier.wait();
            }
        });
        clock.enter(|| {
            let (woken, waker) = Woken::new();
            for (n, token) in tokens.iter().enumerate() {
                let mut nap = Box::pin(sleep(MS).cancel_on(token));
                let mut park = Box::pin(queue.park().timeout(MS).cancel_on(token));
                let mut two = Box::pin(queue.park().timeout(MS).timeout(2 * MS));
                assert!(poll(nap.as_mut(), &waker).is_pending());
                assert!(poll(park.as_mut(), &waker).is_pending());
                assert!(poll(two.as_mut(), &waker).is_pending());
                barrier.wait();
                if n % 2 == 0 {
                    let _ = poll_once(nap.as_mut());
                    let _ = poll(park.as_mut(), &waker);
                    let _ = poll_once(two.as_mut());
                }
                drop(two);
                drop(park);
                drop(nap);
                let mut late = pin!(sleep(MS));
                let _ = poll(late.as_mut(), &waker);
                barrier.wait();
                // A grant that was passed on waits for the next.
                while poll_once(pin!(queue.park())).is_ready() {}
            }
            assert!(woken.count() <= 4 * ROUNDS);
        });
    });
    assert_eq!((clock.armed(), queue.parked()), (0, 0));
}

/// T5: a wheel dies beside threads that poll, and drop, what was armed on it.
#[test]
fn t5_a_wheel_dies_beside_its_operations() {
    let queue = WaitQueue::<u64>::new();
    let elsewhere = ManualClock::new();
    for n in 0..ROUNDS / 4 {
        let dying = ManualClock::new();
        let (_, waker) = Woken::new();
        let mut nap = Box::pin(sleep(MS));
        let mut park = Box::pin(queue.park().timeout(MS).timeout(2 * MS));
        dying.enter(|| {
            assert!(poll(nap.as_mut(), &waker).is_pending());
            assert!(poll(park.as_mut(), &waker).is_pending());
        });
        std::thread::scope(|scope| {
            scope.spawn(move || drop(dying));
            elsewhere.enter(|| {
                if n % 2 == 0 {
                    let _ = poll(nap.as_mut(), &waker);
                    let _ = poll_once(park.as_mut());
                }
                drop((nap, park));
            });
        });
        assert_eq!((elsewhere.armed(), queue.parked()), (0, 0));
    }
}
