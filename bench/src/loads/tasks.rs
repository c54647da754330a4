//! `tasks`: what a runtime's own parts cost, on one thread.

use std::future::{poll_fn, Future};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tidegate_channel::bounded;
use tidegate_wait::cancel::CancelToken;

use crate::harness::allocation::Counting;
use crate::harness::stopwatch::Stopwatch;
use crate::harness::{Cell, Failure, Load, Metric, Run, Scale, Unit};
use crate::hosts::{self, Host};

pub(crate) fn load() -> Load {
    Load {
        name: "tasks",
        shows:
            "runtimes on one thread: a task that does nothing, spawned and joined at once, and 100,000 spawned before \
                the first is joined; a task's turn (one alone, and 1,000 that take turns); a round of two messages \
                through two channels of ours between two tasks; a million sleeps, polled once and dropped; 100,000 \
                tasks woken by one token of ours; 100,000 sleeping tasks, and the bytes that each asks of the \
                allocator. Ours with wakes from other threads and the registry of tasks; glommio's and monoio's \
                wakers are for their own thread, and glommio has no million of one task's.",
        hides: "more than one thread; input and output; what the allocator adds to each request.",
        max_rounds: 15,
        cells,
    }
}

struct Cells {
    cells: Vec<Cell>,
    scale: Scale,
}

fn cells(scale: Scale) -> Vec<Cell> {
    let mut all = Cells { cells: Vec::new(), scale };
    hosts::each(&mut all);
    all.cells
}

impl hosts::Visitor for Cells {
    fn visit<H: Host>(&mut self) {
        let scale = self.scale;
        let mut add = |case: &str, run: Box<dyn Fn() -> Run>| self.cells.push(Cell::new(case, H::NAME, run));
        let n = scale.pick(20_000, 500_000);
        add("spawn + join", Box::new(move || H::run(spawn_and_join::<H>(n))?));
        let n = scale.pick(10_000, 100_000);
        add("spawn 100,000, then join all", Box::new(move || H::run(spawn_all::<H>(n))?));
        let n = scale.pick(20_000, 1_000_000);
        add("yield, 1 task", Box::new(move || H::run(yields::<H>(1, n))?));
        add("yield, 1,000 tasks", Box::new(move || H::run(yields::<H>(1_000, n / 1_000))?));
        let n = scale.pick(5_000, 200_000);
        add("ping-pong", Box::new(move || H::run(ping_pong::<H>(n))?));
        let n = scale.pick(20_000, 1_000_000);
        if H::MANY_WAKERS {
            add("1,000,000 timers", Box::new(move || H::run(timers::<H>(n))?));
        }
        let n = scale.pick(5_000, 100_000);
        add("fan-out to 100,000", Box::new(move || H::run(fan_out::<H>(n))?));
        add("100,000 sleepers", Box::new(move || H::run(sleepers::<H>(n))?));
    }
}

async fn spawn_and_join<H: Host>(n: usize) -> Run {
    let watch = Stopwatch::start();
    let mut sum = 0;
    for i in 0..n {
        sum += H::join(H::spawn(async move { i })).await;
    }
    let lap = watch.stop();
    Failure::unless_equal("the sum of the outputs", sum, n * (n - 1) / 2)?;
    Ok(vec![lap.each("a task", n)])
}

async fn spawn_all<H: Host>(n: usize) -> Run {
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

async fn yields<H: Host>(tasks: usize, times: usize) -> Run {
    let watch = Stopwatch::start();
    let handles: Vec<_> = (0..tasks)
        .map(|_| {
            H::spawn(async move {
                for _ in 0..times {
                    H::yield_now().await;
                }
            })
        })
        .collect();
    for handle in handles {
        H::join(handle).await;
    }
    Ok(vec![watch.stop().each("a turn", tasks * times)])
}

async fn ping_pong<H: Host>(rounds: usize) -> Run {
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

async fn timers<H: Host>(n: usize) -> Run {
    let hour = 3_600_000_000_u64;
    let mut random = fastrand::Rng::with_seed(7);
    let limits: Vec<_> = (0..n).map(|_| Duration::from_micros(1_000_000 + random.u64(..hour))).collect();
    let mut places: Vec<_> = (0..n).map(|_| Box::pin(None)).collect();
    let watch = Stopwatch::start();
    let pending = poll_fn(|cx| {
        let mut pending = 0;
        for (place, limit) in places.iter_mut().zip(&limits) {
            place.set(Some(H::sleep(*limit)));
            let polled = place.as_mut().as_pin_mut().map(|sleep| sleep.poll(cx));
            pending += usize::from(matches!(polled, Some(Poll::Pending)));
        }
        Poll::Ready(pending)
    })
    .await;
    let armed = watch.stop();
    Failure::unless_equal("sleeps that wait", pending, n)?;
    random.shuffle(&mut places);
    let watch = Stopwatch::start();
    for place in &mut places {
        place.set(None);
    }
    let dropped = watch.stop();
    Ok(vec![armed.each("armed", n), dropped.each("dropped", n)])
}

async fn fan_out<H: Host>(n: usize) -> Run {
    let token = CancelToken::new();
    let handles: Vec<_> = (0..n)
        .map(|_| {
            let token = token.clone();
            H::spawn(async move { token.cancelled().await })
        })
        .collect();
    // All have parked when a task that was spawned after them has run.
    H::join(H::spawn(async {})).await;
    let watch = Stopwatch::start();
    token.cancel();
    for handle in handles {
        H::join(handle).await;
    }
    Ok(vec![watch.stop().each("a task", n)])
}

async fn sleepers<H: Host>(n: usize) -> Run {
    let counting = Counting::start();
    let mut handles = Vec::with_capacity(n);
    let watch = Stopwatch::start();
    for i in 0..n as u64 {
        handles.push(H::spawn(H::sleep(Duration::from_micros(400_000 + i % 1_000))));
    }
    H::join(H::spawn(async {})).await;
    let bytes = counting.stop().bytes as usize - n * size_of::<H::Handle<()>>();
    let mut handles = handles.into_iter();
    // One poll that shows that they sleep.
    if let Some(first) = handles.next() {
        let mut first = pin!(H::join(first));
        let polled = poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_ready())).await;
        Failure::unless_equal("sleepers that were ready at once", usize::from(polled), 0)?;
        first.await;
    }
    for handle in handles {
        H::join(handle).await;
    }
    let lap = watch.stop();
    let cpu = lap.cpu.as_nanos() as f64 / n as f64;
    Ok(vec![
        Metric::new("asked of the allocator", Unit::Bytes, bytes as f64 / n as f64),
        Metric::new("processor time", Unit::Nanoseconds, cpu),
    ])
}
