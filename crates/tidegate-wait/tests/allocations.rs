//! G4: no allocation for a blocked, timed or cancellable operation, counted by the allocator itself.
//!
//! One test, so that no other thread allocates meanwhile.

use std::alloc::{GlobalAlloc, Layout, System};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tidegate_wait::cancel::CancelToken;
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::{interval, sleep, timeout, ManualClock};
use tidegate_wait::wait_queue::WaitQueue;
use tidegate_wait::Operation;

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::SeqCst);
        LIVE.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(1, Ordering::SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ROUNDS: usize = if cfg!(miri) { 2 } else { 10_000 };
const MS: Duration = Duration::from_millis(1);

fn allocations(what: &str, mut f: impl FnMut()) {
    f();
    let before = COUNT.load(Ordering::SeqCst);
    for _ in 0..ROUNDS {
        f();
    }
    assert_eq!(COUNT.load(Ordering::SeqCst) - before, 0, "{what}");
}

/// G9, T3: the timer of a leaked park holds the memory of its queue, and gives it back when it fires or when its wheel
/// dies, after the queue's handle is gone.
fn a_leaked_park_holds_its_queue() {
    for fires in [true, false] {
        let clock = ManualClock::new();
        let held = clock.enter(|| {
            let queue = WaitQueue::<u64>::new();
            let mut park = Box::pin(queue.park().timeout(MS));
            assert!(park.as_mut().enter());
            std::mem::forget(park);
            let before = LIVE.load(Ordering::SeqCst);
            drop(queue);
            assert_eq!(LIVE.load(Ordering::SeqCst), before, "the queue's memory stays");
            before
        });
        match fires {
            true => {
                clock.advance(MS);
                assert_eq!(LIVE.load(Ordering::SeqCst), held - 1, "the queue's memory is given back");
            }
            false => {
                let of_the_clock = 1;
                drop(clock);
                assert_eq!(LIVE.load(Ordering::SeqCst), held - 1 - of_the_clock);
            }
        }
    }
}

/// G4: each kind of wait, begun and ended in each way, ten thousand times after a first one.
#[test]
fn g4_no_allocation_per_operation() {
    let clock = ManualClock::new();
    let queue = WaitQueue::<u64>::new();
    let token = CancelToken::new();
    clock.enter(|| {
        allocations("a sleep that ends", || {
            let mut nap = pin!(sleep(MS));
            assert!(poll_once(nap.as_mut()).is_pending());
            clock.advance(MS);
            assert!(poll_once(nap.as_mut()).is_ready());
        });
        allocations("a sleep that is dropped", || {
            let mut nap = pin!(sleep(MS));
            assert!(poll_once(nap.as_mut()).is_pending());
        });
        allocations("a sleep with limits", || {
            let mut nap = pin!(sleep(2 * MS).timeout(MS).cancel_on(&token).timeout(3 * MS));
            assert!(poll_once(nap.as_mut()).is_pending());
            clock.advance(MS);
            assert!(poll_once(nap.as_mut()).is_ready());
        });
        allocations("far sleeps that cascade", || {
            let mut near = pin!(sleep(Duration::from_secs(1)));
            let mut far = pin!(sleep(Duration::from_secs(100_000)));
            assert!(poll_once(near.as_mut()).is_pending());
            assert!(poll_once(far.as_mut()).is_pending());
            assert!(clock.advance_to_next() && clock.advance_to_next());
        });
        allocations("a park that times out", || {
            let mut park = pin!(queue.park().timeout(MS).cancel_on(&token));
            assert!(park.as_mut().enter());
            clock.advance(MS);
            assert!(poll_once(park.as_mut()).is_ready());
        });
        allocations("a timed park that is served", || {
            let mut park = pin!(queue.park().timeout(MS).cancel_on(&token));
            assert!(park.as_mut().enter());
            assert_eq!(queue.hand_over(1), Ok(()));
            assert_eq!(poll_once(park.as_mut()), Poll::Ready(Ok(Some(1))));
        });
        allocations("a timed park that is dropped", || {
            let mut park = pin!(queue.park().timeout(MS).cancel_on(&token));
            assert!(park.as_mut().enter());
        });
        allocations("a wait for a token", || {
            let mut wait = pin!(token.cancelled().timeout(MS));
            assert!(poll_once(wait.as_mut()).is_pending());
            clock.advance(MS);
            assert!(poll_once(wait.as_mut()).is_ready());
        });
        allocations("a timeout of any future", || {
            let mut limited = pin!(timeout(MS, std::future::pending::<()>()));
            assert!(poll_once(limited.as_mut()).is_pending());
            clock.advance(MS);
            assert!(poll_once(limited.as_mut()).is_ready());
        });
        // A token is one allocation; the registrations that its cancellation ends are none.
        let mut tokens: Vec<_> = (0..=ROUNDS).map(|_| CancelToken::new()).collect();
        allocations("a sleep and a park that are cancelled", || {
            let token = tokens.pop().expect("one a round");
            let mut nap = pin!(sleep(MS).cancel_on(&token));
            let mut park = pin!(queue.park().timeout(MS).cancel_on(&token));
            assert!(poll_once(nap.as_mut()).is_pending());
            assert!(park.as_mut().enter());
            token.cancel();
            assert!(poll_once(nap.as_mut()).is_ready());
            assert!(poll_once(park.as_mut()).is_ready());
        });
        let mut beat = interval(MS).expect("a period");
        allocations("a tick", || {
            assert!(poll_once(pin!(beat.tick())).is_ready());
            clock.advance(MS);
        });
    });
    a_leaked_park_holds_its_queue();
    if cfg!(miri) {
        return;
    }
    // On the driver, with the thread's own parker.
    let before = |f: &mut dyn FnMut()| {
        f();
        let before = COUNT.load(Ordering::SeqCst);
        (0..20).for_each(|_| f());
        COUNT.load(Ordering::SeqCst) - before
    };
    assert_eq!(before(&mut || sleep(MS / 10).wait()), 0, "a blocking sleep");
    assert_eq!(before(&mut || assert!(queue.park().timeout(MS / 10).wait().is_err())), 0, "a blocking park");
}
