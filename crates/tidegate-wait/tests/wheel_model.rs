//! The timer wheel against a `BTreeMap` by (deadline, order of arming): G6, G3's order, CASE 41.
//!
//! All through the public API: sleeps on a manual clock, polled with a waker that checks, at the moment at which it is
//! woken, that it is the first in the map. Virtual time runs to 2^40 ms.

mod support;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use support::{poll, Rng};
use tidegate_wait::op::poll_once;
use tidegate_wait::timer::{interval_at, sleep, sleep_until, ManualClock, Next, Sleep};

/// Deadlines above this are kept in whole microseconds, rounded up.
const EXACT: u64 = 1 << 54;
const MS: u64 = 1_000_000;
const END: u64 = (1 << 40) * MS;
/// Timers armed further ahead than this keep their deadline, but not their turn among equals. (Really 126 of these slots
/// of 52 days, counted from where the wheel stands; while a step is under way that is up to `STRIDE` behind the clock.)
const FAR: u64 = 100 * (1 << 52);
const STRIDE: u64 = 20 * (1 << 52);

fn rounded(ns: u64) -> u64 {
    match ns < EXACT {
        true => ns,
        false => ns.div_ceil(1_000) * 1_000,
    }
}

/// The instant from which the crate counts. An interval that began before it ticks at it.
fn epoch(clock: &ManualClock) -> Instant {
    let long_ago = clock.now().checked_sub(Duration::from_secs(1 << 20)).expect("an instant before the process");
    let mut interval = interval_at(long_ago, Duration::from_secs(1)).expect("a period");
    let mut tick = std::pin::pin!(interval.tick());
    match poll_once(tick.as_mut()) {
        std::task::Poll::Ready(at) => at,
        std::task::Poll::Pending => panic!("past, and still waiting"),
    }
}

type Key = (u64, u64);

struct Armed {
    sleep: Pin<Box<Sleep>>,
    key: Key,
    far: bool,
}

struct World {
    rng: Rng,
    epoch: Instant,
    /// Where the clock stands, or will when the call under way returns.
    now: u64,
    armed: u64,
    model: BTreeMap<Key, usize>,
    sleeps: Vec<Option<Armed>>,
    fired: Vec<usize>,
    /// One wake in so many arms another timer; 0: none does.
    rearm: u64,
    me: Weak<Mutex<World>>,
}

struct Recorder {
    id: usize,
    world: Weak<Mutex<World>>,
}

impl Wake for Recorder {
    fn wake(self: Arc<Self>) {
        let world = self.world.upgrade().expect("the world outlives its timers");
        let mut world = world.lock().expect("no test has failed");
        world.woken(self.id);
    }
}

impl World {
    fn new(seed: u64, clock: &ManualClock, rearm: u64) -> Arc<Mutex<World>> {
        let epoch = epoch(clock);
        Arc::new_cyclic(|me| {
            Mutex::new(World {
                rng: Rng(seed),
                epoch,
                now: (clock.now() - epoch).as_nanos() as u64,
                armed: 0,
                model: BTreeMap::new(),
                sleeps: Vec::new(),
                fired: Vec::new(),
                rearm,
                me: me.clone(),
            })
        })
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.next() % bound
    }

    /// Of any magnitude below `2^bits`, each magnitude as likely as another.
    fn magnitude(&mut self, bits: u64) -> u64 {
        let bits = self.below(bits + 1);
        self.rng.next() & ((1 << bits) - 1)
    }

    /// A timer fired: it must be the first of all, and due.
    fn woken(&mut self, id: usize) {
        let (key, first) = self.model.pop_first().expect("nothing was armed");
        assert_eq!(first, id, "out of order: due {} before {:?}", key.0, self.key_of(id));
        assert!(key.0 <= self.now, "early: due at {}, fired at {}", key.0, self.now);
        self.fired.push(id);
        if self.rearm != 0 && self.below(self.rearm) == 0 {
            let deadline = self.some_deadline();
            self.arm(deadline);
        }
    }

    fn key_of(&self, id: usize) -> Option<Key> {
        self.sleeps[id].as_ref().map(|armed| armed.key)
    }

    fn some_deadline(&mut self) -> u64 {
        match self.below(8) {
            // The same as another's.
            0..=2 if !self.model.is_empty() => {
                let at = self.rng.below(self.model.len().min(64));
                let &id = self.model.values().nth(at).expect("within");
                let armed = self.sleeps[id].as_ref().expect("armed");
                match armed.far || armed.key.0 - self.now.min(armed.key.0) > FAR {
                    true => self.now + self.magnitude(50),
                    false => armed.key.0,
                }
            }
            // Past, or now.
            3 => self.now.saturating_sub(self.magnitude(40)),
            // Around a boundary of some level.
            4 => {
                let shift = 16 + 6 * self.below(6);
                let boundary = ((self.now >> shift) + self.below(130)) << shift;
                (boundary + self.below(3)).saturating_sub(1)
            }
            _ => self.now + self.magnitude(61),
        }
    }

