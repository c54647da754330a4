//! The scheduler's clock: timers beside work, CASES 36 and 47, as orders and counts; latencies are the benchmark's.
#![cfg(not(loom))]

#[path = "support/make.rs"]
mod make;

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tidegate_channel::{bounded_by, unbounded, Operation};
use tidegate_runtime::{spawn_local, yield_now};
use tidegate_wait::timer::{interval, sleep};

use make::builder;

const MS: Duration = Duration::from_millis(1);

/// CASES 47: a task that is always ready does not keep the clock from being looked at, however short its polls are.
#[test]
fn short_polls_do_not_starve_timers() {
    let rt = builder().build().unwrap();
    rt.block_on(async {
        let woken = Rc::new(Cell::new(false));
        let seen = woken.clone();
        spawn_local(async move {
            sleep(10 * MS).await;
            seen.set(true);
        })
        .detach();
        let start = Instant::now();
        while !woken.get() {
            yield_now().await;
            assert!(start.elapsed() < 60_000 * MS, "the sleep starves");
        }
    })
    .unwrap();
}

/// An operation that is always ready yields when its budget is used up, so others run.
#[test]
fn a_ready_operation_yields_now_and_then() {
    let rt = builder().build().unwrap();
    let others = Rc::new(Cell::new(0));
    let seen = others.clone();
    rt.block_on(async move {
        let (tx, rx) = unbounded::<u32>();
        let ready = spawn_local(async move {
            for i in 0..10_000 {
                tx.send(i).await.unwrap();
                assert_eq!(rx.recv().await.unwrap(), i);
            }
        });
        let mut turns = 0;
        while !ready.is_finished() {
            turns += 1;
            yield_now().await;
        }
        seen.set(turns);
    })
    .unwrap();
    // 20,000 operations at 128 a poll.
    assert!((150..=170).contains(&others.get()), "{} turns beside 20,000 ready operations", others.get());
}

/// After long polls the clock is looked at after each: a timer waits for one of them at most.
#[test]
fn long_polls_bring_the_clock_forward() {
    let rt = builder().build().unwrap();
    rt.block_on(async {
        let polls = Rc::new(Cell::new(0));
        let due_after = Rc::new(Cell::new(None));
        // The pace is known by then.
        for _ in 0..40 {
            busy(MS / 2);
            yield_now().await;
        }
        let (seen, noted) = (polls.clone(), due_after.clone());
        let start = Instant::now();
        spawn_local(async move {
            sleep(5 * MS).await;
            noted.set(Some(seen.get()));
        })
        .detach();
        let mut due_at = None;
        while due_after.get().is_none() {
            yield_now().await;
            busy(MS);
            polls.set(polls.get() + 1);
            if start.elapsed() >= 5 * MS && due_at.is_none() {
                due_at = Some(polls.get());
            }
        }
        let (due_at, fired_after) = (due_at.unwrap(), due_after.get().unwrap());
        assert!(fired_after <= due_at + 1, "due during poll {due_at}, fired after {fired_after}");
    })
    .unwrap();
}

