//! Wakers collected under a lock: all woken, in order, once each, whatever they do (G5; CASE 30).

mod support;

use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use support::{hooked, quiet_panic, Hooks, Woken};
use tidegate_wait::wake_batch::{contain, discard, wake, WakeBatch, BATCH};

struct Note(usize, Arc<Mutex<Vec<usize>>>);

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
    }
}

#[test]
fn wakes_all_in_order_and_may_be_filled_again() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut batch = WakeBatch::new();
    for round in 0..3 {
        for i in 0..BATCH {
            assert!(batch.has_room());
            batch.push(Some(Waker::from(Arc::new(Note(round * BATCH + i, order.clone())))));
            batch.push(None);
        }
        assert!(!batch.has_room());
        batch.run();
        assert!(batch.has_room());
        batch.run();
    }
    assert_eq!(*order.lock().unwrap(), (0..3 * BATCH).collect::<Vec<_>>());
}

#[test]
fn dropping_it_wakes_too() {
    let (woken, waker) = Woken::new();
    let mut batch = WakeBatch::default();
    batch.push(Some(waker));
    drop(batch);
    assert_eq!(woken.count(), 1);
    assert_eq!(Arc::strong_count(&woken), 1);
}

#[test]
fn panics_strand_nobody() {
    // CASE 30: the first of many wakers panics, and so does the destructor of its panic's payload.
    let hooks = Arc::new(Hooks { wake: Some(Box::new(quiet_panic)), ..Hooks::default() });
    hooks.activate(true);
    let (woken, waker) = Woken::new();
    let mut batch = WakeBatch::new();
    for i in 0..BATCH {
        batch.push(Some(if i % 3 == 0 { hooked(&hooks) } else { waker.clone() }));
    }
    batch.run();
    assert_eq!(hooks.wakes(), BATCH.div_ceil(3));
    assert_eq!(woken.count(), BATCH - BATCH.div_ceil(3));
    assert_eq!(hooks.alive(), 0, "each waker is gone, once");
    wake(hooked(&hooks));
    assert_eq!(hooks.alive(), 0);
}

#[test]
fn a_destructor_that_panics_is_contained() {
    let hooks = Arc::new(Hooks { drop: Some(Box::new(quiet_panic)), ..Hooks::default() });
    hooks.activate(true);
    discard(Some(hooked(&hooks)));
    discard(None);
    assert_eq!(hooks.alive(), 0);
    contain(quiet_panic);
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn one_too_many_is_a_bug_of_ours_and_says_so() {
    let mut batch = WakeBatch::new();
    (0..BATCH + 2).for_each(|_| batch.push(Some(Waker::noop().clone())));
}
