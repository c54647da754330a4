//! The famous three-thread races.

use crate::model::{explore, Act, Case, Parked, Start};

fn three(cap: usize, filled: usize, parked: Parked, acts: [Act; 3]) {
    explore(Case { start: Start { cap, filled, parked }, acts: acts.to_vec(), spurious: false });
}

/// G2, CASE 14: two senders and a receiver around an empty and a full ring.
#[test]
fn two_senders_one_receiver() {
    for filled in [0, 1] {
        three(1, filled, Parked::Nobody, [Act::Send, Act::Send, Act::Recv]);
        three(1, filled, Parked::Nobody, [Act::TrySend, Act::Send, Act::TryRecv]);
    }
    three(2, 1, Parked::Nobody, [Act::Send, Act::Send, Act::Recv]);
}

/// G1, CASE 1: a delivered receive is dropped beside a send and a receive.
#[test]
fn a_dropped_delivery_beside_both_sides() {
    three(1, 0, Parked::Delivered, [Act::DropParked, Act::Send, Act::Recv]);
    three(1, 0, Parked::Delivered, [Act::DropParked, Act::TrySend, Act::Close]);
    three(1, 0, Parked::Delivered, [Act::DropParked, Act::Recv, Act::LastTx]);
    three(1, 0, Parked::Receives(2), [Act::DropParked, Act::Send, Act::Recv]);
}

/// G7, CASES 6, 16: close beside a park and a send.
#[test]
fn close_beside_a_park_and_a_send() {
    three(1, 0, Parked::Nobody, [Act::Close, Act::Recv, Act::Send]);
    three(1, 1, Parked::Nobody, [Act::Close, Act::Recv, Act::Send]);
    three(1, 1, Parked::Sends(1), [Act::Close, Act::TryRecv, Act::Cancel]);
    three(1, 1, Parked::Nobody, [Act::LastTx, Act::LastRx, Act::Send]);
}

/// G6, G8, CASES 11, 42: time-out beside cancel beside delivery.
#[test]
fn every_end_at_once() {
    three(1, 0, Parked::Receives(1), [Act::TimeOut, Act::Cancel, Act::TrySend]);
    three(1, 1, Parked::Sends(1), [Act::TimeOut, Act::Cancel, Act::TryRecv]);
    three(1, 1, Parked::Sends(2), [Act::TimeOut, Act::DropParked, Act::TryRecv]);
}

/// I7: head never passes tail, as `len` sees it, while a slow receive lets a parked send in.
#[test]
fn len_beside_an_admission() {
    three(1, 1, Parked::Sends(1), [Act::Recv, Act::TryRecv, Act::Len]);
    three(1, 1, Parked::Nobody, [Act::Send, Act::TryRecv, Act::Len]);
}

/// G7, C3, C4: an admission beside a receive, beside the end of the parked send, beside the last receiver's drop.
#[test]
fn an_admission_beside_everything() {
    for cap in [0, 1] {
        three(cap, cap, Parked::Sends(1), [Act::CloseAdmit, Act::Recv, Act::Cancel]);
        three(cap, cap, Parked::Sends(1), [Act::CloseAdmit, Act::TryRecv, Act::LastRx]);
        three(cap, cap, Parked::Sends(1), [Act::CloseAdmit, Act::Cancel, Act::LastRx]);
    }
    three(1, 1, Parked::Sends(1), [Act::CloseAdmit, Act::DropRecv, Act::TryRecv]);
}

/// G1, G2: without a buffer, two against one; and a meeting beside what would end it.
#[test]
fn a_rendezvous_of_three() {
    three(0, 0, Parked::Nobody, [Act::Send, Act::Send, Act::Recv]);
    three(0, 0, Parked::Nobody, [Act::Send, Act::Recv, Act::DropRecv]);
    three(0, 0, Parked::Receives(1), [Act::Send, Act::Recv, Act::DropParked]);
    three(0, 0, Parked::Sends(1), [Act::Recv, Act::Cancel, Act::Close]);
    three(0, 0, Parked::Receives(1), [Act::Send, Act::Cancel, Act::Close]);
}
