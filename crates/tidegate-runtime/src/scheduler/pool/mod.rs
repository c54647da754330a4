//! The work-stealing pool: many threads, any of which may run a woken task. How it sleeps and wakes, and why that is right:
//! `README.md` beside this file.
//!
//! # Shape
//! ```text
//!             ┌ post 0: the thread in `block_on` ┐ ┌ post 1: a thread of the pool ┐ …
//!  injector   │ slot · deque · pinned queue      │ │ slot · deque · pinned queue   │
//!             │ mailbox · wheel · shard          │ │ mailbox · wheel · shard       │
//!             └──────────────────────────────────┘ └──────────────────────────────┘
//! ```
//! | part | file | who takes from it |
//! | --- | --- | --- |
//! | *slot*: what the task that runs has woken or spawned last | `mod`, `worker` | its worker; the watcher, if its worker computes |
//! | *deque*: what else is to be run, FIFO | `deque` | its worker; any that searches |
//! | *pinned queue*: tasks that need not be `Send` | `queue` | its worker |
//! | *injector*: what comes from outside | `injector` | any worker |
//! | *mailbox*: pinned tasks woken elsewhere | `mailbox` | its worker |
//! | *wheel*: timers armed there | `time` | its worker; any that looks over there when they are due |
//! | *shard* of the registry | `shard` | who spawns and ends tasks; reports |
//! | who sleeps, and who wakes whom | `idle` | |
//! | a worker's round | `worker` | |
//! | what only the thread in `block_on` does: deadlocks, virtual time, `on_idle` | `coordinate` | |
//! | the end | `end` | |
//!
//! # Invariants
//! - **P1** A task is polled by one thread at a time (W1), wakes are not lost (W1), and its memory stays while it stands in
//!   a queue or on its way there (W2).
//! - **P2** A task that is pinned is polled, and its future dropped, on the thread that spawned it.
//! - **P3** Nothing runnable waits while a worker sleeps, for longer than it takes to wake that worker (D1), or than
//!   two [`WATCH`]es if it stands in the slot of a worker that computes (D2).
//! - **P4** A pool's memory is never freed, only reused, as a mailbox's (X3): a waker may come at any time. When it is
//!   reused, every task of its former life is COMPLETE, and what a late waker pushes is given back by whoever takes it
//!   out.
//! - **P5** A timer fires when its worker looks at the clock, or when another one does: `due` says when a wheel wants to be
//!   turned. Whoever turns a wheel first sets `due` to "never" and lowers it afterwards; whoever arms an earlier timer
//!   lowers it to "now". So no turn hides a timer that was armed during it. Whoever lowers it fences, and looks at the
//!   watcher's plan; the watcher plans "for ever", fences, and looks at all of them before it settles on less. One of the
//!   two sees the other.
//!
//! Tests: `tests/pool.rs`, `tests/pool_storm.rs`, `loom_models.rs`, and the suite of the local scheduler, run on pools.

mod coordinate;
mod deque;
mod end;
mod idle;
mod injector;
#[cfg(all(test, loom))]
mod loom_models;
mod shard;
mod view;
mod worker;

use core::ptr;
use std::sync::{Arc, OnceLock};

#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};

use tidegate_wait::shim::{fence, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Lock, Ordering};
use tidegate_wait::timer::ManualClock;

use super::home::{Home, Kind};
use super::names::Name;
use super::{current, Local, Mailbox, Time};
use crate::error::BuildError;
use crate::task::{Header, JoinHandle, Origin, Work};

pub(crate) use deque::{Deque, Thief};
pub(crate) use idle::Idle;
pub(crate) use injector::Injector;
pub(crate) use shard::{List, Shard};
pub(crate) use view::View;
pub(crate) use worker::Seat;

/// The most workers of one pool: each has a wheel, of which there are 511.
pub(crate) const MOST: usize = if cfg!(loom) { 3 } else { 256 };

/// How often the watcher looks after those that are awake, in ns. (In a model, which knows no time, only when it is woken.)
pub(crate) const WATCH: u64 = if cfg!(loom) { u64::MAX } else { 500_000 };

