//! The hierarchical timer wheel: a data structure without clock, lock or thread. [`timer::Wheel`](super::Wheel) adds them.
//!
//! # Layout
//! A tick is 2^16 ns. Level `l` has slots of 64^l ticks each. A level has 128 slots, not 64: it covers the part of its
//! parent's slot that is current *and* the whole next one. So the coming slot of every level can be emptied into the
//! levels below while the current one still runs, a few nodes at a time, and no cascade ever stands between a timer and
//! its deadline. (With 64 slots the coming slot's nodes have no place below until the boundary itself.)
//!
//! ```text
//! level            0       1       2        3       4      5      6
//! slot is          65 µs   4 ms    268 ms   17 s    18 min 20 h   52 days
//! ```
//!
//! # Where an entry stands
//! `index(l, t) = t >> 6l`. An entry due at tick `t > now` stands in the lowest level `l` for which
//! `index(l+1, t) - index(l+1, now) <= 1`; beyond the top level, in the top level's last slot, from which it is placed again.
//! - **H1** Slots of level `l` hold only entries of `index(l)` in `now's .. now's + 127`, so no two times share a slot.
//! - **H2** On levels above 0, the slot that contains `now` is empty; the one after it (*coming*) may still be draining.
//! - **H3** While a coming slot drains, new entries for it join its end. So entries with equal deadlines keep the order
//!   in which they were armed, through every level (beyond 18 years: not promised).
//!   Nor for those put off (H6).
//! - **H4** `occupied` bit ⇔ slot not empty. `pending` bit of a level ⇔ its coming slot is not empty.
//! - **H5** `unsorted` bit of a level-0 slot: some entry in it may be due before one ahead of it. It is sorted, stably,
//!   before anything in it fires.
//!
//! - **H6** If a slot is not empty when its time begins (so many entries that a whole slot's time was not enough), the rest
//!   is *put off*: it moves to the end of `late` in O(1), and from there to its places in small steps between firings, the
//!   newest first: whoever joined the slot behind the many (H3) does not wait for them. So timers of others wait for a
//!   step, not for the rest; those put off may fire after some that are due later. Only with a clock that runs by itself:
//!   a manual clock keeps the order, whatever it takes.
//!
//! Insert and cancel are O(1). Sorting is the exception to a bounded turn: a slot that got an entry out of order is merged
//! as a whole, in one hold (H5). A slot holds 65 µs worth of deadlines, so that is rare and short, unless very many share
//! one tick, as in a simulation whose virtual tasks sleep for microseconds.
//!
//! Apart from that a turn is bounded: at most [`STEP`] entries cascade and one batch fires, then it returns
//! and says whether there is more, so that its caller can let go of the lock.
//!
//! Reference: Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP 1987, scheme 7.
//! Test: `tests/wheel_model.rs`, against a `BTreeMap`, in virtual time to 2^40 ms.

use core::cell::Cell;

use super::entry::{TimerEntry, FOREVER};
use crate::op::entry::{self, EntryLinks, EntryList};

pub(crate) const TICK_SHIFT: u32 = 16;
const LEVELS: usize = 7;
const SLOTS: usize = 128;
/// At most so many entries move down a level in one step.
pub(crate) const STEP: usize = 256;

type Slot = EntryList<TimerEntry>;

/// Sorts by deadline, stably: merges neighbouring sorted runs until one is left.
fn sort(slot: &Slot) {
    while let Some(mut left) = slot.front() {
        let mut merged = false;
        while let Some(right) = run_end(left, slot.end()) {
            merged = true;
            match merge(left, right, slot.end()) {
                Some(next) => left = next,
                None => break,
            }
        }
        if !merged {
            return;
        }
    }
}

fn links_of(entry: *mut TimerEntry) -> *mut EntryLinks {
    // An entry begins with its links (`repr(C)`).
    entry.cast()
}

fn code(entry: *mut TimerEntry) -> u64 {
    // SAFETY: linked entries are alive under the wheel's lock.
    unsafe { (*entry).code() }
}

