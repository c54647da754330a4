//! The wheel by itself: what is put off (H6), and the bits that say where something stands (H4).

use super::*;

const SLOT_NS: u64 = 1 << 28;

/// A wheel, and entries armed on it; `deadlines` in order of arming.
fn armed(deadlines: &[u64]) -> (Box<WheelCore>, Vec<TimerEntry>) {
    let wheel = Box::new(WheelCore::new(0));
    wheel.start(0);
    let entries: Vec<TimerEntry> = deadlines.iter().map(|_| TimerEntry::new(0, 0)).collect();
    for (entry, &deadline) in entries.iter().zip(deadlines) {
        entry.arm(deadline, 1, 0);
        // SAFETY: armed; the vector stays as it is, and outlives the wheel's use of its entries.
        let _earlier = unsafe { wheel.insert(core::ptr::from_ref(entry).cast_mut()) };
    }
    (wheel, entries)
}

fn remove(wheel: &WheelCore, entry: &TimerEntry) -> bool {
    // SAFETY: it was armed on this wheel.
    unsafe { wheel.remove(core::ptr::from_ref(entry).cast_mut()) }
}

/// H4: the bits say what there is.
fn check(wheel: &WheelCore) {
    for (number, level) in wheel.levels.iter().enumerate() {
        for (slot, list) in level.slots.iter().enumerate() {
            assert_eq!(level.occupied.get() >> slot & 1 != 0, list.front().is_some(), "level {number}, slot {slot}");
        }
        let coming = ((wheel.now.get() >> (6 * number)) + 1) as usize % SLOTS;
        let is_pending = wheel.pending.get() >> number & 1 != 0;
        assert_eq!(is_pending, number > 0 && level.slots[coming].front().is_some(), "pending, level {number}");
    }
}

/// H6: a slot that could not be emptied in time holds up nobody for longer than a few turns, not even a timer that
/// joined it behind the many; and all of it fires, not early.
#[test]
fn h6_a_slot_that_is_late_is_put_off() {
    let (start, tick) = (3 * SLOT_NS, 1 << TICK_SHIFT);
    let many = 20 * STEP as u64;
    let mut deadlines: Vec<u64> = (0..many).map(|n| start + SLOT_NS / 2 + n * 1_000).collect();
    let (wheel, entries) = armed(&deadlines);
    // One turn while the slot is the coming one; then one more timer, due soon after it begins, joins its end.
    assert_eq!(wheel.turn(2 * SLOT_NS + tick, 32, true, |_| panic!("early")), Next::More);
    let one_more = TimerEntry::new(0, 0);
    let due = start + 3 * tick;
    one_more.arm(due, 1, 0);
    // SAFETY: armed, and it outlives the wheel's use of it.
    let _earlier = unsafe { wheel.insert(core::ptr::from_ref(&one_more).cast_mut()) };
    deadlines.push(due);

    let mut now = start + 4 * tick;
    let (mut fired, mut turns) = (Vec::new(), 0);
    while fired.len() < deadlines.len() {
        turns += 1;
        let next = wheel.turn(now, 32, true, |entry| {
            // SAFETY: a fired entry is one of ours.
            let deadline = unsafe { (*entry).deadline() };
            assert!(deadline <= now, "early");
            assert!(deadline != due || turns <= 4, "it waited for {turns} turns");
            fired.push(deadline);
        });
        now = match next {
            Next::More => now + tick,
            Next::At(at) => now.max(at),
            Next::Idle => break,
        };
    }
    fired.sort_unstable();
    deadlines.sort_unstable();
    assert_eq!((fired, wheel.len()), (deadlines, 0));
    drop(entries);
}

/// H4, H6: all that was put off is taken out before it has found its places.
#[test]
fn h6_what_was_put_off_may_be_taken_out() {
    let start = 3 * SLOT_NS;
    let deadlines: Vec<u64> = (0..2 * STEP as u64).map(|n| start + SLOT_NS / 2 + n * 1_000).collect();
    let (wheel, entries) = armed(&deadlines);
    let before = start - (1 << TICK_SHIFT);
    assert_eq!(wheel.turn(before, 32, true, |_| panic!("early")), Next::More);
    entries.iter().for_each(|entry| assert!(remove(&wheel, entry)));
    check(&wheel);
    assert_eq!((wheel.len(), wheel.turn(before, 32, true, |_| panic!("early"))), (0, Next::Idle));
}

/// H4, H6: random histories in which crowds share a slot and the clock jumps, so that the wheel is late now and then.
#[test]
fn h4_in_random_histories() {
    for seed in 1..=if cfg!(miri) { 1 } else { 40 } {
        let mut state: u64 = seed;
        let mut random = |below: u64| {
            // A multiplicative generator: its high bits are good enough here.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (wheel, entries) = armed(&[]);
        drop(entries);
        let entries: Vec<TimerEntry> = (0..8 * STEP).map(|_| TimerEntry::new(0, 0)).collect();
        let mut is_armed = vec![false; entries.len()];
        let mut now = 0;
        for _ in 0..60 {
            match random(5) {
                0 => {
                    let due = now + random(3) * SLOT_NS + random(SLOT_NS / 1_000);
                    for at in 0..entries.len() {
                        if !is_armed[at] && random(3) != 0 {
                            entries[at].arm(due + random(SLOT_NS / 4), 1, 0);
                            // SAFETY: armed, not linked; the vector stays as it is.
                            let _earlier = unsafe { wheel.insert(core::ptr::from_ref(&entries[at]).cast_mut()) };
                            is_armed[at] = true;
                        }
                    }
                }
                1 => {
                    let share = random(4);
                    for at in 0..entries.len() {
                        if is_armed[at] && random(4) <= share {
                            assert!(remove(&wheel, &entries[at]));
                            is_armed[at] = false;
                        }
                    }
                }
                // The last tick before a slot begins.
                2 => now = (now / SLOT_NS + 1) * SLOT_NS - (1 << TICK_SHIFT),
                _ => now += random(2 * SLOT_NS),
            }
            check(&wheel);
            let mut fired = Vec::new();
            let _next = wheel.turn(now, 32, true, |entry| fired.push(entry.cast_const()));
            for entry in fired {
                let at = entries.iter().position(|own| core::ptr::eq(own, entry)).expect("one of ours");
                // SAFETY: one of ours.
                assert!(unsafe { (*entry).deadline() } <= now, "early");
                is_armed[at] = false;
            }
            check(&wheel);
        }
        assert_eq!(wheel.len(), is_armed.iter().filter(|&&armed| armed).count());
    }
}

/// H6: with a clock that stands still the order is kept instead.
#[test]
fn a_manual_clock_puts_nothing_off() {
    let start = 3 * SLOT_NS;
    let deadlines: Vec<u64> = (0..4 * STEP as u64).rev().map(|n| start + n * 100).collect();
    let (wheel, _entries) = armed(&deadlines);
    let mut last = 0;
    let mut fired = 0;
    while wheel.turn(start + SLOT_NS, 32, false, |entry| {
        // SAFETY: a fired entry is one of ours.
        let deadline = unsafe { (*entry).deadline() };
        assert!(deadline >= last);
        (last, fired) = (deadline, fired + 1);
    }) == Next::More
    {}
    assert_eq!(fired, deadlines.len());
}
