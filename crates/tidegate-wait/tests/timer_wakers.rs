//! Wakers that panic, and wakers that call back into timers, clocks and wheels from wake, clone and drop: G5, CASES 28
//! and 30.

mod support;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::{pin, Pin};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use support::{hooked, poll, quiet_panic, Hooks, Woken};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::{sleep, ManualClock, Sleep};
use tidegate_wait::wait_queue::{ParkError, WaitQueue};
use tidegate_wait::{Limit, Operation};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// Does it panic? The payload's destructor would, too.
fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).map_err(std::mem::forget).is_err()
}

type Hook = Box<dyn Fn() + Send + Sync>;

fn active(wake: Option<Hook>, clone: Option<Hook>, drop: Option<Hook>) -> Arc<Hooks> {
    let hooks = Arc::new(Hooks { wake, clone, drop, ..Hooks::default() });
    hooks.activate(true);
    hooks
}

/// G5, CASE 30: wakers that panic when they are woken strand nobody, in a turn, in a wheel's death and in a
/// cancellation, and the sleeps they belong to have ended.
#[test]
fn case_30_panicking_wakes_strand_nobody() {
    for end in ["turn", "death", "cancel"] {
        let hooks = active(Some(Box::new(quiet_panic)), None, None);
        let bad = hooked(&hooks);
        let (woken, good) = Woken::new();
        let token = CancelToken::new();
        let queue = WaitQueue::<u64>::new();
        let clock = ManualClock::new();
        let mut naps: Vec<_> = (0..40).map(|_| Box::pin(sleep(MS).cancel_on(&token))).collect();
        let mut parks: Vec<_> = (0..10).map(|_| Box::pin(queue.park().timeout(MS).cancel_on(&token))).collect();
        clock.enter(|| {
            for (n, nap) in naps.iter_mut().enumerate() {
                assert!(poll(nap.as_mut(), if n % 2 == 0 { &bad } else { &good }).is_pending());
            }
            for (n, park) in parks.iter_mut().enumerate() {
                assert!(poll(park.as_mut(), if n % 2 == 0 { &bad } else { &good }).is_pending());
            }
        });
        let (nap_end, park_end) = match end {
            "turn" => {
                clock.advance(MS);
                (Ok(()), ParkError::TimedOut)
            }
            "death" => {
                drop(clock);
                assert_eq!((woken.count(), hooks.wakes()), (25, 25), "{end}");
                continue;
            }
            _ => {
                token.cancel();
                (Err(Limit::Cancelled), ParkError::Cancelled)
            }
        };
        assert_eq!((woken.count(), hooks.wakes()), (25, 25), "{end}");
        for nap in &mut naps {
            assert_eq!(poll_once(nap.as_mut()), Poll::Ready(nap_end));
        }
        for park in &mut parks {
            assert_eq!(poll_once(park.as_mut()), Poll::Ready(Err(park_end)));
        }
        drop(bad);
        assert_eq!(hooks.alive(), 0, "no waker leaked, none dropped twice");
    }
}

/// G5: a waker whose clone panics makes the poll panic, and nothing else: the next poll goes on, at each of a sleep's
/// three clones (parking, another waker, arming again on another wheel).
#[test]
fn g5_a_panicking_clone_leaves_the_sleep_as_it_was() {
    let hooks = Arc::new(Hooks { clone: Some(Box::new(quiet_panic)), ..Hooks::default() });
    let bad = hooked(&hooks);
    let (woken, good) = Woken::new();
    let queue = WaitQueue::<u64>::new();
    let (first, second) = (ManualClock::new(), ManualClock::new());
    let mut nap = pin!(sleep(HOUR));
    let mut limited = pin!(sleep(2 * HOUR).timeout(HOUR));
    let mut park = pin!(queue.park().timeout(HOUR));
    let mut try_all = |waker: &Waker| {
        hooks.activate(true);
        for _ in 0..2 {
            assert!(panics(|| poll(nap.as_mut(), waker)));
            assert!(panics(|| poll(limited.as_mut(), waker)));
            assert!(panics(|| poll(park.as_mut(), waker)));
        }
        hooks.activate(false);
        assert!(poll(nap.as_mut(), &good).is_pending());
        assert!(poll(limited.as_mut(), &good).is_pending());
        assert!(poll(park.as_mut(), &good).is_pending());
    };
    first.enter(|| {
        try_all(&bad);
        assert_eq!(first.armed(), 3);
        try_all(&bad);
    });
    drop(first);
    assert_eq!(woken.count(), 3);
    second.enter(|| {
        try_all(&bad);
        assert_eq!(second.armed(), 3);
    });
    second.enter(|| {
        second.advance(2 * HOUR);
        assert_eq!(woken.count(), 6);
        assert!(poll_once(nap.as_mut()).is_ready());
        assert_eq!(poll_once(limited.as_mut()), Poll::Ready(Err(Limit::TimedOut)));
        assert_eq!(poll_once(park.as_mut()), Poll::Ready(Err(ParkError::TimedOut)));
    });
    drop(bad);
    assert_eq!(hooks.alive(), 0);
}

