//! What the peers are made to do, one file a load. Each says what its figures show and what they do not.

mod head_of_line;
mod head_of_line_at_home;
mod hooks;
mod park_cancel;
mod ping_pong;
mod ready;
mod resident;
pub(crate) mod runtimes;
mod sizes;
mod tasks;
mod throughput;
mod timers;

use crate::harness::Load;

/// All loads, in the order in which they run.
pub(crate) fn all() -> Vec<Load> {
    vec![
        ready::load(),
        throughput::load(),
        ping_pong::load(),
        park_cancel::load(),
        head_of_line::load(),
        sizes::load(),
        timers::load(),
        tasks::load(),
    ]
}
