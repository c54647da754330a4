//! The channels, step by step: what each operation does in each state, for every flavor and in both manners of waiting.
//!
//! The flavors stand in `flavors.rs`; a test that is about one of them alone says so. `cargo test --test suite --
//! --nocapture` shows which cells were skipped, and why.
#![cfg(not(loom))]

#[path = "../support/mod.rs"]
mod support;

mod flavors;

mod admit;
mod admit_reentry;
mod basics;
mod batches;
mod capacities;
mod close;
mod closed;
mod deadlines;
mod executors;
mod iterators;
mod leaks;
mod links;
mod payloads;
mod permits;
mod races;
mod reentry;
mod reserve_many;
mod send_with;
mod streams;
mod tokens;
mod turns;
mod wakers;
mod weak;
