//! The wait queue: who is woken, what becomes of grants, and what wakers and destructors may do to it.

mod support;

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use support::{hooked, poll, quiet_panic, Counted, Hooks, Ledger, Rng, Woken};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::ManualClock;
use tidegate_wait::wait_queue::{Park, ParkError, WaitQueue};
use tidegate_wait::Operation;

type Boxed<'q, G> = Pin<Box<Park<'q, G>>>;

fn parked<G>(queue: &WaitQueue<G>, n: usize) -> Vec<Boxed<'_, G>> {
    let parks: Vec<_> = (0..n)
        .map(|_| {
            let mut park = Box::pin(queue.park());
            assert!(park.as_mut().enter());
            park
        })
        .collect();
    parks
}

fn end<F: std::future::Future>(park: &mut Pin<Box<F>>) -> Poll<F::Output> {
    poll_once(park.as_mut())
}

// ---- who is woken ----------------------------------------------------------------------------------------------------

#[test]
fn wakes_in_the_order_of_parking() {
    // G2.
    let queue = WaitQueue::<usize>::new();
    let mut parks = parked(&queue, 5);
    assert_eq!(queue.parked(), 5);
    for i in 0..5 {
        assert_eq!(queue.hand_over(i), Ok(()));
    }
    assert_eq!(queue.hand_over(9), Err(9));
    for (i, park) in parks.iter_mut().enumerate() {
        assert_eq!(end(park), Poll::Ready(Ok(Some(i))));
    }
}

#[test]
fn wakes_the_number_asked_for() {
    let queue = WaitQueue::new();
    assert!(!queue.wake_one());
    let mut parks = parked(&queue, 5);
    assert!(queue.wake_one());
    assert_eq!(queue.wake_n(2), 2);
    assert_eq!(queue.wake_n(0), 0);
    assert_eq!(queue.parked(), 2);
    assert_eq!(queue.wake_n(usize::MAX), 2);
    for park in &mut parks {
        assert_eq!(end(park), Poll::Ready(Ok(Some(()))));
    }
}

#[test]
fn wake_all_wakes_those_present_without_a_grant() {
    let queue = WaitQueue::<u32>::new();
    let n = if cfg!(miri) { 34 } else { 100 };
    let mut parks = parked(&queue, n);
    assert_eq!(queue.wake_all(), n);
    assert_eq!(queue.wake_all(), 0);
    let mut late = parked(&queue, 1);
    drop(parks.pop());
    assert!(end(&mut late[0]).is_pending(), "a wake without a grant is not passed on");
    for park in &mut parks {
        assert_eq!(end(park), Poll::Ready(Ok(None)));
        assert!(end(park).is_pending(), "P3");
    }
}

#[test]
fn wake_all_does_not_wake_who_parks_meanwhile() {
    // Each waker parks another one while the batches of `wake_all` and of `close` run.
    let queue = Arc::new(WaitQueue::<u32>::new());
    let late: Arc<Mutex<Vec<Boxed<'static, u32>>>> = Arc::default();
    // SAFETY: `late` is emptied before the queue goes.
    let of_test: &'static WaitQueue<u32> = unsafe { &*Arc::as_ptr(&queue) };
    let into = late.clone();
    let hooks = Arc::new(Hooks {
        wake: Some(Box::new(move || {
            let mut park = Box::pin(of_test.park());
            if park.as_mut().enter() {
                into.lock().unwrap().push(park);
            }
        })),
        ..Hooks::default()
    });
    hooks.activate(true);
    let mut parks: Vec<_> = (0..70).map(|_| Box::pin(queue.park())).collect();
    for park in &mut parks {
        assert!(poll(park.as_mut(), &hooked(&hooks)).is_pending());
    }
    assert_eq!(queue.wake_all(), 70);
    assert_eq!((queue.parked(), late.lock().unwrap().len()), (70, 70));
    for park in late.lock().unwrap().iter_mut() {
        assert!(end(park).is_pending());
    }
    // After a close nobody parks (Q3), not even from a waker that the close wakes.
    for park in late.lock().unwrap().iter_mut() {
        assert!(poll(park.as_mut(), &hooked(&hooks)).is_pending());
    }
    queue.close();
    assert_eq!((queue.parked(), late.lock().unwrap().len()), (0, 70));
    late.lock().unwrap().clear();
}