fn next_of(entry: *mut TimerEntry) -> *mut EntryLinks {
    // SAFETY: as above.
    unsafe { (*links_of(entry)).next() }
}

/// The first entry after the sorted run that begins at `from`, if the list goes on.
fn run_end(from: *mut TimerEntry, end: *mut EntryLinks) -> Option<*mut TimerEntry> {
    let mut at = from;
    loop {
        let next = next_of(at);
        if next == end {
            return None;
        }
        if code(next.cast()) < code(at) {
            return Some(next.cast());
        }
        at = next.cast();
    }
}

/// Merges the run that begins at `left` with the next one, which begins at `right`; returns where the run after both
/// begins.
fn merge(mut left: *mut TimerEntry, mut right: *mut TimerEntry, end: *mut EntryLinks) -> Option<*mut TimerEntry> {
    let after = run_end(right, end);
    let stop = after.map_or(end, links_of);
    while links_of(left) != links_of(right) && links_of(right) != stop {
        if code(right) < code(left) {
            let next = next_of(right);
            // SAFETY: both are linked, so alive, and the lock is held.
            unsafe {
                let _neighbours = entry::unlink(links_of(right));
                entry::insert_before(links_of(right), links_of(left));
            }
            right = next.cast();
        } else {
            left = next_of(left).cast();
        }
    }
    after
}

#[derive(Debug)]
struct Level {
    occupied: Cell<u128>,
    slots: [Slot; SLOTS],
}

impl Level {
    fn new() -> Level {
        Level { occupied: Cell::new(0), slots: core::array::from_fn(|_| Slot::new()) }
    }
}

/// What a turn left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Call again at once: something is due or must move down.
    More,
    /// Nothing to do before this time in ns.
    At(u64),
    /// Nothing is armed.
    Idle,
}

/// The wheel itself. All methods are for the holder of its lock; it must not move once `start` has run. They take `&self`:
/// a `&mut` would claim the sentinels, to which the entries point.
#[derive(Debug)]
pub struct WheelCore {
    /// Everything due at or before this tick has been taken out.
    now: Cell<u64>,
    pending: Cell<u8>,
    unsorted: Cell<u128>,
    len: Cell<usize>,
    /// When the turner will look again: a new entry before it must notify.
    next_wake: Cell<u64>,
    due: Slot,
    /// Put off (H6).
    late: Slot,
    levels: Levels,
}

#[cfg(not(loom))]
type Levels = [Level; LEVELS];
/// Loom's threads have small stacks, on which an unoptimized array would stand before it is moved to its place.
#[cfg(loom)]
type Levels = Vec<Level>;

impl WheelCore {
    pub(crate) fn new(now_ns: u64) -> WheelCore {
        WheelCore {
            now: Cell::new(now_ns >> TICK_SHIFT),
            pending: Cell::new(0),
            unsorted: Cell::new(0),
            len: Cell::new(0),
            next_wake: Cell::new(FOREVER),
            due: Slot::new(),
            late: Slot::new(),
            #[cfg(not(loom))]
            levels: core::array::from_fn(|_| Level::new()),
            #[cfg(loom)]
            levels: (0..LEVELS).map(|_| Level::new()).collect(),
        }
    }

    /// Begins a life, empty, at its final place, at the time `now_ns`.
    pub(crate) fn start(&self, now_ns: u64) {
        debug_assert_eq!(self.len.get(), 0);
        self.due.init();
        self.late.init();
        self.levels.iter().flat_map(|level| &level.slots).for_each(Slot::init);
        self.now.set(now_ns >> TICK_SHIFT);
        self.next_wake.set(FOREVER);
    }

    /// How many entries are linked.
    pub(crate) fn len(&self) -> usize {
        self.len.get()
    }

    /// Is `due` before everything that the turner knows of?
    #[inline]
    pub(crate) fn would_be_first(&self, due: u64) -> bool {
        due < self.next_wake.get()
    }