    fn arm(&mut self, deadline: u64) {
        let at = self.epoch + Duration::from_nanos(deadline);
        // Relative or absolute: the same deadline. (The clock may stand before `now` while a step is under way.)
        let mut sleep = Box::pin(match self.rearm == 0 && self.below(2) == 0 {
            true => sleep(Duration::from_nanos(deadline.saturating_sub(self.now))),
            false => sleep_until(at),
        });
        let id = self.sleeps.len();
        let waker = Waker::from(Arc::new(Recorder { id, world: self.me.clone() }));
        let ready = poll(sleep.as_mut(), &waker).is_ready();
        assert_eq!(ready, deadline <= self.now, "past deadlines end at once, others do not (G6)");
        if ready {
            return;
        }
        let key = (rounded(deadline), self.armed);
        self.armed += 1;
        self.model.insert(key, id);
        self.sleeps.push(Some(Armed { sleep, key, far: deadline - self.now > FAR }));
    }

    fn cancel_one(&mut self) {
        if self.model.is_empty() {
            return;
        }
        let at = self.rng.below(self.model.len().min(200));
        let (&key, &id) = match self.below(2) {
            0 => self.model.iter().nth(at).expect("within"),
            _ => self.model.iter().nth_back(at).expect("within"),
        };
        self.model.remove(&key);
        self.sleeps[id] = None;
    }

    /// Whoever fired is ready, once and again; whoever did not is not.
    fn check(&mut self, clock: &ManualClock) {
        for id in std::mem::take(&mut self.fired) {
            let mut armed = self.sleeps[id].take().expect("fired once");
            assert!(poll_once(armed.sleep.as_mut()).is_ready());
            assert!(poll_once(armed.sleep.as_mut()).is_ready(), "polled again (G9)");
        }
        if let Some((&(due, _), &id)) = self.model.first_key_value() {
            assert!(due > self.now, "late: due at {due}, and it is {}", self.now);
            let waker = Waker::from(Arc::new(Recorder { id, world: self.me.clone() }));
            let armed = self.sleeps[id].as_mut().expect("armed");
            assert!(poll(armed.sleep.as_mut(), &waker).is_pending(), "a spurious poll (G9)");
        }
        assert_eq!(clock.armed(), self.model.len());
        // Whoever turns the wheel sleeps until the time it says: later than now, or he spins (H2: all that can move down
        // has); not later than the first deadline.
        let first = self.model.first_key_value().map(|(key, _)| key.0);
        match clock.wheel().turn() {
            Next::More => panic!("more to do right after an advance"),
            Next::At(at) => assert!(self.now < at && Some(at) <= first, "{} {at} {first:?}", self.now),
            Next::Idle => assert_eq!(first, None),
        }
        assert_eq!((clock.now() - self.epoch).as_nanos() as u64, self.now);
    }
}

fn advance(world: &Mutex<World>, clock: &ManualClock, step: u64) {
    world.lock().expect("world").now += step;
    clock.advance(Duration::from_nanos(step));
}

/// Moves on to the next deadline, and checks that the clock stands there afterwards.
fn advance_to_next(world: &Mutex<World>, clock: &ManualClock) {
    let next = {
        let mut world = world.lock().expect("world");
        let next = world.model.first_key_value().map(|(key, _)| key.0);
        world.now = next.unwrap_or(world.now);
        next
    };
    assert_eq!(clock.advance_to_next(), next.is_some());
}

fn some_step(world: &Mutex<World>) -> u64 {
    let mut world = world.lock().expect("world");
    let next = world.model.first_key_value().map_or(0, |(key, _)| key.0 - world.now);
    match world.below(4) {
        // Right before, at, or after the next one.
        0 => next.saturating_sub(1) + world.below(3),
        1 => world.magnitude(55),
        _ => world.magnitude(40),
    }
}

fn run(seed: u64, ops: usize, rearm: u64) {
    let clock = ManualClock::new();
    let world = World::new(seed, &clock, rearm);
    let lock = || world.lock().expect("world");
    clock.enter(|| {
        for _ in 0..ops {
            let op = lock().below(16);
            match op {
                0..=6 => {
                    let mut world = lock();
                    let deadline = world.some_deadline();
                    world.arm(deadline);
                }
                7..=9 => lock().cancel_one(),
                10 => burst(&mut lock()),
                11 => advance_to_next(&world, &clock),
                _ => {
                    let step = some_step(&world);
                    advance(&world, &clock, step);
                }
            }
            lock().check(&clock);
        }
        // To the end of time, in ever longer steps.
        let mut step = MS;
        while lock().now < END {
            let left = END - lock().now;
            advance(&world, &clock, step.min(left).min(STRIDE));
            step = step.saturating_mul(3);
            lock().check(&clock);
        }
        lock().rearm = 0;
        while !lock().model.is_empty() {
            advance_to_next(&world, &clock);
            lock().check(&clock);
        }
        assert!(!clock.advance_to_next());
    });
}

