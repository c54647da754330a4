//! Other threads and other runtimes: wakes, spawns, joins and aborts from outside, tokio inside and outside.
#![cfg(not(loom))]

#[path = "support/make.rs"]
mod make;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tidegate_channel::{bounded, oneshot, unbounded};
use tidegate_runtime::{spawn, spawn_blocking, spawn_local, yield_now, Handle, JoinError};
use tidegate_wait::timer::sleep;
use tidegate_wait::Operation;

use make::builder;

const MS: Duration = Duration::from_millis(1);
const ROUNDS: usize = if cfg!(miri) { 20 } else { 20_000 };

/// CASES 9: a send from another thread resumes the task on its own runtime: same thread, and its sleep works.
#[test]
fn a_foreign_send_resumes_the_task_at_home() {
    let rt = builder().build().unwrap();
    rt.block_on(async {
        let (tx, rx) = bounded::<u8>(1);
        let home = thread::current().id();
        let task = spawn_local(async move {
            let value = rx.recv().await.unwrap();
            assert_eq!(thread::current().id(), home);
            sleep(MS).await;
            assert_eq!(thread::current().id(), home);
            value
        });
        yield_now().await;
        let sender = thread::spawn(move || tx.send(3).wait().unwrap());
        assert_eq!(task.await.unwrap(), 3);
        sender.join().unwrap();
    })
    .unwrap();
}

/// Ping-pong with a thread: one lost wake, and it hangs.
#[test]
fn no_foreign_wake_is_lost() {
    let rt = builder().build().unwrap();
    let (to, from) = (bounded::<usize>(1), bounded::<usize>(1));
    let (tx, rx) = (to.0, from.1);
    let other = thread::spawn(move || {
        while let Ok(n) = to.1.recv().wait() {
            from.0.send(n + 1).wait().unwrap();
        }
    });
    rt.block_on(async {
        let mut n = 0;
        for round in 0..ROUNDS {
            tx.send(n).await.unwrap();
            n = rx.recv().await.unwrap();
            assert_eq!(n, round + 1);
        }
        drop(tx);
    })
    .unwrap();
    other.join().unwrap();
}

/// Spawns, joins and aborts from several threads while the runtime runs, and while it comes and goes.
#[test]
fn spawns_from_threads() {
    let rt = builder().build().unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (handle, ran) = (rt.handle(), ran.clone());
            thread::spawn(move || {
                let mut aborted = 0;
                for i in 0..ROUNDS / 4 {
                    let ran = ran.clone();
                    let task = handle.spawn(async move {
                        if i % 3 == 0 {
                            yield_now().await;
                        }
                        ran.fetch_add(1, Ordering::Relaxed);
                        i
                    });
                    match i % 4 {
                        0 => assert_eq!(task.wait().unwrap(), i),
                        1 => {
                            task.abort();
                            match task.wait() {
                                Err(JoinError::Aborted) => aborted += 1,
                                ended => assert_eq!(ended.unwrap(), i),
                            }
                        }
                        2 => drop(task),
                        _ => {
                            let handle = task.abort_handle();
                            drop(task);
                            drop(handle);
                        }
                    }
                }
                aborted
            })
        })
        .collect();
    let mut aborted = 0;
    rt.block_on(async {
        for thread in threads {
            aborted += spawn_blocking(move || thread.join().unwrap()).await.unwrap();
        }
        // What was left in the mailbox; on other threads of a pool, what has not ended yet.
        while ran.load(Ordering::Relaxed) + aborted < 3 * (ROUNDS / 4) {
            yield_now().await;
        }
    })
    .unwrap();
    assert_eq!(ran.load(Ordering::Relaxed) + aborted, 3 * (ROUNDS / 4));
}

