//! The head of the line: thousands of sends that time out behind thousands that are blocked, and a timer that must not
//! notice.
//!
//! On one thread of tokio: `BLOCKED` sends park on a full channel; then 4,096 more are sent with a limit of 100 ms; and a
//! canary sleeps 100 ms beside them. In libraries that look for a waiter by walking the queue, every expiring send walks
//! past all blocked ones, and the canary is late by as much. Here each leaves in O(1), with its value.
//!
//! ```text
//! cargo run --release -p tidegate --example head_of_line -- [BLOCKED]
//! ```

use std::time::{Duration, Instant};

use tidegate::{bounded, time::sleep, Operation, SendError};

const TIMED: usize = 4_096;
const LIMIT: Duration = Duration::from_millis(100);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let blocked = match std::env::args().nth(1) {
        Some(count) => count.parse().map_err(|e| format!("BLOCKED must be a number of sends, not {count:?}: {e}"))?,
        None => 32_768,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(tokio::task::LocalSet::new().run_until(run(blocked)))
}

async fn run(blocked: usize) -> Result<(), Box<dyn std::error::Error>> {
    let (tx, rx) = bounded::<usize>(1);
    tx.try_send(0)?;

    // Each task is the send itself: its value lives once, in the task.
    let parked: Vec<_> = (0..blocked).map(|n| tokio::task::spawn_local(tx.clone().into_send(n))).collect();
    // The queue of tasks is FIFO: when this one ends, all of them have parked.
    tokio::task::spawn_local(async {}).await?;
    println!("parked={blocked}");

    let start = Instant::now();
    let canary = tokio::task::spawn_local(async move {
        sleep(LIMIT).await;
        start.elapsed()
    });
    let timed: Vec<_> = (0..TIMED).map(|n| tokio::task::spawn_local(tx.clone().into_send(n).timeout(LIMIT))).collect();

    let mut returned = 0;
    for (n, send) in timed.into_iter().enumerate() {
        match send.await? {
            Err(SendError::TimedOut(value)) if value == n => returned += 1,
            other => return Err(format!("send {n} ended as {other:?}").into()),
        }
    }
    let complete = start.elapsed();
    println!("canary_ms={:.2}", canary.await?.as_secs_f64() * 1e3);
    println!("complete_ms={:.2}", complete.as_secs_f64() * 1e3);
    println!("values_returned={returned}");

    // The blocked ones get their values back when the channel closes.
    rx.close();
    let mut refused = 0;
    for send in parked {
        refused += usize::from(send.await?.is_err_and(|error| error.is_closed()));
    }
    println!("blocked_returned={refused}");
    Ok(())
}
