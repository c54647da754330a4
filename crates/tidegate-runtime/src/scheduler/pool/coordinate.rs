//! What only the thread in `block_on` does, when all workers are asleep: it calls `on_idle`, looks for circles, lets virtual
//! time pass, and says that nothing can go on any more.
//!
//! It may sleep itself when the last of the others goes to bed: that one wakes it ([`WorkerPool::tell_root`]).

use tidegate_wait::shim::Ordering;
use tidegate_wait::timer::is_settling;
use tidegate_wait::wake_batch::contain;

use super::{Seat, WorkerPool};
use crate::scheduler::local::{Local, Stuck, SETTLING};
use crate::scheduler::Time;

impl WorkerPool {
    /// The thread in `block_on` should look, if it has anything to look for.
    pub(super) fn tell_root(&self) {
        if self.wants_root() {
            self.post(0).mailbox.wake();
        }
    }

    fn wants_root(&self) -> bool {
        // Ordering: Relaxed; whoever sets the second one went to bed since (D3).
        self.wants_root.load(Ordering::Relaxed) || self.has_new_joins.load(Ordering::Relaxed)
    }

    /// Is nothing left to run, with all asleep? Nobody but somebody outside can change that.
    fn is_still(&self) -> bool {
        let Some(_asleep) = self.idle.all_asleep() else { return false };
        // Ordering: Acquire pairs with Release in `View::drop`: a report queues what it has before it stops counting.
        self.reports.load(Ordering::Acquire) == 0
            && !self.has_work()
            && self.posts().all(|post| {
                let is_empty = post.watched.slot.load(Ordering::Relaxed).is_null();
                is_empty && !post.mailbox.has_tasks() && !post.mailbox.has_requests()
            })
    }
}

impl Local {
    /// In bed. True: get up, there is something to run.
    pub(super) fn coordinate(&self, seat: &Seat, limit: u64) -> Result<bool, Stuck> {
        let pool = seat.post.pool;
        if !(pool.wants_root() || self.has_new_joins.get()) || !pool.is_still() {
            return Ok(false);
        }
        if let Some(call) = &self.before_sleep.0 {
            contain(call);
        }
        if pool.has_new_joins.swap(false, Ordering::Relaxed) {
            self.has_new_joins.set(true);
        }
        if self.search_circles() || self.has_own_work(seat) {
            return Ok(true);
        }
        // Before the queues are looked at: whoever is counted here leaves what it wakes before it stops counting.
        if self.shared().has_outside() {
            return Ok(false);
        }
        match self.time() {
            Time::Virtual(clock) => {
                self.turn();
                if self.has_own_work(seat) || !pool.is_still() {
                    return Ok(self.has_own_work(seat));
                }
                if limit < self.due.get() {
                    return Err(Stuck::Limit);
                }
                if self.due.get() != u64::MAX {
                    clock.advance_to_next();
                    return Ok(true);
                }
            }
            Time::System(_) if self.shared().is_closed_world() => {
                // The first timer of a wheel may have been taken out since it was seen.
                pool.posts().filter(|post| post.due() != u64::MAX).for_each(|post| self.turn_for(post));
                // It planned to sleep for ever if it looked in the middle of that.
                pool.be_watched(pool.due());
                if self.has_own_work(seat) || pool.due() != u64::MAX {
                    return Ok(self.has_own_work(seat));
                }
            }
            Time::System(_) => return Ok(false),
        }
        self.declare(pool)
    }

    /// No timer, nobody outside: is it a deadlock?
    fn declare(&self, pool: &'static WorkerPool) -> Result<bool, Stuck> {
        if !self.shared().is_closed_world() || !pool.is_still() {
            return Ok(false);
        }
        // In this order: who was outside may have ended because the driver woke it, in the middle of something.
        if is_settling() {
            self.mailbox().parker().park_timeout(SETTLING);
            return Ok(true);
        }
        match pool.is_still() {
            true => Err(Stuck::Deadlock),
            false => Ok(false),
        }
    }
}
