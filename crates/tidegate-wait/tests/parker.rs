//! The parker: no token is lost, none is invented, and the thread's own `unpark` token is left to the user (K1).

mod support;

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

use tidegate_wait::op::block_on;
use tidegate_wait::parker::Parker;
use tidegate_wait::wait_queue::WaitQueue;
use tidegate_wait::Operation;

#[test]
fn many_wakes_are_one_token() {
    let parker = Parker::new();
    for _ in 0..5 {
        parker.waker().wake_by_ref();
        let waker = parker.waker().clone();
        waker.wake();
    }
    parker.park();
    // The second park waits for a wake of its own.
    let waker = parker.waker().clone();
    let woken = Arc::new(AtomicBool::new(false));
    let set = woken.clone();
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(if cfg!(miri) { 1 } else { 20 }));
        set.store(true, Ordering::Relaxed);
        waker.wake();
    });
    parker.park();
    assert!(woken.load(Ordering::Relaxed), "returned early, or did not see what came before the wake");
    other.join().unwrap();
}

/// A limited park ends at its limit, never early, or with a token; a token that comes later is the next park's.
#[test]
fn a_limited_park_ends_at_its_limit() {
    let parker = Parker::new();
    let limit = Duration::from_millis(5);
    let before = Instant::now();
    assert!(!parker.park_timeout(limit));
    assert!(before.elapsed() >= limit);
    assert!(!parker.park_timeout(Duration::ZERO));
    parker.waker().wake_by_ref();
    assert!(parker.park_timeout(Duration::ZERO));
    let waker = parker.waker().clone();
    let other = std::thread::spawn(move || waker.wake());
    assert!(parker.park_timeout(Duration::MAX));
    other.join().unwrap();
}

#[test]
fn no_token_is_lost() {
    // Ping-pong: one lost token, and both sleep for ever.
    let rounds = if cfg!(miri) { 20 } else { 50_000 };
    let turn = AtomicUsize::new(0);
    let parkers = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let here = Parker::new();
        let my_waker = here.waker().clone();
        let turn = &turn;
        let send = parkers.0;
        scope.spawn(move || {
            let there = Parker::default();
            send.send(there.waker().clone()).unwrap();
            for i in 0..rounds {
                while turn.load(Ordering::Relaxed) != 2 * i + 1 {
                    there.park();
                }
                turn.store(2 * i + 2, Ordering::Relaxed);
                my_waker.wake_by_ref();
            }
        });
        let other: Waker = parkers.1.recv().unwrap();
        for i in 0..rounds {
            turn.store(2 * i + 1, Ordering::Relaxed);
            other.wake_by_ref();
            while turn.load(Ordering::Relaxed) != 2 * i + 2 {
                here.park();
            }
        }
    });
}

#[test]
fn the_threads_own_token_is_the_users() {
    // Neither swallowed by a blocking wait, nor taken for a wake.
    let queue = WaitQueue::<u32>::new();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            std::thread::current().unpark();
            let mut polls = 0;
            let mut park = std::pin::pin!(queue.park());
            let got = block_on(poll_fn(|cx| {
                polls += 1;
                park.as_mut().poll(cx)
            }));
            assert_eq!(got, Ok(Some(1)));
            assert!(polls <= 2, "the user's token woke the wait: {polls} polls");
            // Still there: this returns at once.
            std::thread::park();
        });
        while queue.parked() == 0 {
            waits.thread().unpark();
            std::thread::yield_now();
        }
        waits.thread().unpark();
        queue.hand_over(1).unwrap();
    });
}

use std::future::Future;

#[test]
fn waits_nest() {
    // A poll that blocks, and a waker that blocks: each wait has a parker of its own.
    let inner = |n: u32| {
        let queue = Arc::new(WaitQueue::<u32>::new());
        let waker_side = queue.clone();
        let other = std::thread::spawn(move || {
            while waker_side.hand_over(n).is_err() {
                std::thread::yield_now();
            }
        });
        let got = queue.park().wait();
        other.join().unwrap();
        got
    };
    let mut first = true;
    let outer = poll_fn(|cx| {
        if std::mem::take(&mut first) {
            cx.waker().wake_by_ref();
            assert_eq!(inner(2), Ok(Some(2)));
            assert_eq!(block_on(async { block_on(async { 3 }) }), 3);
            return Poll::Pending;
        }
        Poll::Ready(1)
    });
    assert_eq!(block_on(outer), 1, "the inner waits took the outer one's token");
}

#[test]
fn a_wait_that_panics_leaves_the_thread_usable() {
    let unwound = std::panic::catch_unwind(|| block_on(async { support::quiet_panic() }));
    std::mem::forget(unwound);
    assert_eq!(WaitQueue::<u32>::new().park().timeout(Duration::from_millis(1)).wait().ok(), None);
}

#[test]
fn a_late_wake_is_harmless() {
    // The waker outlives the wait and its thread.
    let (send, wakers) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        block_on(poll_fn(|cx| {
            send.send(cx.waker().clone()).unwrap();
            Poll::Ready(())
        }));
    })
    .join()
    .unwrap();
    let waker = wakers.recv().unwrap();
    waker.wake_by_ref();
    waker.wake();
}

#[test]
fn a_waker_that_waits_while_it_wakes() {
    struct Blocks(Arc<WaitQueue<u32>>);
    impl Wake for Blocks {
        fn wake(self: Arc<Self>) {
            assert!(self.0.park().timeout(Duration::from_millis(1)).wait().is_err());
        }
    }
    let queue = Arc::new(WaitQueue::<u32>::new());
    let waker = Waker::from(Arc::new(Blocks(queue.clone())));
    let mut park = Box::pin(queue.park());
    assert!(support::poll(park.as_mut(), &waker).is_pending());
    queue.hand_over(1).unwrap();
    assert_eq!(park.wait(), Ok(Some(1)));
}

trait Wait: Future + Sized {
    fn wait(self) -> Self::Output {
        block_on(self)
    }
}

impl<F: Future> Wait for std::pin::Pin<Box<F>> {}
