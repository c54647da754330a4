//! The channel whose limit is a sum of weights (A1–A6).
#![cfg(not(loom))]

#[path = "../support/mod.rs"]
mod support;

mod account;
mod ends;
mod line;
mod memory;
mod threads;
mod wakers;

use tidegate_channel::{bounded_by, Receiver, RecvError, WeightedSender};

/// A channel of numbers that weigh what they are.
fn by_itself(limit: u64) -> (WeightedSender<u64>, Receiver<u64>) {
    bounded_by(limit, |&n| n)
}

/// What is left in a channel, and what it says at the end.
fn drain<T>(rx: &Receiver<T>) -> (Vec<T>, RecvError) {
    let mut values = Vec::new();
    loop {
        match rx.try_recv() {
            Ok(value) => values.push(value),
            Err(end) => return (values, end),
        }
    }
}
