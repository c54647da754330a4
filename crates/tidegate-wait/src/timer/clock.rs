//! What time it is: the system's monotonic clock, or one that a test moves by hand.
//!
//! Inside the crate a time is a `u64`: nanoseconds since the process's epoch, which is the first time anybody asks.
//! Users see [`Instant`]s; a [`ManualClock`]'s instants are on the same axis, so deadlines mean the same on either.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::entry::FOREVER;
use super::{Next, Wheel};
use crate::shim::{AtomicU64, Ordering};

static EPOCH: OnceLock<Instant> = OnceLock::new();

fn epoch() -> Instant {
    *EPOCH.get_or_init(Instant::now)
}

/// A duration in ns; what does not fit (584 years) is for ever.
#[inline]
pub(crate) fn duration_ns(duration: Duration) -> u64 {
    // Beyond u64 only for more than 584 years.
    u64::try_from(duration.as_nanos()).unwrap_or(FOREVER)
}

/// An instant in ns since the epoch; before it: 0, which is past.
#[inline]
pub(crate) fn instant_ns(at: Instant) -> u64 {
    duration_ns(at.saturating_duration_since(epoch()))
}

/// The instant `ns` after the epoch. `None`: not representable (for ever).
pub(crate) fn ns_instant(ns: u64) -> Option<Instant> {
    (ns != FOREVER).then(|| epoch().checked_add(Duration::from_nanos(ns))).flatten()
}

/// Where a wheel reads the time.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    System,
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// Does time pass by itself?
    pub(crate) fn runs(&self) -> bool {
        matches!(self, Clock::System)
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        match self {
            // Elapsed time since the process's start fits for 584 years.
            Clock::System => epoch().elapsed().as_nanos() as u64,
            // Ordering: Acquire pairs with Release in `advance_to`; who sees the new time sees what was done before it.
            Clock::Manual(now) => now.load(Ordering::Acquire),
        }
    }
}

/// A clock that stands still until it is moved, with a timer wheel of its own: for tests.
///
/// Operations polled inside [`ManualClock::enter`] arm their timers on this wheel. [`ManualClock::advance`] fires what
/// becomes due, in deadline order, on the calling thread.
///
/// ```
/// use std::time::Duration;
/// use tidegate_wait::timer::{sleep, ManualClock};
///
/// let clock = ManualClock::new();
/// clock.enter(|| {
///     let mut nap = std::pin::pin!(sleep(Duration::from_secs(3600)));
///     assert!(tidegate_wait::op::poll_once(nap.as_mut()).is_pending());
///     clock.advance(Duration::from_secs(3599));
///     assert!(tidegate_wait::op::poll_once(nap.as_mut()).is_pending());
///     clock.advance(Duration::from_secs(1));
///     assert!(tidegate_wait::op::poll_once(nap.as_mut()).is_ready());
/// });
/// ```
#[derive(Debug)]
pub struct ManualClock {
    now: Arc<AtomicU64>,
    wheel: Wheel,
}

impl ManualClock {
    /// A clock that stands at the present.
    ///
    /// # Panics
    /// When 511 wheels are alive already.
    #[track_caller]
    #[must_use]
    pub fn new() -> ManualClock {
        Self::try_new().expect("too many timer wheels are alive (511): drop some clocks or runtimes")
    }

    /// [`ManualClock::new`], or `None` when 511 wheels are alive already.
    #[must_use]
    pub fn try_new() -> Option<ManualClock> {
        // Loom needs every run to be the same.
        let ns = if cfg!(loom) { 1 << 30 } else { Clock::System.now() };
        let now = Arc::new(AtomicU64::new(ns));
        let wheel = Wheel::with_clock(Clock::Manual(now.clone()), None)?;
        Some(ManualClock { now, wheel })
    }

    /// The time it shows.
    ///
    /// # Panics
    /// When the clock was moved further than an [`Instant`] can say.
    #[must_use]
    pub fn now(&self) -> Instant {
        ns_instant(self.now.load(Ordering::Acquire)).expect("a manual clock within the range of Instant")
    }

    /// Runs `f` with this clock and its wheel as the current thread's.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        crate::context::with_wheel(&self.wheel, f)
    }

    /// Moves on by `step` and fires what becomes due. A time beyond 584 years saturates.
    pub fn advance(&self, step: Duration) {
        let step = duration_ns(step);
        // Ordering: Release pairs with Acquire in `Clock::now`. One step: two threads' moves add up.
        let _moved = self.now.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| Some(now.saturating_add(step)));
        self.fire();
    }

    /// Moves on to `at` and fires what becomes due; never back.
    pub fn advance_to(&self, at: Instant) {
        self.advance_to_ns(instant_ns(at));
    }

    pub(crate) fn advance_to_ns(&self, to: u64) {
        // Ordering: Release pairs with Acquire in `Clock::now`.
        self.now.fetch_max(to, Ordering::AcqRel);
        self.fire();
    }

    fn fire(&self) {
        while self.wheel.turn() == Next::More {}
    }

    /// Moves on to the next time at which something is due and fires it. False: nothing is armed.
    pub fn advance_to_next(&self) -> bool {
        let mut any = false;
        loop {
            let (next, fired) = self.wheel.turn_counting();
            any |= fired != 0;
            match next {
                Next::More => {}
                _ if any => return true,
                Next::Idle => return false,
                Next::At(at) => {
                    // A turn at that time may only move entries down a level; then it says when the next one is.
                    // Ordering: Release pairs with Acquire in `Clock::now`.
                    self.now.fetch_max(at, Ordering::AcqRel);
                }
            }
        }
    }

    /// How many timers are armed on this clock.
    #[must_use]
    pub fn armed(&self) -> usize {
        self.wheel.armed()
    }

    /// The wheel, for a runtime that runs in virtual time.
    #[must_use]
    pub fn wheel(&self) -> &Wheel {
        &self.wheel
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}
