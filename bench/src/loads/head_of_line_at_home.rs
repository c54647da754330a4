//! `head_of_line` on our own runtime: its tasks, its wheel, its canary.

use std::time::Instant;

use tidegate_channel::{bounded, SendError};
use tidegate_runtime::{spawn_local, yield_now, Runtime};
use tidegate_wait::timer::sleep;
use tidegate_wait::Operation;

use crate::harness::stopwatch::{milliseconds, Stopwatch};
use crate::harness::{Cell, Failure, Metric, Run, Scale, Unit};
use crate::loads::head_of_line::{LIMIT, TIMED};

const NAME: &str = "tidegate+own_runtime";

pub(super) fn cells(scale: Scale) -> Vec<Cell> {
    let cases: &[(usize, usize)] =
        scale.pick(&[(0, TIMED), (8_192, TIMED)], &[(0, TIMED), (32_768, TIMED), (131_072, TIMED), (131_072, 16_384)]);
    let cell = |&(parked, timed): &(usize, usize)| {
        let case = format!("{parked} parked ahead of {} sends of 100 ms", thousands(timed));
        let cell = Cell::new(case, NAME, move || run(parked, timed));
        match timed {
            TIMED => cell.on("sends parked ahead", parked),
            _ => cell,
        }
    };
    cases.iter().map(cell).collect()
}

/// As the other cells' case names have it.
fn thousands(n: usize) -> String {
    match n {
        TIMED => TIMED.to_string(),
        more => format!("{},{:03}", more / 1000, more % 1000),
    }
}

fn run(parked: usize, timed: usize) -> Run {
    let runtime = Runtime::new().map_err(|error| Failure::new(error.to_string()))?;
    runtime.block_on(measure(parked, timed)).map_err(|error| Failure::new(error.to_string()))?
}

async fn measure(parked: usize, timed: usize) -> Run {
    let (tx, rx) = bounded::<u64>(1);
    let full = |error: SendError<u64>| Failure::new(error.to_string());
    tx.send(0).await.map_err(full)?;
    let ahead: Vec<_> = (0..parked as u64).map(|number| spawn_local(tx.clone().into_send(number))).collect();
    let sends: Vec<_> =
        (0..timed as u64).map(|number| spawn_local(tx.clone().into_send(number).timeout(LIMIT))).collect();
    while tx.parked_senders() < parked + timed {
        yield_now().await;
    }
    let watch = Stopwatch::start();
    let begin = Instant::now();
    let canary = spawn_local(async move {
        sleep(LIMIT).await;
        begin.elapsed()
    });
    let mut returned = 0;
    for (number, task) in (0..).zip(sends) {
        match task.await.map_err(|error| Failure::new(error.to_string()))? {
            Err(SendError::TimedOut(value)) if value == number => returned += 1,
            other => return Err(Failure::new(format!("the send of {number} ended with {other:?}"))),
        }
    }
    let lap = watch.stop();
    let canary = canary.await.map_err(|error| Failure::new(error.to_string()))?;
    Failure::unless_equal("the value in the channel", rx.try_recv().unwrap_or(u64::MAX), 0)?;
    drop(ahead);
    Ok(vec![
        Metric::new("canary", Unit::Milliseconds, milliseconds(canary)),
        Metric::new("all done", Unit::Milliseconds, milliseconds(lap.wall)).with_cpu(milliseconds(lap.cpu)),
        Metric::new("values returned", Unit::Count, returned as f64),
    ])
}