    /// Links an armed entry. True: the turner sleeps too long now.
    ///
    /// # Safety
    /// `entry` is pinned until it is unlinked, armed, not linked, and derived from a pointer to its whole operation.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn insert(&self, entry: *mut TimerEntry) -> bool {
        // SAFETY: the caller's promise.
        let deadline = unsafe { (*entry).deadline() };
        // SAFETY: as above.
        let wake = unsafe { self.place(entry, deadline, LEVELS) };
        self.len.set(self.len.get() + 1);
        if wake < self.next_wake.get() {
            self.next_wake.set(wake);
            return true;
        }
        false
    }

    /// Finds the entry's slot (see the module's text), joining a draining one only below level `ceiling`; returns when the
    /// wheel must be turned for it.
    #[inline]
    unsafe fn place(&self, entry: *mut TimerEntry, deadline: u64, ceiling: usize) -> u64 {
        let tick = (deadline.div_ceil(1 << TICK_SHIFT)).max(self.now.get() + 1);
        let delta = tick - self.now.get();
        let mut level = (63 - (delta | 63).leading_zeros() as usize) / 6;
        let mut index = tick;
        if level >= LEVELS {
            level = LEVELS - 1;
            index = index.min(((self.now.get() >> (6 * level)) + SLOTS as u64 - 1) << (6 * level));
        }
        if level > 0 && (tick >> (6 * level)) - (self.now.get() >> (6 * level)) <= 1 {
            level -= 1;
        }
        if (self.pending.get() >> level) >> 1 != 0 {
            level = self.draining_level(level, tick, ceiling);
        }
        let slot = (index >> (6 * level)) as usize % SLOTS;
        let place = &self.levels[level];
        if level == 0 {
            // H5: behind an entry that is due later, the slot needs sorting.
            // SAFETY: `entry` is alive by the caller's promise.
            if place.slots[slot].back().is_some_and(|last| code(last) > unsafe { (*entry).code() }) {
                self.unsorted.set(self.unsorted.get() | 1 << slot);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { place.slots[slot].push_back(entry) };
        place.occupied.set(place.occupied.get() | 1 << slot);
        match level {
            0 => deadline,
            _ => ((index >> (6 * level)).saturating_sub(1) << (6 * level)).saturating_mul(1 << TICK_SHIFT),
        }
    }

    /// H3: the highest level between `level` and `ceiling` whose coming slot still drains and contains `tick`.
    #[cold]
    fn draining_level(&self, level: usize, tick: u64, ceiling: usize) -> usize {
        let joins = |&l: &usize| {
            let index = tick >> (6 * l);
            index == (self.now.get() >> (6 * l)) + 1 && self.levels[l].occupied.get() >> (index % SLOTS as u64) & 1 != 0
        };
        (level + 1..ceiling).rev().find(joins).unwrap_or(level)
    }

    /// Unlinks an entry if it is linked. True: it was, and its reference is the caller's now.
    ///
    /// # Safety
    /// `entry` was armed on this wheel.
    #[inline]
    pub(crate) unsafe fn remove(&self, entry: *mut TimerEntry) -> bool {
        // SAFETY: the caller's promise; the lock is held.
        let Some((prev, next)) = (unsafe { entry::unlink(links_of(entry)) }) else {
            return false;
        };
        if prev == next {
            self.emptied(prev);
        }
        self.len.set(self.len.get() - 1);
        true
    }

    /// H4: `sentinel` is its own neighbour now, if it is a sentinel of a slot at all.
    fn emptied(&self, sentinel: *mut EntryLinks) {
        for (number, level) in self.levels.iter().enumerate() {
            let offset = sentinel.addr().wrapping_sub(level.slots.as_ptr().addr()) / size_of::<Slot>();
            if offset < SLOTS {
                level.occupied.set(level.occupied.get() & !(1 << offset));
                if number == 0 {
                    self.unsorted.set(self.unsorted.get() & !(1 << offset));
                } else if ((self.now.get() >> (6 * number)) + 1) as usize % SLOTS == offset {
                    self.pending.set(self.pending.get() & !(1 << number));
                }
                return;
            }
        }
    }

    /// One bounded step towards `now_ns`: gives at most `room` due entries to `fire`, in deadline order, ties in the
    /// order in which they were armed. `may_put_off`: time does not wait for us (H6).
    pub(crate) fn turn(
        &self,
        now_ns: u64,
        mut room: usize,
        may_put_off: bool,
        mut fire: impl FnMut(*mut TimerEntry),
    ) -> Next {
        let mut steps = STEP;
        // As many as may fire in a turn: then those put off get their turn even if there is always something due.
        let mut late_steps = room;
        self.place_late(&mut late_steps);
        loop {
            while let Some(entry) = self.due.front() {
                if room == 0 {
                    return self.more();
                }
                room -= 1;
                // SAFETY: a linked entry is alive.
                let linked = unsafe { self.remove(entry) };
                debug_assert!(linked);
                fire(entry);
            }
            if !self.advance(now_ns, may_put_off, &mut steps) {
                break;
            }
        }
        self.place_late(&mut steps);
        if steps == 0 || self.late.front().is_some() {
            return self.more();
        }
        // Ahead of time, so that no boundary has to wait for it.
        while self.pending.get() != 0 {
            let level = 7 - self.pending.get().leading_zeros() as usize;
            if !self.drain(level, (self.now.get() >> (6 * level)) + 1, &mut steps) {
                return self.more();
            }
        }
        self.next()
    }

    fn more(&self) -> Next {
        self.next_wake.set(0);
        Next::More
    }

    /// Goes on to the next slot with something due by `now_ns` and moves it into `due`. False: there is none, or the
    /// step is used up.
    fn advance(&self, now_ns: u64, may_put_off: bool, steps: &mut usize) -> bool {
        let target = now_ns >> TICK_SHIFT;
        loop {
            let soonest = self.next_tick(0).unwrap_or(u64::MAX);
            let boundary = (1..LEVELS).filter_map(|l| Some((self.next_tick(l)?, l))).min();
            if let Some((start, level)) = boundary.filter(|&(start, _)| start <= soonest && start <= target + 1) {
                // H2: what stands in the slot must be below before the boundary is reached.
                self.set_now(self.now.get().max(start - 1));
                if !self.drain(level, start >> (6 * level), steps) {
                    if !may_put_off {
                        return false;
                    }
                    self.put_off(level, start >> (6 * level));
                }
                continue;
            }
            if soonest <= target {
                self.set_now(soonest);
                self.sort(soonest as usize % SLOTS);
                self.take_slot(soonest as usize % SLOTS);
                return true;
            }
            self.set_now(target.max(self.now.get()));
            return soonest == target + 1 && self.take_until(soonest as usize % SLOTS, now_ns);
        }
    }

    fn set_now(&self, now: u64) {
        if now != self.now.get() {
            self.now.set(now);
            let coming = |l: usize| self.levels[l].occupied.get() >> (((now >> (6 * l)) + 1) % SLOTS as u64) & 1;
            self.pending.set((1..LEVELS).fold(0, |pending, l| pending | (coming(l) as u8) << l));
        }
    }

    /// The first tick of the earliest occupied slot after `now` on this level.
    fn next_tick(&self, level: usize) -> Option<u64> {
        let occupied = self.levels[level].occupied.get();
        if occupied == 0 {
            return None;
        }
        let from = (self.now.get() >> (6 * level)) + 1;
        let distance = occupied.rotate_right((from % SLOTS as u64) as u32).trailing_zeros();
        Some((from + u64::from(distance)) << (6 * level))
    }

    /// Moves the entries of a slot down. False: the step is used up first.
    fn drain(&self, level: usize, index: u64, steps: &mut usize) -> bool {
        let slot = (index % SLOTS as u64) as usize;
        // `ceiling` is this level: the slot must not attract again what leaves it.
        while let Some(entry) = self.levels[level].slots[slot].front() {
            if *steps == 0 {
                return false;
            }
            *steps -= 1;
            self.place_again(entry, level);
        }
        true
    }

    /// H6: the rest of a slot whose time begins.
    #[cold]
    fn put_off(&self, level: usize, index: u64) {
        let slot = (index % SLOTS as u64) as usize;
        // H4: it is the coming one still, and empty.
        self.pending.set(self.pending.get() & !(1 << level));
        let level = &self.levels[level];
        level.slots[slot].splice(&self.late);
        level.occupied.set(level.occupied.get() & !(1 << slot));
    }

    /// H6: puts entries that were put off into their places, the overdue ones into the next slot.
    fn place_late(&self, steps: &mut usize) {
        while let Some(entry) = self.late.back().filter(|_| *steps != 0) {
            *steps -= 1;
            self.place_again(entry, LEVELS);
        }
    }

    /// Moves a linked entry to where it belongs now, joining a draining slot only below level `ceiling`.
    fn place_again(&self, entry: *mut TimerEntry, ceiling: usize) {
        // SAFETY: a linked entry is alive; it is linked again at once.
        unsafe {
            let linked = self.remove(entry);
            debug_assert!(linked);
            self.len.set(self.len.get() + 1);
            let deadline = (*entry).deadline();
            self.place(entry, deadline, ceiling);
        }
    }

    fn sort(&self, slot: usize) {
        if self.unsorted.get() >> slot & 1 != 0 {
            self.unsorted.set(self.unsorted.get() & !(1 << slot));
            sort(&self.levels[0].slots[slot]);
        }
    }

    fn take_slot(&self, slot: usize) {
        let level = &self.levels[0];
        level.slots[slot].splice(&self.due);
        level.occupied.set(level.occupied.get() & !(1 << slot));
    }

    /// Takes what is due within a slot that is not over yet, a bounded part of it. False: nothing.
    fn take_until(&self, slot: usize, now_ns: u64) -> bool {
        self.sort(slot);
        let is_due = |entry: *mut TimerEntry| {
            // SAFETY: a linked entry is alive.
            let deadline = unsafe { (*entry).deadline() };
            deadline <= now_ns
        };
        if self.levels[0].slots[slot].back().is_some_and(is_due) {
            self.take_slot(slot);
            return true;
        }
        let mut taken = 0;
        while let Some(entry) = self.levels[0].slots[slot].front().filter(|&entry| taken < STEP && is_due(entry)) {
            // SAFETY: a linked entry is alive; it is linked again at once.
            unsafe {
                let linked = self.remove(entry);
                debug_assert!(linked);
                self.len.set(self.len.get() + 1);
                self.due.push_back(entry);
            }
            taken += 1;
        }
        taken != 0
    }

    /// When there is something to do again.
    fn next(&self) -> Next {
        let soonest = self.next_tick(0).and_then(|tick| {
            let slot = tick as usize % SLOTS;
            self.sort(slot);
            // SAFETY: a linked entry is alive.
            self.levels[0].slots[slot].front().map(|entry| unsafe { (*entry).deadline() })
        });
        // A slot above level 0 is drained from the moment it is the coming one.
        let drains = (1..LEVELS).filter_map(|l| {
            let start = self.next_tick(l)?;
            Some((start - (1 << (6 * l))).saturating_mul(1 << TICK_SHIFT))
        });
        match drains.chain(soonest).min() {
            Some(at) => {
                self.next_wake.set(at);
                Next::At(at)
            }
            None => {
                self.next_wake.set(FOREVER);
                Next::Idle
            }
        }
    }

    /// Takes out any entry, due or not: for a wheel that dies.
    pub(crate) fn pop_any(&self) -> Option<*mut TimerEntry> {
        let occupied = |level: &Level| match level.occupied.get() {
            0 => None,
            slots => level.slots[slots.trailing_zeros() as usize].front(),
        };
        let listed = self.due.front().or_else(|| self.late.front());
        let entry = listed.or_else(|| self.levels.iter().find_map(occupied))?;
        // SAFETY: a linked entry is alive.
        let linked = unsafe { self.remove(entry) };
        debug_assert!(linked);
        Some(entry)
    }
}

// SAFETY: the entries behind the pointers are reached under the wheel's lock only (T2), from whichever thread holds it.
unsafe impl Send for WheelCore {}

#[cfg(all(test, not(loom)))]
mod tests;