#[test]
fn cancelled_while_wake_all_is_under_way() {
    // The waker of the first drops others: those of the same batch, of the next, and one that parked later.
    let queue = WaitQueue::<u32>::new();
    let parks: RefCell<Vec<Option<Boxed<'_, u32>>>> = RefCell::new(Vec::new());
    struct Cell<'a>(RefCell<&'a (dyn Fn() + 'a)>);
    // SAFETY: this test has one thread.
    unsafe impl Send for Cell<'_> {}
    // SAFETY: as above.
    unsafe impl Sync for Cell<'_> {}
    let drop_some = || {
        for i in [5, 40, 69, 99] {
            let gone = parks.borrow_mut()[i].take();
            drop(gone);
        }
    };
    let cell = Cell(RefCell::new(&drop_some));
    // SAFETY: the hook is inactive before `drop_some` goes.
    let cell: Cell<'static> = unsafe { std::mem::transmute(cell) };
    let hooks = Arc::new(Hooks {
        wake: Some(Box::new(move || {
            let cell = &cell;
            (cell.0.borrow())();
        })),
        ..Hooks::default()
    });
    hooks.activate(true);
    let waker = hooked(&hooks);
    for i in 0..100 {
        let mut park = Box::pin(queue.park());
        if i == 0 {
            assert!(poll(park.as_mut(), &waker).is_pending());
        } else {
            assert!(park.as_mut().enter());
        }
        parks.borrow_mut().push(Some(park));
    }
    // 5 is in the first batch: its end was stored before its drop, so it counts.
    assert_eq!(queue.wake_all(), 97);
    hooks.activate(false);
    assert_eq!(queue.parked(), 0);
    for park in parks.borrow_mut().iter_mut().flatten() {
        assert_eq!(end(park), Poll::Ready(Ok(None)));
    }
}

#[test]
fn close_ends_everything_once_and_for_all() {
    // G7; CASE 21.
    let queue = WaitQueue::<u32>::new();
    let n = if cfg!(miri) { 34 } else { 50 };
    let mut parks = parked(&queue, n);
    let (woken, waker) = Woken::new();
    for park in &mut parks {
        assert!(poll(park.as_mut(), &waker).is_pending());
    }
    assert!(!queue.is_closed());
    queue.close();
    queue.close();
    assert!(queue.is_closed());
    assert_eq!(woken.count(), n);
    for park in &mut parks {
        for _ in 0..3 {
            assert_eq!(end(park), Poll::Ready(Err(ParkError::Closed)), "said again and again (P3)");
        }
    }
    let mut late = Box::pin(queue.park());
    assert!(!late.as_mut().enter());
    assert_eq!(end(&mut late), Poll::Ready(Err(ParkError::Closed)));
    assert_eq!(queue.park().timeout(Duration::ZERO).wait(), Err(ParkError::Closed));
    assert_eq!(queue.hand_over(1), Err(1));
    assert!(format!("{queue:?} {late:?}").contains("closed: true"));
}

// ---- grants ----------------------------------------------------------------------------------------------------------

#[test]
fn a_grant_outlives_the_operation_it_was_handed_to() {
    // G1; CASE 1: park A, B; hand over; drop A unpolled: B completes.
    let queue = WaitQueue::<u32>::new();
    let (mut a, mut b) = (Box::pin(queue.park()), Box::pin(queue.park()));
    let ((_, waker_a), (woken_b, waker_b)) = (Woken::new(), Woken::new());
    assert!(poll(a.as_mut(), &waker_a).is_pending());
    assert!(poll(b.as_mut(), &waker_b).is_pending());
    queue.hand_over(7).unwrap();
    assert_eq!(woken_b.count(), 0);
    drop(a);
    assert_eq!(woken_b.count(), 1);
    assert_eq!(end(&mut b), Poll::Ready(Ok(Some(7))));
}

#[test]
fn a_granted_operation_that_is_never_polled_blocks_nobody() {
    // CASES 2, 3: two hand-overs; the first operation is never looked at, or is leaked.
    for leak in [false, true] {
        let queue = WaitQueue::<u32>::new();
        let mut parks = parked(&queue, 3);
        queue.hand_over(1).unwrap();
        queue.hand_over(2).unwrap();
        if leak {
            std::mem::forget(parks.remove(0));
        } else {
            parks.rotate_left(1);
        }
        assert_eq!(end(&mut parks[0]), Poll::Ready(Ok(Some(2))));
        queue.hand_over(3).unwrap();
        assert_eq!(end(&mut parks[1]), Poll::Ready(Ok(Some(3))));
    }
}

#[test]
fn a_cancelled_waiter_absorbs_no_wake() {
    // CASE 4, with a limit in time, a token and a drop: the grant goes to the next one in line.
    let clock = ManualClock::new();
    clock.enter(|| {
        let (queue, token) = (WaitQueue::<u32>::new(), CancelToken::new());
        let mut timed = Box::pin(queue.park().timeout(Duration::from_millis(1)));
        let mut cancelled = Box::pin(queue.park().cancel_on(&token));
        let mut dropped = Box::pin(queue.park());
        let mut last = Box::pin(queue.park());
        assert!(timed.as_mut().enter() && cancelled.as_mut().enter());
        assert!(dropped.as_mut().enter() && last.as_mut().enter());
        clock.advance(Duration::from_millis(1));
        token.cancel();
        drop(dropped);
        assert_eq!(queue.parked(), 1);
        queue.hand_over(5).unwrap();
        assert_eq!(end(&mut timed), Poll::Ready(Err(ParkError::TimedOut)));
        assert_eq!(end(&mut cancelled), Poll::Ready(Err(ParkError::Cancelled)));
        assert_eq!(end(&mut last), Poll::Ready(Ok(Some(5))));
    });
}

#[test]
fn the_first_event_wins() {
    // G8: granted, then cancelled or out of time; the grant stays. And the other way round.
    let clock = ManualClock::new();
    clock.enter(|| {
        let (queue, token) = (WaitQueue::<u32>::new(), CancelToken::new());
        let park = || Box::pin(queue.park().timeout(Duration::from_millis(1)).cancel_on(&token));
        let (mut first, mut second) = (park(), park());
        assert!(first.as_mut().enter() && second.as_mut().enter());
        queue.hand_over(1).unwrap();
        clock.advance(Duration::from_millis(1));
        token.cancel();
        assert_eq!(end(&mut first), Poll::Ready(Ok(Some(1))));
        assert_eq!(end(&mut second), Poll::Ready(Err(ParkError::TimedOut)));
        assert_eq!(queue.hand_over(2), Err(2));
        assert_eq!(clock.armed(), 0);
    });
}

#[test]
fn returned_grants_are_kept_in_hand_off_order() {
    // G2, Q1: four granted operations are dropped in every order; the next to park get the grants in hand-off order.
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
        let queue = WaitQueue::<usize>::new();
        let mut parks: Vec<_> = parked(&queue, 4).into_iter().map(Some).collect();
        (0..4).for_each(|i| queue.hand_over(i).unwrap());
        order.into_iter().for_each(|i| drop(parks[i].take()));
        assert_eq!(queue.parked(), 0);
        assert_eq!(queue.park().wait(), Ok(Some(0)));
        assert_eq!(queue.park().timeout(Duration::ZERO).wait(), Ok(Some(1)), "one try finds a kept grant");
        assert_eq!(queue.park().timeout(Duration::from_secs(1)).wait(), Ok(Some(2)));
        // Handed out, dropped again: it keeps its ticket, ahead of later ones.
        let mut parks = parked(&queue, 0);
        let mut again = Box::pin(queue.park());
        assert!(!again.as_mut().enter(), "3 was kept");
        parks.push(again);
        parks.extend(parked(&queue, 1));
        queue.hand_over(4).unwrap();
        parks.pop();
        parks.pop();
        assert_eq!(queue.park().wait(), Ok(Some(3)));
        assert_eq!(queue.park().wait(), Ok(Some(4)));
        assert_eq!(queue.park().timeout(Duration::ZERO).wait(), Err(ParkError::TimedOut));
    }
}

