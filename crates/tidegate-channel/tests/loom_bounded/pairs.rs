//! Every pair of actions from every state (CASES 1-6, 11, 13, 16, 19, 42; G1, G2, G7, G8).

use crate::model::{explore, Act, Case, Parked, Start, ACTS};

/// Can this action happen from here?
fn applies(act: Act, parked: Parked) -> bool {
    match act {
        Act::DropParked | Act::PollParked | Act::TimeOut | Act::Cancel => parked != Parked::Nobody,
        _ => true,
    }
}

fn explore_pairs(start: Start, spurious: bool) {
    let before = std::time::Instant::now();
    let mut count = 0;
    for (i, &first) in ACTS.iter().enumerate() {
        for &second in &ACTS[i..] {
            let alone =
                |act| matches!(act, Act::LastTx | Act::LastRx | Act::DropParked | Act::PollParked | Act::Cancel);
            let one_parked = matches!((first, second), (Act::DropParked, Act::PollParked));
            if !applies(first, start.parked) || !applies(second, start.parked) || one_parked {
                continue;
            }
            if (first == second && alone(first)) || (first, second) == (Act::Len, Act::Len) {
                continue;
            }
            explore(Case { start, acts: vec![first, second], spurious });
            count += 1;
        }
    }
    eprintln!("{start:?}: {count} models in {:?}", before.elapsed());
}

#[test]
fn from_empty() {
    explore_pairs(Start { cap: 1, filled: 0, parked: Parked::Nobody }, true);
    explore_pairs(Start { cap: 2, filled: 0, parked: Parked::Nobody }, false);
}

#[test]
fn from_half_full() {
    explore_pairs(Start { cap: 2, filled: 1, parked: Parked::Nobody }, false);
}

#[test]
fn from_full() {
    explore_pairs(Start { cap: 1, filled: 1, parked: Parked::Nobody }, true);
    explore_pairs(Start { cap: 2, filled: 2, parked: Parked::Nobody }, false);
}

#[test]
fn from_a_parked_send() {
    explore_pairs(Start { cap: 1, filled: 1, parked: Parked::Sends(1) }, true);
    explore_pairs(Start { cap: 2, filled: 2, parked: Parked::Sends(1) }, false);
}

#[test]
fn from_two_parked_sends() {
    explore_pairs(Start { cap: 1, filled: 1, parked: Parked::Sends(2) }, false);
}

#[test]
fn from_a_parked_receive() {
    explore_pairs(Start { cap: 1, filled: 0, parked: Parked::Receives(1) }, true);
    explore_pairs(Start { cap: 2, filled: 0, parked: Parked::Receives(1) }, false);
}

#[test]
fn from_two_parked_receives() {
    explore_pairs(Start { cap: 1, filled: 0, parked: Parked::Receives(2) }, false);
}

#[test]
fn from_a_delivery() {
    explore_pairs(Start { cap: 1, filled: 0, parked: Parked::Delivered }, true);
    explore_pairs(Start { cap: 2, filled: 0, parked: Parked::Delivered }, false);
    explore_pairs(Start { cap: 2, filled: 1, parked: Parked::Delivered }, false);
}
