//! Model checks of a whole pool of two threads: a spawn, a wake and an abort from outside, and the end. (Its parts, one by one:
//! `scheduler/pool/loom_models.rs`.)
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p tidegate-runtime --test loom_pool`
#![cfg(loom)]

use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

use loom::sync::atomic::AtomicBool;
use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::{Arc, Mutex};
use loom::thread;
use tidegate_runtime::{spawn, JoinError, Runtime};

fn model(preemptions: usize, f: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 100_000;
    builder.check(f);
}

/// A task is spawned, perhaps stolen, joined; the pool ends with both threads.
#[test]
fn a_spawn_a_join_and_the_end() {
    model(5, || {
        let rt = Runtime::builder().threads(2).virtual_time(true).build().unwrap();
        let output = rt.block_on(async { spawn(async { 7 }).await.unwrap() }).unwrap();
        assert_eq!(output, 7);
    });
}

/// A task that wakes itself once, and waits: dropped with its pool, wherever it is then.
#[test]
fn a_task_that_waits_is_dropped_with_its_pool() {
    struct Counted(std::sync::Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    model(5, || {
        let drops = std::sync::Arc::new(AtomicUsize::new(0));
        let rt = Runtime::builder().threads(2).virtual_time(true).build().unwrap();
        let counted = Counted(drops.clone());
        rt.block_on(async {
            spawn(async move {
                let _counted = counted;
                let mut is_woken = false;
                poll_fn(|cx| -> Poll<()> {
                    if !std::mem::replace(&mut is_woken, true) {
                        cx.waker().wake_by_ref();
                    }
                    Poll::Pending
                })
                .await
            })
            .detach()
        })
        .unwrap();
        drop(rt);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

/// A task of the pool is woken by another thread, while its workers go to bed.
#[test]
fn a_wake_from_outside() {
    model(2, || {
        let rt = Runtime::builder().threads(2).virtual_time(true).build().unwrap();
        let is_set = Arc::new(AtomicBool::new(false));
        let (says, waker) = (is_set.clone(), Arc::new(Mutex::new(None::<Waker>)));
        let place = waker.clone();
        let task = rt.handle().spawn(poll_fn(move |cx| {
            *place.lock().unwrap() = Some(cx.waker().clone());
            match says.load(SeqCst) {
                true => Poll::Ready(7),
                false => Poll::Pending,
            }
        }));
        let outside = thread::spawn(move || {
            is_set.store(true, SeqCst);
            let waker = waker.lock().unwrap().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        assert_eq!(rt.block_on(async { task.await }).unwrap().unwrap(), 7);
        outside.join().unwrap();
    });
}

/// A task is aborted by another thread: before, during or after its only poll.
#[test]
fn an_abort_from_outside() {
    model(2, || {
        let rt = Runtime::builder().threads(2).virtual_time(true).build().unwrap();
        let task = rt.handle().spawn(pending::<()>());
        let abort = task.abort_handle();
        let outside = thread::spawn(move || abort.abort());
        assert!(matches!(rt.block_on(async { task.await }).unwrap(), Err(JoinError::Aborted)));
        outside.join().unwrap();
    });
}