fn busy(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// The first thing that a `block_on` does is to look at the clock.
#[test]
fn a_run_begins_with_what_is_due() {
    let rt = builder().build().unwrap();
    let log = Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = log.clone();
    rt.block_on(async {
        for _ in 0..200 {
            yield_now().await;
        }
    })
    .unwrap();
    rt.spawn(async move {
        sleep(2 * MS).await;
        seen.borrow_mut().push("timer");
    })
    .detach();
    rt.block_on(yield_now()).unwrap();
    std::thread::sleep(20 * MS);
    rt.block_on(async {
        for _ in 0..20 {
            log.borrow_mut().push("root");
            yield_now().await;
        }
    })
    .unwrap();
    let place = log.borrow().iter().position(|what| *what == "timer");
    assert!(place <= Some(1), "{place:?}");
}

/// All that is due at one look wakes before a task runs, however many there are: on the system's clock, too.
#[test]
fn all_that_is_due_precedes_tasks() {
    if make::is_pool() {
        return println!("skipped: in a pool another thread may turn the wheel, while tasks run here");
    }
    let rt = builder().build().unwrap();
    let log = Rc::new(std::cell::RefCell::new(Vec::new()));
    let n = 200;
    rt.block_on(async {
        let at = Instant::now() + Duration::from_millis(if cfg!(miri) { 3000 } else { 50 });
        let tasks: Vec<_> = (0..n)
            .map(|number| {
                let log = log.clone();
                spawn_local(async move {
                    tidegate_wait::timer::sleep_until(at).await;
                    log.borrow_mut().push(number);
                    let child = log.clone();
                    spawn_local(async move { child.borrow_mut().push(1000 + number) }).detach();
                })
            })
            .collect();
        yield_now().await;
        // All of them are due when the clock is looked at again.
        std::thread::sleep(at.saturating_duration_since(Instant::now()) + MS);
        for task in tasks {
            task.await.unwrap();
        }
        yield_now().await;
    })
    .unwrap();
    let expected: Vec<_> = (0..n).chain(1000..1000 + n).collect();
    assert_eq!(*log.borrow(), expected);
}

/// A waker that uses an operation has a budget, also if the task that was polled last has none left.
#[test]
fn a_waker_has_a_budget() {
    struct Sends(tidegate_channel::Sender<u32>, std::sync::atomic::AtomicBool);
    impl std::task::Wake for Sends {
        fn wake(self: std::sync::Arc<Self>) {
            let sent = tidegate_wait::op::poll_once(std::pin::pin!(self.0.send(1))).is_ready();
            self.1.store(sent, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let rt = builder().build().unwrap();
    let (tx, _rx) = unbounded();
    let sends = std::sync::Arc::new(Sends(tx.clone(), false.into()));
    rt.block_on(async {
        let mut first = Box::pin(sleep(2 * MS));
        let waker = sends.clone().into();
        let mut cx = std::task::Context::from_waker(&waker);
        assert!(std::future::Future::poll(first.as_mut(), &mut cx).is_pending());
        let second = spawn_local(sleep(5 * MS));
        // The last to be polled before the timers fire, with nothing left.
        let greedy = spawn_local(poll_fn(move |_| {
            let used =
                (0..).take_while(|_| tidegate_wait::op::poll_once(std::pin::pin!(tx.send(0))).is_ready()).count();
            assert_eq!(used, 128);
            Poll::<()>::Pending
        }));
        second.await.unwrap();
        greedy.abort();
    })
    .unwrap();
    assert!(sends.1.load(std::sync::atomic::Ordering::Relaxed));
}

/// A waker that polls a sleep, which arms an earlier timer, while the wheel is being turned.
#[test]
fn a_timer_that_is_armed_by_a_waker() {
    struct PollsNext(std::sync::Mutex<Option<std::pin::Pin<Box<tidegate_wait::timer::Sleep>>>>, std::task::Waker);
    impl std::task::Wake for PollsNext {
        fn wake(self: std::sync::Arc<Self>) {
            if let Some(next) = self.0.lock().unwrap().as_mut() {
                let mut cx = std::task::Context::from_waker(&self.1);
                assert!(std::future::Future::poll(next.as_mut(), &mut cx).is_pending());
            }
        }
    }
    let rt = builder().build().unwrap();
    rt.block_on(async {
        let mut first = Box::pin(sleep(5 * MS));
        let mut kept = None;
        poll_fn(|cx| {
            if kept.is_some() {
                return Poll::Ready(());
            }
            let next = std::sync::Mutex::new(Some(Box::pin(sleep(20 * MS))));
            let waker = std::sync::Arc::new(PollsNext(next, cx.waker().clone()));
            kept = Some(waker.clone());
            std::future::Future::poll(first.as_mut(), &mut std::task::Context::from_waker(&waker.into()))
        })
        .await;
    })
    .unwrap();
}

/// 32,768 sleeps at once all fire, never early.
#[test]
fn many_sleepers() {
    let rt = builder().build().unwrap();
    let n = if cfg!(miri) { 200 } else { 32_768 };
    rt.block_on(async {
        let tasks: Vec<_> = (0..n)
            .map(|i| {
                spawn_local(async move {
                    let (start, limit) = (Instant::now(), Duration::from_micros(20_000 + i % 777));
                    sleep(limit).await;
                    assert!(start.elapsed() >= limit);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    })
    .unwrap();
}

/// Virtual time: a day of ticks takes none, and the clock stands still while anything is runnable.
#[test]
fn virtual_time_jumps() {
    let rt = builder().virtual_time(true).build().unwrap();
    let before = Instant::now();
    rt.block_on(async {
        let mut ticks = interval(Duration::from_secs(60)).unwrap();
        for _ in 0..24 * 60 {
            ticks.tick().await;
        }
        let asleep = Rc::new(Cell::new(true));
        let seen = asleep.clone();
        spawn_local(async move {
            sleep(MS).await;
            seen.set(false);
        })
        .detach();
        for _ in 0..1000 {
            yield_now().await;
        }
        assert!(asleep.get());
        sleep(2 * MS).await;
        assert!(!asleep.get());
    })
    .unwrap();
    assert!(before.elapsed() < Duration::from_secs(3600));
    // Moved by hand, too.
    let fired = Rc::new(Cell::new(false));
    let seen = fired.clone();
    let rt = builder().virtual_time(true).build().unwrap();
    rt.spawn(async move {
        let mut nap = Box::pin(sleep(Duration::from_secs(5)));
        let pending = poll_fn(|cx| Poll::Ready(std::future::Future::poll(nap.as_mut(), cx).is_pending())).await;
        assert!(pending);
        seen.set(true);
    })
    .detach();
    rt.advance(Duration::from_secs(10)).unwrap();
    rt.block_on(yield_now()).unwrap();
    assert!(fired.get());
    assert!(builder().build().unwrap().advance(MS).is_none());
}

/// A5, O4: a send of the whole limit that expires lets in a long line, of which the driver thread does the most; in virtual
/// time the runtime's thread does all. And a closed world waits for that.
#[test]
fn a_long_line_is_let_in() {
    const LINE: u64 = if cfg!(miri) { 100 } else { 2_000 };
    for is_virtual in [false, true] {
        let rt = builder().virtual_time(is_virtual).closed_world(true).build().unwrap();
        rt.block_on(async {
            let (tx, rx) = bounded_by(LINE + 1, |&n: &u64| n);
            tx.try_send(1).unwrap();
            let heavy = tx.clone();
            let first = spawn_local(async move { heavy.send(LINE + 1).timeout(500 * MS).await.is_err() });
            let line: Vec<_> = (0..LINE)
                .map(|_| {
                    let tx = tx.clone();
                    spawn_local(async move { tx.send(1).await.is_ok() })
                })
                .collect();
            yield_now().await;
            assert_eq!(tx.parked_senders() as u64, LINE + 1);
            assert!(first.await.unwrap());
            for send in line {
                assert!(send.await.unwrap());
            }
            assert_eq!((tx.weight(), rx.len() as u64), (LINE + 1, LINE + 1));
        })
        .unwrap();
    }
}