#[test]
fn enter_keeps_what_it_ends_with() {
    // G1: `enter` finds a kept grant; it is received by the poll, or passed on by the drop, never lost.
    let ledger = Ledger::default();
    let queue = WaitQueue::<Counted>::new();
    let keep = |id| {
        let parks = parked(&queue, 1);
        queue.hand_over(ledger.value(id)).unwrap();
        drop(parks);
        assert_eq!(queue.parked(), 0);
    };
    keep(1);
    let mut park = Box::pin(queue.park());
    assert!(!park.as_mut().enter());
    assert!(!park.as_mut().enter(), "asked again it is still ended");
    assert_eq!(ledger.dropped(), 0);
    assert!(matches!(end(&mut park), Poll::Ready(Ok(Some(grant))) if grant == 1));
    assert_eq!(ledger.dropped(), 1);
    keep(2);
    let mut park = Box::pin(queue.park());
    assert!(!park.as_mut().enter());
    drop(park);
    assert_eq!(ledger.dropped(), 1, "passed on");
    // The same with one try.
    let mut park = Box::pin(queue.park().timeout(Duration::ZERO));
    assert!(!park.as_mut().enter());
    assert!(matches!(end(&mut park), Poll::Ready(Ok(Some(grant))) if grant == 2));
    // Granted, or woken, between two calls: the second one does not eat it.
    let mut park = Box::pin(queue.park());
    assert!(park.as_mut().enter() && park.as_mut().enter());
    queue.hand_over(ledger.value(3)).unwrap();
    assert!(!park.as_mut().enter() && !park.as_mut().enter());
    assert!(matches!(end(&mut park), Poll::Ready(Ok(Some(grant))) if grant == 3));
    let mut park = Box::pin(queue.park());
    assert!(park.as_mut().enter());
    queue.wake_all();
    assert!(!park.as_mut().enter());
    assert!(matches!(end(&mut park), Poll::Ready(Ok(None))));
    // Other ends.
    let token = CancelToken::new();
    token.cancel();
    let mut park = Box::pin(queue.park().cancel_on(&token));
    assert!(!park.as_mut().enter());
    assert!(matches!(end(&mut park), Poll::Ready(Err(ParkError::Cancelled))));
    let mut park = Box::pin(queue.park().timeout(Duration::ZERO));
    assert!(!park.as_mut().enter());
    assert!(matches!(end(&mut park), Poll::Ready(Err(ParkError::TimedOut))));
    assert_eq!((ledger.made(), ledger.dropped()), (3, 3));
}

