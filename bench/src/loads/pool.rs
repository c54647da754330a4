//! `pool`: what a runtime's own parts cost, on two threads. The cases are those of `tasks`, written again because every
//! future must be `Send` here, and there glommio's and monoio's are not.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_channel::{bounded, SendError};
use tidegate_wait::cancel::CancelToken;
use tidegate_wait::Operation;

use crate::harness::allocation::Counting;
use crate::harness::statistics::{median, percentile};
use crate::harness::stopwatch::{milliseconds, milliseconds_between, Stopwatch};
use crate::harness::{Cell, Failure, Load, Metric, Run, Scale, Unit};
use crate::hosts::pooled::{Pooled, Smol, Tidegate, Tokio};
use crate::loads::head_of_line::{LIMIT, TIMED};

pub(crate) fn load() -> Load {
    Load {
        name: "pool",
        shows: "runtimes with two threads, everything in their tasks: a task that does nothing, spawned and joined at \
                once, and 100,000 spawned before the first is joined; a task's turn (one alone, and 1,000 that take \
                turns); a round of two messages through two channels of ours between two tasks; 100,000 tasks woken \
                by one token of ours; 100,000 sleeping tasks, and the bytes that each asks of the allocator; how late \
                sleeps of 1 ms are beside 16 tasks that compute, 50 us a poll; and, on our runtime, head of line. \
                Processor time is that of the whole process: who spins pays for it.",
        hides: "more threads than two; input and output; tasks of different sizes.",
        max_rounds: 15,
        cells,
    }
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells = Vec::new();
    add::<Tidegate>(&mut cells, scale);
    add::<Tokio>(&mut cells, scale);
    add::<Smol>(&mut cells, scale);
    let (parked, timed) = scale.pick((8_192, TIMED), (32_768, TIMED));
    let case = format!("{parked} parked ahead of {timed} sends of 100 ms");
    cells.push(Cell::new(case, Tidegate::NAME, move || Tidegate::run(head_of_line(parked, timed))?));
    cells
}

fn add<H: Pooled>(cells: &mut Vec<Cell>, scale: Scale) {
    let mut add = |case: &str, run: Box<dyn Fn() -> Run>| cells.push(Cell::new(case, H::NAME, run));
    let n = scale.pick(20_000, 500_000);
    add("spawn + join", Box::new(move || H::run(spawn_and_join::<H>(n))?));
    let n = scale.pick(10_000, 100_000);
    add("spawn 100,000, then join all", Box::new(move || H::run(spawn_all::<H>(n))?));
    let n = scale.pick(20_000, 1_000_000);
    add("yield, 1 task", Box::new(move || H::run(yields::<H>(1, n))?));
    add("yield, 1,000 tasks", Box::new(move || H::run(yields::<H>(1_000, n / 1_000))?));
    let n = scale.pick(5_000, 200_000);
    add("ping-pong", Box::new(move || H::run(ping_pong::<H>(n))?));
    let n = scale.pick(5_000, 100_000);
    add("fan-out to 100,000", Box::new(move || H::run(fan_out::<H>(n))?));
    add("100,000 sleepers", Box::new(move || H::run(sleepers::<H>(n))?));
    let n = scale.pick(100, 1_000);
    add("sleeps of 1 ms beside 16 busy tasks", Box::new(move || H::run(beside_busy_tasks::<H>(n))?));
}

async fn spawn_and_join<H: Pooled>(n: usize) -> Run {
    let watch = Stopwatch::start();
    let mut sum = 0;
    for i in 0..n {
        sum += H::join(H::spawn(async move { i })).await;
    }
    let lap = watch.stop();
    Failure::unless_equal("the sum of the outputs", sum, n * (n - 1) / 2)?;
    Ok(vec![lap.each("a task", n)])
}

async fn spawn_all<H: Pooled>(n: usize) -> Run {
    let watch = Stopwatch::start();
    let handles: Vec<_> = (0..n).map(|i| H::spawn(async move { i })).collect();
    let mut sum = 0;
    for handle in handles {
        sum += H::join(handle).await;
    }
    let lap = watch.stop();
    Failure::unless_equal("the sum of the outputs", sum, n * (n - 1) / 2)?;
    Ok(vec![lap.each("a task", n)])
}

async fn yields<H: Pooled>(tasks: usize, times: usize) -> Run {
    let watch = Stopwatch::start();
    let taking_turns = || async move {
        for _ in 0..times {
            H::yield_now().await;
        }
    };
    let handles: Vec<_> = (0..tasks).map(|_| H::spawn(taking_turns())).collect();
    for handle in handles {
        H::join(handle).await;
    }
    Ok(vec![watch.stop().each("a turn", tasks * times)])
}

