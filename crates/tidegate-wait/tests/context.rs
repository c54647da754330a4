//! The hooks of a runtime: called for what happens, once, and only on threads that entered.

mod support;

use std::cell::RefCell;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use support::{poll, Woken};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::context::{enter, refill, Hooks, WaitInfo};
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::{sleep, ManualClock};
use tidegate_wait::wait_queue::WaitQueue;
use tidegate_wait::waiter::Kind;
use tidegate_wait::Operation;

const MS: Duration = Duration::from_millis(1);

#[derive(Default)]
struct Recorder {
    parks: RefCell<Vec<WaitInfo>>,
}

impl Hooks for Recorder {
    fn parked(&self, wait: WaitInfo) {
        self.parks.borrow_mut().push(wait);
    }
}

impl Recorder {
    fn kinds(&self) -> Vec<(Kind, &'static str)> {
        self.parks.borrow().iter().map(|wait| (wait.kind, wait.owner)).collect()
    }
}

/// DESIGN 5, the park hook: by every poll that leaves an operation parked, the first and all later ones, with the kind and
/// the name of what is waited for; not for what is done at once.
#[test]
fn what_stays_parked_is_reported() {
    let clock = ManualClock::new();
    let recorder = Recorder::default();
    let queue = WaitQueue::<()>::new();
    let token = CancelToken::new();
    enter(clock.wheel(), &recorder, || {
        let mut nap = pin!(sleep(MS));
        let mut limited = pin!(sleep(2 * MS).timeout(MS).cancel_on(&token));
        let mut park = pin!(queue.park().timeout(MS));
        let mut cancelled = pin!(token.cancelled());
        for round in 1..=3 {
            assert!(poll_once(nap.as_mut()).is_pending());
            assert!(poll_once(limited.as_mut()).is_pending());
            assert!(poll_once(park.as_mut()).is_pending());
            assert!(poll_once(cancelled.as_mut()).is_pending());
            let expected = [
                (Kind::Sleep, "sleep"),
                (Kind::Sleep, "sleep"),
                (Kind::Wait, "wait queue"),
                (Kind::Wait, "cancel token"),
            ];
            assert_eq!(recorder.kinds(), expected.repeat(round));
            assert!(recorder.parks.borrow()[4 * (round - 1)..].iter().all(|wait| wait.is_new == (round == 1)));
        }
        let parks = recorder.parks.borrow().clone();
        assert_eq!(parks[0].object, parks[1].object, "both wait for one wheel");
        assert_ne!(parks[2].object, parks[3].object);
        assert_eq!(parks[..4].iter().map(|wait| wait.is_limited).collect::<Vec<_>>(), [false, true, true, false]);
        assert!(poll_once(pin!(sleep(Duration::ZERO))).is_ready());
        assert!(poll_once(pin!(queue.park().timeout(Duration::ZERO))).is_ready());
        clock.advance(MS);
        assert!(poll_once(nap.as_mut()).is_ready());
        assert!(poll_once(park.as_mut()).is_ready());
        assert_eq!(recorder.parks.borrow().len(), 3 * 4);
    });
}

/// DESIGN 5, the budget hook: a poll without budget yields once, waking its own task, and has begun nothing; the next
/// one goes on.
#[test]
fn a_spent_budget_yields_once() {
    let clock = ManualClock::new();
    let recorder = Recorder::default();
    enter(clock.wheel(), &recorder, || {
        let (woken, waker) = Woken::new();
        refill(0);
        let mut due = pin!(sleep(Duration::ZERO));
        assert!(poll(due.as_mut(), &waker).is_pending());
        assert_eq!((woken.count(), clock.armed()), (1, 0));
        refill(1);
        assert!(poll(due.as_mut(), &waker).is_ready());
        // A relative sleep counts from the poll that parks.
        let mut nap = pin!(sleep(MS));
        assert!(poll(nap.as_mut(), &waker).is_pending());
        assert_eq!((woken.count(), clock.armed()), (2, 0));
        clock.advance(MS);
        refill(1);
        assert!(poll(nap.as_mut(), &waker).is_pending());
        assert_eq!((woken.count(), clock.armed()), (2, 1));
        // What waits and what has ended asks for no budget.
        assert!(poll(nap.as_mut(), &waker).is_pending());
        clock.advance(MS);
        assert!(poll(nap.as_mut(), &waker).is_ready());
        assert!(poll(nap.as_mut(), &waker).is_ready());
        assert_eq!(woken.count(), 3, "its end, and no yield");
        // G8: cancelled already wins, without budget, too.
        let token = CancelToken::new();
        token.cancel();
        assert!(poll(pin!(sleep(MS).cancel_on(&token)), &waker).is_ready());
        // As many as they like.
        refill(u32::MAX);
        (0..1000).for_each(|_| assert!(poll(pin!(sleep(Duration::ZERO)), &waker).is_ready()));
        refill(u32::MAX - 1);
        (0..1000).for_each(|_| assert!(poll(pin!(sleep(Duration::ZERO)), &waker).is_ready()));
    });
}

/// Nothing is called without entering: not on this thread before and after, not on others meanwhile, and a manual
/// clock that is entered inside keeps the hooks.
#[test]
fn hooks_are_the_threads_own() {
    let clock = ManualClock::new();
    let recorder = Recorder::default();
    let queue = WaitQueue::<()>::new();
    let park_here = || {
        let mut park = pin!(queue.park());
        poll_once(park.as_mut()).is_pending()
    };
    let elsewhere = || {
        std::thread::scope(|scope| scope.spawn(|| poll_once(pin!(queue.park())).is_pending()).join()).expect("a park")
    };
    assert!(park_here());
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        enter(clock.wheel(), &recorder, || {
            refill(0);
            assert!(elsewhere());
            assert_eq!(recorder.kinds().len(), 0);
            assert!(park_here(), "without budget");
            assert_eq!(recorder.kinds().len(), 0);
            refill(2);
            assert!(park_here());
            let other = ManualClock::new();
            other.enter(|| {
                let mut nap = pin!(sleep(MS));
                assert!(poll_once(nap.as_mut()).is_pending());
                assert_eq!((other.armed(), clock.armed()), (1, 0));
            });
            assert_eq!(recorder.kinds().len(), 2);
            assert!(park_here(), "what was spent there is spent here");
            refill(0);
            support::quiet_panic();
        })
    }));
    std::mem::forget(unwound.expect_err("it panics"));
    assert!(park_here());
    assert_eq!((queue.parked(), recorder.kinds().len()), (0, 3), "left again, on unwinding too");
}

/// G9: an operation that parked in one context may be polled and dropped in another.
#[test]
fn g9_operations_move_between_contexts() {
    let (a, b) = (ManualClock::new(), ManualClock::new());
    let mut nap = Box::pin(sleep(MS));
    assert!(a.enter(|| poll_once(nap.as_mut())).is_pending());
    assert!(b.enter(|| poll_once(nap.as_mut())).is_pending());
    assert_eq!((a.armed(), b.armed()), (1, 0));
    b.advance(MS);
    assert!(b.enter(|| poll_once(nap.as_mut())).is_pending());
    a.advance(MS);
    assert_eq!(b.enter(|| poll_once(nap.as_mut())), Poll::Ready(()));
    let mut nap = Box::pin(sleep(MS));
    assert!(a.enter(|| poll_once(nap.as_mut())).is_pending());
    std::thread::spawn(move || drop(nap)).join().expect("a drop");
    assert_eq!(a.armed(), 0);
}