/// See the module.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    pub(crate) injector: Injector,
    pub(crate) idle: Idle,
    posts: Box<[OnceLock<&'static Post>]>,
    /// How many of them the runtime uses; it only grows while that lives. (A former one may have had more.)
    len: AtomicUsize,
    /// How many workers there are to be.
    target: AtomicUsize,
    is_stopping: AtomicBool,
    /// The thread in `block_on` has something to do when all are asleep.
    wants_root: AtomicBool,
    /// A join has parked since the last search for circles.
    has_new_joins: AtomicBool,
    /// How many reports are being made: each may have a woken task in its hands.
    reports: AtomicUsize,
    /// A shutdown waits for the last task.
    is_draining: AtomicBool,
    names: Lock<Vec<Name>>,
    /// The clock of all, in virtual time.
    clock: Lock<Option<Arc<Time>>>,
    hooks: Lock<Arc<Hooks>>,
    roster: Mutex<Roster>,
    /// A thread has left.
    left: Condvar,
}

/// What the builder says of the threads.
pub(crate) struct Hooks {
    pub(crate) name: String,
    pub(crate) on_start: Option<Box<dyn Fn(usize) + Send + Sync>>,
}

impl Default for Hooks {
    fn default() -> Hooks {
        Hooks { name: "tidegate-worker".into(), on_start: None }
    }
}

impl core::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Hooks").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Who is there.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    /// How many threads there are that may poll, with the one that has the runtime.
    threads: usize,
    /// Whether somebody sits at each post.
    seated: Vec<bool>,
}

/// A worker's place, whether one sits there or not.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) pool: &'static WorkerPool,
    pub(crate) index: usize,
    pub(crate) mailbox: Mailbox,
    pub(crate) shard: Lock<Shard>,
    thief: Thief,
    /// For the thread that sits here; the roster's lock stands between one and the next.
    deque: Deque,
    /// While the runtime lives.
    time: Lock<Option<Arc<Time>>>,
    watched: Watched,
}

// SAFETY: `deque` is used by the one thread that sits here, `mailbox` as it says itself.
unsafe impl Send for Post {}
// SAFETY: as above; the tasks in `watched` and `shard` are reached by whoever took them out, or under the lock.
unsafe impl Sync for Post {}

/// What others look at while the worker runs: a line of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Watched {
    slot: AtomicPtr<Header>,
    /// How many polls there have been, wrapping.
    polls: AtomicU32,
    /// When the wheel wants to be turned, in ns; zero: now; MAX: never.
    due: AtomicU64,
}

/// Pools without a runtime.
static FREE: std::sync::Mutex<Vec<&'static WorkerPool>> = std::sync::Mutex::new(Vec::new());

impl WorkerPool {
    fn new() -> WorkerPool {
        WorkerPool {
            injector: Injector::default(),
            idle: Idle::default(),
            posts: (0..MOST).map(|_| OnceLock::new()).collect(),
            len: AtomicUsize::new(0),
            target: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
            wants_root: AtomicBool::new(false),
            has_new_joins: AtomicBool::new(false),
            reports: AtomicUsize::new(0),
            is_draining: AtomicBool::new(false),
            names: Lock::new(Vec::new()),
            clock: Lock::new(None),
            hooks: Lock::new(Arc::new(Hooks::default())),
            roster: Mutex::new(Roster::default()),
            left: Condvar::new(),
        }
    }

