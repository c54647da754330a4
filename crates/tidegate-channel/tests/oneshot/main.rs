//! The oneshot channel, step by step: every end, both orders of every race, values, wakers, leaks, sizes.
#![cfg(not(loom))]

#[path = "../support/mod.rs"]
mod support;

mod ends;
mod leaks;
mod limits;
mod threads;
mod types;
mod values;
mod wakers;
