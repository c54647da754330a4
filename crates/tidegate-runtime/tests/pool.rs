//! What only a pool has: threads that take over from each other, and come and go. CASES 45 to 48.
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::future::{pending, Future};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Barrier, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use tidegate_channel::{bounded, Operation};
use tidegate_runtime::{
    join_all, scope, spawn, spawn_local, spawn_named, yield_now, Builder, JoinError, ResizeError, Runtime,
};
use tidegate_wait::timer::{sleep, timeout};

const MS: Duration = Duration::from_millis(1);
/// Beyond any poll, wake and sleep of these tests: who waits so long, waits for ever.
const LONG: Duration = Duration::from_secs(60);

fn pool(threads: usize) -> Runtime {
    Runtime::builder().threads(threads).build().unwrap()
}

/// Computes, as far as anybody can tell.
fn compute(time: Duration) {
    thread::sleep(time);
}

fn until(what: impl Fn() -> bool) {
    let begin = Instant::now();
    while !what() {
        assert!(begin.elapsed() < LONG, "it does not come");
        thread::sleep(MS);
    }
}

/// Two tasks run at the same time: each waits, in one poll, for the other.
#[test]
fn tasks_run_at_once() {
    pool(2)
        .block_on(async {
            let barrier = Arc::new(Barrier::new(2));
            let tasks = [barrier.clone(), barrier].map(|barrier| spawn(async move { barrier.wait().is_leader() }));
            let mut leaders = 0;
            for task in tasks {
                leaders += usize::from(task.await.unwrap());
            }
            assert_eq!(leaders, 1);
        })
        .unwrap();
}

/// The pool's own threads go on outside of `block_on`, and begin what comes from elsewhere.
#[test]
fn tasks_run_outside_of_block_on() {
    let rt = pool(2);
    assert_eq!(
        rt.handle()
            .spawn(async {
                sleep(MS).await;
                7
            })
            .wait()
            .unwrap(),
        7
    );
    let shared = rt
        .block_on(async {
            spawn(async {
                sleep(5 * MS).await;
                8
            })
        })
        .unwrap();
    assert_eq!(shared.wait().unwrap(), 8);
}

/// CASES 45: among tasks that yield, each has its turn.
#[test]
fn yields_take_turns() {
    let rt = pool(2);
    let counts: Vec<_> = (0..3).map(|_| Arc::new(AtomicUsize::new(0))).collect();
    let stop = Arc::new(AtomicBool::new(false));
    rt.block_on(async {
        let tasks: Vec<_> = counts
            .iter()
            .map(|count| {
                let (count, stop) = (count.clone(), stop.clone());
                spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        count.fetch_add(1, Ordering::Relaxed);
                        yield_now().await;
                    }
                })
            })
            .collect();
        // Each of them goes on, and this task is one of four that yield.
        let begin = Instant::now();
        while counts.iter().any(|count| count.load(Ordering::Relaxed) < 1_000) {
            assert!(begin.elapsed() < LONG, "{counts:?}");
            yield_now().await;
        }
        stop.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await.unwrap();
        }
    })
    .unwrap();
}

/// CASES 46: a task that was woken by one that goes on computing runs elsewhere, meanwhile; it is the slot's first. And so
/// do those that were woken after it, which went from the slot to the deque.
#[test]
fn who_computes_keeps_nobody() {
    for (woken, threads) in [(1, 2), (3, 2), (1, 4), (5, 4)] {
        let rt = pool(threads);
        rt.block_on(async {
            for _ in 0..3 {
                let (done, wait) = mpsc::channel();
                let channels: Vec<_> = (0..woken).map(|_| bounded::<u8>(1)).collect();
                let (txs, rxs): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
                for rx in rxs {
                    let done = done.clone();
                    spawn(async move {
                        rx.recv().await.unwrap();
                        done.send(()).unwrap();
                    })
                    .detach();
                }
                // They have parked by then.
                while txs.iter().any(|tx| tx.parked_receivers() == 0) {
                    yield_now().await;
                }
                let waker = spawn(async move {
                    for tx in &txs {
                        tx.try_send(1).unwrap();
                    }
                    // The same poll: without another worker this would wait for ever.
                    (0..woken).for_each(|_| wait.recv_timeout(LONG).unwrap());
                });
                waker.await.unwrap();
            }
        })
        .unwrap();
    }
}

