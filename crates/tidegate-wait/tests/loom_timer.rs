//! Model checks of timers: a wheel that fires beside everything that may happen to an operation. CASE 42, G1, T1 to T5.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p tidegate-wait --test loom_timer`
#![cfg(loom)]

use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use loom::sync::Arc;
use loom::thread;
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::{sleep, sleep_until, ManualClock};
use tidegate_wait::wait_queue::{ParkError, WaitQueue};
use tidegate_wait::{Limit, Operation};

const MS: Duration = Duration::from_millis(1);

/// Counts its wakes; not one of loom's objects, so it adds no interleavings.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Woken {
    fn new() -> (std::sync::Arc<Woken>, Waker) {
        let woken = std::sync::Arc::new(Woken::default());
        (woken.clone(), Waker::from(woken))
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

fn turner(clock: &Arc<ManualClock>) -> thread::JoinHandle<()> {
    let clock = clock.clone();
    thread::spawn(move || clock.advance(MS))
}

/// CASE 42: fire ∥ insert, poll with another waker. A sleep that is pending after its last poll wakes the waker of that
/// poll, once: also if the clock moved between its look at the clock and its arming.
#[test]
fn case_42_fire_and_arm_and_poll() {
    for first in [true, false] {
        loom::model(move || {
            let clock = Arc::new(ManualClock::new());
            let mut nap = pin!(sleep_until(clock.now() + MS));
            let ((_, a), (b_woken, b)) = (Woken::new(), Woken::new());
            clock.enter(|| {
                let turner = turner(&clock);
                let ready = (first && poll(nap.as_mut(), &a).is_ready()) || poll(nap.as_mut(), &b).is_ready();
                turner.join().unwrap();
                assert_eq!(b_woken.count(), usize::from(!ready));
                assert!(poll(nap.as_mut(), &b).is_ready());
                assert_eq!(clock.armed(), 0);
            });
        });
    }
}

/// CASE 42: the same for the limit of a park.
#[test]
fn case_42_fire_and_arm_and_poll_a_park() {
    loom::model(|| {
        let clock = Arc::new(ManualClock::new());
        let queue = WaitQueue::<u32>::new();
        let mut park = pin!(queue.park().deadline(clock.now() + MS));
        let (woken, waker) = Woken::new();
        clock.enter(|| {
            let turner = turner(&clock);
            let first = poll(park.as_mut(), &waker);
            turner.join().unwrap();
            if first.is_pending() {
                assert_eq!(woken.count(), 1);
            }
            assert_eq!(poll(park.as_mut(), &waker), Poll::Ready(Err(ParkError::TimedOut)));
            assert_eq!((clock.armed(), queue.parked()), (0, 0));
        });
    });
}

/// CASE 42, T4: fire ∥ drop, of a sleep and of a timed park with two timers.
#[test]
fn case_42_fire_and_drop() {
    for which in [0, 1] {
        loom::model(move || {
            let clock = Arc::new(ManualClock::new());
            let queue = WaitQueue::<u32>::new();
            let (woken, waker) = Woken::new();
            clock.enter(|| {
                let mut nap = Box::pin(sleep(MS));
                let mut park = Box::pin(queue.park().timeout(MS).timeout(MS));
                match which {
                    0 => assert!(poll(nap.as_mut(), &waker).is_pending()),
                    _ => assert!(poll(park.as_mut(), &waker).is_pending()),
                }
                let turner = turner(&clock);
                drop(nap);
                drop(park);
                turner.join().unwrap();
                assert!(woken.count() <= 1);
                assert_eq!((clock.armed(), queue.parked()), (0, 0));
            });
        });
    }
}

/// G1: fire ∥ hand over ∥ (a poll with another waker): one of them wins, and the grant is received or refused.
#[test]
fn g1_fire_and_hand_over() {
    loom::model(|| {
        let clock = Arc::new(ManualClock::new());
        let queue = Arc::new(WaitQueue::<u32>::new());
        clock.enter(|| {
            let mut park = pin!(queue.park().timeout(MS));
            let ((_, a), (b_woken, b)) = (Woken::new(), Woken::new());
            assert!(poll(park.as_mut(), &a).is_pending());
            let turner = turner(&clock);
            let giver = {
                let queue = queue.clone();
                thread::spawn(move || queue.hand_over(7).is_ok())
            };
            let early = poll(park.as_mut(), &b);
            turner.join().unwrap();
            let given = giver.join().unwrap();
            let end = match early {
                Poll::Ready(end) => end,
                Poll::Pending => {
                    assert_eq!(b_woken.count(), 1);
                    match poll(park.as_mut(), &b) {
                        Poll::Ready(end) => end,
                        Poll::Pending => panic!("nobody ended the wait"),
                    }
                }
            };
            assert_eq!(end, if given { Ok(Some(7)) } else { Err(ParkError::TimedOut) });
            assert_eq!((clock.armed(), queue.parked()), (0, 0));
        });
    });
}

/// G1, T4: fire ∥ hand over ∥ drop: what was handed over goes on to the next.
#[test]
fn g1_fire_and_hand_over_and_drop() {
    loom::model(|| {
        let clock = Arc::new(ManualClock::new());
        let queue = Arc::new(WaitQueue::<u32>::new());
        clock.enter(|| {
            let mut park = Box::pin(queue.park().timeout(MS));
            assert!(poll_once(park.as_mut()).is_pending());
            let turner = turner(&clock);
            let giver = {
                let queue = queue.clone();
                thread::spawn(move || queue.hand_over(7).is_ok())
            };
            drop(park);
            turner.join().unwrap();
            let given = giver.join().unwrap();
            let mut next = pin!(queue.park());
            let expected = if given { Poll::Ready(Ok(Some(7))) } else { Poll::Pending };
            assert_eq!(poll_once(next.as_mut()), expected);
            assert_eq!(clock.armed(), 0);
        });
    });
}

/// G8: fire ∥ cancel, of a sleep and of a park, with the entries in both orders.
#[test]
fn g8_fire_and_cancel() {
    for sleeps in [true, false] {
        loom::model(move || {
            let clock = Arc::new(ManualClock::new());
            let queue = WaitQueue::<u32>::new();
            let token = CancelToken::new();
            clock.enter(|| {
                let mut nap = pin!(sleep(MS).cancel_on(&token));
                let mut park = pin!(queue.park().timeout(MS).cancel_on(&token));
                let (woken, waker) = Woken::new();
                match sleeps {
                    true => assert!(poll(nap.as_mut(), &waker).is_pending()),
                    false => assert!(poll(park.as_mut(), &waker).is_pending()),
                }
                let turner = turner(&clock);
                token.cancel();
                turner.join().unwrap();
                assert_eq!(woken.count(), 1);
                match sleeps {
                    true => {
                        let end = poll(nap.as_mut(), &waker);
                        assert!(matches!(end, Poll::Ready(Ok(()) | Err(Limit::Cancelled))), "{end:?}");
                        assert_eq!(poll(nap.as_mut(), &waker), end);
                    }
                    false => {
                        let end = poll(park.as_mut(), &waker);
                        let ends = [ParkError::TimedOut, ParkError::Cancelled].map(|end| Poll::Ready(Err(end)));
                        assert!(ends.contains(&end), "{end:?}");
                    }
                }
                assert_eq!((clock.armed(), queue.parked()), (0, 0));
            });
        });
    }
}

/// T2: two threads turn one wheel while a third polls: each timer fires once.
#[test]
fn t2_two_threads_turn_one_wheel() {
    loom::model(|| {
        let clock = Arc::new(ManualClock::new());
        clock.enter(|| {
            let mut naps = [Box::pin(sleep(MS)), Box::pin(sleep(2 * MS))];
            let (woken, waker) = Woken::new();
            for nap in &mut naps {
                assert!(poll(nap.as_mut(), &waker).is_pending());
            }
            let turners = [turner(&clock), turner(&clock)];
            let _either = poll(naps[0].as_mut(), &waker);
            for turner in turners {
                turner.join().unwrap();
            }
            // The two steps add up.
            assert_eq!((woken.count(), clock.armed()), (2, 0));
            for nap in &mut naps {
                assert!(poll(nap.as_mut(), &waker).is_ready());
            }
        });
    });
}

/// CASE 42, H4: fire ∥ insert ∥ drop in one slot: a neighbour in the list comes and goes while the wheel fires.
#[test]
fn case_42_fire_and_insert_and_drop() {
    loom::model(|| {
        let clock = Arc::new(ManualClock::new());
        let start = clock.now();
        clock.enter(|| {
            let mut nap = Box::pin(sleep(MS));
            let (woken, waker) = Woken::new();
            assert!(poll(nap.as_mut(), &waker).is_pending());
            let turner = turner(&clock);
            let other = {
                let clock = clock.clone();
                thread::spawn(move || {
                    clock.enter(|| {
                        let (woken, waker) = Woken::new();
                        let mut neighbour = Box::pin(sleep_until(start + MS));
                        let ready = poll(neighbour.as_mut(), &waker).is_ready();
                        drop(neighbour);
                        assert!(!ready || woken.count() == 0);
                    });
                })
            };
            turner.join().unwrap();
            other.join().unwrap();
            assert_eq!((woken.count(), clock.armed()), (1, 0));
            assert!(poll(nap.as_mut(), &waker).is_ready());
        });
    });
}
