//! The bounded channel under loom: production code, every interleaving within the preemption bound.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p tidegate-channel --test loom_bounded`
//!
//! `pairs` runs every pair of actions from every state of a channel, `triples` the famous three-thread races, `threads`
//! whole threads that block. Each model ends with the same questions (`model::World::finish`): did every value go to
//! exactly one place, in order, and is nothing parked that could go on?
#![cfg(loom)]

#[path = "../support/mod.rs"]
mod support;

mod model;
mod pairs;
mod threads;
mod triples;
