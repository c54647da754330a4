//! The order in which tasks run: strictly first in, first out.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tidegate_channel::{bounded, unbounded};
use tidegate_runtime::{spawn_local, yield_now, Runtime};
use tidegate_wait::timer::{sleep, sleep_until};

const MS: Duration = Duration::from_millis(1);

type Log<T> = Rc<RefCell<Vec<T>>>;

fn virtual_runtime() -> Runtime {
    Runtime::builder().virtual_time(true).closed_world(true).build().unwrap()
}

/// CASES 45: three yielders take turns.
#[test]
fn yields_go_round() {
    let log = Log::default();
    virtual_runtime()
        .block_on(async {
            let tasks: Vec<_> = (0..3)
                .map(|task| {
                    let log = log.clone();
                    spawn_local(async move {
                        for _ in 0..4 {
                            log.borrow_mut().push(task);
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
    assert_eq!(*log.borrow(), [0, 1, 2].repeat(4));
}

/// A spawn and a wake both append at the tail.
#[test]
fn spawns_and_wakes_append() {
    let log = Log::default();
    virtual_runtime()
        .block_on(async {
            let (tx, rx) = unbounded::<u8>();
            let note = |what: &'static str| {
                let log = log.clone();
                async move { log.borrow_mut().push(what) }
            };
            let receiver = spawn_local({
                let log = log.clone();
                async move {
                    rx.recv().await.unwrap();
                    log.borrow_mut().push("woken");
                }
            });
            yield_now().await;
            let first = spawn_local(note("spawned before the wake"));
            tx.try_send(1).unwrap();
            let second = spawn_local(note("spawned after the wake"));
            yield_now().await;
            log.borrow_mut().push("yielded");
            receiver.await.unwrap();
            first.await.unwrap();
            second.await.unwrap();
        })
        .unwrap();
    assert_eq!(*log.borrow(), ["spawned before the wake", "woken", "spawned after the wake", "yielded"]);
}

/// Timers that are due at one look wake in the order of their deadlines, those with the same deadline in the order in which
/// they parked, and all of them before a task runs.
#[test]
fn timers_wake_by_deadline_then_by_park() {
    let log = Log::default();
    let rt = virtual_runtime();
    rt.block_on(async {
        let start = std::time::Instant::now() + Duration::from_secs(1000);
        let after = [7, 3, 5, 3, 9, 3, 5];
        let tasks: Vec<_> = after
            .iter()
            .enumerate()
            .map(|(number, after)| {
                let (log, at) = (log.clone(), start + *after * MS);
                spawn_local(async move {
                    sleep_until(at).await;
                    log.borrow_mut().push(number);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    })
    .unwrap();
    assert_eq!(*log.borrow(), [1, 3, 5, 2, 6, 0, 4]);
}

/// All that is due is handled before a task runs, also if the first of those woken runs for long.
#[test]
fn all_that_is_due_precedes_tasks() {
    let log = Log::default();
    let rt = virtual_runtime();
    rt.block_on(async {
        let tasks: Vec<_> = (0..200)
            .map(|number| {
                let log = log.clone();
                spawn_local(async move {
                    sleep(MS).await;
                    // Runs at once whenever it is queued before the other timers have fired.
                    let log_of_child = log.clone();
                    spawn_local(async move { log_of_child.borrow_mut().push(1000 + number) }).detach();
                    log.borrow_mut().push(number);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        yield_now().await;
    })
    .unwrap();
    let expected: Vec<_> = (0..200).chain(1000..1200).collect();
    assert_eq!(*log.borrow(), expected);
}

/// A wake from another thread appends, too, and is taken over between two polls, not only when the queue is empty.
#[test]
fn wakes_from_other_threads_are_not_starved() {
    let rt = Runtime::new().unwrap();
    rt.block_on(async {
        let (tx, rx) = bounded::<u8>(1);
        let receiver = spawn_local(async move { rx.recv().await.unwrap() });
        let thread = std::thread::spawn(move || tx.try_send(5).unwrap());
        // Always runnable.
        let mut yields = 0_u64;
        while !receiver.is_finished() {
            yield_now().await;
            yields += 1;
            if yields % 1024 == 0 {
                std::thread::yield_now();
            }
        }
        thread.join().unwrap();
        assert_eq!(receiver.await.unwrap(), 5);
    })
    .unwrap();
}

/// CASES 37: very many spawns from one task without a pause cost the same each; none is polled meanwhile.
#[test]
fn many_spawns_from_one_poll() {
    let rt = virtual_runtime();
    let n = if cfg!(miri) { 300 } else { 100_000_usize };
    let sum = rt.block_on(async {
        let tasks: Vec<_> = (0..n).map(|i| spawn_local(async move { i })).collect();
        assert!(tasks.iter().all(|task| !task.is_finished()));
        let mut sum = 0;
        for task in tasks {
            sum += task.await.unwrap();
        }
        sum
    });
    assert_eq!(sum.unwrap(), n * (n - 1) / 2);
}