#[test]
fn enter_parks_whatever_the_budget() {
    // An operation that yields for its budget is not parked; who tests a condition after `enter` must be.
    use tidegate_wait::context::{enter, refill, Hooks, WaitInfo};
    struct Spent(AtomicUsize);
    impl Hooks for Spent {
        fn parked(&self, _: WaitInfo) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (clock, hooks) = (ManualClock::new(), Spent(AtomicUsize::new(0)));
    enter(clock.wheel(), &hooks, || {
        refill(0);
        let queue = WaitQueue::<u32>::new();
        let mut park = pin!(queue.park());
        let (woken, waker) = Woken::new();
        assert!(poll(park.as_mut(), &waker).is_pending());
        assert_eq!((queue.parked(), woken.count()), (0, 1), "yields");
        assert!(park.as_mut().enter());
        assert_eq!((queue.parked(), hooks.0.load(Ordering::SeqCst)), (1, 1));
        queue.hand_over(3).unwrap();
        assert_eq!(poll(park.as_mut(), &waker), Poll::Ready(Ok(Some(3))));
    });
}

#[test]
fn grants_are_dropped_exactly_once() {
    // G1: received, returned, kept, taken back, left behind in every state.
    let ledger = Ledger::default();
    let queue = WaitQueue::<Counted>::new();
    let returned = queue.hand_over(ledger.value(0)).unwrap_err();
    assert_eq!(returned, 0);
    drop(returned);
    let mut parks = parked(&queue, 4);
    (1..=4).for_each(|i| assert!(queue.hand_over(ledger.value(i)).is_ok()));
    assert_eq!(ledger.dropped(), 1);
    assert!(matches!(end(&mut parks[0]), Poll::Ready(Ok(Some(grant))) if grant == 1));
    assert_eq!(ledger.dropped(), 2);
    assert!(end(&mut parks[0]).is_pending(), "polled after its end");
    drop(parks);
    assert_eq!((queue.parked(), ledger.dropped()), (0, 2), "three are kept");
    queue.close();
    assert_eq!(queue.park().wait().unwrap_err(), ParkError::Closed);
    drop(queue);
    assert_eq!(ledger.dropped(), 5);
}

#[test]
fn kept_grants_go_with_the_queue() {
    // A leaked operation's limits hold the queue's memory (O3), but not its grants: they may borrow, and belong to a thread.
    let clock = ManualClock::new();
    let (ledger, token) = (Ledger::default(), CancelToken::new());
    clock.enter(|| {
        let queue = WaitQueue::<Counted>::new();
        let parks = parked(&queue, 1);
        queue.hand_over(ledger.value(1)).unwrap();
        drop(parks);
        let mut leaked = Box::pin(queue.park());
        assert!(!leaked.as_mut().enter());
        drop(leaked);
        let grant = queue.park().wait();
        let mut leaked = Box::pin(queue.park().timeout(Duration::from_secs(1)).cancel_on_owned(token.clone()));
        assert!(leaked.as_mut().enter());
        std::mem::forget(leaked);
        let mut granted = Box::pin(queue.park());
        assert!(granted.as_mut().enter());
        queue.hand_over(grant.unwrap().unwrap()).unwrap();
        // The leaked one got it. What a leaked operation holds stays with it.
        drop(granted);
        let mut granted = Box::pin(queue.park());
        assert!(granted.as_mut().enter());
        queue.hand_over(ledger.value(2)).unwrap();
        drop(granted);
        assert_eq!(ledger.dropped(), 0);
        drop(queue);
        assert_eq!(ledger.dropped(), 1);
    });
    token.cancel();
    clock.advance(Duration::from_secs(2));
    assert_eq!((clock.armed(), ledger.dropped()), (0, 1));
}

#[test]
fn leaked_operations_are_safe() {
    // G9: waiting, granted or woken operations are leaked with their memory; the queue goes; their limits end later (O3).
    let clock = ManualClock::new();
    let token = CancelToken::new();
    clock.enter(|| {
        let queue = WaitQueue::<Counted>::new();
        let ledger = Ledger::default();
        for _ in 0..3 {
            let mut park = Box::pin(queue.park().cancel_on_owned(token.clone()).timeout(Duration::from_millis(5)));
            assert!(park.as_mut().enter());
            std::mem::forget(park);
        }
        queue.hand_over(ledger.value(1)).unwrap();
        assert_eq!(queue.parked(), 2);
        drop(queue);
        assert_eq!(ledger.dropped(), 0);
        assert_eq!(clock.armed(), 3);
    });
    token.cancel();
    clock.advance(Duration::from_millis(5));
    assert_eq!(clock.armed(), 0);
}

#[test]
fn a_leaked_operation_may_swallow_a_turn_but_no_more() {
    let queue = WaitQueue::<u32>::new();
    let mut parks = parked(&queue, 2);
    std::mem::forget(parks.remove(0));
    assert_eq!(queue.hand_over(1), Ok(()));
    assert_eq!(queue.hand_over(2), Ok(()));
    assert_eq!(end(&mut parks[0]), Poll::Ready(Ok(Some(2))));
    assert_eq!(queue.hand_over(3), Err(3));
}

// ---- wakers ----------------------------------------------------------------------------------------------------------

#[test]
fn the_last_waker_counts() {
    // CASE 4: polled with A, then with B: B is woken, A is not needed.
    let queue = WaitQueue::<u32>::new();
    let mut park = pin!(queue.park());
    let ((woken_a, a), (woken_b, b)) = (Woken::new(), Woken::new());
    assert!(poll(park.as_mut(), &a).is_pending());
    assert!(poll(park.as_mut(), &a).is_pending());
    assert_eq!(Arc::strong_count(&woken_a), 3, "a spurious poll keeps the clone it has");
    assert!(poll(park.as_mut(), &b).is_pending());
    assert_eq!(Arc::strong_count(&woken_a), 2);
    queue.hand_over(1).unwrap();
    assert_eq!((woken_a.count(), woken_b.count()), (0, 1));
    assert_eq!(poll(park.as_mut(), &a), Poll::Ready(Ok(Some(1))));
    assert!(poll(park.as_mut(), &a).is_pending() && poll(park.as_mut(), &b).is_pending());
    assert_eq!((Arc::strong_count(&woken_a), Arc::strong_count(&woken_b)), (2, 2));
}

#[test]
fn spurious_polls_keep_the_place() {
    let queue = WaitQueue::<u32>::new();
    let mut parks = parked(&queue, 3);
    for waker in [Woken::new().1, Woken::new().1] {
        for park in &mut parks {
            assert!(poll(park.as_mut(), &waker).is_pending());
        }
        assert!(poll(parks[0].as_mut(), &Woken::new().1).is_pending());
    }
    (0..3).for_each(|i| queue.hand_over(i).unwrap());
    for (i, park) in (0..).zip(&mut parks) {
        assert_eq!(end(park), Poll::Ready(Ok(Some(i))));
    }
}

fn panics_in(which: &str) -> Arc<Hooks> {
    let hook = || Some(Box::new(quiet_panic) as Box<dyn Fn() + Send + Sync>);
    let hooks = match which {
        "wake" => Hooks { wake: hook(), ..Hooks::default() },
        "clone" => Hooks { clone: hook(), ..Hooks::default() },
        _ => Hooks { drop: hook(), ..Hooks::default() },
    };
    Arc::new(hooks)
}

fn catch<R>(f: impl FnOnce() -> R) -> Option<R> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).map_err(std::mem::forget).ok()
}

