//! A timer's place in a wheel: 24 bytes that stand in front of the operation they limit.
//!
//! ```text
//!              before arming              armed
//! word 0       relative limit in ns       prev                       null: not linked (fired, cancelled, wheel died)
//! word 1       absolute limit in ns       next | depth               depth: entries between here and the head
//! word 2       0                          deadline << 9 | wheel      wheel: 1..=511, 0: never armed
//! ```
//! The deadline counts nanoseconds since the process's epoch, exactly below 2^54 (208 days) and in whole microseconds,
//! rounded up, above: 55 bits reach 570 years, and what lies beyond is for ever. Codes compare as the deadlines do.
//!
//! - **T1** `word` is written by the operation's task while the entry is in no wheel, and is constant while it is in one.
//!   So the task may read without a lock which wheel to lock.
//! - **T2** The links are touched under that wheel's lock only.
//! - **T3** An armed entry that is linked holds a reference on its operation's owner; whoever unlinks it takes the
//!   reference over. A sleep's owner is the wheel itself and needs none: wheels are never freed while anything is linked.

use core::cell::{Cell, UnsafeCell};
use core::mem::ManuallyDrop;

use crate::op::entry::{EntryLinks, ENTRY_SIZE};

/// No limit.
pub(crate) const FOREVER: u64 = u64::MAX;

const WHEEL_BITS: u32 = 9;
pub(crate) const MAX_WHEELS: usize = (1 << WHEEL_BITS) - 1;
const EXACT: u64 = 1 << 54;

#[repr(C)]
#[derive(Clone, Copy)]
struct Wanted {
    relative: u64,
    absolute: u64,
}

/// Before arming the links' place holds what the user asked for.
#[repr(C)]
union Place {
    wanted: Wanted,
    links: ManuallyDrop<EntryLinks>,
}

/// See the module's text.
#[repr(C, align(8))]
pub(crate) struct TimerEntry {
    place: UnsafeCell<Place>,
    word: Cell<u64>,
}

impl TimerEntry {
    /// An entry that wants to fire `relative` ns after it is armed, or at `absolute`, whichever is first.
    #[inline(always)]
    pub(crate) fn new(relative: u64, absolute: u64) -> TimerEntry {
        TimerEntry { place: UnsafeCell::new(Place { wanted: Wanted { relative, absolute } }), word: Cell::new(0) }
    }

    /// Has it ever been armed since `reset`? For the operation's own task (T1).
    #[inline(always)]
    pub(crate) fn is_armed(&self) -> bool {
        self.word.get() != 0
    }

    /// The deadline that the wish means at `now`; `now` is asked only for a relative one.
    pub(crate) fn wanted(&self, now: impl FnOnce() -> u64) -> u64 {
        debug_assert!(!self.is_armed());
        // SAFETY: unarmed, so the place holds the wish, and only the task reaches it.
        let wanted = unsafe { (*self.place.get()).wanted };
        if wanted.relative == FOREVER {
            wanted.absolute
        } else {
            wanted.absolute.min(now().saturating_add(wanted.relative))
        }
    }

    /// Forgets the arming and wants `absolute`. By the task, after the entry has left its wheel.
    pub(crate) fn reset(&self, relative: u64, absolute: u64) {
        // SAFETY: in no wheel: only the task reaches it.
        unsafe { (*self.place.get()).wanted = Wanted { relative, absolute } };
        self.word.set(0);
    }

    /// Becomes an unlinked, armed entry. By the task, before it hands the entry to the wheel.
    pub(crate) fn arm(&self, deadline: u64, wheel: u16, depth: usize) {
        debug_assert!(wheel != 0);
        // SAFETY: in no wheel: only the task reaches it.
        unsafe { (*self.place.get()).links = ManuallyDrop::new(EntryLinks::new(depth)) };
        self.word.set(encode(deadline) << WHEEL_BITS | u64::from(wheel));
    }

    /// The wheel it was armed on.
    #[inline(always)]
    pub(crate) fn wheel(&self) -> u16 {
        (self.word.get() & MAX_WHEELS as u64) as u16
    }

    /// The deadline, comparable with others'.
    #[inline(always)]
    pub(crate) fn code(&self) -> u64 {
        self.word.get() >> WHEEL_BITS
    }

    /// The deadline in ns.
    #[inline(always)]
    pub(crate) fn deadline(&self) -> u64 {
        decode(self.code())
    }
}

// SAFETY: `word` is written by the task alone, the links under the wheel's lock (T1, T2).
unsafe impl Send for TimerEntry {}
// SAFETY: a shared reference reads `word` only, which is constant or the task's.
unsafe impl Sync for TimerEntry {}

impl core::fmt::Debug for TimerEntry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TimerEntry").field("armed", &self.is_armed()).finish_non_exhaustive()
    }
}

#[inline(always)]
fn encode(ns: u64) -> u64 {
    if ns < EXACT {
        ns
    } else {
        EXACT | ns.div_ceil(1_000).min(EXACT - 1)
    }
}

#[inline(always)]
fn decode(code: u64) -> u64 {
    if code < EXACT {
        code
    } else if code == (EXACT | (EXACT - 1)) {
        FOREVER
    } else {
        (code & (EXACT - 1)).saturating_mul(1_000)
    }
}

const _: () = assert!(size_of::<TimerEntry>() == ENTRY_SIZE);
