//! Who allocates: making a channel, once; nothing else (G4).
#![cfg(all(not(loom), not(miri)))]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;

use support::poll;
use tidegate_channel::{bounded, Operation};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

struct Counting;

std::thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of `f` on this thread.
fn allocations(f: impl FnOnce()) -> usize {
    let before = COUNT.get();
    f();
    COUNT.get() - before
}

/// G4: one allocation makes a channel of any size; clones make none.
#[test]
fn a_channel_is_one_allocation() {
    // The first one asks how many processors there are.
    drop(bounded::<u8>(8));
    for cap in [1, 64, 10_000] {
        assert_eq!(allocations(|| std::mem::forget(bounded::<[u64; 4]>(cap))), 1);
    }
    let (tx, rx) = bounded::<u8>(1);
    assert_eq!(allocations(|| drop((tx.clone(), rx.clone()))), 0);
}

/// G4: a blocked, timed, cancelled, withdrawn or dropped operation allocates nothing, on either side.
#[test]
fn operations_allocate_nothing() {
    let clock = ManualClock::new();
    let token = CancelToken::new();
    let ms = Duration::from_millis(1);
    let (tx, rx) = bounded(1);
    let round = |cancel: &CancelToken| {
        {
            // Blocked and served, on both sides.
            let mut receive = pin!(rx.recv().timeout(ms).cancel_on(&token));
            assert!(poll(receive.as_mut(), Waker::noop()).is_pending());
            tx.try_send(1).unwrap();
            assert!(poll(receive.as_mut(), Waker::noop()).is_ready());
            tx.try_send(1).unwrap();
            let mut send = pin!(tx.send(2).timeout(ms).cancel_on(&token));
            assert!(poll(send.as_mut(), Waker::noop()).is_pending());
            assert_eq!(rx.try_recv(), Ok(1));
            assert!(poll(send.as_mut(), Waker::noop()).is_ready());
        }
        {
            // Timed out, cancelled, withdrawn, dropped.
            let mut late = pin!(tx.send(3).timeout(ms));
            let mut cancelled = pin!(tx.send(4).cancel_on(cancel));
            let mut withdrawn = pin!(tx.send(5).timeout(2 * ms));
            let mut dropped = pin!(tx.send(6).cancel_on(&token));
            assert!(poll(late.as_mut(), Waker::noop()).is_pending());
            assert!(poll(cancelled.as_mut(), Waker::noop()).is_pending());
            assert!(poll(withdrawn.as_mut(), Waker::noop()).is_pending());
            assert!(poll(dropped.as_mut(), Waker::noop()).is_pending());
            clock.advance(ms);
            cancel.cancel();
            assert_eq!(withdrawn.as_mut().withdraw(), Some(5));
            assert!(poll(late.as_mut(), Waker::noop()).is_ready());
            assert!(poll(cancelled.as_mut(), Waker::noop()).is_ready());
        }
        assert_eq!(rx.recv().wait(), Ok(2));
        let mut late = pin!(rx.recv().deadline(clock.now() + ms));
        let mut dropped = pin!(rx.recv().timeout(2 * ms).cancel_on(&token));
        assert!(poll(late.as_mut(), Waker::noop()).is_pending());
        assert!(poll(dropped.as_mut(), Waker::noop()).is_pending());
        clock.advance(ms);
        assert!(poll(late.as_mut(), Waker::noop()).is_ready());
    };
    clock.enter(|| {
        let tokens: Vec<_> = (0..101).map(|_| CancelToken::new()).collect();
        round(&tokens[0]);
        assert_eq!(allocations(|| tokens[1..].iter().for_each(round)), 0);
    });
}

