//! A million timers within one upper slot of the wheel, and everybody else's punctuality meanwhile.
//!
//! It is looked at in two ways. From outside, with a periodic timer of 1 ms: its lateness is what a user sees, but on a
//! shared machine nearly all of it is the machine's, which now and then takes milliseconds to run a thread that it woke.
//! So also from inside, with a wheel that this thread turns itself. A turn holds the wheel's lock once and moves a bounded
//! number of timers, and the next one begins with what is due. So what a cascade can hold up another timer by, be it due
//! or just being armed, is one turn; if the machine takes the processor away within a turn, the time shows that and the
//! processor time does not. This holds for a cascade that is over before its slot begins. One that is not keeps whatever
//! is due within the slot waiting until it is; so the time that was left is measured, too.

use std::time::{Duration, Instant};

use tidegate_wait::timer::{Next, Wheel};
use tokio::runtime::Runtime;

use super::{Sleeps, Tidegate, Tokio, WORKER_WHEEL};
use crate::harness::statistics::{maximum, median, percentile, SEED};
use crate::harness::stopwatch::{microseconds, milliseconds, milliseconds_between, Lap, Stopwatch};
use crate::harness::{Cell, Failure, Metric, Run, Scale, Unit};
use crate::loads::resident::{Order, Residents};
use crate::loads::{hooks, runtimes};

/// A slot of the third level of our wheel: 64 × 64 ticks of 2^16 ns.
const SLOT_NS: u64 = 1 << 28;
const HALF: Duration = Duration::from_nanos(SLOT_NS / 2);
/// The deadlines stay 1 ms clear of the slot's end: a deadline counts as the end of its tick, which could lie in the next
/// slot.
const SPAN_NS: u64 = SLOT_NS / 2 - (1 << 20);
const PERIOD: Duration = Duration::from_millis(1);
/// So long before the first deadline a run ends.
const MARGIN: Duration = Duration::from_millis(5);
/// Ticks, or turns, that make a run worth something.
const ENOUGH: usize = 100;

pub(super) fn cells(scale: Scale) -> Vec<Cell> {
    let many = scale.pick(200_000, 1_000_000);
    let ahead = Duration::from_millis(scale.pick(500, 2_500));
    let mut cells = Vec::new();
    for timers in [0, many] {
        let case = format!("a 1 ms timer beside {timers} in one upper slot");
        cells.push(Cell::new(case.clone(), Tidegate::NAME, move || run::<Tidegate>(timers, ahead)));
        cells.push(Cell::new(case, Tokio::NAME, move || run::<Tokio>(timers, ahead)));
    }
    for (order, title) in [(Order::Random, "random order"), (Order::Oldest, "the order of memory")] {
        let case = format!("a turn of a wheel with {many} in one upper slot, in {title}");
        cells.push(Cell::new(case, WORKER_WHEEL, move || turns(many, ahead, order)));
    }
    cells
}

fn run<S: Sleeps>(many: usize, ahead: Duration) -> Run {
    let runtime = runtimes::current_thread()?;
    let _entered = runtime.enter();
    let late = enough(many, ahead, |ahead| near_and_drop::<S>(&runtime, many, ahead))?;
    Ok(vec![
        Metric::new("lateness", Unit::Milliseconds, median(&late)).with_p99(percentile(&late, 0.99)),
        Metric::new("worst lateness", Unit::Milliseconds, maximum(&late)),
    ])
}

/// Tries again with deadlines further away if the insertion itself took too long.
fn enough<T>(
    many: usize,
    ahead: Duration,
    attempt: impl Fn(Duration) -> Result<Vec<T>, Failure>,
) -> Result<Vec<T>, Failure> {
    for ahead in [ahead, 4 * ahead, 16 * ahead] {
        let seen = attempt(ahead)?;
        if seen.len() >= ENOUGH {
            return Ok(seen);
        }
    }
    Err(Failure::new(format!("the machine is too slow to arm {many} timers and see them come near")))
}

/// Lets the timers come near and drops them just before the first one fires. Returns how late each tick was between the
/// insertion and the drop.
fn near_and_drop<S: Sleeps>(runtime: &Runtime, many: usize, ahead: Duration) -> Result<Vec<f64>, Failure> {
    let mut timers = Residents::new(many);
    let slot = park::<S>(&mut timers, ahead)?;
    let late = runtime.block_on(lateness::<S>(slot + HALF - MARGIN));
    timers.cancel();
    Ok(late)
}

