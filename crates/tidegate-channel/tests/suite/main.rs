//! The bounded channel, step by step and without a race: what each operation does in each state.
#![cfg(not(loom))]

#[path = "../support/mod.rs"]
mod support;

mod basics;
mod close;
mod deadlines;
mod leaks;
mod links;
mod payloads;
mod reentry;
mod tokens;
mod turns;
mod wakers;