async fn ping_pong<H: Pooled>(rounds: usize) -> Run {
    let (ping, pong) = (bounded::<usize>(1), bounded::<usize>(1));
    let echo = H::spawn(async move {
        let mut echoed = 0;
        while let Ok(value) = ping.1.recv().await {
            if pong.0.send(value).await.is_err() {
                break;
            }
            echoed += 1;
        }
        echoed
    });
    let watch = Stopwatch::start();
    let serve = H::spawn(async move {
        for round in 0..rounds {
            let back = match ping.0.send(round).await {
                Ok(()) => pong.1.recv().await.ok(),
                Err(_) => None,
            };
            if back != Some(round) {
                return Err(Failure::new(format!("round {round} went wrong")));
            }
        }
        Ok(())
    });
    H::join(serve).await?;
    let lap = watch.stop();
    Failure::unless_equal("messages echoed", H::join(echo).await, rounds)?;
    Ok(vec![lap.each("a round", rounds)])
}

async fn fan_out<H: Pooled>(n: usize) -> Run {
    let token = CancelToken::new();
    let waiting = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..n)
        .map(|_| {
            let (token, waiting) = (token.clone(), waiting.clone());
            H::spawn(async move {
                waiting.fetch_add(1, Ordering::Relaxed);
                token.cancelled().await
            })
        })
        .collect();
    while waiting.load(Ordering::Relaxed) < n {
        H::yield_now().await;
    }
    let watch = Stopwatch::start();
    token.cancel();
    for handle in handles {
        H::join(handle).await;
    }
    Ok(vec![watch.stop().each("a task", n)])
}

async fn sleepers<H: Pooled>(n: usize) -> Run {
    let counting = Counting::start();
    let mut handles = Vec::with_capacity(n);
    let watch = Stopwatch::start();
    for i in 0..n as u64 {
        handles.push(H::spawn(H::sleep(Duration::from_micros(400_000 + i % 1_000))));
    }
    let bytes = counting.stop().bytes as usize - n * size_of::<H::Handle<()>>();
    for handle in handles {
        H::join(handle).await;
    }
    let lap = watch.stop();
    if lap.wall < Duration::from_millis(400) {
        return Err(Failure::new("the sleepers did not sleep"));
    }
    let cpu = lap.cpu.as_nanos() as f64 / n as f64;
    Ok(vec![
        Metric::new("asked of the allocator", Unit::Bytes, bytes as f64 / n as f64),
        Metric::new("processor time", Unit::Nanoseconds, cpu),
    ])
}

/// How late sleeps of 1 ms are, one after the other, while 16 tasks compute and yield.
async fn beside_busy_tasks<H: Pooled>(n: usize) -> Run {
    let stop = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..16)
        .map(|_| {
            let stop = stop.clone();
            H::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    while begin.elapsed() < Duration::from_micros(50) {
                        std::hint::spin_loop();
                    }
                    H::yield_now().await;
                }
            })
        })
        .collect();
    let mut late = Vec::with_capacity(n);
    for _ in 0..n {
        let due = Instant::now() + Duration::from_millis(1);
        H::sleep(Duration::from_millis(1)).await;
        late.push(milliseconds_between(due, Instant::now()));
    }
    stop.store(true, Ordering::Relaxed);
    for task in busy {
        H::join(task).await;
    }
    let p99 = percentile(&late, 0.99);
    Ok(vec![Metric::new("late", Unit::Milliseconds, median(&late)).with_p99(p99)])
}

async fn head_of_line(parked: usize, timed: usize) -> Run {
    let (tx, rx) = bounded::<u64>(1);
    let full = |error: SendError<u64>| Failure::new(error.to_string());
    tx.send(0).await.map_err(full)?;
    let ahead: Vec<_> = (0..parked as u64).map(|number| Tidegate::spawn(tx.clone().into_send(number))).collect();
    while tx.parked_senders() < parked {
        Tidegate::yield_now().await;
    }
    let sends: Vec<_> =
        (0..timed as u64).map(|number| Tidegate::spawn(tx.clone().into_send(number).timeout(LIMIT))).collect();
    let watch = Stopwatch::start();
    let begin = Instant::now();
    let canary = Tidegate::spawn(async move {
        Tidegate::sleep(LIMIT).await;
        begin.elapsed()
    });
    let mut returned = 0;
    for (number, task) in (0..).zip(sends) {
        match Tidegate::join(task).await {
            Err(SendError::TimedOut(value)) if value == number => returned += 1,
            other => return Err(Failure::new(format!("the send of {number} ended with {other:?}"))),
        }
    }
    let lap = watch.stop();
    let canary = Tidegate::join(canary).await;
    Failure::unless_equal("the value in the channel", rx.try_recv().unwrap_or(u64::MAX), 0)?;
    drop(ahead);
    Ok(vec![
        Metric::new("canary", Unit::Milliseconds, milliseconds(canary)),
        Metric::new("all done", Unit::Milliseconds, milliseconds(lap.wall)).with_cpu(milliseconds(lap.cpu)),
        Metric::new("values returned", Unit::Count, returned as f64),
    ])
}
