//! A limit in time: 24 bytes in front of an operation.

use std::time::{Duration, Instant};

use super::limits::{Arming, Limit, Limits};
use crate::owner::{Held, OwnerHeader};
use crate::timer::entry::{TimerEntry, FOREVER};
use crate::timer::{self, duration_ns, instant_ns};

/// A limit in time around other limits; made by [`Operation::timeout`](super::Operation::timeout) and
/// [`Operation::deadline`](super::Operation::deadline).
#[derive(Debug)]
#[repr(C)]
pub struct Timed<L> {
    entry: TimerEntry,
    inner: L,
}

impl<L> Timed<L> {
    pub(crate) fn after(limit: Duration, inner: L) -> Timed<L> {
        Timed { entry: TimerEntry::new(duration_ns(limit), FOREVER), inner }
    }

    pub(crate) fn at(at: Instant, inner: L) -> Timed<L> {
        Timed { entry: TimerEntry::new(FOREVER, instant_ns(at)), inner }
    }
}

// SAFETY: one entry in front of those of `L`.
unsafe impl<L: Limits> Limits for Timed<L> {
    const DEPTH: usize = {
        assert!(L::DEPTH < 6, "an operation takes at most six limits");
        L::DEPTH + 1
    };
    type Output<R> = Result<R, Limit>;

    #[inline]
    fn output<R>(result: Result<R, Limit>) -> Result<R, Limit> {
        result
    }

    #[inline]
    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }

    unsafe fn has_expired(&self) -> bool {
        let mut now = None;
        let mut read = || *now.get_or_insert_with(|| timer::with_current(|wheel| wheel.now_ns()));
        let deadline = self.entry.wanted(&mut read);
        self.entry.reset(FOREVER, deadline);
        // Zero is past on any clock, and for ever needs no clock.
        let expired = deadline == 0 || (deadline != FOREVER && deadline <= read());
        // SAFETY: the caller's promise.
        expired || unsafe { self.inner.has_expired() }
    }

    unsafe fn earliest(&self) -> u64 {
        // SAFETY: the caller's promise.
        let inner = unsafe { self.inner.earliest() };
        self.entry.wanted(|| unreachable!("made absolute by has_expired")).min(inner)
    }

    unsafe fn arm(this: *mut Self, arming: &Arming) -> bool {
        // SAFETY: the caller's promise; the raw pointers keep the provenance of the whole operation.
        unsafe {
            let entry = &raw mut (*this).entry;
            let deadline = (*entry).wanted(|| unreachable!("made absolute by has_expired"));
            if arming.timers && deadline != FOREVER {
                // T3: the wheel holds the owner's memory as long as the entry is linked.
                let _standing = Held::new((*arming.head).owner()).into_raw();
                let depth = Self::DEPTH + arming.front;
                timer::with_current(|wheel| wheel.arm(entry, deadline, depth));
            }
            L::arm(&raw mut (*this).inner, arming)
        }
    }

    #[inline]
    unsafe fn disarm(this: *mut Self, owner: *const OwnerHeader) {
        // SAFETY: the caller's promise.
        unsafe {
            let entry = &raw mut (*this).entry;
            if (*entry).is_armed() {
                let deadline = (*entry).deadline();
                if timer::disarm(entry) {
                    drop(Held::from_raw(owner));
                }
                // What a rearmed operation needs: the same deadline.
                (*entry).reset(FOREVER, deadline);
            }
            L::disarm(&raw mut (*this).inner, owner);
        }
    }
}
