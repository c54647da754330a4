//! Returned values against a sorted model: in hand-off order, whatever the order of their return (G2); each dropped once (G1).

mod support;

use std::collections::BTreeMap;

use support::{quiet_panic, Ledger, Rng};
use tidegate_wait::stash::{Returned, Stash};
use tidegate_wait::waiter::Ticket;

fn drain<T>(stash: &mut Stash<T>) -> Vec<T> {
    std::iter::from_fn(|| stash.pop().map(|returned| returned.value)).collect()
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    match n {
        0 => vec![vec![]],
        _ => permutations(n - 1)
            .into_iter()
            .flat_map(|shorter| {
                (0..n).map(move |at| {
                    let mut longer = shorter.clone();
                    longer.insert(at, n - 1);
                    longer
                })
            })
            .collect(),
    }
}

#[test]
fn all_orders() {
    for n in 0..=(if cfg!(miri) { 4 } else { 7 }) {
        for order in permutations(n) {
            let mut stash = Stash::new();
            assert!(stash.is_empty());
            for (count, &ticket) in order.iter().enumerate() {
                assert_eq!(stash.len(), count);
                stash.insert(Returned::new(Ticket::new(ticket), ticket));
            }
            assert_eq!(stash.is_empty(), n == 0);
            assert_eq!(drain(&mut stash), (0..n).collect::<Vec<_>>(), "{order:?}");
            assert!(stash.is_empty());
            assert_eq!(stash.len(), 0);
        }
    }
}

#[test]
fn tickets_that_wrap_keep_their_order() {
    let first = (usize::MAX >> 3) - 4;
    let mut order: Vec<usize> = (0..10).collect();
    Rng(3).shuffle(&mut order);
    let mut stash = Stash::new();
    for n in order {
        stash.insert(Returned::new(Ticket::new(first.wrapping_add(n)), n));
    }
    assert_eq!(drain(&mut stash), (0..10).collect::<Vec<_>>());
}

#[test]
fn random_steps_against_a_model() {
    let (mut stash, mut model, mut rng) = (Stash::new(), BTreeMap::new(), Rng(5));
    for step in 0..if cfg!(miri) { 150 } else { 100_000 } {
        let ticket = rng.below(1 << 20);
        if rng.below(5) < 3 && !model.contains_key(&ticket) {
            stash.insert(Returned::new(Ticket::new(ticket), step));
            model.insert(ticket, step);
        } else {
            let expected = model.pop_first().map(|(ticket, value)| (Ticket::new(ticket), value));
            assert_eq!(stash.pop().map(|returned| (returned.ticket, returned.value)), expected);
        }
        assert_eq!(stash.len(), model.len());
    }
}

#[test]
fn a_deep_heap_drops_without_recursion() {
    let n = if cfg!(miri) { 60 } else { 300_000 };
    for newest_first in [false, true] {
        let ledger = Ledger::default();
        let mut stash = Stash::new();
        for i in 0..n {
            let ticket = if newest_first { n - i } else { i };
            stash.insert(Returned::new(Ticket::new(ticket), ledger.value(i)));
        }
        drop(stash);
        assert_eq!(ledger.dropped(), n);
    }
}

#[test]
fn destructors_that_panic_do_not_keep_the_others() {
    // G7's "past panicking destructors".
    struct Panics(#[allow(dead_code)] support::Counted);
    impl Drop for Panics {
        fn drop(&mut self) {
            quiet_panic();
        }
    }
    let ledger = Ledger::default();
    let mut stash = Stash::new();
    for i in 0..20 {
        stash.insert(Returned::new(Ticket::new(i * 7 % 20), Panics(ledger.value(i))));
    }
    drop(stash);
    assert_eq!((ledger.made(), ledger.dropped()), (20, 20));
}