    /// An open pool for a new runtime, with the calling thread at its first post.
    pub(crate) fn take(
        workers: usize,
        wants_root: bool,
        is_virtual: bool,
        hooks: Hooks,
    ) -> Result<&'static WorkerPool, BuildError> {
        let clock = match is_virtual {
            true => Some(Arc::new(ManualClock::try_new().map(Time::Virtual).ok_or(BuildError::TooManyWheels)?)),
            false => None,
        };
        let known = if cfg!(loom) { None } else { FREE.lock().unwrap_or_else(|e| e.into_inner()).pop() };
        let pool = known.unwrap_or_else(|| Box::leak(Box::new(WorkerPool::new())));
        // Ordering: Relaxed; nobody else has it yet.
        pool.target.store(workers, Ordering::Relaxed);
        pool.is_stopping.store(false, Ordering::Relaxed);
        pool.is_draining.store(false, Ordering::Relaxed);
        pool.has_new_joins.store(false, Ordering::Relaxed);
        pool.wants_root.store(wants_root, Ordering::Relaxed);
        *pool.clock.lock() = clock;
        *pool.hooks.lock() = Arc::new(hooks);
        if !(0..workers).all(|index| pool.make_post(index)) {
            pool.give_back();
            return Err(BuildError::TooManyWheels);
        }
        pool.injector.open();
        let _root = pool.fill_posts(1);
        Ok(pool)
    }

    /// The place of worker `index`, made if need be. For one thread at a time. False: too many wheels are alive.
    fn make_post(&'static self, index: usize) -> bool {
        let post: &'static Post = self.posts[index].get_or_init(|| {
            let (deque, thief) = Deque::new();
            Box::leak(Box::new(Post {
                pool: self,
                index,
                mailbox: Mailbox::of_pool(),
                shard: Lock::new(Shard::default()),
                thief,
                deque,
                time: Lock::new(None),
                watched: Watched {
                    slot: AtomicPtr::new(ptr::null_mut()),
                    polls: AtomicU32::new(0),
                    due: AtomicU64::new(u64::MAX),
                },
            }))
        });
        if post.time().is_none() {
            let time = self.clock.lock().clone().or_else(|| Time::of_post(post).map(Arc::new));
            let Some(time) = time else { return false };
            post.watched.due.store(u64::MAX, Ordering::Relaxed);
            post.mailbox.open();
            *post.time.lock() = Some(time);
        }
        // Ordering: Release pairs with Acquire in `posts`.
        self.len.fetch_max(index + 1, Ordering::Release);
        true
    }

    fn len(&self) -> usize {
        // Ordering: Acquire pairs with Release in `make_post`.
        self.len.load(Ordering::Acquire)
    }

    /// All places, sat at or not.
    pub(crate) fn posts(&self) -> impl Iterator<Item = &'static Post> + use<'_> {
        self.posts[..self.len()].iter().filter_map(|post| post.get().copied())
    }

    pub(crate) fn post(&self, index: usize) -> &'static Post {
        self.posts[index].get().expect("a post that there is")
    }

    pub(crate) fn target(&self) -> usize {
        // Ordering: Relaxed; whoever changes it wakes those whom it concerns.
        self.target.load(Ordering::Relaxed)
    }

    pub(crate) fn set_target(&self, workers: usize) {
        // Ordering: as above.
        self.target.store(workers, Ordering::Relaxed);
    }

    fn is_stopping(&self) -> bool {
        // Ordering: Relaxed; whoever sets it wakes everybody.
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// There is work that a sleeper should take up.
    #[inline]
    pub(crate) fn notify(&self) {
        if let Some(worker) = self.idle.rouse() {
            self.post(worker).mailbox.wake();
        }
    }

    /// There is something to be watched (D2): a task in a slot, a timer that is due at `due`.
    #[inline(always)]
    pub(crate) fn be_watched(&self, due: u64) {
        if let Some(watcher) = self.idle.sleeps_past(due) {
            self.post(watcher).mailbox.wake();
        }
    }

    /// A task comes from outside of the workers.
    ///
    /// # Safety
    /// The caller has set SCHEDULED; the task is shared.
    pub(crate) unsafe fn inject(&self, task: *const Header) {
        // SAFETY: the caller's promise; W2.
        match unsafe { self.injector.push(task) } {
            true => self.notify(),
            // SAFETY: the entry is ours.
            false => unsafe { Header::drop_entry(task) },
        }
    }

    /// A new task that any worker may take. The caller keeps the runtime from shutting down meanwhile.
    pub(crate) fn spawn_from_outside<W: Work + Send>(&self, work: W, origin: Origin) -> JoinHandle<W::Output>
    where
        W::Output: Send,
    {
        let post = self.post(0);
        let task = Header::allocate(work, post.shared(), origin, 2);
        // SAFETY: just made, SCHEDULED; the handle's reference is handed on.
        unsafe {
            post.remember(task.as_ptr());
            self.inject(task.as_ptr());
            JoinHandle::from_raw(task)
        }
    }

    /// How many tasks live, at one moment: all shards are held.
    pub(crate) fn tasks(&self) -> usize {
        let shards: Vec<_> = self.posts().map(|post| post.shard.lock()).collect();
        shards.iter().map(|shard| shard.pinned.len() + shard.shared.len()).sum()
    }

    /// Is anything in a queue that any worker may take from? (Slots are not looked at: see `idle`.)
    pub(crate) fn has_work(&self) -> bool {
        !self.injector.is_empty() || self.posts().any(|post| !post.thief.is_empty())
    }

    /// When the first timer of any worker is due; MAX: none is armed.
    pub(crate) fn due(&self) -> u64 {
        self.posts().map(|post| post.due()).min().unwrap_or(u64::MAX)
    }

    pub(crate) fn names(&self) -> &Lock<Vec<Name>> {
        &self.names
    }

    pub(crate) fn roster(&self) -> MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A join has parked: the thread in `block_on` looks for circles when all are asleep.
    pub(crate) fn note_join(&self) {
        // Ordering: Relaxed; who searches does so when all are asleep (D3), and bed comes after this.
        if !self.has_new_joins.load(Ordering::Relaxed) {
            self.has_new_joins.store(true, Ordering::Relaxed);
        }
    }

    /// Does a shutdown wait for nothing any more?
    fn is_drained(&self) -> bool {
        // Ordering: Relaxed; the thread that asks has set it.
        self.is_draining.load(Ordering::Relaxed) && self.tasks() == 0
    }

    /// A task has ended: a shutdown may have waited for it.
    fn tell_drained(&self) {
        // Ordering: Relaxed; whoever sets it looks at the shards afterwards, under their locks, as we did before.
        if self.is_draining.load(Ordering::Relaxed) {
            self.post(0).mailbox.wake();
        }
    }
}