/// G5: a clone that panics while a roused sleep arms again: the first clone (to see the new waker) succeeds, the
/// second one does not. The sleep still ends as what it was armed as.
#[test]
fn g5_a_panicking_clone_while_arming_again() {
    let calls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = calls.clone();
    let hooks = active(
        None,
        Some(Box::new(move || {
            if counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 1 {
                quiet_panic();
            }
        })),
        None,
    );
    let bad = hooked(&hooks);
    for limited in [false, true] {
        let (first, second) = (ManualClock::new(), ManualClock::new());
        let (own, limit) = if limited { (2 * HOUR, HOUR) } else { (HOUR, 2 * HOUR) };
        let mut nap = pin!(sleep(own).timeout(limit));
        first.enter(|| assert!(poll_once(nap.as_mut()).is_pending()));
        drop(first);
        calls.store(0, std::sync::atomic::Ordering::SeqCst);
        second.enter(|| {
            assert!(panics(|| poll(nap.as_mut(), &bad)));
            let (woken, good) = Woken::new();
            assert!(poll(nap.as_mut(), &good).is_pending());
            assert_eq!(second.armed(), 1);
            second.advance(HOUR);
            assert_eq!(woken.count(), 1);
            let expected = if limited { Err(Limit::TimedOut) } else { Ok(()) };
            assert_eq!(poll_once(nap.as_mut()), Poll::Ready(expected));
        });
    }
    drop(bad);
    assert_eq!(hooks.alive(), 0);
}

/// G5: a waker whose drop panics: wherever a sleep lets go of one, the panic ends there.
#[test]
fn g5_panicking_drops_of_wakers_are_contained() {
    let hooks = active(None, None, Some(Box::new(quiet_panic)));
    let bad = std::mem::ManuallyDrop::new(hooked(&hooks));
    let clock = ManualClock::new();
    let queue = WaitQueue::<u64>::new();
    let token = CancelToken::new();
    clock.enter(|| {
        // Dropped while waiting.
        let mut nap = Box::pin(sleep(MS));
        assert!(poll(nap.as_mut(), &bad).is_pending());
        drop(nap);
        let mut park = Box::pin(queue.park().timeout(MS));
        assert!(poll(park.as_mut(), &bad).is_pending());
        drop(park);
        // Another waker.
        let mut nap = pin!(sleep(MS));
        assert!(poll(nap.as_mut(), &bad).is_pending());
        assert!(poll_once(nap.as_mut()).is_pending());
        // Never stored.
        assert!(poll(pin!(sleep(Duration::ZERO)), &bad).is_ready());
        // Cancelled on the way in.
        let mut late = pin!(sleep(MS).cancel_on(&token));
        assert!(poll(late.as_mut(), &bad).is_pending());
        token.cancel();
        assert!(poll(late.as_mut(), &bad).is_ready());
    });
    assert_eq!((clock.armed(), hooks.alive()), (0, 1));
}

/// What a hook of the re-entrant tests shares with the test.
#[derive(Default)]
struct Shared {
    clock: Mutex<Option<Arc<ManualClock>>>,
    spare: Mutex<Vec<Pin<Box<Sleep>>>>,
    deep: std::sync::atomic::AtomicUsize,
}

