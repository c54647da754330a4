//! Every pair of actions from every state (CASES 1-6, 11, 13, 16, 19, 42; G1, G2, G7, G8).

use crate::model::{explore, Act, Case, Parked, Start, ACTS};

/// Can this action happen from here?
fn applies(act: Act, parked: Parked) -> bool {
    match act {
        Act::DropParked | Act::PollParked | Act::TimeOut | Act::Cancel => parked != Parked::Nobody,
        _ => true,
    }
}

/// Does it change nothing that the other could see?
fn is_beside_the_point(act: Act, other: Act) -> bool {
    match act {
        Act::UpgradeTx => !matches!(other, Act::LastTx | Act::LastRx | Act::CloseAdmit),
        Act::UpgradeRx => !matches!(other, Act::LastTx | Act::LastRx | Act::CloseAdmit),
        // It lets nobody in, and is only let go.
        Act::Closed => !matches!(
            other,
            Act::Close | Act::CloseAdmit | Act::Closed | Act::LastRx | Act::LastTx | Act::Send | Act::Recv
        ),
        Act::Len => matches!(other, Act::Len | Act::Closed),
        _ => false,
    }
}

/// Each pair, and with fewer preemptions each pair whose parked operations are polled again by another waker.
fn explore_pairs(start: Start) {
    explore_all(start, false);
    if start.cap < 2 && !matches!(start.parked, Parked::Sends(2..) | Parked::Receives(2..)) {
        explore_all(start, true);
    }
}

fn explore_all(start: Start, spurious: bool) {
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
            if (first == second && alone(first))
                || is_beside_the_point(first, second)
                || is_beside_the_point(second, first)
            {
                continue;
            }
            explore(Case { start, acts: vec![first, second], spurious });
            count += 1;
        }
    }
    eprintln!("{start:?}: {count} models in {:?}", before.elapsed());
}

fn nobody(cap: usize, filled: usize) -> Start {
    Start { cap, filled, parked: Parked::Nobody }
}

/// Sends are parked beside a full ring, or none.
fn sends(cap: usize, n: usize) -> Start {
    Start { cap, filled: cap, parked: Parked::Sends(n) }
}

fn receives(cap: usize, n: usize) -> Start {
    Start { cap, filled: 0, parked: Parked::Receives(n) }
}

fn delivered(cap: usize, filled: usize) -> Start {
    Start { cap, filled, parked: Parked::Delivered }
}

#[test]
fn without_a_buffer() {
    explore_pairs(nobody(0, 0));
}

#[test]
fn without_a_buffer_from_a_parked_send() {
    explore_pairs(sends(0, 1));
}

#[test]
fn without_a_buffer_from_two_parked_sends() {
    explore_pairs(sends(0, 2));
}

#[test]
fn without_a_buffer_from_parked_receives() {
    explore_pairs(receives(0, 1));
    explore_pairs(receives(0, 2));
}

#[test]
fn without_a_buffer_from_a_delivery() {
    explore_pairs(delivered(0, 0));
}

#[test]
fn from_empty() {
    explore_pairs(nobody(1, 0));
    explore_pairs(nobody(2, 0));
}

#[test]
fn from_half_full() {
    explore_pairs(nobody(2, 1));
}

#[test]
fn from_full() {
    explore_pairs(nobody(1, 1));
}

#[test]
fn from_two_full() {
    explore_pairs(nobody(2, 2));
}

#[test]
fn from_a_parked_send() {
    explore_pairs(sends(1, 1));
}

#[test]
fn from_a_parked_send_beside_two() {
    explore_pairs(sends(2, 1));
}

#[test]
fn from_two_parked_sends() {
    explore_pairs(sends(1, 2));
}

#[test]
fn from_a_parked_receive() {
    explore_pairs(receives(1, 1));
    explore_pairs(receives(2, 1));
}

#[test]
fn from_two_parked_receives() {
    explore_pairs(receives(1, 2));
}

#[test]
fn from_a_delivery() {
    explore_pairs(delivered(1, 0));
    explore_pairs(delivered(2, 0));
    explore_pairs(delivered(2, 1));
}
