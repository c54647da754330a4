//! `interval`: ticks at a fixed distance, without drift.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{ready, Context, Poll};
use std::time::{Duration, Instant};

use super::clock::ns_instant;
use super::entry::FOREVER;
use super::{duration_ns, instant_ns, with_current, Sleep, Wheel};

/// What an [`Interval`] does about ticks that nobody took in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissedTicks {
    /// All of them come, at once, until the interval has caught up.
    #[default]
    Burst,
    /// One comes at once; the next a whole period after it was taken.
    Delay,
    /// One comes at once; the next at the first multiple of the period that lies ahead.
    Skip,
}

/// A period of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ZeroPeriod;

impl fmt::Display for ZeroPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an interval needs a period longer than zero")
    }
}

impl core::error::Error for ZeroPeriod {}

/// Ticks at multiples of a period; made by [`interval`] and [`interval_at`]. It allocates nothing and holds no timer
/// while no [`tick`](Interval::tick) is awaited.
#[derive(Debug)]
pub struct Interval {
    period: u64,
    /// When the next tick is due; `None`: at the first call.
    next: Option<u64>,
    missed: MissedTicks,
}

/// An interval whose first tick comes at once and fixes the beat.
///
/// # Errors
/// [`ZeroPeriod`].
///
/// ```
/// use std::time::Duration;
/// use tidegate_wait::{op::block_on, timer::interval};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut beat = interval(Duration::from_millis(2))?;
/// let first = block_on(beat.tick());
/// let second = block_on(beat.tick());
/// assert_eq!(second - first, Duration::from_millis(2));
/// # Ok(())
/// # }
/// ```
pub fn interval(period: Duration) -> Result<Interval, ZeroPeriod> {
    new(None, period)
}

/// An interval whose first tick comes at `start`. A start before the process first asked this crate for the time counts
/// as that moment.
///
/// # Errors
/// [`ZeroPeriod`].
pub fn interval_at(start: Instant, period: Duration) -> Result<Interval, ZeroPeriod> {
    new(Some(instant_ns(start)), period)
}

fn new(next: Option<u64>, period: Duration) -> Result<Interval, ZeroPeriod> {
    match duration_ns(period) {
        0 => Err(ZeroPeriod),
        period => Ok(Interval { period, next, missed: MissedTicks::default() }),
    }
}

impl Interval {
    /// The same with another rule for missed ticks.
    #[must_use]
    pub fn with_missed_ticks(mut self, missed: MissedTicks) -> Interval {
        self.missed = missed;
        self
    }

    /// The period.
    #[must_use]
    pub fn period(&self) -> Duration {
        match self.period {
            FOREVER => Duration::MAX,
            period => Duration::from_nanos(period),
        }
    }

    /// The next tick starts the beat anew: it comes a whole period from now.
    pub fn reset(&mut self) {
        self.next = Some(with_current(Wheel::now_ns).saturating_add(self.period));
    }

    /// Waits for the next tick and returns the instant it was due at (not the one it was taken at).
    ///
    /// # Cancel safety
    /// A tick that is dropped is not taken: the next call waits for the same one.
    ///
    /// # Panics
    /// The returned future: when a tick lies beyond what [`Instant`] can say, which takes centuries.
    pub fn tick(&mut self) -> Tick<'_> {
        let next = self.next.unwrap_or(0);
        Tick { interval: Some(self), sleep: Sleep::until_ns(next) }
    }

    fn take(&mut self) -> Instant {
        let now = || with_current(Wheel::now_ns);
        let due = self.next.unwrap_or_else(now);
        let beat = due.saturating_add(self.period);
        self.next = Some(match self.missed {
            MissedTicks::Burst => beat,
            MissedTicks::Delay => match now() {
                now if now < beat => beat,
                now => now.saturating_add(self.period),
            },
            MissedTicks::Skip => match now() {
                now if now < beat => beat,
                now => due.saturating_add(((now - due) / self.period + 1).saturating_mul(self.period)),
            },
        });
        ns_instant(due).filter(|_| due != FOREVER).expect("a tick within the range of Instant")
    }
}

/// The wait for one tick; made by [`Interval::tick`].
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Tick<'a> {
    /// Gone with the tick: polled again, the future stays pending.
    interval: Option<&'a mut Interval>,
    sleep: Sleep,
}

impl Future for Tick<'_> {
    type Output = Instant;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        // SAFETY: only the sleep is pinned with the whole; the reference may move.
        let (interval, sleep) = unsafe {
            let this = self.get_unchecked_mut();
            (&mut this.interval, Pin::new_unchecked(&mut this.sleep))
        };
        ready!(sleep.poll(cx));
        match interval.take() {
            Some(interval) => Poll::Ready(interval.take()),
            None => Poll::Pending,
        }
    }
}