impl Shared {
    /// Makes, polls and drops sleeps, and moves the clock.
    fn meddle(&self) {
        use std::sync::atomic::Ordering::SeqCst;
        let Some(clock) = self.clock.lock().expect("clock").clone() else { return };
        if self.deep.fetch_add(1, SeqCst) < 3 {
            clock.enter(|| {
                let mut fresh = Box::pin(sleep(MS / 2));
                assert!(poll_once(fresh.as_mut()).is_pending());
                let mut kept = Box::pin(sleep(MS * 3));
                assert!(poll_once(kept.as_mut()).is_pending());
                let old = std::mem::replace(&mut *self.spare.lock().expect("spare"), vec![kept]);
                drop(old);
                clock.advance(MS / 4);
                // Wakers further in may have moved the clock as well.
                let _either = poll_once(fresh.as_mut());
                let mut due = Box::pin(sleep(MS / 8));
                assert!(poll_once(due.as_mut()).is_pending());
                clock.advance(MS / 8);
                assert!(poll_once(due.as_mut()).is_ready());
            });
        }
        self.deep.fetch_sub(1, SeqCst);
    }
}

/// G5, CASE 28: wakers that use the very wheel that woke, cloned or dropped them: no deadlock, and nothing is lost.
#[test]
fn case_28_wakers_that_meddle_with_the_wheel() {
    for which in 0..3 {
        let shared = Arc::new(Shared::default());
        let hook = |on: bool| -> Option<Hook> {
            let shared = shared.clone();
            on.then(|| Box::new(move || shared.meddle()) as Hook)
        };
        let hooks = active(hook(which == 0), hook(which == 1), hook(which == 2));
        let waker = hooked(&hooks);
        let clock = Arc::new(ManualClock::new());
        *shared.clock.lock().expect("clock") = Some(clock.clone());
        let queue = WaitQueue::<u64>::new();
        let count = if cfg!(miri) { 3 } else { 40 };
        let mut naps: Vec<_> = (0..count).map(|n| Box::pin(sleep((1 + n) * MS))).collect();
        let mut parks: Vec<_> = (0..count).map(|n| Box::pin(queue.park().timeout((1 + n) * MS))).collect();
        clock.enter(|| {
            for (nap, park) in naps.iter_mut().zip(&mut parks) {
                let _ = poll(nap.as_mut(), &waker);
                let _ = poll(park.as_mut(), &waker);
                let _ = poll_once(park.as_mut());
                let _ = poll(park.as_mut(), &waker);
            }
            drop(naps.pop());
            drop(parks.pop());
            for _ in 0..count {
                clock.advance(MS);
            }
            for nap in &mut naps {
                assert!(poll(nap.as_mut(), &waker).is_ready());
            }
            for park in &mut parks {
                assert_eq!(poll(park.as_mut(), &waker), Poll::Ready(Err(ParkError::TimedOut)));
            }
        });
        drop((naps, parks));
        shared.clock.lock().expect("clock").take();
        shared.spare.lock().expect("spare").clear();
        assert_eq!(clock.armed(), 0);
        drop(waker);
        assert_eq!(hooks.alive(), 0);
    }
}

/// G5: a waker that polls its own sleep anew each time it is woken: every turn of the clock fires it once.
#[test]
fn g5_a_waker_that_arms_anew() {
    struct Periodic {
        nap: Mutex<Option<Pin<Box<Sleep>>>>,
        rung: std::sync::atomic::AtomicUsize,
    }
    impl std::task::Wake for Periodic {
        fn wake(self: Arc<Self>) {
            self.rung.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let mut next = Box::pin(sleep(MS));
            assert!(poll(next.as_mut(), &Waker::from(self.clone())).is_pending());
            let old = self.nap.lock().expect("nap").replace(next);
            drop(old);
        }
    }
    let clock = ManualClock::new();
    let periodic = Arc::new(Periodic { nap: Mutex::new(None), rung: 0.into() });
    clock.enter(|| {
        Waker::from(periodic.clone()).wake();
        let start = clock.now();
        for n in 1..10_usize {
            assert!(clock.advance_to_next());
            assert_eq!((clock.now(), clock.armed()), (start + n as u32 * MS, 1));
            assert_eq!(periodic.rung.load(std::sync::atomic::Ordering::SeqCst), 1 + n);
        }
    });
    let last = periodic.nap.lock().expect("nap").take();
    drop(last);
    assert_eq!(clock.armed(), 0);
}
