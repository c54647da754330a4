//! All tasks of a pool, for a report, while it runs.
//!
//! The shards are locked one after the other, by index, and all held: what is registered stays alive, nothing is spawned and
//! nothing leaves. A task's note is read under RUNNING (W1), which a report claims if the task waits; a wake meanwhile
//! leaves SCHEDULED, and the report queues the task at its end.

use core::cell::RefCell;

use tidegate_wait::shim::{Guard, Ordering};

use super::{queue, Shard, WorkerPool};
use crate::scheduler::names::text_of;
use crate::scheduler::Status;
use crate::task::Header;

/// See the module.
pub(crate) struct View {
    pool: &'static WorkerPool,
    shards: Vec<Guard<'static, Shard>>,
    woken: RefCell<Vec<*const Header>>,
    now: u64,
}

impl View {
    pub(crate) fn new(pool: &'static WorkerPool) -> View {
        // Ordering: Relaxed; it counts from the first claim on, which is seen through the task's word.
        pool.reports.fetch_add(1, Ordering::Relaxed);
        let now = pool.posts().find_map(|post| post.time()).map_or(0, |time| time.wheel().now_ns());
        let shards = pool.posts().map(|post| post.shard.lock()).collect();
        View { pool, shards, woken: RefCell::default(), now }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now
    }

    pub(crate) fn names_of(&self, number: u8) -> (&'static str, &'static str) {
        text_of(&self.pool.names().lock(), number)
    }

    pub(crate) fn for_each(&self, f: &mut dyn FnMut(&Header)) {
        for shard in &self.shards {
            shard.pinned.for_each(&mut *f);
            shard.shared.for_each(&mut *f);
        }
    }

    pub(crate) fn status(&self, task: &Header) -> Status {
        if task.state.claim_idle() {
            let waiting = task.wait.waiting();
            if task.state.pause() {
                self.woken.borrow_mut().push(task);
            }
            return Status::Parked(waiting);
        }
        match (task.state.is_complete(), task.state.is_running()) {
            (true, _) => Status::Ended,
            (_, true) => Status::Running,
            _ => Status::Runnable,
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.shards.clear();
        for task in self.woken.take() {
            // SAFETY: found SCHEDULED when RUNNING was given up: the entry is ours to queue.
            unsafe { queue(task) }
        }
        // Ordering: Release pairs with Acquire in `is_still`.
        if self.pool.reports.fetch_sub(1, Ordering::Release) == 1 {
            self.pool.tell_root();
        }
    }
}
