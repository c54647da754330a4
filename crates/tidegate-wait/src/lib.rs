//! One blocked operation: the bottom layer of Tidegate.
//!
//! Everything in the workspace that blocks is the same small pinned node, a [`waiter`], inside the operation's own
//! future. It stands in one FIFO list of the thing waited for, perhaps in a timer wheel, perhaps in the lists of cancel
//! tokens, and leaves each of them in O(1). Exactly one event ends the wait, and nothing is allocated for it.
//!
//! Users meet this crate through the facade `tidegate`: timers ([`timer`]), tokens ([`cancel`]), and the limits of
//! [`Operation`] on every operation. Builders of channels, locks and runtimes use the rest.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`waiter`], [`list`] | the node, its states, the intrusive FIFO list |
//! | [`owner`] | whoever is waited for; how a timer or a token ends a wait without knowing its type |
//! | [`wait_queue`] | list and small lock, for everything but a channel |
//! | [`wake_batch`] | wakers collected under a lock, woken after it |
//! | [`parker`] | a thread as a waker |
//! | [`timer`] | clocks, wheel, driver; `sleep`, `timeout`, `interval` |
//! | [`cancel`] | the token tree |
//! | [`op`] | operations and their limits |
//! | [`origin`] | where something was made, for reports |
//! | [`context`] | what a runtime tells the operations polled on its threads |
//!
//! Without the feature `std` there are no timers, no blocking waits and no callbacks of tokens.
//!
//! Limits of the platform: 64-bit atomics are required. A forked child has no timer thread. Nothing here may be called
//! from a signal handler.

#![cfg_attr(not(any(feature = "std", loom)), no_std)]
// Without timers some moves of a waiter have no caller.
#![cfg_attr(not(feature = "std"), allow(dead_code))]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("Tidegate needs 64-bit atomics (target_has_atomic = \"64\")");

extern crate alloc;

pub mod cancel;
#[cfg(feature = "std")]
pub mod context;
pub mod debt;
pub mod list;
pub mod op;
pub mod origin;
pub mod owner;
#[cfg(feature = "std")]
pub mod parker;
#[doc(hidden)]
pub mod shim;
pub mod stash;
#[cfg(feature = "std")]
pub mod timer;
pub mod wait_queue;
pub mod waiter;
pub mod wake_batch;

pub use op::{Limit, Operation};
