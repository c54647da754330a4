//! What a task waits on, by value: three words in its header, written by the park hook, read by a dump.
//!
//! ```text
//! note  63 ......... 16 | 15 ... 8 | 3       2       1          0
//!       since, in ticks | what     | LIMITED WAITING REGISTERED QUEUED
//! ```
//! The two lowest flags are the scheduler's; they stand here because these words are its thread's alone.

use core::cell::Cell;

use tidegate_wait::context::WaitInfo;
use tidegate_wait::origin::Origin;

/// A tick of `since`: 2^16 ns. 48 bits of them last for 584 years.
const TICK_BITS: u32 = 16;

/// It stands in the local queue.
pub(crate) const QUEUED: u64 = 1;
/// It stands in the registry.
pub(crate) const REGISTERED: u64 = 1 << 1;
/// Its last poll left an operation of ours parked.
pub(crate) const WAITING: u64 = 1 << 2;
/// That operation has limits.
pub(crate) const LIMITED: u64 = 1 << 3;

/// See the module.
#[derive(Debug)]
pub(crate) struct Wait {
    note: Cell<u64>,
    object: Cell<usize>,
    origin: Cell<Origin>,
}

/// [`Wait`], read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The index of operation and object in the scheduler's names.
    pub(crate) what: u8,
    pub(crate) object: usize,
    pub(crate) origin: Origin,
    /// On the scheduler's clock, in ns; not later than the park.
    pub(crate) since: u64,
    pub(crate) is_limited: bool,
}

impl Wait {
    pub(crate) fn new() -> Wait {
        Wait { note: Cell::new(0), object: Cell::new(0), origin: Cell::new(Origin::UNKNOWN) }
    }

    #[inline(always)]
    pub(crate) fn has(&self, flag: u64) -> bool {
        self.note.get() & flag != 0
    }

    #[inline(always)]
    pub(crate) fn set(&self, flag: u64) {
        self.note.set(self.note.get() | flag);
    }

    #[inline(always)]
    pub(crate) fn clear(&self, flags: u64) {
        self.note.set(self.note.get() & !flags);
    }

    /// An operation is parked: since `now`, or since it was noted.
    #[inline]
    pub(crate) fn park(&self, info: &WaitInfo, what: u8, now: u64) {
        let what = u64::from(what) << 8;
        let before = self.note.get();
        let same = !info.is_new && self.object.get() == info.object && before & 0xFF00 == what;
        let since = if same { before & !0xFFFF } else { (now >> TICK_BITS) << 16 };
        let limited = if info.is_limited { LIMITED } else { 0 };
        self.note.set(since | what | before & (QUEUED | REGISTERED) | WAITING | limited);
        self.object.set(info.object);
        self.origin.set(info.origin);
    }

    /// What the last poll left parked.
    pub(crate) fn waiting(&self) -> Option<Waiting> {
        let note = self.note.get();
        (note & WAITING != 0).then(|| Waiting {
            what: (note >> 8) as u8,
            object: self.object.get(),
            origin: self.origin.get(),
            since: (note >> 16) << TICK_BITS,
            is_limited: note & LIMITED != 0,
        })
    }
}
