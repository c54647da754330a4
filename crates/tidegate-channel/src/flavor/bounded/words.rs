//! The two index words of the bounded channel and the arithmetic of positions.
//!
//! ```text
//!        63      62     61      60    59 ........ 0
//! tail:  PERMIT  RXW    CLOSED  LOCK  position        RXW: receivers are parked
//! head:  TXW     STASH  0       0     position        TXW: senders are parked
//! ```
//! LOCK is not the highest bit: compilers look for that one by the sign of the whole word, and then take it by a loop of
//! compare-and-swap, which fast senders can starve, instead of the one instruction that sets a bit and returns it.
//!
//! A position is `lap · n + index`: the low bits are the slot's index in `0..cap`, `lap = (cap+1).next_power_of_two()`, so
//! the next position after the last slot jumps to the next multiple of `lap`.
//!
//! A slot's stamp holds no index, only the lap: `lap · n` free for that lap, `lap · n + 1` full. So all stamps begin at
//! zero, and a ring from `alloc_zeroed` is never touched before it is used.
//!
//! With capacity 0 there are no slots: both positions stay 0, and one stamp that nothing matches ([`NO_SLOT`]) turns every
//! fast path away.
//!
//! **No wrap.** Positions grow by at most 2 a message (capacity 1), by less than 2 otherwise, and 60 bits hold 2^60 of
//! them: at 5 ns a message, 2^59 messages take 91 years of one channel running without a pause.

/// Set by whoever holds the slow paths' lock; freezes the tail for fast senders.
pub(in crate::flavor) const LOCK: u64 = 1 << 60;
/// Receivers are parked (I2).
pub(in crate::flavor) const RXW: u64 = 1 << 62;
/// No send is admitted any more.
pub(in crate::flavor) const CLOSED: u64 = 1 << 61;
/// Slots are promised to permits.
pub(in crate::flavor) const PERMIT: u64 = 1 << 63;
/// In `head`: senders are parked (I1).
pub(in crate::flavor) const TXW: u64 = 1 << 63;
/// In `head`: the stash is not empty (I5).
pub(in crate::flavor) const STASH: u64 = 1 << 62;

/// The bits of a position.
pub(in crate::flavor) const POSITION: u64 = (1 << 60) - 1;

/// The stamp of a channel without slots: never free, never full, as no word has all bits set.
pub(super) const NO_SLOT: u64 = u64::MAX;

const _: () = assert!(POSITION & (LOCK | RXW | CLOSED | PERMIT | TXW | STASH) == 0);

/// The capacity of a channel that has blocks instead of a ring; see `flavor/unbounded/`.
pub(in crate::flavor) const UNBOUNDED: u64 = u64::MAX;

/// The largest capacity: 2^48.
pub(super) const MAX_CAPACITY: u64 = 1 << 48;

/// The position in an index word.
#[inline(always)]
pub(in crate::flavor) fn position(word: u64) -> u64 {
    word & POSITION
}

/// The geometry of a ring.
#[derive(Clone, Copy, Debug)]
pub(in crate::flavor) struct Ring {
    pub(super) cap: u64,
    /// `lap - 1`.
    mask: u64,
    /// How far the positions of a full ring lie apart: a lap; nothing, if there are no slots.
    span: u64,
}

impl Ring {
    pub(super) fn new(cap: u64) -> Ring {
        let lap = (cap + 1).next_power_of_two();
        Ring { cap, mask: lap - 1, span: if cap == 0 { 0 } else { lap } }
    }

    /// Positions that are plain numbers, never a ring apart.
    pub(in crate::flavor) fn unbounded() -> Ring {
        Ring { cap: UNBOUNDED, mask: POSITION, span: POSITION + 1 }
    }

    /// Are there blocks instead of a ring?
    #[inline(always)]
    pub(in crate::flavor) fn is_unbounded(self) -> bool {
        self.cap == UNBOUNDED
    }

    /// May positions begin here? Some laps before they would run into the flags.
    pub(super) fn may_start(self, start: u64) -> bool {
        start <= POSITION - 8 * self.lap()
    }

    pub(super) fn lap(self) -> u64 {
        self.mask + 1
    }

    /// The slot of a position.
    #[inline(always)]
    pub(super) fn index(self, word: u64) -> usize {
        (word & self.mask) as usize
    }

    /// The stamp of the slot while it is free for this position. With a flag in the word, a value no stamp ever has.
    #[inline(always)]
    pub(super) fn free(self, word: u64) -> u64 {
        word & !self.mask
    }

    /// The stamp of the slot while it holds this position's value.
    #[inline(always)]
    pub(super) fn full(self, word: u64) -> u64 {
        self.free(word) + 1
    }

    /// The position after this one, the flags as they are.
    #[inline(always)]
    pub(super) fn next(self, word: u64) -> u64 {
        if (word & self.mask) + 1 < self.cap {
            word + 1
        } else {
            (word & !self.mask) + self.mask + 1
        }
    }

    /// Do `head` and `tail` lie a whole ring apart? The same slot, one lap on. A ring without slots is always full.
    #[inline(always)]
    pub(super) fn is_full(self, head: u64, tail: u64) -> bool {
        position(head) + self.span == position(tail)
    }

    /// How many positions lie between two words.
    #[inline(always)]
    pub(super) fn distance(self, head: u64, tail: u64) -> u64 {
        let (head, tail) = (position(head), position(tail));
        let laps = ((tail & !self.mask).wrapping_sub(head & !self.mask)) >> self.mask.trailing_ones();
        laps.wrapping_mul(self.cap).wrapping_add(tail & self.mask).wrapping_sub(head & self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_every_slot_of_every_lap() {
        for cap in [1, 2, 3, 4, 7, 8, 64, 1000] {
            let ring = Ring::new(cap);
            let mut at = 0;
            for n in 0..5 * cap {
                assert_eq!(ring.index(at) as u64, n % cap);
                assert_eq!(ring.free(at), n / cap * ring.lap());
                assert_eq!(ring.distance(0, at), n);
                assert_eq!(ring.distance(at, ring.next(at)), 1);
                assert_ne!(ring.full(at), ring.free(ring.next(at)));
                assert_eq!(ring.is_full(0, at), n == cap);
                at = ring.next(at);
            }
        }
    }

    #[test]
    fn plain_numbers_are_never_full() {
        let ring = Ring::unbounded();
        for (head, tail) in [(0, 0), (0, 1), (7, 1 << 59), (POSITION - 1, POSITION)] {
            assert_eq!(ring.distance(head | STASH, tail | LOCK | RXW), tail - head);
            assert!(!ring.is_full(head | TXW, tail | PERMIT));
        }
        assert!(ring.is_unbounded() && !Ring::new(MAX_CAPACITY).is_unbounded());
    }

    #[test]
    fn a_ring_without_slots_is_full_and_empty() {
        let ring = Ring::new(0);
        assert!(ring.is_full(0, 0));
        assert_eq!((ring.distance(0, 0), ring.index(LOCK | RXW)), (0, 0));
        for word in [0, LOCK, RXW, CLOSED, LOCK | RXW | CLOSED | PERMIT, TXW | STASH] {
            assert!(ring.free(word) != NO_SLOT && ring.full(word) != NO_SLOT);
        }
    }

    #[test]
    fn flags_survive_a_step_and_spoil_a_stamp() {
        let ring = Ring::new(3);
        for flag in [LOCK, RXW, CLOSED, PERMIT] {
            assert_eq!(ring.next(2 | flag), 4 | flag);
            assert!(ring.free(2 | flag) > POSITION);
        }
    }
}
