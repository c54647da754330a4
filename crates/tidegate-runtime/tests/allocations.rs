//! Who allocates: a spawn, once; nothing else (G4). The registry, the queues, joins, wakes from here and from elsewhere,
//! sleeps, dumps of nothing: none.
#![cfg(all(not(loom), not(miri)))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use tidegate_channel::bounded;
use tidegate_runtime::{spawn_local, spawn_local_named, yield_now, Runtime};
use tidegate_wait::timer::sleep;
use tidegate_wait::Operation;

struct Counting;

std::thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: everything is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size()));
        let _ = LIVE.try_with(|live| live.set(live.get() + layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let _ = LIVE.try_with(|live| live.set(live.get() - layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What was allocated on this thread since the last call: calls and bytes.
fn since_last() -> (usize, usize) {
    thread_local!(static LAST: Cell<(usize, usize)> = const { Cell::new((0, 0)) });
    let now = (COUNT.get(), BYTES.get());
    let last = LAST.replace(now);
    (now.0 - last.0, now.1 - last.1)
}

#[test]
fn a_spawn_allocates_once_and_nothing_else_does() {
    let rt = Runtime::new().unwrap();
    rt.block_on(async {
        let (tx, rx) = bounded::<u64>(1);
        // The names of what is waited for, once each.
        let mut warm = spawn_local(sleep(Duration::from_millis(1)));
        assert!(rx.recv().timeout(Duration::from_millis(1)).await.is_err());
        warm.join().await.unwrap();
        let _ = since_last();

        let receiver = spawn_local(rx.clone().into_recv());
        let (calls, bytes) = since_last();
        // 88 of header, 40 of receive.
        assert_eq!((calls, bytes), (1, 128));
        yield_now().await;
        tx.send(1).await.unwrap();
        assert_eq!(receiver.await.unwrap(), Ok(1));
        assert_eq!(since_last(), (0, 0), "a park, a wake, a join");

        // A task blocked in a send of 8 bytes: with the allocator's own 8 bytes and its rounding, 160.
        tx.send(2).await.unwrap();
        let sender = spawn_local(tx.clone().into_send(3));
        assert_eq!(since_last(), (1, 88 + 48));
        yield_now().await;
        assert_eq!((rx.recv().await, rx.recv().await), (Ok(2), Ok(3)));
        sender.await.unwrap().unwrap();

        let mut sleeper = spawn_local(sleep(Duration::from_millis(2)));
        assert_eq!(since_last(), (1, 88 + 64));
        assert!(sleeper.join().timeout(Duration::from_millis(1)).await.is_err());
        sleeper.await.unwrap();
        for _ in 0..1000 {
            yield_now().await;
        }
        assert_eq!(since_last(), (0, 0), "a sleep, a limit, turns");

        let named = spawn_local_named("named", async {});
        assert_eq!(since_last().0, 3, "a name costs its text and a box");
        named.await.unwrap();
    })
    .unwrap();
}

/// Wakes and aborts from other threads leave nothing behind either.
#[test]
fn wakes_from_other_threads_do_not_allocate() {
    let rt = Runtime::new().unwrap();
    rt.block_on(async {
        let (tx, rx) = bounded::<u64>(1);
        let (done, ended) = bounded::<usize>(1);
        let task = spawn_local(std::future::pending::<()>());
        let abort = task.abort_handle();
        std::thread::spawn(move || {
            // The thread's own parker, if a send has to wait, and whatever a thread allocates first.
            tx.send(0).wait().unwrap();
            std::thread::sleep(Duration::from_millis(5));
            let _ = since_last();
            for i in 1..100 {
                tx.send(i).wait().unwrap();
            }
            abort.abort();
            done.send(since_last().0).wait().unwrap();
        });
        for i in 0..100 {
            assert_eq!(rx.recv().await.unwrap(), i);
        }
        assert_eq!(ended.recv().await.unwrap(), 0);
        assert!(task.await.unwrap_err().is_aborted());
    })
    .unwrap();
}

/// Everything is given back: tasks that ended, were aborted, woken by value and by reference, once and often, joined,
/// detached, or dropped with their runtime.
#[test]
fn every_task_is_freed() {
    let round = || {
        let rt = Runtime::new().unwrap();
        rt.block_on(async {
            let (tx, rx) = bounded::<u64>(1);
            spawn_local(rx.clone().into_recv()).detach();
            let joined = spawn_local(rx.clone().into_recv());
            let aborted = spawn_local(rx.clone().into_recv());
            let abort = aborted.abort_handle();
            yield_now().await;
            for i in 0..2 {
                tx.send(i).await.unwrap();
            }
            abort.abort();
            abort.abort();
            assert!(aborted.await.unwrap_err().is_aborted());
            joined.await.unwrap().unwrap();
            let own = spawn_local(std::future::poll_fn(|cx| {
                // Queued when it ends, by three wakes.
                cx.waker().wake_by_ref();
                let by_value = cx.waker().clone();
                by_value.wake();
                std::task::Poll::Ready(cx.waker().clone())
            }));
            let waker = own.await.unwrap();
            waker.wake_by_ref();
            let by_value = waker.clone();
            by_value.wake();
            drop(waker);
            spawn_local(rx.into_recv()).detach();
            spawn_local_named("left", sleep(Duration::from_secs(60))).detach();
            drop(spawn_local(async { yield_now().await }));
            yield_now().await;
        })
        .unwrap();
        // Queued, and in the mailbox.
        rt.spawn(async {}).detach();
        rt.handle().spawn(async {}).detach();
        let never_polled = rt.spawn(async {});
        drop(rt);
        assert!(never_polled.wait().is_err());
    };
    // The mailbox, the wheel's cell and the thread's parker stay for the next one.
    round();
    let before = LIVE.get();
    round();
    assert_eq!(LIVE.get() - before, 0);
}