#[test]
fn a_waker_that_panics_when_woken_strands_nobody() {
    // G5; CASE 30: in every way of waking.
    for way in ["hand_over", "wake_all", "close", "token", "clock", "pass_on"] {
        let (ledger, token, clock) = (Ledger::default(), CancelToken::new(), ManualClock::new());
        let queue = WaitQueue::<Counted>::new();
        let hooks = panics_in("wake");
        let (woken, waker) = Woken::new();
        let limit = Duration::from_millis(1);
        clock.enter(|| {
            let mut parks: Vec<_> = (0..40).map(|_| Box::pin(queue.park().timeout(limit).cancel_on(&token))).collect();
            for (i, park) in parks.iter_mut().enumerate() {
                let waker = if i % 10 == 0 { &hooked(&hooks) } else { &waker };
                assert!(poll(park.as_mut(), waker).is_pending());
            }
            hooks.activate(true);
            let mut grants = 0;
            match way {
                "hand_over" => (0..40).for_each(|i| queue.hand_over(ledger.value(i)).unwrap()),
                "wake_all" => assert_eq!(queue.wake_all(), 40),
                "close" => queue.close(),
                "token" => assert!(token.cancel()),
                "clock" => clock.advance(limit),
                _ => {
                    let mut first = Box::pin(queue.park());
                    assert!(first.as_mut().enter());
                    // The first of the 40 gets it; dropped, it passes it on to a waker that panics, and so on.
                    queue.hand_over(ledger.value(0)).unwrap();
                    grants = 1;
                    for _ in 0..39 {
                        drop(parks.remove(0));
                    }
                }
            }
            hooks.activate(false);
            assert_eq!((hooks.wakes(), woken.count()), (4, 36), "{way}");
            for park in &mut parks {
                let ended = end(park);
                assert!(ended.is_ready(), "{way}");
                grants += usize::from(matches!(ended, Poll::Ready(Ok(Some(_)))));
            }
            if way == "hand_over" {
                assert_eq!(grants, 40);
            }
            drop(parks);
            assert_eq!((hooks.alive(), clock.armed()), (0, 0), "{way}");
        });
        drop(queue);
        assert_eq!(ledger.made(), ledger.dropped(), "{way}");
    }
}

#[test]
fn a_waker_that_panics_in_clone_changes_nothing() {
    let queue = WaitQueue::<u32>::new();
    let hooks = panics_in("clone");
    let waker = hooked(&hooks);
    hooks.activate(true);
    let mut park = Box::pin(queue.park());
    assert!(catch(|| poll(park.as_mut(), &waker)).is_none());
    assert_eq!(queue.parked(), 0, "not parked yet");
    let (woken, good) = Woken::new();
    assert!(poll(park.as_mut(), &good).is_pending());
    assert!(catch(|| poll(park.as_mut(), &waker)).is_none());
    assert_eq!(queue.parked(), 1, "the old waker stays");
    queue.hand_over(1).unwrap();
    assert_eq!(woken.count(), 1);
    assert!(matches!(catch(|| poll(park.as_mut(), &waker)), Some(Poll::Ready(Ok(Some(1))))));
    hooks.activate(false);
    drop(waker);
    assert_eq!(hooks.alive(), 0);
}

