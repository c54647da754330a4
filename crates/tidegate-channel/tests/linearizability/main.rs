//! Small histories of real threads against the sequential specification, searched as Wing and Gong do (1993): is there an
//! order of the steps, within what real time allows, in which each operation does what it was seen to do?
//!
//! An operation takes effect in several steps: it parks, and another operation, a timer, a token or its owner ends it; a
//! close ends the sends, lets the parked ones in one by one, and ends the rest; a batch sends or takes value after value;
//! the end of a permit ends receives, and may be that of the last half; the last drop of a side closes and drains. The
//! search must also reject histories of faulty channels ([`Fault`]), or it would prove nothing (G1, G2, G7, G8; M1–M4, R3).
//!
//! **Checked:** capacities 0, 1, 2, 3 and none, with 2 to 4 threads: send, recv, their tries, batches of up to three of
//! them, reservations; each with a time-out and with a token; permits, used or dropped, also after the close and as the
//! last half; `send_with`; withdrawal; sends, receives and reservations dropped parked or delivered; `close`, `close_with`,
//! `closed`; clones, weak halves, drops of halves down to the last. **Not checked:** `len` and the other counts
//! (`values.rs`); that a batch claims a run in one step (it need not); how late after its time, or after a cancellation, an
//! operation ends (it may end at any moment after); that a task is woken (a blocked thread would hang, and the watchdog
//! says so); more than 32 parked operations (one hold of a close).
//!
//! `TIDEGATE_HISTORIES` sets the number of histories of each capacity.
#![cfg(not(loom))]
#![allow(unreachable_pub)]

mod history;
mod observe;
mod play;
mod search;
#[path = "../support/spec.rs"]
mod spec;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/watchdog.rs"]
mod watchdog;

use history::{Call, Event, Setting};
use observe::observe;
use play::rejected;
use spec::{End, Fault, UNBOUNDED};
use support::Rng;
use watchdog::watched;

fn histories(cap: usize) {
    let more = std::env::var("TIDEGATE_HISTORIES").ok().and_then(|rounds| rounds.parse().ok());
    let rounds = more.unwrap_or(if cfg!(miri) { 3 } else { 1_000 });
    watched(("histories", cap), || {
        let mut rng = Rng(1993 ^ cap as u64);
        for round in 0..rounds {
            let setting = Setting::random(cap, &mut rng);
            let history = observe(&setting.plan(&mut rng), setting);
            assert!(setting.explains(&history), "round {round}, {setting:?}: no order explains {history:#?}");
        }
    });
}

/// G1, G2, G7, G8: what threads see of the channel has an explanation.
#[test]
fn histories_without_a_buffer_have_an_order() {
    histories(0);
}

#[test]
fn histories_of_one_slot_have_an_order() {
    histories(1);
}

#[test]
fn histories_of_two_slots_have_an_order() {
    histories(2);
}

#[test]
fn histories_of_three_slots_have_an_order() {
    histories(3);
}

#[test]
fn histories_without_a_limit_have_an_order() {
    histories(UNBOUNDED);
}

/// Faults that a capacity has no room for, or no need of.
fn cannot_show(fault: Fault, cap: usize) -> bool {
    match fault {
        // Without slots nothing is in the ring when the close comes, and nothing to be reserved.
        Fault::CloseDrops | Fault::PermitBarging | Fault::PermitForgotten if cap == 0 => true,
        // No send is parked.
        Fault::Barging
        | Fault::LastInFirst
        | Fault::AdmitReversed
        | Fault::ClosedTooSoon
        | Fault::PermitBarging
        | Fault::BatchLosesPlace
        | Fault::BatchReordered
        | Fault::LostRest => cap == UNBOUNDED,
        _ => false,
    }
}

/// The search accepts every history of the specification itself, and rejects some of each faulty one.
#[test]
fn planted_faults_are_rejected() {
    for cap in [0, 1, 2, UNBOUNDED] {
        assert_eq!(rejected(cap, Fault::None), 0);
        for fault in [
            Fault::LostHandOff,
            Fault::Barging,
            Fault::ReorderedStash,
            Fault::LastInFirst,
            Fault::CloseDrops,
            Fault::AdmitReversed,
            Fault::ClosedTooSoon,
            Fault::PermitBarging,
            Fault::PermitForgotten,
            Fault::BatchLosesPlace,
            Fault::BatchReordered,
            Fault::LostRest,
        ] {
            let count = if cannot_show(fault, cap) { continue } else { rejected(cap, fault) };
            eprintln!("capacity {cap}: {fault:?} is rejected {count} times");
            assert!(count > 0 || cfg!(miri), "capacity {cap}: {fault:?} passes");
        }
    }
}

/// A reordered stash by hand, at each capacity: two deliveries that are both returned, the later one first.
#[test]
fn a_reordered_stash_is_rejected() {
    let event = |call, begin, over, end| Event {
        call,
        begin,
        over,
        parked: if begin < 4 { begin + 1 } else { usize::MAX },
        end,
    };
    let history = |first, second| {
        [
            event(Call::Abandon, 0, 10, End::GivenUp),
            event(Call::Abandon, 2, 11, End::GivenUp),
            event(Call::TrySend(1), 4, 5, End::Sent),
            event(Call::TrySend(2), 6, 7, End::Sent),
            event(Call::TrySend(3), 8, 9, End::Full),
            event(Call::TryRecv, 12, 13, End::Got(first)),
            event(Call::TryRecv, 14, 15, End::Got(second)),
        ]
    };
    let (tx_stays, rx_stays) = (true, true);
    let setting = Setting { cap: 0, threads: 2, each: 0, tx_stays, rx_stays };
    assert!(setting.explains(&history(1, 2)));
    assert!(!setting.explains(&history(2, 1)));
    let with_slots = |cap, first, second| {
        let mut history = history(first, second);
        history[4].end = End::Sent;
        Setting { cap, ..setting }.explains(&history)
    };
    for cap in 1..=3 {
        assert!(with_slots(cap, 1, 2), "two of the three were handed over");
        assert!(!with_slots(cap, 2, 1));
    }
}
