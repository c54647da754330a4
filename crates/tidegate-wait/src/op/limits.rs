//! What may end an operation beside its owner: the types in front of its head.

use crate::owner::OwnerHeader;
use crate::waiter::Head;

/// Which limit ended an operation that has no value to give back (a sleep, a plain wait).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// Its time ran out.
    TimedOut,
    /// Its token was cancelled.
    Cancelled,
}

impl Limit {
    /// Did time run out?
    #[must_use]
    pub fn is_timeout(self) -> bool {
        self == Limit::TimedOut
    }

    /// Was a token cancelled?
    #[must_use]
    pub fn is_cancelled(self) -> bool {
        self == Limit::Cancelled
    }
}

impl core::fmt::Display for Limit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Limit::TimedOut => "the time limit of the operation ran out",
            Limit::Cancelled => "the token of the operation was cancelled",
        })
    }
}

impl core::error::Error for Limit {}

/// The operation that a limit is armed for.
#[doc(hidden)]
#[derive(Debug)]
pub struct Arming {
    pub(crate) head: *mut Head,
    /// Entries of the operation's own between its limits and its head.
    pub(crate) front: usize,
    /// False: the operation's own timer already stands for the earliest limit in time.
    #[cfg(feature = "std")]
    pub(crate) timers: bool,
}

/// Limits on an operation: [`Unlimited`], or [`Timed`](super::Timed) and [`Cancellable`](super::Cancellable) around others.
///
/// # Safety
/// `repr(C)`, a sequence of exactly `DEPTH` entries of the same size, the innermost last.
pub unsafe trait Limits: Sized {
    /// How many entries.
    #[doc(hidden)]
    const DEPTH: usize;

    /// What an operation without an error of its own returns under these limits: `R`, or `Result<R, Limit>`.
    type Output<R>;

    #[doc(hidden)]
    fn output<R>(result: Result<R, Limit>) -> Self::Output<R>;

    /// Is a token among them cancelled?
    #[doc(hidden)]
    fn is_cancelled(&self) -> bool;

    /// Turns relative limits into deadlines, reading the clock only if there is one. True: one has passed already.
    ///
    /// # Safety
    /// By the operation's own task, while the limits are not armed.
    #[doc(hidden)]
    unsafe fn has_expired(&self) -> bool;

    /// The earliest deadline in ns, after `has_expired`.
    ///
    /// # Safety
    /// As there.
    #[doc(hidden)]
    unsafe fn earliest(&self) -> u64;

    /// Arms all of them. False: a token is cancelled, and the caller has to end the wait.
    ///
    /// # Safety
    /// `this` is derived from the pinned operation that `arming` names, which is parked.
    #[doc(hidden)]
    unsafe fn arm(this: *mut Self, arming: &Arming) -> bool;

    /// Takes all of them out of wheels and tokens. May be called again.
    ///
    /// # Safety
    /// By the operation's own task; `owner` is the one they were armed for.
    #[doc(hidden)]
    unsafe fn disarm(this: *mut Self, owner: *const OwnerHeader);
}

/// No limit: costs nothing.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Unlimited;

// SAFETY: no entries.
unsafe impl Limits for Unlimited {
    const DEPTH: usize = 0;
    type Output<R> = R;

    #[inline(always)]
    fn output<R>(result: Result<R, Limit>) -> R {
        match result {
            Ok(value) => value,
            Err(limit) => unreachable!("no limit was set, yet: {limit}"),
        }
    }

    #[inline(always)]
    fn is_cancelled(&self) -> bool {
        false
    }

    #[inline(always)]
    unsafe fn has_expired(&self) -> bool {
        false
    }

    #[inline(always)]
    unsafe fn earliest(&self) -> u64 {
        u64::MAX
    }

    #[inline(always)]
    unsafe fn arm(_: *mut Self, _: &Arming) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn disarm(_: *mut Self, _: *const OwnerHeader) {}
}