#[test]
fn a_waker_that_panics_when_dropped_changes_nothing() {
    let queue = WaitQueue::<u32>::new();
    let hooks = panics_in("drop");
    let (_, good) = Woken::new();
    // Exchanged for another.
    let mut park = Box::pin(queue.park());
    let waker = hooked(&hooks);
    assert!(poll(park.as_mut(), &waker).is_pending());
    hooks.activate(true);
    assert!(poll(park.as_mut(), &good).is_pending());
    hooks.activate(false);
    assert!(poll(park.as_mut(), &waker).is_pending());
    hooks.activate(true);
    // Dropped with the operation, by a kept grant, by the close.
    drop(park);
    hooks.activate(false);
    let granted = parked(&queue, 1);
    queue.hand_over(1).unwrap();
    drop(granted);
    hooks.activate(true);
    let mut park = Box::pin(queue.park());
    assert_eq!(poll(park.as_mut(), &waker), Poll::Ready(Ok(Some(1))));
    queue.close();
    let mut park = Box::pin(queue.park());
    assert_eq!(poll(park.as_mut(), &waker), Poll::Ready(Err(ParkError::Closed)));
    hooks.activate(false);
    drop(waker);
    assert_eq!(hooks.alive(), 0);
}

#[test]
fn wakers_may_call_back_from_everywhere() {
    // CASE 28: wake, clone and drop of a waker use the queue, its token and its clock, on every path that runs them.
    let queue = Arc::new(WaitQueue::<u32>::new());
    let token = CancelToken::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let hook = |what: usize| {
        let (queue, token, calls) = (queue.clone(), token.clone(), calls.clone());
        Some(Box::new(move || {
            calls.fetch_or(what, Ordering::SeqCst);
            let _ = queue.hand_over(1);
            let _ = queue.parked();
            drop(queue.park());
            let mut park = Box::pin(queue.park().cancel_on(&token));
            park.as_mut().enter();
            drop(park);
            let child = token.child();
            child.cancel();
            drop(token.on_cancel(|| {}));
            queue.wake_all();
        }) as Box<dyn Fn() + Send + Sync>)
    };
    // Two of a kind: a waker is cloned and dropped again only for one of another task.
    let make = || Arc::new(Hooks { wake: hook(1), clone: hook(2), drop: hook(4), ..Hooks::default() });
    let (hooks, others) = (make(), make());
    for way in 0..7 {
        let clock = ManualClock::new();
        clock.enter(|| {
            let child = token.child();
            let mut parks: Vec<_> =
                (0..3).map(|_| Box::pin(queue.park().timeout(Duration::from_millis(1)).cancel_on(&child))).collect();
            hooks.activate(way % 2 == 0);
            others.activate(true);
            for park in &mut parks {
                // With the hooks on, the clone of the next may end the wait of the one before, or its own.
                let _ = poll(park.as_mut(), &hooked(&hooks));
                let _ = poll(park.as_mut(), &hooked(&others));
                let _ = poll(park.as_mut(), &hooked(&hooks));
            }
            hooks.activate(true);
            match way {
                0 | 1 => drop(queue.hand_over(2)),
                2 => drop(queue.wake_all()),
                3 => drop(child.cancel()),
                4 => clock.advance(Duration::from_millis(1)),
                5 => (0..3).for_each(|i| {
                    let _ = poll(parks[i].as_mut(), &hooked(&hooks));
                }),
                _ => drop(parks.pop()),
            }
            drop(parks);
            hooks.activate(false);
        });
        assert_eq!((queue.parked(), clock.armed()), (0, 0));
        assert_eq!((hooks.alive(), others.alive()), (0, 0), "way {way}");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 7, "all three were called");
    hooks.activate(true);
    let mut park = Box::pin(queue.park());
    let _ = poll(park.as_mut(), &hooked(&hooks));
    queue.close();
    drop(park);
    assert_eq!((queue.parked(), hooks.alive()), (0, 0));
}

#[test]
fn a_waker_may_poll_the_operation_it_wakes() {
    // G5: the end is stored before the wake.
    let queue = Arc::new(WaitQueue::<u32>::new());
    // SAFETY: the slot is emptied before the queue goes.
    let of_test: &'static WaitQueue<u32> = unsafe { &*Arc::as_ptr(&queue) };
    let slot: Arc<Mutex<Option<Boxed<'static, u32>>>> = Arc::default();
    let got = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let (slot, got) = (slot.clone(), got.clone());
        Box::new(move || {
            let mut park = slot.lock().unwrap().take().unwrap();
            got.lock().unwrap().push(end(&mut park));
        })
    };
    let hooks = Arc::new(Hooks { wake: Some(hook), ..Hooks::default() });
    hooks.activate(true);
    for way in 0..3 {
        let mut park = Box::pin(of_test.park());
        assert!(poll(park.as_mut(), &hooked(&hooks)).is_pending());
        *slot.lock().unwrap() = Some(park);
        match way {
            0 => queue.hand_over(4).unwrap(),
            1 => drop(queue.wake_all()),
            _ => queue.close(),
        }
    }
    let expected = [Poll::Ready(Ok(Some(4))), Poll::Ready(Ok(None)), Poll::Ready(Err(ParkError::Closed))];
    assert_eq!(*got.lock().unwrap(), expected);
    assert_eq!(hooks.alive(), 0);
}

