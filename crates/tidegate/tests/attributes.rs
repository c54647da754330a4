//! `#[tidegate::test]` and `#[tidegate::main]`.
#![cfg(feature = "runtime")]

use std::time::{Duration, Instant};

use tidegate::runtime::{spawn, yield_now, Handle};
use tidegate::time::sleep;

#[tidegate::test]
async fn a_test_runs_on_a_runtime() {
    assert_eq!(spawn(async { 3 }).await.unwrap(), 3);
    assert!(Handle::current().is_ok());
}

#[tidegate::test]
async fn a_test_may_return_a_result() -> Result<(), Box<dyn std::error::Error>> {
    let (tx, rx) = tidegate::bounded(1);
    tx.send(1).await?;
    assert_eq!(rx.recv().await?, 1);
    Ok(())
}

#[tidegate::test(virtual_time = true, closed_world = false)]
async fn a_day_passes() {
    let before = Instant::now();
    sleep(Duration::from_secs(24 * 3600)).await;
    assert!(before.elapsed() < Duration::from_secs(3600));
}

#[tidegate::test]
#[should_panic(expected = "deadlock: no task can go on")]
async fn a_hang_fails() {
    std::future::pending::<()>().await;
}

/// On a pool two tasks run at the same time: each waits, in one poll, for the other.
#[tidegate::test(threads = 2)]
async fn a_test_on_a_pool() {
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(2));
    let tasks = [barrier.clone(), barrier].map(|barrier| spawn(async move { barrier.wait().is_leader() }));
    let mut leaders = 0;
    for task in tasks {
        leaders += u32::from(task.await.unwrap());
    }
    assert_eq!(leaders, 1);
}

#[tidegate::test(threads = 3)]
#[should_panic(expected = "deadlock: no task can go on")]
async fn a_hang_on_a_pool_fails() {
    spawn(std::future::pending::<()>()).await.unwrap();
}

#[tidegate::main(threads = 2)]
async fn pooled_answer() -> u32 {
    spawn(async { 42 }).await.unwrap()
}

#[test]
fn main_on_a_pool_returns_its_output() {
    assert_eq!(pooled_answer(), 42);
}

/// `main` is a function like any other.
#[tidegate::main]
async fn answer() -> u32 {
    yield_now().await;
    42
}

#[test]
fn main_returns_its_output() {
    assert_eq!(answer(), 42);
}

#[tidegate::main(closed_world = true)]
async fn hangs() {
    let (_tx, rx) = tidegate::bounded::<u8>(1);
    let _closed = rx.recv().await;
}

/// A `main` that hangs in a closed world ends with status 1 and the report.
#[test]
fn a_main_that_hangs_says_so() {
    if std::env::var_os("TIDEGATE_TEST_HANGS").is_some() {
        hangs();
        unreachable!();
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_main_that_hangs_says_so", "--nocapture"])
        .env("TIDEGATE_TEST_HANGS", "1")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("tidegate: deadlock: no task can go on") && errors.contains("receive on channel"),
        "{errors}"
    );
}
