//! The end of a pool, and of a worker.
//!
//! Each thread drops its own pinned tasks (P2). The last one to leave, be it the thread that had the runtime or a worker that
//! was in the middle of a long poll, drops all others: then nobody polls any more. So a runtime that is dropped beside such a
//! worker need not wait for it, and still nothing is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_wait::shim::Ordering;
use tidegate_wait::wake_batch::contain;

use super::worker::take_slot;
use super::{Local, Post, Roster, WorkerPool, FREE};
use crate::error::ResizeError;
use crate::handle::Shared;
use crate::task::{Header, JoinError};

impl WorkerPool {
    /// Starts the threads that there are to be and are not.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn hire(&'static self, shared: &Arc<Shared>) -> std::io::Result<()> {
        let free = self.fill_posts(self.target());
        let mut free = free.into_iter();
        while let Some(index) = free.next() {
            if let Err(error) = start(self.post(index), shared.clone()) {
                self.clear_post(index);
                free.for_each(|index| self.clear_post(index));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Changes how many workers there are to be. For one thread at a time, while the runtime lives.
    ///
    /// # Errors
    /// There are as many as could be had.
    pub(crate) fn resize(&'static self, workers: usize, shared: &Arc<Shared>) -> Result<(), ResizeError> {
        let can_be = (0..workers).take_while(|index| self.make_post(*index)).count();
        self.set_target(can_be);
        // Those that are to go may be asleep.
        self.wake_all();
        self.hire(shared).map_err(|error| ResizeError::NoThread(error.kind()))?;
        match can_be == workers {
            true => Ok(()),
            false => Err(ResizeError::TooManyWheels),
        }
    }

    /// The posts below `count` at which nobody sits: from now on somebody does.
    pub(super) fn fill_posts(&self, count: usize) -> Vec<usize> {
        let mut roster = self.roster();
        if roster.seated.len() < count {
            roster.seated.resize(count, false);
        }
        let free: Vec<usize> = (0..count).filter(|index| !roster.seated[*index]).collect();
        free.iter().for_each(|index| roster.seated[*index] = true);
        roster.threads += free.len();
        free
    }

    /// A thread that was to sit at a post could not be started.
    fn clear_post(&self, index: usize) {
        let mut roster = self.roster();
        roster.seated[index] = false;
        roster.threads -= 1;
    }

    /// Asks the workers to leave, each after a few polls at most.
    pub(crate) fn stop(&self) {
        // Ordering: Release pairs with nothing but the wakes: each of them has its own.
        self.is_stopping.store(true, Ordering::Release);
        self.wake_all();
    }

    pub(crate) fn wake_all(&self) {
        self.posts().for_each(|post| post.mailbox.wake());
    }

    /// Waits until only the caller is left, or `until` has come.
    pub(crate) fn wait_alone(&self, until: Option<Instant>) {
        let mut roster = self.roster();
        while roster.threads > 1 {
            roster = match until {
                None => self.left.wait(roster).unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return;
                    }
                    wait_timeout(&self.left, roster, left)
                }
            };
        }
    }

    /// From now on whoever ends the last task says so.
    pub(crate) fn drain(&self) {
        // Ordering: Relaxed; the shards are looked at afterwards, under their locks.
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Everybody has left.
    fn end(&'static self, local: &Local) {
        self.injector.close(drop_entry);
        self.posts().for_each(Post::clear);
        for post in self.posts() {
            while let Some(task) = post.first(|shard| shard.shared.first()) {
                // SAFETY: it was first in the registry; nobody is left who polls, and it is `Send`.
                unsafe { local.end_task(task, JoinError::Shutdown) };
            }
        }
        self.give_back();
    }

    /// Leaves it to the next runtime. (Loom's objects must not be used in a later execution: there it is forgotten.)
    pub(super) fn give_back(&'static self) {
        for post in self.posts() {
            // Dropped outside of the lock: a wheel wakes what is armed in it.
            let time = post.time.lock().take();
            drop(time);
        }
        let clock = self.clock.lock().take();
        drop(clock);
        let hooks = core::mem::take(&mut *self.hooks.lock());
        drop(hooks);
        // Ordering: Relaxed; the lock below stands between this and the next runtime.
        self.len.store(0, Ordering::Relaxed);
        if !cfg!(loom) {
            FREE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(self);
        }
    }
}

/// A thread of the pool's own.
fn start(post: &'static Post, shared: Arc<Shared>) -> std::io::Result<()> {
    let hooks = post.pool.hooks.lock().clone();
    let life = move || {
        if let Some(call) = &hooks.on_start {
            contain(|| call(post.index));
        }
        let local = Local::at_post(post, shared, Box::new(|_| ()), None).expect("the runtime lives: its wheels do");
        local.enter(|| loop {
            // SAFETY: inside `enter`. Without a root it ends when it is to leave.
            let _left = unsafe { local.work(None, u64::MAX) };
            // SAFETY: as above; nothing else is called.
            if unsafe { local.say_goodbye() } {
                break;
            }
        });
    };
    #[cfg(not(loom))]
    return std::thread::Builder::new()
        .name(format!("{}-{}", post.pool.hooks.lock().name, post.index))
        .spawn(life)
        .map(drop);
    #[cfg(loom)]
    {
        loom::thread::spawn(life);
        Ok(())
    }
}

#[cfg(not(loom))]
fn wait_timeout<'a>(
    signal: &super::Condvar,
    guard: super::MutexGuard<'a, Roster>,
    left: Duration,
) -> super::MutexGuard<'a, Roster> {
    signal.wait_timeout(guard, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0
}

