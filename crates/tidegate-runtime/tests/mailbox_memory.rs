//! What stands in a mailbox when it is closed is given back. Alone in its process: the allocator counts for all threads.
#![cfg(all(not(loom), not(miri)))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::task::{Poll, Waker};
use std::thread;

use tidegate_runtime::{yield_now, Runtime};

struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: everything is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Wakes another task from another thread when it is dropped.
struct WakesElsewhere(Option<Waker>);

impl Drop for WakesElsewhere {
    fn drop(&mut self) {
        let waker = self.0.take().unwrap();
        thread::spawn(move || waker.wake()).join().unwrap();
    }
}

/// X2: a runtime whose first task, as it is dropped with it, has a thread wake the second: that stands in the mailbox when
/// it is dropped itself, and when the mailbox is closed.
fn round() {
    let rt = Runtime::new().unwrap();
    let wakers = std::rc::Rc::new(std::cell::RefCell::new(None));
    let (taken, given) = (wakers.clone(), wakers);
    rt.spawn(async move {
        yield_now().await;
        let _wakes = WakesElsewhere(taken.borrow_mut().take());
        pending::<()>().await;
    })
    .detach();
    rt.spawn(async move {
        let own = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
        *given.borrow_mut() = Some(own);
        pending::<()>().await;
    })
    .detach();
    rt.block_on(async {
        yield_now().await;
        yield_now().await;
    })
    .unwrap();
    drop(rt);
}

#[test]
fn a_closed_mailbox_gives_back() {
    round();
    round();
    let before = LIVE.load(Ordering::Relaxed);
    (0..4).for_each(|_| round());
    assert_eq!(LIVE.load(Ordering::Relaxed) - before, 0);
}
