//! The suite of the local runtime, on a pool: everything that a local runtime promises, but for its order.
#![cfg(not(loom))]

mod deadlock;
mod debts;
mod foreign;
mod on_idle;
mod scope;
mod shutdown;
mod tasks;
mod timers;
