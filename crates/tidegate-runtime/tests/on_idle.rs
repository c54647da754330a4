//! What is called when nothing is runnable.
#![cfg(not(loom))]

#[path = "support/make.rs"]
mod make;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tidegate_channel::bounded;
use tidegate_runtime::{spawn_local, yield_now, RunError};
use tidegate_wait::timer::sleep;

use make::builder;

const MS: Duration = Duration::from_millis(1);

#[test]
fn it_is_called_before_the_thread_sleeps_and_not_while_there_is_work() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let idle_log = log.clone();
    let rt = builder().on_idle(move || idle_log.borrow_mut().push("idle")).build().unwrap();
    let task_log = log.clone();
    rt.block_on(async move {
        for _ in 0..100 {
            yield_now().await;
        }
        task_log.borrow_mut().push("worked");
        sleep(MS).await;
        task_log.borrow_mut().push("slept");
    })
    .unwrap();
    let mut log = log.take();
    log.dedup();
    assert_eq!(log, ["worked", "idle", "slept"]);
}

#[test]
fn what_it_wakes_runs_before_a_deadlock_is_declared() {
    let (tx, rx) = bounded(1);
    let calls = Rc::new(Cell::new(0));
    let counter = calls.clone();
    let send = move || {
        counter.set(counter.get() + 1);
        if counter.get() == 1 {
            tx.try_send("late").unwrap();
        }
    };
    let rt = builder().closed_world(true).on_idle(send).build().unwrap();
    let ended = rt.block_on(async move {
        let first = rx.recv().await;
        spawn_local(async move { rx.recv().await }).detach();
        assert_eq!(first, Ok("late"));
        std::future::pending::<()>().await;
    });
    assert!(matches!(ended, Err(RunError::Deadlock(_))));
    assert_eq!(calls.get(), 2);
}

#[test]
fn in_virtual_time_it_is_called_before_each_jump_of_the_clock() {
    let calls = Rc::new(Cell::new(0));
    let counter = calls.clone();
    let count = move || counter.set(counter.get() + 1);
    let rt = builder().virtual_time(true).on_idle(count).build().unwrap();
    rt.block_on(async {
        for _ in 0..3 {
            sleep(Duration::from_secs(3600)).await;
        }
    })
    .unwrap();
    assert!(calls.get() >= 3);
}

#[test]
fn its_panic_is_contained() {
    let rt = builder().on_idle(|| panic!("in on_idle")).build().unwrap();
    rt.block_on(async { sleep(MS).await }).unwrap();
}
