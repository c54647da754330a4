//! Model checks of a task's word, its join, and the mailbox: the whole runtime, in virtual time, beside other threads.
//! S1 to S4, X1 to X3. A lost wake is a deadlock, which loom reports.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p tidegate-runtime --test loom_task`
#![cfg(loom)]

use std::future::{pending, poll_fn, Future};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use loom::sync::atomic::AtomicBool;
use loom::sync::{Arc, Mutex};
use loom::thread;
use tidegate_runtime::{yield_now, JoinError, Runtime};
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::ManualClock;
use tidegate_wait::Operation;

const MS: Duration = Duration::from_millis(1);

fn runtime() -> Runtime {
    Runtime::builder().virtual_time(true).build().unwrap()
}

/// A flag that a future waits for, in the simplest way that is right.
#[derive(Default)]
struct Flag {
    set: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Flag {
    fn wait(flag: Arc<Flag>) -> impl Future<Output = ()> {
        poll_fn(move |cx| {
            *flag.waker.lock().unwrap() = Some(cx.waker().clone());
            match flag.set.load(Ordering::SeqCst) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
    }

    fn set(&self, by_value: bool) {
        self.set.store(true, Ordering::SeqCst);
        let waker = match by_value {
            true => self.waker.lock().unwrap().take(),
            false => self.waker.lock().unwrap().clone(),
        };
        if let Some(waker) = waker {
            match by_value {
                true => waker.wake(),
                false => waker.wake_by_ref(),
            }
        }
    }
}

/// Counts drops; not one of loom's objects, so it adds no interleavings.
struct Counted(std::sync::Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn counted() -> (Counted, std::sync::Arc<AtomicUsize>) {
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    (Counted(count.clone()), count)
}

/// X1: a wake from another thread ∥ poll ∥ park.
#[test]
fn a_foreign_wake_and_the_park() {
    for by_value in [true, false] {
        loom::model(move || {
            let flag = Arc::new(Flag::default());
            let setter = flag.clone();
            let rt = runtime();
            let other = thread::spawn(move || setter.set(by_value));
            rt.block_on(Flag::wait(flag)).unwrap();
            other.join().unwrap();
        });
    }
}

/// S1, S4: two threads wake one task, one of them by value, while it is polled and ends.
#[test]
fn two_wakes_and_the_end() {
    loom::model(|| {
        let flag = Arc::new(Flag::default());
        let rt = runtime();
        let others: Vec<_> = [true, false]
            .into_iter()
            .map(|by_value| {
                let flag = flag.clone();
                thread::spawn(move || flag.set(by_value))
            })
            .collect();
        rt.block_on(Flag::wait(flag)).unwrap();
        drop(rt);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

/// X3: a wake ∥ the end of the runtime, whose mailbox closes: the future is dropped once, the waker's reference frees.
#[test]
fn a_wake_and_the_end_of_the_runtime() {
    for by_value in [true, false] {
        loom::model(move || {
            let flag = Arc::new(Flag::default());
            let (payload, drops) = counted();
            let rt = runtime();
            let wait = Flag::wait(flag.clone());
            rt.spawn(async move {
                let _payload = payload;
                wait.await;
                pending::<()>().await;
            })
            .detach();
            rt.block_on(yield_now()).unwrap();
            let other = thread::spawn(move || flag.set(by_value));
            drop(rt);
            assert_eq!(drops.load(Ordering::SeqCst), 1);
            other.join().unwrap();
        });
    }
}

/// S3: a join on another thread ∥ the end of the task: the output arrives once.
#[test]
fn a_foreign_join_and_the_end() {
    loom::model(|| {
        let (payload, drops) = counted();
        let rt = runtime();
        let handle = rt.spawn(async move { payload });
        let other = thread::spawn(move || drop(handle.wait().unwrap()));
        rt.block_on(async {}).unwrap();
        other.join().unwrap();
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

/// S3: the handle goes on another thread ∥ the end of the task: the output is dropped once.
#[test]
fn a_dropped_handle_and_the_end() {
    loom::model(|| {
        let (payload, drops) = counted();
        let rt = runtime();
        let handle = rt.spawn(async move { payload });
        let other = thread::spawn(move || drop(handle));
        rt.block_on(async {}).unwrap();
        other.join().unwrap();
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

/// An abort ∥ the polls of a task: either end, once.
#[test]
fn an_abort_and_the_end() {
    loom::model(|| {
        let (payload, drops) = counted();
        let rt = runtime();
        let handle = rt.spawn(async move {
            let _payload = payload;
            yield_now().await;
            7
        });
        let abort = handle.abort_handle();
        let other = thread::spawn(move || abort.abort());
        match rt.block_on(async { handle.await }).unwrap() {
            Ok(output) => assert_eq!(output, 7),
            Err(end) => assert!(end.is_aborted()),
        }
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        other.join().unwrap();
    });
}

/// A join with a limit, whose clock another thread moves, ∥ the end of the task: the output, or the limit and then the
/// output; T3, O3 for an owner that is a task.
#[test]
fn a_limited_join_and_the_end() {
    loom::model(|| {
        let clock = Arc::new(ManualClock::new());
        let rt = runtime();
        let mut handle = rt.spawn(async { 3 });
        let other = thread::spawn({
            let clock = clock.clone();
            move || {
                let ended = clock.enter(|| poll_once(std::pin::pin!(handle.join().timeout(MS))));
                match ended {
                    Poll::Ready(output) => assert_eq!(output.unwrap(), 3),
                    // Dropped while it may be parked.
                    Poll::Pending => {}
                }
                handle
            }
        });
        rt.block_on(async {}).unwrap();
        clock.advance(MS);
        let handle = other.join().unwrap();
        match handle.wait() {
            Ok(output) => assert_eq!(output, 3),
            Err(end) => assert!(matches!(end, JoinError::Taken)),
        }
    });
}

/// A spawn from another thread ∥ the end of the runtime: it runs, or it is refused, or it is dropped with the runtime; once.
#[test]
fn a_foreign_spawn_and_the_end_of_the_runtime() {
    loom::model(|| {
        let (payload, drops) = counted();
        let rt = runtime();
        let handle = rt.handle();
        let other = thread::spawn(move || {
            let task = handle.spawn(async move {
                drop(payload);
                5
            });
            match task.wait() {
                Ok(output) => assert_eq!(output, 5),
                Err(end) => assert!(matches!(end, JoinError::Shutdown)),
            }
        });
        rt.block_on(yield_now()).unwrap();
        drop(rt);
        other.join().unwrap();
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}