/// Many timers in a narrow band, more than one step of a cascade moves.
fn burst(world: &mut World) {
    let count = if cfg!(miri) { 3 } else { world.below(700) };
    let (from, width) = (world.now + 1 + world.magnitude(45), 1 + world.magnitude(24));
    for _ in 0..count {
        let deadline = from + world.below(width);
        world.arm(deadline);
    }
}

/// Miri looks at every slot of the wheel whenever the wheel is borrowed: few operations there.
const OPS: usize = if cfg!(miri) { 20 } else { 2_500 };

/// CASE 41, G6: whatever is armed, cancelled and waited for, timers fire in the order of their deadlines, ties in the
/// order in which they were armed, never early, never later than the clock's step.
#[test]
fn case_41_fires_in_the_order_of_a_model() {
    for seed in [1, 2, 3, 0xdead_beef] {
        run(seed, OPS, 0);
        if cfg!(miri) {
            break;
        }
    }
}

/// CASE 41, G5: the same while wakers arm timers of their own, in the middle of firings and cascades.
#[test]
fn case_41_fires_in_order_while_wakers_arm() {
    for seed in [11, 12, 13, 0xfeed] {
        run(seed, OPS, 3);
        if cfg!(miri) {
            break;
        }
    }
}

/// H3: a timer that is armed while the slot it belongs to is half emptied does not overtake an equal one in it.
#[test]
#[cfg_attr(miri, ignore = "many timers")]
fn h3_joins_a_draining_slot_behind_its_equals() {
    // A slot of level 1 is 4 ms, one of level 2 is 268 ms, one of level 3 is 17 s.
    for slot in [1 << 22, 1 << 28, 1 << 34] {
        let clock = ManualClock::new();
        let world = World::new(slot, &clock, 1);
        clock.enter(|| {
            let due = {
                let mut world = world.lock().expect("world");
                let due = ((world.now / slot) + 3) * slot + slot / 2;
                // More than three steps of the cascade, all equal: what the wakers arm later must stay behind them.
                (0..1_000).for_each(|_| world.arm(due));
                // Rings while the slot is the coming one, in small numbers, so that a turn both fires and drains.
                (0..64).for_each(|n| world.arm(due - slot - slot / 4 + n * (slot / 256)));
                due
            };
            // Each of them arms one more, mostly with the first deadline of all, which is `due` in the end.
            while world.lock().expect("world").now < due {
                advance(&world, &clock, slot / 1_024);
                world.lock().expect("world").check(&clock);
            }
            world.lock().expect("world").rearm = 0;
            while !world.lock().expect("world").model.is_empty() {
                advance_to_next(&world, &clock);
                world.lock().expect("world").check(&clock);
            }
        });
    }
}

/// H2, G6: a slot of an upper level with very many timers is emptied ahead of time: one that is due right at its start
/// fires on time, wherever in the slot's list it stands.
#[test]
#[cfg_attr(miri, ignore = "many timers")]
fn h2_no_cascade_delays_a_firing() {
    let many = 50_000;
    let clock = ManualClock::new();
    let world = World::new(5, &clock, 0);
    clock.enter(|| {
        let start = {
            let mut world = world.lock().expect("world");
            let slot = 1 << 34;
            let start = ((world.now / slot) + 2) * slot;
            for n in 0..many {
                let within = world.below(slot);
                world.arm(start + within);
                if n == many / 2 {
                    world.arm(start);
                }
            }
            start
        };
        let step = start - world.lock().expect("world").now;
        advance(&world, &clock, step);
        world.lock().expect("world").check(&clock);
        while !world.lock().expect("world").model.is_empty() {
            advance(&world, &clock, 1 << 30);
            world.lock().expect("world").check(&clock);
        }
    });
}

/// H5: within one slot of 65 µs the exact deadlines count, and equal ones keep their order.
#[test]
fn h5_sorts_a_slot_by_exact_deadlines() {
    for seed in 0..if cfg!(miri) { 1 } else { 200 } {
        let clock = ManualClock::new();
        let world = World::new(seed, &clock, 0);
        clock.enter(|| {
            let from = {
                let mut world = world.lock().expect("world");
                let from = ((world.now >> 16) + 5) << 16;
                let count = if cfg!(miri) { 10 } else { world.below(100) };
                for _ in 0..count {
                    let within = world.below(40);
                    world.arm(from + 1 + within);
                }
                from
            };
            let to_slot = from - world.lock().expect("world").now;
            advance(&world, &clock, to_slot);
            for _ in 0..5 {
                advance(&world, &clock, 9);
                world.lock().expect("world").check(&clock);
            }
        });
    }
}