/// A runtime that ends while other threads wake its tasks, spawn, and drop wakers; its mailbox goes to the next runtime.
#[test]
fn runtimes_end_under_fire() {
    let rounds = if cfg!(miri) { 4 } else { 300 };
    for _ in 0..rounds {
        let rt = builder().build().unwrap();
        let (tx, rx) = unbounded::<usize>();
        let receiver = rt.spawn(async move { while rx.recv().await.is_ok() {} });
        let handle = rt.handle();
        let fire = thread::spawn(move || {
            let mut refused = 0;
            for n in 0..50 {
                let _closed_by_the_end = tx.try_send(n);
                match handle.spawn(async move { n }).wait() {
                    Ok(m) => assert_eq!(m, n),
                    Err(JoinError::Shutdown) => refused += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            refused
        });
        rt.block_on(async {
            for _ in 0..10 {
                yield_now().await;
            }
        })
        .unwrap();
        drop(rt);
        drop(receiver);
        assert!(fire.join().unwrap() <= 50);
        // Nothing of it comes to the next one.
        let next = builder().build().unwrap();
        next.block_on(async {
            yield_now().await;
            assert_eq!(Handle::current().unwrap().dump().tasks.len(), 1);
        })
        .unwrap();
    }
}

/// S4: a task that is woken from another thread during its last poll ends while it stands in the mailbox.
#[test]
fn a_task_may_end_in_the_mailbox() {
    let rt = builder().build().unwrap();
    let mut wakers = Vec::new();
    rt.block_on(async {
        for by_value in [true, false, true] {
            let task = spawn_local(std::future::poll_fn(move |cx| {
                let waker = cx.waker().clone();
                let woken = thread::spawn(move || match by_value {
                    true => waker.wake(),
                    false => waker.wake_by_ref(),
                });
                woken.join().unwrap();
                std::task::Poll::Ready(cx.waker().clone())
            }));
            wakers.push(task.await.unwrap());
            yield_now().await;
            assert_eq!(Handle::current().unwrap().dump().tasks.len(), 1);
        }
    })
    .unwrap();
    drop(rt);
    wakers.into_iter().for_each(std::task::Waker::wake);
}

/// A handle of a runtime that is gone does not lead to the one that has its mailbox now.
#[test]
fn a_handle_is_its_runtimes_own() {
    let first = builder().build().unwrap();
    let handle = first.handle();
    drop(first);
    let second = builder().build().unwrap();
    second
        .block_on(async {
            assert!(matches!(handle.spawn(async { 7 }).await, Err(JoinError::Shutdown)));
            assert!(!handle.dump().is_complete);
        })
        .unwrap();
}

/// Spawns through a handle and through the runtime itself, outside of `block_on`, keep their order.
#[test]
fn spawns_outside_keep_their_order() {
    if make::is_pool() {
        return println!("skipped: a pool has no order between tasks");
    }
    let rt = builder().build().unwrap();
    let handle = rt.handle();
    let log = Arc::new(std::sync::Mutex::new(Vec::new()));
    let note = |what: u32| {
        let log = log.clone();
        async move { log.lock().unwrap().push(what) }
    };
    handle.spawn(note(1)).detach();
    rt.spawn(note(2)).detach();
    handle.spawn(note(3)).detach();
    rt.block_on(note(4)).unwrap();
    assert_eq!(*log.lock().unwrap(), [1, 2, 3, 4]);
}

/// A runtime of ours on a thread of tokio's, and tokio's on a thread of ours; values cross both ways.
#[test]
#[cfg_attr(miri, ignore = "tokio's driver needs system calls that Miri has not")]
fn beside_and_inside_tokio() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (tx, rx) = bounded::<u32>(2);
    let (reply, answer) = oneshot::channel::<u32>();
    // Ours inside of theirs.
    let ours = tokio.spawn(async move {
        tokio::task::spawn_blocking(move || {
            let rt = builder().build().unwrap();
            rt.block_on(async move {
                let summed = spawn(async move {
                    let mut sum = 0;
                    while let Ok(n) = rx.recv().await {
                        sum += n;
                        sleep(MS).await;
                    }
                    sum
                });
                reply.send(summed.await.unwrap()).unwrap();
            })
            .unwrap();
        })
        .await
        .unwrap();
    });
    // Theirs inside of ours: a task of ours that waits on a timer of tokio's, in tokio's context.
    let rt = builder().build().unwrap();
    rt.block_on(async {
        let sender = spawn_local(async move {
            let _context = tokio.enter();
            for n in 1..=10 {
                tx.send(n).await.unwrap();
                tokio::time::sleep(MS).await;
            }
            drop(tx);
            let mut answer = answer;
            let sum = answer.recv().await.unwrap();
            tokio.spawn(async {}).await.unwrap();
            ours.await.unwrap();
            drop(_context);
            tokio.shutdown_background();
            sum
        });
        assert_eq!(sender.await.unwrap(), 55);
    })
    .unwrap();
}

/// A task's timers are on its runtime's wheel, not the driver thread's; a timer armed by another thread is not.
#[test]
fn a_sleeper_of_another_thread_wakes_a_task() {
    let rt = builder().build().unwrap();
    let before = Instant::now();
    rt.block_on(async {
        let (mut tx, rx) = (Vec::new(), Vec::from_iter((0..3).map(|_| bounded::<u8>(1))));
        let mut receivers = Vec::new();
        for (sender, receiver) in rx {
            tx.push(sender);
            receivers.push(spawn_local(async move { receiver.recv().timeout(60_000 * MS).await.unwrap() }));
        }
        let threads: Vec<_> = tx
            .into_iter()
            .map(|tx| {
                thread::spawn(move || {
                    sleep(5 * MS).wait();
                    tx.try_send(1).unwrap();
                })
            })
            .collect();
        for receiver in receivers {
            assert_eq!(receiver.await.unwrap(), 1);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    })
    .unwrap();
    assert!(before.elapsed() >= 5 * MS);
}

/// An operation that parked on one runtime goes on when another polls it: its limit moves over when the first is gone.
#[test]
fn an_operation_outlives_its_runtime() {
    let first = builder().build().unwrap();
    let second = builder().build().unwrap();
    let (_tx, rx) = bounded::<u8>(1);
    let mut receive = Box::pin(rx.into_recv().timeout(20 * MS));
    first
        .block_on(std::future::poll_fn(|cx| {
            use std::future::Future;
            assert!(receive.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        }))
        .unwrap();
    drop(first);
    assert!(second.block_on(receive).unwrap().unwrap_err().is_timeout());
}
