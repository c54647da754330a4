//! The suite of the local runtime, on a pool: everything that a local runtime promises, but for its order.
#![cfg(not(loom))]
// Each file is a test of its own, too, and asks `make` what it is about.
#![allow(clippy::duplicate_mod)]

mod deadlock;
mod debts;
mod foreign;
mod on_idle;
mod scope;
mod shutdown;
mod tasks;
mod timers;