impl Post {
    pub(crate) fn pinned(&'static self) -> Home {
        Home::of_post(self, Kind::Pinned)
    }

    pub(crate) fn shared(&'static self) -> Home {
        Home::of_post(self, Kind::Shared)
    }

    pub(crate) fn time(&self) -> Option<Arc<Time>> {
        self.time.lock().clone()
    }

    pub(crate) fn due(&self) -> u64 {
        // Ordering: Acquire pairs with Release in `lower_due`; the wheel has a lock of its own.
        self.watched.due.load(Ordering::Acquire)
    }

    /// The wheel is about to be turned: P5.
    pub(crate) fn clear_due(&self) {
        self.watched.due.swap(u64::MAX, Ordering::AcqRel);
    }

    /// The wheel wants to be turned at `at`: P5.
    pub(crate) fn lower_due(&self, at: u64) {
        self.watched.due.fetch_min(at, Ordering::AcqRel);
        // Ordering: between this and the look at the watcher's plan (`be_watched`); pairs with the fence in `Idle::plan`.
        fence(Ordering::SeqCst);
    }
}

/// The scheduler of this thread, if it is a worker of `pool` and running.
#[inline(always)]
pub(crate) fn worker_of<'a>(pool: &'static WorkerPool) -> Option<&'a Local> {
    current().filter(|local| ptr::eq(local.pool_in_use(), pool))
}

/// Queues a task of a pool.
///
/// # Safety
/// The caller has set SCHEDULED.
#[inline]
pub(crate) unsafe fn queue(task: *const Header) {
    // SAFETY: the caller's promise: W2.
    unsafe {
        let home = (*task).home;
        let post = home.post();
        match home.kind() {
            Kind::Shared => match worker_of(post.pool) {
                Some(local) => local.push_woken(task),
                None => post.pool.inject(task),
            },
            _ => match current().filter(|local| local.home() == home) {
                Some(local) => local.push_pinned(task),
                None => post.mailbox.push(task),
            },
        }
    }
}
