//! What the peers are made to do, one file a load. Each says what its figures show and what they do not.

mod allocations;
mod cancel_storm;
mod full;
mod head_of_line;
mod head_of_line_at_home;
mod hooks;
mod idle;
mod mass_cancel;
mod oversubscribed;
mod park_cancel;
mod payload;
mod ping_pong;
mod pool;
mod ready;
mod rendezvous;
mod resident;
pub(crate) mod runtimes;
mod sizes;
mod tasks;
mod throughput;
mod timers;
mod values;

use crate::harness::Load;

/// All loads, in the order in which they run.
pub(crate) fn all() -> Vec<Load> {
    vec![
        ready::load(),
        throughput::load(),
        rendezvous::load(),
        ping_pong::load(),
        payload::load(),
        oversubscribed::load(),
        idle::load(),
        park_cancel::load(),
        mass_cancel::load(),
        cancel_storm::load(),
        head_of_line::load(),
        sizes::load(),
        allocations::load(),
        values::load(),
        timers::load(),
        tasks::load(),
        pool::load(),
    ]
}
