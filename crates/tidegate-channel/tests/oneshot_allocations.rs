//! Who allocates: making a oneshot channel, once; nothing else (G4). And everything is given back.
#![cfg(all(not(loom), not(miri)))]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::pin;
use std::task::Waker;
use std::time::Duration;

use support::poll;
use tidegate_channel::{oneshot, Operation};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::timer::ManualClock;

struct Counting;

std::thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
    static FREED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size()));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let _ = FREED.try_with(|freed| freed.set(freed.get() + layout.size()));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations, allocated bytes and freed bytes of `f` on this thread.
fn allocations<R>(f: impl FnOnce() -> R) -> ((usize, usize, usize), R) {
    let before = (COUNT.get(), BYTES.get(), FREED.get());
    let result = f();
    ((COUNT.get() - before.0, BYTES.get() - before.1, FREED.get() - before.2), result)
}

/// G4: one allocation of 56 bytes and the payload, freed with the last half.
#[test]
fn a_channel_is_one_allocation() {
    fn made<T>() -> (usize, usize) {
        let ((count, bytes, _), halves) = allocations(oneshot::channel::<T>);
        let ((none, _, freed), ()) = allocations(|| drop(halves));
        assert_eq!((none, freed), (0, bytes));
        (count, bytes)
    }
    assert_eq!(made::<()>(), (1, 56));
    assert_eq!(made::<u64>(), (1, 64));
    assert_eq!(made::<[u64; 100]>(), (1, 856));
    assert_eq!(made::<[u8; 1 << 20]>(), (1, 56 + (1 << 20)));
}

/// G4: no operation allocates: sent and received in both orders, timed out, cancelled, told and dropped, refused.
#[test]
fn operations_allocate_nothing() {
    let clock = ManualClock::new();
    let ms = Duration::from_millis(1);
    let round = |token: &CancelToken| {
        let (tx, rx) = oneshot::channel();
        tx.send(1).unwrap();
        assert_eq!(rx.into_recv().wait(), Ok(1));

        let (tx, mut rx) = oneshot::channel();
        {
            let mut late = pin!(rx.recv().timeout(ms));
            assert!(poll(late.as_mut(), Waker::noop()).is_pending());
            clock.advance(ms);
            assert!(poll(late.as_mut(), Waker::noop()).is_ready());
        }
        {
            let mut told = pin!(rx.recv().timeout(ms).cancel_on(token));
            let mut closed = pin!(tx.closed());
            assert!(poll(told.as_mut(), Waker::noop()).is_pending());
            assert!(poll(closed.as_mut(), Waker::noop()).is_pending());
        }
        {
            let mut cancelled = pin!(rx.recv().cancel_on(token));
            assert!(poll(cancelled.as_mut(), Waker::noop()).is_pending());
            token.cancel();
            assert!(poll(cancelled.as_mut(), Waker::noop()).is_ready());
        }
        {
            let mut told = pin!(rx.recv());
            assert!(poll(told.as_mut(), Waker::noop()).is_pending());
            tx.send(2).unwrap();
        }
        assert_eq!(rx.try_recv(), Ok(2));

        let (tx, rx) = oneshot::channel();
        drop(rx);
        assert!(tx.send(3).is_err());
    };
    clock.enter(|| {
        let tokens: Vec<_> = (0..101).map(|_| CancelToken::new()).collect();
        round(&tokens[0]);
        let ((count, bytes, freed), ()) = allocations(|| tokens[1..].iter().for_each(round));
        assert_eq!((count, bytes), (300, freed), "three channels a round");
    });
}
