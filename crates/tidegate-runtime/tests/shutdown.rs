//! Blocking jobs and the end of a runtime: CASES 48.
#![cfg(not(loom))]

#[path = "support/make.rs"]
mod make;

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_runtime::{spawn_blocking, spawn_local_named, yield_now, Handle, JoinError};
use tidegate_wait::timer::sleep;
use tidegate_wait::Operation;

use make::builder;

const MS: Duration = Duration::from_millis(1);

#[test]
fn jobs_run_elsewhere_and_are_joined() {
    let rt = builder().build().unwrap();
    let here = thread::current().id();
    rt.block_on(async {
        let there = spawn_blocking(|| thread::current().id()).await.unwrap();
        assert_ne!(there, here);
        assert!(spawn_blocking(|| panic!("a job")).await.unwrap_err().is_panic());
        let (release, gate) = mpsc::channel::<()>();
        assert!(spawn_blocking(move || gate.recv()).timeout(MS).await.unwrap_err().is_timeout());
        release.send(()).unwrap();
        // In a job there is no runtime, but a handle goes along.
        let handle = Handle::current().unwrap();
        let nested = spawn_blocking(move || {
            assert!(Handle::current().is_err());
            handle.spawn(async { 6 }).wait().unwrap()
        });
        assert_eq!(nested.await.unwrap(), 6);
    })
    .unwrap();
}

/// The pool is bounded; jobs beyond it wait in order, and may be aborted as long as they wait.
#[test]
fn the_pool_is_bounded() {
    let rt = builder().blocking_threads(2).build().unwrap();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    rt.block_on(async {
        let (release, gate) = mpsc::channel::<()>();
        let gate = Arc::new(std::sync::Mutex::new(gate));
        let jobs: Vec<_> = (0..8)
            .map(|i| {
                let (running, most, gate) = (running.clone(), most.clone(), gate.clone());
                spawn_blocking(move || {
                    most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                    gate.lock().unwrap().recv().unwrap();
                    running.fetch_sub(1, Ordering::Relaxed);
                    i
                })
            })
            .collect();
        while Handle::current().unwrap().dump().jobs.len() != 2 {
            sleep(MS).await;
        }
        assert_eq!(Handle::current().unwrap().dump().queued_jobs, 6);
        jobs[7].abort();
        (0..8).for_each(|_| release.send(()).unwrap());
        for (i, job) in jobs.into_iter().enumerate() {
            match job.await {
                Ok(output) => assert!(output == i && i != 7),
                Err(JoinError::Aborted) => assert_eq!(i, 7),
                Err(other) => panic!("{other}"),
            }
        }
    })
    .unwrap();
    assert_eq!(most.load(Ordering::Relaxed), 2);
}

/// A shutdown cancels the runtime's token and lets everybody end.
#[test]
fn a_shutdown_lets_tasks_end() {
    let rt = builder().build().unwrap();
    let ended = Rc::new(Cell::new(0));
    for i in 0..3 {
        let (token, ended) = (rt.token().clone(), ended.clone());
        rt.spawn(async move {
            sleep(Duration::from_secs(3600)).cancel_on(&token).await.unwrap_err();
            sleep(i * MS).await;
            ended.set(ended.get() + 1);
        })
        .detach();
    }
    let (handle, late) = (rt.handle(), rt.handle());
    let job = handle.spawn_blocking(|| thread::sleep(10 * MS));
    rt.block_on(yield_now()).unwrap();
    rt.shutdown(Duration::MAX).unwrap();
    assert_eq!(ended.get(), 3);
    assert!(job.is_finished());
    assert!(matches!(late.spawn(async {}).wait(), Err(JoinError::Shutdown)));
}

/// CASES 48: a deadline, and the names of what did not end. Neither a task nor a job holds it up.
#[test]
fn a_shutdown_names_what_did_not_end() {
    let rt = builder().build().unwrap();
    let (release, gate) = mpsc::channel::<()>();
    let value = Rc::new(());
    let kept = value.clone();
    rt.block_on(async move {
        spawn_local_named("stubborn", async move {
            let _kept = kept;
            pending::<()>().await;
        })
        .detach();
        let handle = Handle::current().unwrap();
        handle.spawn_blocking_named("stuck job", move || gate.recv()).detach();
        // It has begun.
        while handle.dump().jobs.is_empty() {
            sleep(MS).await;
        }
    })
    .unwrap();
    let before = Instant::now();
    let unfinished = rt.shutdown(20 * MS).unwrap_err();
    assert!(before.elapsed() >= 20 * MS);
    let text = unfinished.to_string();
    assert!(text.contains("stubborn") && text.contains("waits on something outside"), "{text}");
    assert!(text.contains("blocking job stuck job (spawned at "), "{text}");
    assert_eq!(Rc::strong_count(&value), 1);
    release.send(()).unwrap();
}

/// In a closed world a shutdown does not wait for its deadline when nothing can end any more.
#[test]
fn a_shutdown_in_a_closed_world_is_not_held_up() {
    for virtual_time in [false, true] {
        let rt = builder().closed_world(true).virtual_time(virtual_time).build().unwrap();
        rt.spawn(pending::<()>()).detach();
        let unfinished = rt.shutdown(Duration::from_secs(3600)).unwrap_err();
        assert_eq!(unfinished.dump().tasks.len(), 1);
    }
    // Without that declaration, virtual time runs to the deadline at once.
    let rt = builder().virtual_time(true).build().unwrap();
    rt.spawn(sleep(Duration::from_secs(1))).detach();
    rt.spawn(pending::<()>()).detach();
    assert_eq!(rt.shutdown(Duration::from_secs(3600)).unwrap_err().dump().tasks.len(), 1);
}

/// What another thread spawned before the shutdown runs, and jobs that were queued.
#[test]
fn a_shutdown_runs_what_was_left_to_it() {
    let rt = builder().blocking_threads(1).build().unwrap();
    let handle = rt.handle();
    let jobs: Vec<_> = (0..3).map(|i| handle.spawn_blocking(move || i)).collect();
    let task = thread::spawn(move || handle.spawn(async { 7 })).join().unwrap();
    rt.shutdown(Duration::MAX).unwrap();
    assert_eq!(task.wait().unwrap(), 7);
    let outputs: Vec<_> = jobs.into_iter().map(|job| job.wait().unwrap()).collect();
    assert_eq!(outputs, [0, 1, 2]);
}

/// In virtual time, beside a thread that may still wake somebody, the limit is one of real time.
#[test]
fn a_shutdown_in_virtual_time_ends() {
    let rt = builder().virtual_time(true).build().unwrap();
    let _declared = rt.handle().outside();
    rt.spawn(pending::<()>()).detach();
    assert_eq!(rt.shutdown(10 * MS).unwrap_err().dump().tasks.len(), 1);
}

/// A dropped runtime waits for nothing: a job that runs goes on, one that waits is refused.
#[test]
fn a_drop_waits_for_no_job() {
    let rt = builder().blocking_threads(1).build().unwrap();
    let (release, gate) = mpsc::channel::<()>();
    let running = rt.handle().spawn_blocking(move || gate.recv().is_ok());
    let queued = rt.handle().spawn_blocking(|| ());
    while rt.handle().dump().jobs.is_empty() && !running.is_finished() {
        rt.block_on(sleep(MS)).unwrap();
        if rt.block_on(async { Handle::current().unwrap().dump().jobs.len() }).unwrap() == 1 {
            break;
        }
    }
    drop(rt);
    assert!(matches!(queued.wait(), Err(JoinError::Shutdown)));
    release.send(()).unwrap();
    assert!(running.wait().unwrap());
}
