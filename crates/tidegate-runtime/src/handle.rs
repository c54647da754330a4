//! What other threads have of a runtime.

use core::future::Future;
use core::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

#[cfg(loom)]
use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard};

use crate::blocking::Pool;
use crate::dump::Dump;
use crate::error::{NoRuntime, ResizeError};
use crate::scheduler::pool::MOST;
use crate::scheduler::{self, Home, Local, Mailbox, WorkerPool};
use crate::task::{Header, JoinError, JoinHandle, Origin, Plain, Work};

/// What a runtime and its handles share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// That of the thread in `block_on`.
    mailbox: &'static Mailbox,
    /// The work-stealing pool, unless this is a local runtime.
    workers: Option<&'static WorkerPool>,
    pool: Pool,
    is_closed_world: bool,
    /// How many guards say that a thread outside has something that may wake a task.
    outside: AtomicUsize,
    /// Spawns from other threads are pushed under this lock, so that none comes to a mailbox with another owner.
    is_shut: Mutex<bool>,
    /// The same, to look at.
    was_shut: AtomicBool,
}

impl Shared {
    pub(crate) fn new(mailbox: &'static Mailbox, pool: Pool, is_closed_world: bool) -> Shared {
        Shared {
            mailbox,
            workers: None,
            pool,
            is_closed_world,
            outside: AtomicUsize::new(0),
            is_shut: Mutex::new(false),
            was_shut: AtomicBool::new(false),
        }
    }

    /// That of a runtime with a pool.
    pub(crate) fn of_pool(workers: &'static WorkerPool, pool: Pool, is_closed_world: bool) -> Shared {
        let mailbox = &workers.post(0).mailbox;
        Shared { workers: Some(workers), ..Shared::new(mailbox, pool, is_closed_world) }
    }

    /// The work-stealing pool, unless this is a local runtime.
    pub(crate) fn workers(&self) -> Option<&'static WorkerPool> {
        self.workers
    }

    /// Where tasks belong that no queue ever sees.
    pub(crate) fn home(&self) -> Home {
        self.workers.map_or_else(|| Home::of_mailbox(self.mailbox), |workers| workers.post(0).pinned())
    }

    pub(crate) fn mailbox(&self) -> &'static Mailbox {
        self.mailbox
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn is_closed_world(&self) -> bool {
        self.is_closed_world
    }

    /// Is there anything outside the runtime's thread that may wake a task: a blocking job, a declared thread?
    pub(crate) fn has_outside(&self) -> bool {
        // Ordering: Acquire pairs with Release in `OutsideGuard::drop`; what it woke before is in the mailbox.
        self.outside.load(Ordering::Acquire) != 0 || self.pool.is_busy()
    }

    fn is_shut(&self) -> MutexGuard<'_, bool> {
        self.is_shut.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// From now on spawns are refused.
    pub(crate) fn shut(&self) {
        *self.is_shut() = true;
        // Ordering: Relaxed; the runtime's own thread looks.
        self.was_shut.store(true, Ordering::Relaxed);
    }

    /// Has the runtime's own thread shut it?
    pub(crate) fn was_shut(&self) -> bool {
        // Ordering: as above.
        self.was_shut.load(Ordering::Relaxed)
    }

    /// This runtime, if it is the one that this thread is running. (Not by its mailbox, which goes to the next one.)
    fn local<'a>(&self) -> Option<&'a Local> {
        scheduler::current().filter(|local| core::ptr::eq(&raw const **local.shared(), self))
    }

    /// A task that has ended before it began.
    pub(crate) fn refuse<W: Work>(&self, work: W, origin: Origin, why: JoinError) -> JoinHandle<W::Output> {
        let task = Header::allocate(work, self.home(), origin, 2);
        // SAFETY: just made, and nobody else knows it; the work is dropped here, the handle's reference handed on.
        unsafe {
            Header::cancel(task.as_ptr(), why);
            Header::complete(task.as_ptr());
            Header::release(task.as_ptr());
            JoinHandle::from_raw(task)
        }
    }

    fn spawn<F>(&self, future: F, origin: Origin) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        if let Some(local) = self.local() {
            // SAFETY: `Send`, both.
            return unsafe { local.spawn_shared(Plain(future), origin) };
        }
        let is_shut = self.is_shut();
        if *is_shut {
            drop(is_shut);
            return self.refuse(Plain(future), origin, JoinError::Shutdown);
        }
        if let Some(workers) = self.workers {
            // Held so long that the last thread of the pool sees the task.
            let _is_shut = is_shut;
            return workers.spawn_from_outside(Plain(future), origin);
        }
        // The registry's, the handle's and the mailbox's reference.
        let task = Header::allocate(Plain(future), self.home(), origin, 3);
        // SAFETY: just made; SCHEDULED from the start. The handle's reference is handed on.
        unsafe {
            self.mailbox.push(task.as_ptr());
            JoinHandle::from_raw(task)
        }
    }
}