/// Arms the timers. Their deadlines fill the second half of a slot: the wheel has to move them before they are due.
/// Returns the beginning of the slot.
fn park<S: Sleeps>(timers: &mut Residents<S::Sleep>, ahead: Duration) -> Result<Instant, Failure> {
    let slot = slot_after(Instant::now() + ahead)?;
    let mut random = fastrand::Rng::with_seed(SEED);
    let pending = timers.park(|_| S::sleep_until(slot + HALF + Duration::from_nanos(random.u64(..SPAN_NS))));
    Failure::unless_equal("timers pending", pending, timers.len())?;
    Ok(slot)
}

/// How late each tick of a periodic timer was, until `end`.
async fn lateness<S: Sleeps>(end: Instant) -> Vec<f64> {
    let mut late = Vec::new();
    let mut due = Instant::now() + PERIOD;
    while due < end {
        S::sleep_until(due).await;
        let now = Instant::now();
        late.push(milliseconds(now.saturating_duration_since(due)));
        // A tick that was missed is not made up for: it was counted as one that was late.
        while due <= now {
            due += PERIOD;
        }
    }
    tokio::time::sleep_until(end.into()).await;
    late
}

/// The first beginning of a slot of our wheels after `at`.
fn slot_after(at: Instant) -> Result<Instant, Failure> {
    let wheel = hooks::wheel()?;
    let at_ns = wheel.now_ns() + at.saturating_duration_since(Instant::now()).as_nanos() as u64;
    Ok(at + Duration::from_nanos(SLOT_NS - at_ns % SLOT_NS))
}

/// One turn that moved timers.
struct Turn {
    lap: Lap,
    /// How long before the slot it ended, in ms; below zero: after the slot had begun. A run ends 129 ms after that, over or
    /// not.
    left: f64,
}

/// How long the turns take that move timers, while `many` come near.
fn turns(many: usize, ahead: Duration, order: Order) -> Run {
    let turns = enough(many, ahead, |ahead| near_and_turn(many, ahead, order))?;
    let wall: Vec<f64> = turns.iter().map(|turn| microseconds(turn.lap.wall)).collect();
    let cpu: Vec<f64> = turns.iter().map(|turn| microseconds(turn.lap.cpu)).collect();
    let left = turns.last().map_or(f64::NAN, |turn| turn.left);
    Ok(vec![
        Metric::new("a turn that moves", Unit::Microseconds, median(&wall))
            .with_p99(percentile(&wall, 0.99))
            .with_cpu(median(&cpu)),
        Metric::new("longest turn", Unit::Microseconds, maximum(&wall)).with_cpu(maximum(&cpu)),
        Metric::new("over before the slot by", Unit::Milliseconds, left),
        Metric::new("turns that move", Unit::Count, turns.len() as f64),
    ])
}

/// Turns a wheel until just before the first of its timers is due. Neighbours in the slot are neighbours in memory, or in
/// `order`, as in a program that has run for a while.
fn near_and_turn(many: usize, ahead: Duration, order: Order) -> Result<Vec<Turn>, Failure> {
    let wheel = hooks::wheel()?;
    let mut timers = Residents::new(many);
    timers.arrange(order, SEED);
    let slot = hooks::on(&wheel, || park::<Tidegate>(&mut timers, ahead))?;
    let turns = turns_until(&wheel, slot);
    Failure::unless_equal("timers armed at the end", wheel.armed(), many)?;
    timers.cancel();
    Ok(turns)
}

/// Every turn that left something to do at once. None is due before the end, so those are the turns that moved as many
/// timers as a turn may. In between it sleeps, as a worker does.
fn turns_until(wheel: &Wheel, slot: Instant) -> Vec<Turn> {
    let end = slot + HALF - MARGIN;
    let mut turns = Vec::new();
    loop {
        let now = Instant::now();
        if now >= end {
            return turns;
        }
        let watch = Stopwatch::start();
        let next = wheel.turn();
        let lap = watch.stop();
        let rest = match next {
            Next::More => {
                turns.push(Turn { lap, left: milliseconds_between(now + lap.wall, slot) });
                continue;
            }
            Next::At(at) => Duration::from_nanos(at.saturating_sub(wheel.now_ns())),
            Next::Idle => Duration::MAX,
        };
        std::thread::sleep(rest.min(end.saturating_duration_since(Instant::now())));
    }
}