#[test]
fn grants_destructors_may_call_back() {
    // CASE 29: a grant's destructor hands over, parks, closes and drops, wherever it runs.
    struct Calls(Arc<WaitQueue<Option<Calls>>>, Arc<AtomicUsize>);
    impl Drop for Calls {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
            let _ = self.0.hand_over(None);
            let mut park = Box::pin(self.0.park());
            park.as_mut().enter();
            drop(park);
            self.0.wake_all();
            self.0.close();
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    for way in 0..4 {
        // The grants call another queue; and, by way 3, the one they are kept in.
        let (queue, other) = (Arc::new(WaitQueue::<Option<Calls>>::new()), Arc::new(WaitQueue::new()));
        let into = if way == 3 { queue.clone() } else { other.clone() };
        let mut parks = parked(&queue, 2);
        assert!(queue.hand_over(Some(Calls(into.clone(), drops.clone()))).is_ok());
        match way {
            0 => drop(end(&mut parks[0])),
            1 => parks.clear(),
            2 => {
                drop(end(&mut parks[0]));
                drop(queue.hand_over(Some(Calls(into.clone(), drops.clone()))));
            }
            _ => {
                drop(end(&mut parks[0]));
                assert!(queue.is_closed());
                assert!(end(&mut parks[1]).is_ready());
            }
        }
        drop(parks);
        drop((queue, into));
        assert!(other.is_closed() || way == 3);
    }
    assert_eq!(drops.load(Ordering::SeqCst), 5);
}

// ---- cost, sizes, threads --------------------------------------------------------------------------------------------

#[test]
fn a_cancel_touches_the_neighbours_only() {
    // G3; CASE 32, in shape: all parked operations but the neighbours are overwritten with garbage; a scan would crash.
    let n: usize = if cfg!(miri) { 40 } else { 100_000 };
    for gone in [1, n / 2, n - 2] {
        let queue = WaitQueue::<u32>::new();
        let mut parks: Vec<Box<MaybeUninit<Park<'_, u32>>>> =
            (0..n).map(|_| Box::new(MaybeUninit::new(queue.park()))).collect();
        // SAFETY: boxed, and never moved from here on; the garbage is not used again (the queue is forgotten).
        unsafe {
            for park in &mut parks {
                assert!(Pin::new_unchecked(park.assume_init_mut()).enter());
            }
            for (i, park) in parks.iter_mut().enumerate() {
                if i.abs_diff(gone) > 1 {
                    park.as_mut_ptr().cast::<u8>().write_bytes(0xa7, size_of::<Park<'_, u32>>());
                }
            }
            parks[gone].assume_init_drop();
        }
        std::mem::forget(queue);
    }
}

#[test]
fn cancelled_waits_leave_nothing() {
    // CASES 32, 33: many parked, then cancelled oldest first, newest first, at random.
    let n = if cfg!(miri) { 24 } else { 100_000 };
    let queue = WaitQueue::<u32>::new();
    let (woken, waker) = Woken::new();
    for order in 0..3 {
        let mut parks: Vec<_> = (0..n).map(|_| Some(Box::pin(queue.park()))).collect();
        for park in parks.iter_mut().flatten() {
            assert!(poll(park.as_mut(), &waker).is_pending());
        }
        let mut indices: Vec<usize> = (0..n).collect();
        match order {
            0 => {}
            1 => indices.reverse(),
            _ => Rng(9).shuffle(&mut indices),
        }
        for (count, i) in indices.into_iter().enumerate() {
            drop(parks[i].take());
            if count % (n / 4) == 0 {
                assert_eq!(queue.parked(), n - count - 1);
            }
        }
        assert_eq!((queue.parked(), queue.wake_all()), (0, 0));
        assert_eq!((woken.count(), Arc::strong_count(&woken)), (0, 2));
    }
}

/// Parks under no, one, two, three limits; each gets its grant, and returns one that it did not take.
fn carries<G: Send + 'static>(make: impl Fn(u8) -> G, is: impl Fn(&G, u8) -> bool) {
    let clock = ManualClock::new();
    clock.enter(|| {
        let (queue, token) = (WaitQueue::<G>::new(), CancelToken::new());
        let limit = Duration::from_secs(1);
        macro_rules! check {
            ($park:expr, $tag:expr) => {{
                let park = || Box::pin($park);
                let mut first = park();
                let mut second = park();
                let mut third = park();
                assert!(first.as_mut().enter() && second.as_mut().enter() && third.as_mut().enter());
                assert!(queue.hand_over(make($tag)).is_ok());
                assert!(queue.hand_over(make($tag + 1)).is_ok());
                assert!(queue.hand_over(make($tag + 2)).is_ok());
                assert!(matches!(end(&mut second), Poll::Ready(Ok(Some(grant))) if is(&grant, $tag + 1)));
                drop(third);
                drop(first);
                let mut kept = park();
                assert!(matches!(end(&mut kept), Poll::Ready(Ok(Some(grant))) if is(&grant, $tag)));
                let mut kept = park();
                assert!(!kept.as_mut().enter());
                assert!(matches!(end(&mut kept), Poll::Ready(Ok(Some(grant))) if is(&grant, $tag + 2)));
                let mut unserved = park();
                assert!(unserved.as_mut().enter());
                drop(unserved);
                assert_eq!((queue.parked(), clock.armed()), (0, 0));
            }};
        }
        check!(queue.park(), 10);
        check!(queue.park().timeout(limit), 20);
        check!(queue.park().cancel_on(&token), 30);
        check!(queue.park().cancel_on_owned(token.clone()), 40);
        check!(queue.park().timeout(limit).cancel_on(&token), 50);
        check!(queue.park().cancel_on(&token).timeout(limit).cancel_on_owned(token.clone()), 60);
        check!(queue.park().timeout(limit).timeout(limit * 2).cancel_on(&token), 70);
    });
}

#[test]
fn grants_of_any_size_and_alignment() {
    // G10; CASE 44.
    #[repr(align(4096))]
    struct Page(u8);
    #[repr(align(4096))]
    struct EmptyPage;
    #[repr(align(16))]
    struct Sixteen([u8; 3]);
    #[repr(align(64))]
    struct Line([u8; 200]);
    carries(|_| (), |_, _| true);
    carries(|tag| tag, |grant, tag| *grant == tag);
    carries(u128::from, |grant, tag| *grant == u128::from(tag));
    if !cfg!(miri) {
        carries(|tag| [tag; 7], |grant, tag| *grant == [tag; 7]);
        carries(|tag| [u64::from(tag); 9], |grant, tag| *grant == [u64::from(tag); 9]);
        carries(|tag| Sixteen([tag; 3]), |grant, tag| grant.0 == [tag; 3]);
        carries(|tag| Line([tag; 200]), |grant, tag| grant.0 == [tag; 200]);
    }
    carries(Page, |grant, tag| grant.0 == tag && std::ptr::from_ref(grant).addr() % 4096 == 0);
    carries(|_| EmptyPage, |grant, _| std::ptr::from_ref(grant).addr() % 4096 == 0);
    carries(Box::new, |grant, tag| **grant == tag);
}

#[test]
fn grants_of_a_mebibyte() {
    // G10; CASE 44. On a thread whose stack has room for the copies of an unoptimized build.
    const SIZE: usize = if cfg!(miri) { 1 << 12 } else { 1 << 20 };
    let body = || carries(|tag| [tag; SIZE], |grant, tag| [0, 1, SIZE / 2, SIZE - 1].iter().all(|&i| grant[i] == tag));
    std::thread::Builder::new().stack_size(256 << 20).spawn(body).unwrap().join().unwrap();
}

#[test]
fn grants_between_threads() {
    // G1, G9: hand-overs, time-outs, cancellations and drops race; every grant ends in one place.
    let rounds = if cfg!(miri) { 10 } else { 3_000 };
    let (queue, ledger) = (WaitQueue::<Counted>::new(), Ledger::default());
    let received = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (queue, received) = (&queue, &received);
            scope.spawn(move || {
                let mut rng = Rng(seed);
                for _ in 0..rounds {
                    let token = CancelToken::new();
                    match rng.below(4) {
                        0 => {
                            let mut park = Box::pin(queue.park().cancel_on(&token));
                            park.as_mut().enter();
                            std::thread::yield_now();
                            drop(park);
                        }
                        1 => {
                            let mut park = Box::pin(queue.park().cancel_on(&token));
                            park.as_mut().enter();
                            std::thread::yield_now();
                            token.cancel();
                            if let Poll::Ready(Ok(Some(_))) = end(&mut park) {
                                received.fetch_add(1, Ordering::SeqCst);
                            }
                        }
                        _ => {
                            if let Ok(Some(_)) = queue.park().timeout(Duration::from_micros(50)).wait() {
                                received.fetch_add(1, Ordering::SeqCst);
                            }
                        }
                    }
                }
            });
        }
        scope.spawn(|| {
            for i in 0..rounds {
                if let Err(back) = queue.hand_over(ledger.value(i)) {
                    drop(back);
                    received.fetch_add(1, Ordering::SeqCst);
                }
                std::thread::yield_now();
            }
        });
    });
    assert_eq!(queue.parked(), 0);
    let kept = std::iter::from_fn(|| queue.park().timeout(Duration::ZERO).wait().ok().flatten()).count();
    assert_eq!(received.load(Ordering::SeqCst) + kept, rounds);
    assert_eq!((ledger.made(), ledger.dropped()), (rounds, rounds));
}

#[test]
fn a_noop_waker_is_a_waker() {
    let queue = WaitQueue::<u32>::default();
    let mut park = pin!(queue.park());
    assert!(poll(park.as_mut(), Waker::noop()).is_pending());
    queue.hand_over(1).unwrap();
    assert_eq!(poll(park.as_mut(), Waker::noop()), Poll::Ready(Ok(Some(1))));
}