/// A runtime, for other threads: spawns, dumps. Cheap to clone; it keeps no runtime alive.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rt = tidegate_runtime::Runtime::new()?;
/// let handle = rt.handle();
/// let answer = std::thread::spawn(move || handle.spawn(async { 42 }));
/// let task = answer.join().unwrap();
/// assert_eq!(rt.block_on(async { task.await })??, 42);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Handle {
        Handle { shared }
    }

    /// The runtime whose task this thread is running.
    ///
    /// # Errors
    /// [`NoRuntime`] outside of one.
    pub fn current() -> Result<Handle, NoRuntime> {
        scheduler::current().map(|local| Handle::new(local.shared().clone())).ok_or(NoRuntime)
    }

    /// Spawns a task, from any thread. After a shutdown the task has ended before it began, with
    /// [`JoinError::Shutdown`].
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.shared.spawn(future, Origin::new(Location::caller()))
    }

    /// [`Handle::spawn`] with a name, for dumps and deadlock reports.
    #[track_caller]
    pub fn spawn_named<F>(&self, name: impl Into<String>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.shared.spawn(future, Origin::named(name.into(), Location::caller()))
    }

    /// Changes how many threads of a pool run tasks ([`Builder::threads`](crate::Builder::threads)), the one in `block_on`
    /// among them. New ones begin at once. Those that are too many leave after a few polls, what waited there is
    /// taken over by the others; one that has tasks of its own ([`spawn_local`](crate::spawn_local())) stays until these
    /// have ended. With `resize(1)` tasks run inside of `block_on` only.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rt = tidegate_runtime::Runtime::builder().threads(2).build()?;
    /// rt.handle().resize(4)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ResizeError`], by reason. Nothing has changed, except where the variant says so.
    pub fn resize(&self, threads: usize) -> Result<(), ResizeError> {
        let Some(workers) = self.shared.workers else { return Err(ResizeError::Local) };
        match threads {
            0 => return Err(ResizeError::NoThreads),
            more if more > MOST => return Err(ResizeError::TooManyThreads(more)),
            _ => {}
        }
        let is_shut = self.shared.is_shut();
        match *is_shut {
            true => Err(ResizeError::Shutdown),
            false => workers.resize(threads, &self.shared),
        }
    }

    /// Runs `job` on a thread for code that blocks, with a name for reports.
    ///
    /// The pool is bounded ([`Builder::blocking_threads`](crate::Builder::blocking_threads)): beyond it jobs wait in order.
    /// A job that has begun can't be aborted.
    #[track_caller]
    pub fn spawn_blocking_named<F, T>(&self, name: impl Into<String>, job: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.shared.pool.spawn(&self.shared, job, Origin::named(name.into(), Location::caller()))
    }

    /// Runs `job` on a thread for code that blocks.
    #[track_caller]
    pub fn spawn_blocking<F, T>(&self, job: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.shared.pool.spawn(&self.shared, job, Origin::new(Location::caller()))
    }

    /// Declares that a thread outside of the runtime has a channel's half, a waker, or anything else that may wake a task:
    /// while the guard lives, a closed world waits instead of reporting a deadlock.
    #[must_use = "the declaration ends with the guard"]
    pub fn outside(&self) -> OutsideGuard {
        // Ordering: Relaxed; it counts from when the runtime's thread sees it, and that thread, or one that was declared
        // before, gave the half away.
        self.shared.outside.fetch_add(1, Ordering::Relaxed);
        OutsideGuard { shared: self.shared.clone() }
    }

    /// What every task is doing or waiting for, now.
    ///
    /// From another thread the runtime is asked, and answers between two polls; if it does not within a second, because it is
    /// not running or one poll takes so long, [`Dump::is_complete`] says so, and the tasks are missing.
    #[must_use]
    pub fn dump(&self) -> Dump {
        if let Some(local) = self.shared.local() {
            return Dump::of(local);
        }
        if let Some(workers) = self.shared.workers {
            // Under the lock: a pool whose runtime is gone belongs to another one.
            let is_shut = self.shared.is_shut();
            return match *is_shut {
                true => Dump::unanswered(&self.shared),
                false => Dump::of_pool(&self.shared, workers),
            };
        }
        let (answer, dump) = std::sync::mpsc::channel();
        // Under the lock: a mailbox whose runtime is gone belongs to another one.
        let is_shut = self.shared.is_shut();
        if *is_shut {
            return Dump::unanswered(&self.shared);
        }
        self.shared.mailbox.request(Box::new(move |local| {
            // Whoever asked may have gone.
            let _ = answer.send(Dump::of(local));
        }));
        drop(is_shut);
        dump.recv_timeout(Duration::from_secs(1)).unwrap_or_else(|_| Dump::unanswered(&self.shared))
    }
}

/// See [`Handle::outside`].
#[derive(Debug)]
#[must_use = "the declaration ends with the guard"]
pub struct OutsideGuard {
    shared: Arc<Shared>,
}

impl Drop for OutsideGuard {
    fn drop(&mut self) {
        // Ordering: Release pairs with Acquire in `has_outside`.
        if self.shared.outside.fetch_sub(1, Ordering::Release) == 1 {
            self.shared.mailbox.wake();
        }
    }
}
