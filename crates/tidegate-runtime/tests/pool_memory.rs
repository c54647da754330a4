//! A pool frees its tasks, whoever holds an entry of them in a queue when it ends (W2).
#![cfg(not(loom))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_runtime::{spawn, yield_now, Runtime};

/// Tasks of this test are of a size that nothing else has.
const BIG: usize = 20_500;

struct Counting;

static ALIVE: AtomicIsize = AtomicIsize::new(0);

fn is_task(layout: Layout) -> bool {
    (BIG..BIG + 1_000).contains(&layout.size())
}

// SAFETY: the system's, with a count.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALIVE.fetch_add(isize::from(is_task(layout)), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        ALIVE.fetch_sub(isize::from(is_task(layout)), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Its drop gives another thread the time to wake the task in the middle of its end.
struct Slow;

impl Drop for Slow {
    fn drop(&mut self) {
        thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn tasks_that_are_woken_while_their_pool_ends() {
    let tasks = if cfg!(miri) { 4 } else { 40 };
    for _ in 0..if cfg!(miri) { 1 } else { 10 } {
        let rt = Runtime::builder().threads(2).build().unwrap();
        let wakers = Arc::new(Mutex::new(Vec::<Waker>::new()));
        rt.block_on(async {
            for _ in 0..tasks {
                let wakers = wakers.clone();
                spawn(async move {
                    let (big, _slow) = ([1_u8; BIG], Slow);
                    let mut is_known = false;
                    poll_fn(|cx| -> Poll<()> {
                        if !std::mem::replace(&mut is_known, true) {
                            wakers.lock().unwrap().push(cx.waker().clone());
                        }
                        Poll::Pending
                    })
                    .await;
                    std::hint::black_box(&big);
                })
                .detach();
            }
            while wakers.lock().unwrap().len() < tasks {
                yield_now().await;
            }
        })
        .unwrap();
        assert!(ALIVE.load(Ordering::Relaxed) >= tasks as isize);
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, wakers) = (stop.clone(), std::mem::take(&mut *wakers.lock().unwrap()));
        let fire = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                wakers.iter().for_each(Waker::wake_by_ref);
            }
        });
        thread::sleep(Duration::from_millis(2));
        drop(rt);
        stop.store(true, Ordering::Relaxed);
        fire.join().unwrap();
        // A worker may be the last to leave.
        let begin = Instant::now();
        while ALIVE.load(Ordering::Relaxed) != 0 {
            assert!(begin.elapsed() < Duration::from_secs(60), "{} tasks are left", ALIVE.load(Ordering::Relaxed));
            thread::sleep(Duration::from_millis(1));
        }
    }
}