/// Under loom no time passes: it waits.
#[cfg(loom)]
fn wait_timeout<'a>(
    signal: &super::Condvar,
    guard: super::MutexGuard<'a, Roster>,
    _: Duration,
) -> super::MutexGuard<'a, Roster> {
    signal.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn drop_entry(task: *const Header) {
    // SAFETY: it was taken from a queue: the entry is ours.
    unsafe { Header::drop_entry(task) }
}

impl Post {
    /// Takes everything out of the queues. Nobody works in the pool any more.
    fn clear(&self) {
        self.mailbox.close();
        take_slot(self).into_iter().for_each(drop_entry);
        while let Some(task) = self.thief.steal() {
            drop_entry(task);
        }
    }

    fn first(&self, of: impl FnOnce(&super::Shard) -> Option<*const Header>) -> Option<*const Header> {
        of(&self.shard.lock())
    }

    /// Registers a new task.
    ///
    /// # Safety
    /// As for [`super::List::insert`]; its home is here.
    #[inline]
    pub(crate) unsafe fn remember(&self, task: *const Header) {
        let mut shard = self.shard.lock();
        // SAFETY: the caller's promise.
        unsafe { shard.list_of(task).insert(task) }
    }

    /// Takes it out of the registry.
    ///
    /// # Safety
    /// As for [`super::List::remove`]; its home is here.
    #[inline]
    pub(crate) unsafe fn forget(&self, task: *const Header) {
        let mut shard = self.shard.lock();
        // SAFETY: the caller's promise.
        unsafe { shard.list_of(task).remove(task) }
    }
}

impl Local {
    /// Ends a task that nobody polls.
    ///
    /// # Safety
    /// Registered, and not running; this thread may drop its future.
    pub(crate) unsafe fn end_task(&self, task: *const Header, why: JoinError) {
        // SAFETY: it is registered, so alive; it is taken out of the registry here, once.
        unsafe {
            (*task).state.seize();
            self.cancel_pooled(task, why);
        }
    }

    /// Leaves the pool, and ends it if nobody else is left. False: this worker is wanted again.
    ///
    /// # Safety
    /// Inside `enter`, outside of `work`; with true, nothing else may be called.
    pub(crate) unsafe fn say_goodbye(&self) -> bool {
        let post = self.seat().post;
        let pool = post.pool;
        if pool.is_stopping() {
            while let Some(task) = post.first(|shard| shard.pinned.first()) {
                // SAFETY: it was first in the registry, and is this thread's.
                unsafe { self.end_task(task, JoinError::Shutdown) };
            }
        }
        while let Some(task) = self.queue.pop() {
            drop_entry(task);
        }
        post.mailbox.drain(drop_entry);
        let mut roster = pool.roster();
        // A resize may have come in between.
        if !pool.is_stopping() && post.index < pool.target() {
            return false;
        }
        roster.seated[post.index] = false;
        roster.threads -= 1;
        let is_last = roster.threads == 0;
        drop(roster);
        if is_last {
            pool.end(self);
        }
        pool.left.notify_all();
        true
    }
}