/// G4: a reservation of many allocates nothing: granted, timed out with some slots, cancelled, dropped; nor do its permits.
#[test]
fn reservations_of_many_allocate_nothing() {
    let clock = ManualClock::new();
    let ms = Duration::from_millis(1);
    let (tx, rx) = bounded(4);
    let round = |token: &CancelToken| {
        tx.try_send(0).unwrap();
        let mut late = pin!(tx.reserve_many(4).timeout(ms));
        let mut cancelled = pin!(tx.reserve_many(3).cancel_on(token));
        let mut granted = pin!(tx.reserve_many(4));
        assert!(poll(late.as_mut(), Waker::noop()).is_pending());
        assert!(poll(cancelled.as_mut(), Waker::noop()).is_pending());
        assert!(poll(granted.as_mut(), Waker::noop()).is_pending());
        {
            let mut dropped = pin!(tx.reserve_many(2));
            assert!(poll(dropped.as_mut(), Waker::noop()).is_pending());
        }
        clock.advance(ms);
        assert!(poll(cancelled.as_mut(), Waker::noop()).is_ready(), "what the first had was enough for it");
        token.cancel();
        assert_eq!(rx.try_recv(), Ok(0));
        let Poll::Ready(Ok(mut permits)) = poll(granted.as_mut(), Waker::noop()) else { panic!("all slots are free") };
        permits.send(1).unwrap();
        drop(permits.next());
        drop(permits);
        assert_eq!(rx.try_recv(), Ok(1));
    };
    clock.enter(|| {
        let tokens: Vec<_> = (0..101).map(|_| CancelToken::new()).collect();
        round(&tokens[0]);
        assert_eq!(allocations(|| tokens[1..].iter().for_each(round)), 0);
    });
}

/// R4: a receive of many makes room when it parks, not when it has got a value; and for all that is there at once.
#[test]
fn receives_of_many_make_room_before() {
    let (tx, rx) = bounded(8);
    let mut seen = Vec::new();
    {
        let mut receive = pin!(rx.recv_many(&mut seen, 8));
        assert!(poll(receive.as_mut(), Waker::noop()).is_pending());
        tx.try_send(1).unwrap();
        assert_eq!(allocations(|| assert!(poll(receive.as_mut(), Waker::noop()).is_ready())), 0);
    }
    let mut seen = Vec::new();
    (0..8).for_each(|n| tx.try_send(n).unwrap());
    assert_eq!(allocations(|| assert_eq!(rx.try_recv_many(&mut seen, 8), Ok(8))), 1);
}

/// G4: blocking waits allocate nothing once the thread has its parker.
#[test]
fn blocking_allocates_nothing() {
    let rounds = 1_000;
    let (tx, rx) = bounded(1);
    // The driver starts with the first timer, a thread's parker with its first wait: not only if a send happens to park.
    let warm = || tidegate_wait::timer::sleep(Duration::from_millis(1)).wait();
    warm();
    let sender = std::thread::spawn(move || {
        warm();
        tx.send(0).wait().unwrap();
        let limit = Duration::from_secs(600);
        tx.send(0).timeout(limit).wait().unwrap();
        allocations(|| (0..rounds).for_each(|n| tx.send(n).timeout(limit).wait().unwrap()))
    });
    (0..2).for_each(|_| assert_eq!(rx.recv().wait(), Ok(0)));
    assert_eq!(allocations(|| (0..rounds).for_each(|n| assert_eq!(rx.recv().wait(), Ok(n)))), 0);
    assert_eq!(sender.join().unwrap(), 0);
}

/// G4: the one exception: a delivery that nobody took goes into a box of its own, and it is freed when it is taken.
#[test]
fn a_returned_delivery_is_one_allocation() {
    let (tx, rx) = bounded(1);
    for _ in 0..3 {
        let mut receive = Box::pin(rx.recv());
        assert!(poll(receive.as_mut(), Waker::noop()).is_pending());
        tx.try_send(1).unwrap();
        assert_eq!(allocations(|| drop(receive)), 1);
        assert_eq!(allocations(|| assert_eq!(rx.try_recv(), Ok(1))), 0);
    }
}