/// The same for a task that was spawned: its parent waits, in the poll that has spawned it.
#[test]
fn a_spawned_task_runs_beside_its_parent() {
    let rt = pool(2);
    rt.block_on(async {
        for _ in 0..5 {
            let (done, wait) = mpsc::channel();
            let child = spawn(async move { done.send(1).unwrap() });
            assert_eq!(wait.recv_timeout(LONG).unwrap(), 1);
            child.await.unwrap();
        }
    })
    .unwrap();
}

/// CASES 47: beside loops that are always ready, timers fire.
#[test]
fn ready_loops_starve_no_timer() {
    let rt = pool(2);
    rt.block_on(async {
        let stop = Arc::new(AtomicBool::new(false));
        let loops: Vec<_> = (0..4)
            .map(|_| {
                let stop = stop.clone();
                spawn(async move {
                    let (tx, rx) = bounded::<u8>(1);
                    while !stop.load(Ordering::Relaxed) {
                        tx.send(1).await.unwrap();
                        rx.recv().await.unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..5 {
            sleep(2 * MS).await;
        }
        stop.store(true, Ordering::Relaxed);
        for task in loops {
            task.await.unwrap();
        }
    })
    .unwrap();
}

/// A timer of a worker that computes is fired by another: its task ends before the computing does.
#[test]
fn timers_of_a_worker_that_computes() {
    for is_idle_for_long in [false, true] {
        let rt = pool(2);
        rt.block_on(async {
            let (done, wait) = mpsc::channel();
            if is_idle_for_long {
                // The other worker has planned to sleep until somebody wakes it.
                sleep(20 * MS).await;
            }
            for _ in 0..3 {
                let done = done.clone();
                spawn(async move {
                    sleep(3 * MS).await;
                    done.send(()).unwrap();
                })
                .detach();
            }
            // They arm their timers, perhaps here.
            for _ in 0..50 {
                yield_now().await;
            }
            (0..3).for_each(|_| wait.recv_timeout(LONG).unwrap());
        })
        .unwrap();
    }
}

/// A worker that is resized away leaves its tasks, its timers and what was woken there to the others.
#[test]
fn nothing_stays_with_a_worker_that_leaves() {
    let rt = pool(4);
    let handle = rt.handle();
    rt.block_on(async {
        for round in 0..20 {
            let threads = Arc::new(Mutex::new(HashSet::<ThreadId>::new()));
            let tasks: Vec<_> = (0..40)
                .map(|n| {
                    let threads = threads.clone();
                    spawn(async move {
                        threads.lock().unwrap().insert(thread::current().id());
                        sleep(Duration::from_micros(500 + n * 50)).await;
                        yield_now().await;
                        n
                    })
                })
                .collect();
            for _ in 0..round {
                yield_now().await;
            }
            handle.resize(1 + round % 2).unwrap();
            for (n, task) in (0..).zip(tasks) {
                assert_eq!(task.await.unwrap(), n);
            }
            handle.resize(4).unwrap();
        }
    })
    .unwrap();
}

/// A worker that has pinned tasks stays until they have ended.
#[test]
fn pinned_tasks_keep_their_worker() {
    let rt = pool(3);
    let handle = rt.handle();
    let (begun, has_begun) = mpsc::channel();
    let (go, gone) = bounded::<u8>(1);
    // On a thread of the pool's own, since nobody is in `block_on`.
    let parent = handle.spawn(async move {
        let home = thread::current().id();
        let children = join_all((0..3).map(|n| {
            let gone = gone.clone();
            async move {
                let not_send = Rc::new(n);
                gone.recv().await.unwrap_err();
                assert_eq!(thread::current().id(), home);
                *not_send
            }
        }));
        begun.send(()).unwrap();
        children.await.into_iter().map(Result::unwrap).sum::<u32>()
    });
    has_begun.recv_timeout(LONG).unwrap();
    thread::sleep(5 * MS);
    handle.resize(1).unwrap();
    thread::sleep(5 * MS);
    drop(go);
    // With one thread left, what is shared runs in `block_on`.
    assert_eq!(rt.block_on(async { parent.await }).unwrap().unwrap(), 3);
}

#[test]
fn sizes_that_make_no_sense() {
    let rt = pool(2);
    let handle = rt.handle();
    assert_eq!(handle.resize(0), Err(ResizeError::NoThreads));
    assert_eq!(handle.resize(257), Err(ResizeError::TooManyThreads(257)));
    assert!(ResizeError::TooManyThreads(257).to_string().contains("256"));
    assert_eq!(handle.resize(2), Ok(()));
    assert_eq!(Runtime::new().unwrap().handle().resize(2), Err(ResizeError::Local));
    drop(rt);
    assert_eq!(handle.resize(3), Err(ResizeError::Shutdown));
}

/// Threads have the names that the builder says, call what it says, and end with their runtime, idle or not.
#[test]
fn threads_end_with_their_runtime() {
    struct Alive(Arc<AtomicUsize>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    thread_local! {
        static ALIVE: RefCell<Option<Alive>> = const { RefCell::new(None) };
    }
    let (alive, numbers) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    for round in 0..if cfg!(miri) { 2 } else { 40 } {
        let (count, seen) = (alive.clone(), numbers.clone());
        let rt = Runtime::builder()
            .threads(3)
            .thread_name("gate")
            .on_thread_start(move |number| {
                count.fetch_add(1, Ordering::Relaxed);
                ALIVE.set(Some(Alive(count.clone())));
                seen.lock().unwrap().push((number, thread::current().name().map(str::to_owned)));
            })
            .build()
            .unwrap();
        if round % 2 == 1 {
            until(|| numbers.lock().unwrap().len() == 2);
            rt.handle().spawn(async { yield_now().await }).wait().unwrap();
            // Long asleep by now.
            thread::sleep(MS);
        }
        drop(rt);
        until(|| alive.load(Ordering::Relaxed) == 0);
        let mut numbers = std::mem::take(&mut *numbers.lock().unwrap());
        numbers.sort();
        assert_eq!(numbers, [(1, Some("gate-1".into())), (2, Some("gate-2".into()))]);
    }
}

/// CASES 48: a poll that does not end. The shutdown says so when its time is over, and names it; what it holds is dropped when
/// it ends after all, by the thread that ends it.
#[test]
fn a_poll_that_does_not_end() {
    struct Told(mpsc::Sender<&'static str>, &'static str);
    impl Drop for Told {
        fn drop(&mut self) {
            let _ = self.0.send(self.1);
        }
    }
    for by_shutdown in [true, false] {
        let rt = pool(2);
        let (told, dropped) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        let (of_poll, of_other) = (Told(told.clone(), "poll"), Told(told, "other"));
        let handle = rt.handle();
        let stuck = handle.spawn_named("the endless", async move {
            let _of_poll = of_poll;
            begun.send(()).unwrap();
            ended.recv().unwrap();
            pending::<()>().await
        });
        has_begun.recv_timeout(LONG).unwrap();
        let other = handle.spawn_named("the waiting", async move {
            let _of_other = of_other;
            pending::<()>().await
        });
        match by_shutdown {
            true => {
                let unfinished = rt.shutdown(20 * MS).unwrap_err().to_string();
                assert!(unfinished.contains("the endless") && unfinished.contains("running"), "{unfinished}");
                assert!(unfinished.contains("the waiting"), "{unfinished}");
            }
            false => drop(rt),
        }
        end.send(()).unwrap();
        let mut both = [dropped.recv_timeout(LONG).unwrap(), dropped.recv_timeout(LONG).unwrap()];
        both.sort_unstable();
        assert_eq!(both, ["other", "poll"]);
        assert!(matches!(stuck.wait(), Err(JoinError::Shutdown)));
        assert!(matches!(other.wait(), Err(JoinError::Shutdown)));
    }
}

/// A report while everything runs: from outside of the runtime, with nobody in `block_on`.
#[test]
fn a_dump_of_a_pool() {
    let rt = pool(3);
    let (_tx, rx) = bounded::<u8>(1);
    let handle = rt.handle();
    let waiting = handle.spawn_named("reader", async move { rx.recv().await });
    until(|| {
        let dump = handle.dump();
        assert!(dump.is_complete);
        dump.to_string().contains("receive on channel")
    });
    assert!(handle.dump().to_string().contains("reader"));
    drop(_tx);
    assert!(waiting.wait().unwrap().is_err());
}

/// A closed world: tasks of a pool that nothing can wake are a deadlock, whichever thread they parked on; as long as one
/// runs, computes, or sleeps, there is none.
#[test]
fn a_deadlock_on_a_pool() {
    let rt = Runtime::builder().threads(3).closed_world(true).build().unwrap();
    for _ in 0..20 {
        rt.block_on(async {
            let computes = spawn(async { compute(3 * MS) });
            let sleeps = spawn(async { sleep(2 * MS).await });
            computes.await.unwrap();
            sleeps.await.unwrap();
        })
        .unwrap();
        let (tx, rx) = bounded::<u8>(1);
        let error = rt
            .block_on(async {
                let stuck = spawn_named("stuck", async move {
                    let _tx = tx;
                    yield_now().await;
                    rx.recv().await.unwrap();
                });
                stuck.await.unwrap();
            })
            .unwrap_err()
            .to_string();
        assert!(error.contains("stuck") && error.contains("receive on channel"), "{error}");
    }
}

/// Virtual time passes when all threads are idle, and not before.
#[test]
fn virtual_time_on_a_pool() {
    let rt = Runtime::builder().threads(3).virtual_time(true).closed_world(true).build().unwrap();
    rt.block_on(async {
        let naps: Vec<_> = (1..=20)
            .map(|n| {
                spawn(async move {
                    let slow = spawn(async { compute(MS) });
                    sleep(n * 3600 * 1000 * MS).await;
                    slow.await.unwrap();
                    n
                })
            })
            .collect();
        // The shorter limit is over first, however long a poll takes.
        let limited = spawn(timeout(3600 * 1000 * MS, async {
            sleep(1800 * 1000 * MS).await;
            compute(2 * MS);
        }));
        limited.await.unwrap().unwrap();
        for (n, nap) in (1..).zip(naps) {
            assert_eq!(nap.await.unwrap(), n);
        }
    })
    .unwrap();
}

/// Tasks between a pool, a local runtime, tokio and a thread, through channels and timers of ours.
#[test]
#[cfg_attr(miri, ignore = "tokio's driver needs system calls that Miri has not")]
fn between_pool_tokio_and_threads() {
    let rt = pool(2);
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    let (first, to_tokio) = bounded::<u32>(1);
    let (from_tokio, to_thread) = bounded::<u32>(1);
    let (from_thread, last) = bounded::<u32>(1);
    let rounds = 500;
    let through = tokio.spawn(async move {
        while let Ok(n) = to_tokio.recv().timeout(LONG).await {
            from_tokio.send(n + 1).timeout(LONG).await.unwrap();
        }
    });
    let thread = thread::spawn(move || {
        while let Ok(n) = to_thread.recv().wait() {
            from_thread.send(n + 1).wait().unwrap();
        }
    });
    rt.block_on(async {
        let sends = spawn(async move {
            for n in 0..rounds {
                first.send(n).await.unwrap();
            }
        });
        for n in 0..rounds {
            assert_eq!(last.recv().timeout(LONG).await.unwrap(), n + 2);
            if n % 100 == 0 {
                sleep(MS).await;
            }
        }
        sends.await.unwrap();
    })
    .unwrap();
    tokio.block_on(through).unwrap();
    thread.join().unwrap();
}

/// Pinned tasks stay, shared ones may go, side by side; both ends of one channel.
#[test]
fn pinned_and_shared_side_by_side() {
    let rt = pool(3);
    rt.block_on(async {
        let home = thread::current().id();
        let (tx, rx) = bounded::<u32>(2);
        let log = Rc::new(RefCell::new(0));
        let count = log.clone();
        let pinned = spawn_local(async move {
            while let Ok(n) = rx.recv().await {
                assert_eq!(thread::current().id(), home);
                *count.borrow_mut() += n;
            }
        });
        let senders: Vec<_> = (0..6)
            .map(|_| {
                let tx = tx.clone();
                spawn(async move {
                    for n in 0..200 {
                        tx.send(n).await.unwrap();
                    }
                })
            })
            .collect();
        drop(tx);
        for sender in senders {
            sender.await.unwrap();
        }
        pinned.await.unwrap();
        assert_eq!(*log.borrow(), 6 * 199 * 100);
    })
    .unwrap();
}

/// A pool's memory is used again: by a runtime with fewer threads, in virtual time, in a closed world.
#[test]
fn a_smaller_runtime_after_a_larger_one() {
    for threads in [6, 2, 5, 3, 2] {
        drop(pool(threads));
        let rt = Runtime::builder().threads(2).virtual_time(true).closed_world(true).build().unwrap();
        rt.block_on(async { spawn(sleep(3600 * 1000 * MS)).await.unwrap() }).unwrap();
        assert!(rt.block_on(pending::<()>()).is_err());
    }
}

/// How often the thread in `block_on` finds nothing to do while `future` runs, on a runtime that `builder` makes: who spins
/// does so a hundred thousand times in the time of these tests.
fn idle_calls(builder: Builder, future: impl Future) -> usize {
    let calls = Rc::new(Cell::new(0));
    let count = calls.clone();
    let rt = builder.on_idle(move || count.set(count.get() + 1)).build().unwrap();
    rt.block_on(future).unwrap();
    calls.get()
}

/// A search for circles that is put off keeps nobody awake.
#[test]
fn a_search_that_is_put_off_does_not_spin() {
    let calls = idle_calls(Runtime::builder().threads(2), async {
        // The first join has a search; the second comes too early for the next one.
        spawn(sleep(10 * MS)).await.unwrap();
        spawn(sleep(300 * MS)).await.unwrap();
    });
    assert!(calls < 5_000, "{calls}");
}

/// What a larger runtime has left in a pool's memory keeps nobody awake either.
#[test]
fn old_timers_do_not_spin() {
    let rt = pool(6);
    rt.block_on(async {
        for _ in 0..60 {
            spawn(async {
                sleep(MS).await;
                compute(MS / 4);
                sleep(20 * MS).await;
            })
            .detach();
        }
        sleep(10 * MS).await;
    })
    .unwrap();
    drop(rt);
    thread::sleep(50 * MS);
    let calls = idle_calls(Runtime::builder().threads(2), sleep(200 * MS));
    assert!(calls < 5_000, "{calls}");
}

/// What the builder was given goes with the runtime.
#[test]
fn hooks_are_dropped() {
    let hook = Arc::new(());
    let of_threads = hook.clone();
    let rt = Runtime::builder()
        .threads(2)
        .on_thread_start(move |_| {
            let _ = &of_threads;
        })
        .build()
        .unwrap();
    drop(rt);
    until(|| Arc::strong_count(&hook) == 1);
}

/// After a shutdown whose time was over, what nobody polls has been dropped.
#[test]
fn an_unfinished_shutdown_drops_what_waits() {
    for _ in 0..if cfg!(miri) { 1 } else { 20 } {
        let value = Arc::new(());
        let held = value.clone();
        let rt = pool(3);
        let waits = rt.handle().spawn(async move {
            let _held = held;
            pending::<()>().await
        });
        assert!(rt.shutdown(MS).is_err());
        assert_eq!(Arc::strong_count(&value), 1);
        assert!(matches!(waits.wait(), Err(JoinError::Shutdown)));
    }
}

/// A report has a task in its hands that was woken meanwhile: that is no deadlock.
#[test]
fn a_report_makes_no_deadlock() {
    let rt = Runtime::builder().threads(2).closed_world(true).build().unwrap();
    let (handle, stop) = (rt.handle(), Arc::new(AtomicBool::new(false)));
    let stopped = stop.clone();
    let reporter = thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            assert!(handle.dump().is_complete);
        }
    });
    for _ in 0..if cfg!(miri) { 3 } else { 3_000 } {
        rt.block_on(async {
            let (to, from) = (bounded::<u32>(1), bounded::<u32>(1));
            let echo = spawn(async move {
                while let Ok(n) = to.1.recv().await {
                    from.0.send(n).await.unwrap();
                }
            });
            for n in 0..20 {
                to.0.send(n).await.unwrap();
                assert_eq!(from.1.recv().await.unwrap(), n);
            }
            drop(to.0);
            echo.await.unwrap();
        })
        .unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    reporter.join().unwrap();
}

/// A scope that is dropped while a child spawns another, on another thread: that one ends, too.
#[test]
fn a_scope_ends_with_a_spawn_on_its_way() {
    struct Alive(Arc<AtomicUsize>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let alive = Arc::new(AtomicUsize::new(0));
    let rt = pool(3);
    for round in 0..if cfg!(miri) { 5 } else { 1_000 } {
        let count = alive.clone();
        rt.block_on(async {
            let parent = spawn(scope(|s| async move {
                let siblings = s.clone();
                s.spawn(async move {
                    for _ in 0..50 {
                        count.fetch_add(1, Ordering::Relaxed);
                        let alive = Alive(count.clone());
                        let waits = async move {
                            let _alive = alive;
                            pending::<Result<(), ()>>().await
                        };
                        siblings.spawn(waits).detach();
                    }
                    Ok(())
                })
                .detach();
                pending::<Result<(), ()>>().await
            }));
            for _ in 0..round % 9 {
                yield_now().await;
            }
            parent.abort();
            assert!(parent.await.is_err());
            let begin = Instant::now();
            while alive.load(Ordering::Relaxed) != 0 {
                assert!(begin.elapsed() < LONG, "round {round}: {} left", alive.load(Ordering::Relaxed));
                yield_now().await;
            }
        })
        .unwrap();
    }
}

/// A pool whose other worker is in the middle of a poll until the sender goes: whoever calls `block_on` is alone.
fn alone() -> (Runtime, mpsc::Sender<()>) {
    let rt = pool(2);
    let (free, freed) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let poll = rt.handle().spawn(async move {
        begun.send(()).unwrap();
        assert!(freed.recv().is_err());
    });
    poll.detach();
    has_begun.recv_timeout(LONG).unwrap();
    (rt, free)
}

/// Who yields goes behind all others, not into the slot.
#[test]
fn who_yields_goes_last() {
    let (rt, _free) = alone();
    let order = Arc::new(Mutex::new(Vec::new()));
    rt.block_on(async {
        let tasks: Vec<_> = (0..3)
            .map(|n| {
                let order = order.clone();
                spawn(async move {
                    for _ in 0..20 {
                        order.lock().unwrap().push(n);
                        yield_now().await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    })
    .unwrap();
    let order = order.lock().unwrap();
    assert!(order.windows(3).all(|three| three.iter().collect::<HashSet<_>>().len() == 3), "{order:?}");
}

/// Two that wake each other through the slot leave turns to who stands in the deque.
#[test]
fn the_slot_starves_no_deque() {
    let (rt, _free) = alone();
    rt.block_on(async {
        let stop = Arc::new(AtomicBool::new(false));
        let (to, from) = (bounded::<u8>(1), bounded::<u8>(1));
        let echo = spawn(async move {
            while to.1.recv().await.is_ok() {
                if from.0.send(1).await.is_err() {
                    break;
                }
            }
        });
        let (stopped, begin) = (stop.clone(), Instant::now());
        let calls = spawn(async move {
            while !stopped.load(Ordering::Relaxed) {
                assert!(begin.elapsed() < LONG, "the third has no turn");
                to.0.send(1).await.unwrap();
                from.1.recv().await.unwrap();
            }
        });
        let third = spawn(async move {
            for _ in 0..5 {
                yield_now().await;
            }
            stop.store(true, Ordering::Relaxed);
        });
        calls.await.unwrap();
        echo.await.unwrap();
        third.await.unwrap();
    })
    .unwrap();
}

/// What comes from outside has its turn, though the deque is never empty.
#[test]
fn the_deque_starves_no_injector() {
    let (rt, _free) = alone();
    let handle = rt.handle();
    rt.block_on(async {
        let stop = Arc::new(AtomicBool::new(false));
        let loops: Vec<_> = (0..3)
            .map(|_| {
                let (stop, begin) = (stop.clone(), Instant::now());
                spawn(async move {
                    while !stop.load(Ordering::Relaxed) {
                        assert!(begin.elapsed() < LONG, "what comes from outside has no turn");
                        yield_now().await;
                    }
                })
            })
            .collect();
        thread::spawn(move || handle.spawn(async move { stop.store(true, Ordering::Relaxed) }).detach());
        for task in loops {
            task.await.unwrap();
        }
    })
    .unwrap();
}

/// Half of a deque that is full goes to the injector, and none is lost on the way.
#[test]
fn more_tasks_than_a_deque_holds() {
    let (rt, _free) = alone();
    let count = if cfg!(miri) { 20 } else { 10_000 };
    let all = async {
        let tasks: Vec<_> = (0..count).map(|n| spawn(async move { n })).collect();
        for (n, task) in (0..).zip(tasks) {
            assert_eq!(task.await.unwrap(), n);
        }
    };
    rt.block_on(timeout(LONG, all)).unwrap().unwrap();
}

/// Whoever gets up leaves a watcher behind, who knows that it is one: what then stands in the slot of a worker that computes
/// runs. It gets up as the watcher, for a timer, or because something comes from outside; and the thread in `block_on` may be
/// in the middle of a poll.
#[test]
fn there_is_always_a_watcher() {
    for _ in 0..3 {
        for (by_timer, is_root_busy) in [(true, false), (true, true), (false, false), (false, true)] {
            let rt = pool(if is_root_busy { 4 } else { 3 });
            // All are asleep.
            thread::sleep(2 * MS);
            let (done, wait) = mpsc::channel();
            let (ended, has_ended) = mpsc::channel();
            let computes = rt.handle().spawn(async move {
                if by_timer {
                    sleep(5 * MS).await;
                }
                spawn(async move { done.send(()).unwrap() }).detach();
                ended.send(wait.recv_timeout(LONG).is_ok()).unwrap();
            });
            match is_root_busy {
                true => assert!(rt.block_on(async { has_ended.recv().unwrap() }).unwrap()),
                false => assert!(has_ended.recv().unwrap()),
            }
            computes.wait().unwrap();
        }
    }
}

/// Two tasks from outside meet: each waits, in one poll, for the other.
fn meet(rt: &Runtime) {
    let here = Arc::new(AtomicUsize::new(0));
    let both = [here.clone(), here].map(|here| {
        rt.handle().spawn(async move {
            here.fetch_add(1, Ordering::Relaxed);
            until(|| here.load(Ordering::Relaxed) == 2);
        })
    });
    both.into_iter().for_each(|task| task.wait().unwrap());
}

/// Two tasks come from outside before the one worker that is woken for them has found the first: it wakes another.
#[test]
fn who_finds_work_wakes_the_next() {
    let rt = pool(3);
    for _ in 0..20 {
        thread::sleep(2 * MS);
        meet(&rt);
    }
}

/// What comes from outside while the last worker goes to bed is not slept over.
#[test]
fn nothing_is_slept_over() {
    let rt = pool(2);
    let (begin, (done, wait)) = (Instant::now(), mpsc::channel());
    for round in 0..if cfg!(miri) { 10 } else { 20_000 } {
        let done = done.clone();
        rt.handle().spawn(async move { done.send(()).unwrap() }).detach();
        wait.recv_timeout(LONG).unwrap();
        (0..round % 400).for_each(|_| std::hint::spin_loop());
        if begin.elapsed() > 500 * MS {
            break;
        }
    }
}

/// A worker that was to leave, and is wanted again before it has, stays; one that has left is replaced.
#[test]
fn a_worker_that_is_wanted_again() {
    let rt = pool(3);
    let handle = rt.handle();
    for round in 0..if cfg!(miri) { 3 } else { 400 } {
        handle.resize(1).unwrap();
        (0..round * 20).for_each(|_| std::hint::spin_loop());
        handle.resize(3).unwrap();
        meet(&rt);
    }
}

/// A timer that was taken out, on a worker's wheel, is no reason to wait for it.
#[test]
fn a_deadlock_behind_an_old_timer() {
    let (told, is_over) = mpsc::channel();
    thread::spawn(move || {
        let rt = Runtime::builder().threads(3).closed_world(true).build().unwrap();
        // On a thread of the pool's own.
        rt.handle().spawn(async { timeout(3600 * 1000 * MS, yield_now()).await }).wait().unwrap().unwrap();
        told.send(rt.block_on(pending::<()>()).is_err()).unwrap();
    });
    assert!(is_over.recv_timeout(LONG).unwrap());
}

/// A timer that a poll has armed and waits for is fired by another worker.
#[test]
fn a_timer_of_the_same_poll() {
    struct Tell(mpsc::Sender<()>);
    impl Wake for Tell {
        fn wake(self: Arc<Self>) {
            self.0.send(()).unwrap();
        }
    }
    for is_idle_for_long in [false, true] {
        let rt = pool(2);
        rt.block_on(async {
            if is_idle_for_long {
                sleep(20 * MS).await;
            }
            let (fired, wait) = mpsc::channel();
            let waker = Waker::from(Arc::new(Tell(fired)));
            let mut nap = pin!(sleep(3 * MS));
            assert!(nap.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            wait.recv_timeout(LONG).unwrap();
        })
        .unwrap();
    }
}

/// A wheel that another has turned wants nothing more: nobody gets up for it again.
#[test]
fn timers_that_others_fire_do_not_spin() {
    let builder = Runtime::builder().threads(4);
    let calls = idle_calls(builder, async {
        for n in 0..30 {
            spawn(async move {
                compute(MS / 4);
                sleep((5 + n % 7) * MS).await;
            })
            .detach();
        }
        sleep(300 * MS).await;
    });
    assert!(calls < 5_000, "{calls}");
}

/// A shutdown returns when outputs that nobody wants have been dropped, however long that takes.
#[test]
fn a_shutdown_waits_for_outputs() {
    struct Slow(mpsc::Sender<()>, Arc<AtomicBool>);
    impl Drop for Slow {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
            // Longer than the patience of a runtime that is dropped.
            thread::sleep(1_500 * MS);
            self.1.store(true, Ordering::Relaxed);
        }
    }
    let (dropping, is_dropping) = mpsc::channel();
    let is_dropped = Arc::new(AtomicBool::new(false));
    let rt = pool(2);
    let output = Slow(dropping, is_dropped.clone());
    rt.handle().spawn(async move { output }).detach();
    is_dropping.recv_timeout(LONG).unwrap();
    rt.shutdown(Duration::MAX).unwrap();
    assert!(is_dropped.load(Ordering::Relaxed));
}
