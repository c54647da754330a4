//! The local scheduler: one thread, one strict FIFO queue. Each thread of a pool has one, too, with a seat there: its clock,
//! its mailbox and its pinned tasks are here, its round and all that it shares in `pool`.
//!
//! # Order
//! A spawn and a wake append at the tail. Wakes from other threads are taken over before each poll, in the order in which
//! they came. When the clock is looked at, everything that is due is handled, in the order of deadlines, ties in the order
//! of parking, before a task runs.
//!
//! # When the clock is looked at
//! While nothing is runnable, and after some polls: 16 of them, fewer if at the pace of the last ones they would take more
//! than 100 µs. (Reading it costs about as much as a poll. So after a sudden change from short polls to long ones, up to
//! 16 long ones may pass before the first look; then it is each.)
//!
//! Tests: `tests/order.rs`, `tests/timers.rs`.

use core::cell::Cell;
use core::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_wait::context::{refill, Hooks, WaitInfo};
use tidegate_wait::timer::{is_settling, Next};
use tidegate_wait::wake_batch::contain;

use super::names::Names;
use super::pool::{Post, Seat, WorkerPool};
use super::queue::{Registry, RunQueue};
use super::wait::{QUEUED, REGISTERED, WAITING};
use super::{Home, Mailbox, Time};
use crate::builder::{OnDeadlock, OnIdle};
use crate::deadlock::{Circles, Searched};
use crate::handle::Shared;
use crate::task::{Header, JoinError, JoinHandle, Origin, Start, Work};

/// How many polls at most between two looks at the clock.
const LOOK: u32 = 16;
/// How long they may take, in ns, at the pace of those before.
const LOOK_NS: u64 = 100_000;
/// How many operations one poll may do before it yields.
pub(super) const BUDGET: u32 = 128;
/// How many steps of the wheel that fire nothing are taken at one look.
const QUIET_TURNS: u32 = 64;

/// How soon to look again whether the driver has still somebody to wake.
pub(super) const SETTLING: Duration = Duration::from_millis(1);

/// A runtime's side of its thread.
#[derive(Debug)]
pub(crate) struct Local {
    shared: Arc<Shared>,
    home: Home,
    mailbox: &'static Mailbox,
    /// Its place in a pool.
    pub(super) seat: Option<Seat>,
    /// That pool, while this thread runs its tasks; null otherwise.
    pub(super) pool: Cell<*const WorkerPool>,
    /// What is to be polled; in a pool, of the pinned tasks.
    pub(super) queue: RunQueue,
    /// All tasks of a local runtime.
    tasks: Registry,
    pub(super) current: Cell<*const Header>,
    /// When a shutdown is over.
    pub(super) until: Cell<Option<Instant>>,
    time: Arc<Time>,
    /// The time of the last look.
    pub(super) now: Cell<u64>,
    /// When the wheel wants to be turned; zero: now; MAX: never.
    pub(super) due: Cell<u64>,
    /// Polls until the next look, and how many there were to be after the last one.
    pub(super) left: Cell<u32>,
    pace: Cell<u32>,
    /// How many looks and searches there have been, to look at another worker each time.
    pub(super) looks: Cell<u32>,
    /// Since the last look the thread has slept: it says nothing about the pace.
    pub(super) has_slept: Cell<bool>,
    /// Operations and what they wait for, by the numbers that the tasks' notes have.
    names: Names,
    /// A join has parked since the last search for circles.
    pub(super) has_new_joins: Cell<bool>,
    circles: Circles,
    /// When to search again; MAX: after the next join that parks.
    pub(super) next_search: Cell<u64>,
    pub(super) before_sleep: BeforeSleep,
}

/// The builder's [`OnIdle`].
pub(super) struct BeforeSleep(pub(super) OnIdle);

impl core::fmt::Debug for BeforeSleep {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(if self.0.is_some() { "Some(..)" } else { "None" })
    }
}

/// Why there is nothing to go on with.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// Nothing can wake any task any more (in a closed world).
    Deadlock,
    /// The time limit of the run is over.
    Limit,
}

impl Local {
    /// A local runtime's.
    pub(crate) fn new(shared: Arc<Shared>, time: Time, on_deadlock: OnDeadlock, on_idle: OnIdle) -> Local {
        Local::at(None, shared, Arc::new(time), on_deadlock, on_idle)
    }

    /// That of a worker of a pool, whose time is there.
    pub(crate) fn at_post(
        post: &'static Post,
        shared: Arc<Shared>,
        on_deadlock: OnDeadlock,
        on_idle: OnIdle,
    ) -> Option<Local> {
        let time = post.time()?;
        Some(Local::at(Some(post), shared, time, on_deadlock, on_idle))
    }

    fn at(
        post: Option<&'static Post>,
        shared: Arc<Shared>,
        time: Arc<Time>,
        on_deadlock: OnDeadlock,
        on_idle: OnIdle,
    ) -> Local {
        let now = time.wheel().now_ns();
        let (mailbox, home) = match post {
            Some(post) => (&post.mailbox, post.pinned()),
            None => (shared.mailbox(), Home::of_mailbox(shared.mailbox())),
        };
        Local {
            shared,
            home,
            mailbox,
            seat: post.map(Seat::take),
            pool: Cell::new(ptr::null()),
            queue: RunQueue::new(),
            tasks: Registry::default(),
            current: Cell::new(ptr::null()),
            until: Cell::new(None),
            time,
            now: Cell::new(now),
            due: Cell::new(0),
            left: Cell::new(0),
            pace: Cell::new(1),
            looks: Cell::new(0),
            has_slept: Cell::new(true),
            names: Names::new(post.map(|post| post.pool.names())),
            has_new_joins: Cell::new(false),
            circles: Circles::new(on_deadlock),
            next_search: Cell::new(u64::MAX),
            before_sleep: BeforeSleep(on_idle),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    #[inline(always)]
    pub(crate) fn mailbox(&self) -> &'static Mailbox {
        self.mailbox
    }

    /// Of its pinned tasks, if it is a worker's.
    #[inline(always)]
    pub(crate) fn home(&self) -> Home {
        self.home
    }

    /// The pool whose tasks this thread is running.
    #[inline(always)]
    pub(crate) fn pool_in_use(&self) -> *const WorkerPool {
        self.pool.get()
    }

    pub(crate) fn tasks(&self) -> &Registry {
        &self.tasks
    }

    /// How many tasks there are.
    pub(crate) fn count_tasks(&self) -> usize {
        self.seat.as_ref().map_or_else(|| self.tasks.len(), |seat| seat.post.pool.tasks())
    }

    pub(crate) fn current_task(&self) -> *const Header {
        self.current.get()
    }

    /// When the wheel wants to be turned, or the first one of the pool, in ns.
    pub(crate) fn due_ns(&self) -> u64 {
        self.seat.as_ref().map_or(self.due.get(), |seat| seat.post.pool.due())
    }

    pub(crate) fn time(&self) -> &Time {
        &self.time
    }

    /// The time of the last look, in ns.
    pub(crate) fn now_ns(&self) -> u64 {
        self.now.get()
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Runs `f` as this scheduler's thread.
    pub(crate) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        super::with_current(self, || tidegate_wait::context::enter(self.time.wheel(), self, f))
    }

    /// A new task of this thread at the tail of the queue.
    #[inline]
    pub(crate) fn spawn<W: Work>(&self, work: W, spawned: Origin) -> JoinHandle<W::Output> {
        // The registry's and the handle's reference.
        let task = Header::allocate(work, self.home, spawned, 2);
        // SAFETY: just made; the handle's reference is handed on.
        unsafe {
            match &self.seat {
                None => {
                    self.tasks.insert(task.as_ptr());
                    self.push(task.as_ptr());
                }
                Some(seat) => {
                    seat.post.remember(task.as_ptr());
                    self.push_pinned(task.as_ptr());
                }
            }
            JoinHandle::from_raw(task)
        }
    }

    /// A new task, which any thread of a pool may run.
    ///
    /// # Safety
    /// Work and output are `Send`.
    #[inline]
    pub(crate) unsafe fn spawn_shared<W: Work>(&self, work: W, spawned: Origin) -> JoinHandle<W::Output> {
        if self.shared.was_shut() {
            return self.shared.refuse(work, spawned, JoinError::Shutdown);
        }
        let Some(seat) = &self.seat else { return self.spawn(work, spawned) };
        let task = Header::allocate(work, seat.post.shared(), spawned, 2);
        // SAFETY: just made, SCHEDULED; the handle's reference is handed on.
        unsafe {
            seat.post.remember(task.as_ptr());
            match self.pool.get().is_null() {
                false => self.push_woken(task.as_ptr()),
                true => seat.post.pool.inject(task.as_ptr()),
            }
            JoinHandle::from_raw(task)
        }
    }

    /// Appends a woken task.
    ///
    /// # Safety
    /// On this thread; the caller has set SCHEDULED; not COMPLETE.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, task: *const Header) {
        // SAFETY: the caller's promise: S1, and the registry's reference.
        unsafe {
            (*task).wait.set(QUEUED);
            self.queue.push(task);
        }
    }

    /// [`Local::spawn`], unless the runtime is shut.
    #[inline]
    pub(crate) fn spawn_checked<W: Work>(&self, work: W, spawned: Origin) -> JoinHandle<W::Output> {
        match self.shared.was_shut() {
            false => self.spawn(work, spawned),
            true => self.shared.refuse(work, spawned, JoinError::Shutdown),
        }
    }

    /// Drops every task, and leaves the mailbox to the next runtime. Afterwards nothing else may be called.
    pub(crate) fn tear_down(&self) {
        // Shut: nothing is spawned any more. What was is taken over, so that it ends.
        self.take_mail();
        while let Some(task) = self.tasks.first() {
            // SAFETY: registered.
            unsafe { self.cancel(task, JoinError::Shutdown) };
        }
        while let Some(task) = self.queue.pop() {
            // SAFETY: complete, and its reference was left to the queue (S4).
            unsafe { Header::release(task) };
        }
        self.mailbox.close();
        self.mailbox.give_back();
    }

    /// Takes over what other threads have woken or spawned. (A worker does so in its round.)
    #[inline]
    pub(crate) fn take_mail(&self) {
        if self.seat.is_some() || !self.mailbox.has_tasks() {
            return;
        }
        self.mailbox.drain(|task| {
            // SAFETY: X2: its reference is ours now.
            unsafe {
                // COMPLETE: it ended, or its runtime did, while it stood there (X3).
                if !(*task).state.is_complete() {
                    if !(*task).wait.has(REGISTERED) {
                        self.tasks.insert(task);
                    }
                    self.push(task);
                }
                Header::release(task);
            }
        });
    }

    /// Runs tasks until `root` has completed, `limit` (on this scheduler's clock) has come, or nothing can happen any more.
    ///
    /// # Safety
    /// Inside `enter`; the caller has a reference on `root`, or `root` is null: then until there is no task left.
    pub(crate) unsafe fn run(&self, root: *const Header, limit: u64) -> Result<(), Stuck> {
        if self.seat.is_some() {
            // SAFETY: the caller's promise.
            return unsafe { self.work(Some(root), limit) };
        }
        // Whatever time has passed since the last run was not a poll's.
        self.has_slept.set(true);
        self.left.set(0);
        loop {
            let is_done = match root.is_null() {
                true => {
                    self.take_mail();
                    self.tasks.len() == 0
                }
                // SAFETY: the caller's promise.
                false => unsafe { (*root).state.is_complete() },
            };
            if is_done {
                return Ok(());
            }
            if self.left.get() == 0 {
                self.look();
                if self.now.get() >= limit {
                    return Err(Stuck::Limit);
                }
            }
            self.take_mail();
            match self.queue.pop() {
                // SAFETY: what stands in the queue is alive.
                Some(task) => unsafe { self.step(task) },
                None => self.idle(limit)?,
            }
        }
    }

    /// Runs until there is no task left, or until `limit` on this scheduler's clock, which in virtual time, where only
    /// another thread can go on, is `until`.
    ///
    /// # Safety
    /// Inside `enter`.
    pub(crate) unsafe fn run_all(&self, limit: u64, until: Option<Instant>) -> Result<(), Stuck> {
        self.until.set(until);
        // SAFETY: the caller's promise.
        let ended = unsafe { self.run(ptr::null(), limit) };
        self.until.set(None);
        ended
    }

    /// One task that was taken from the queue.
    #[inline(always)]
    unsafe fn step(&self, task: *const Header) {
        self.left.set(self.left.get() - 1);
        // SAFETY: it is ours since it left the queue.
        unsafe { (*task).wait.clear(QUEUED) };
        // SAFETY: alive: the registry's reference, or the one that was left to the queue (S4).
        unsafe {
            match (*task).state.start() {
                Start::Poll => {
                    self.current.set(task);
                    refill(BUDGET);
                    (*task).wait.clear(WAITING);
                    let ended = Header::poll(task);
                    self.current.set(ptr::null());
                    // Wakers and reports have no limit: nobody would go on after their yield.
                    refill(u32::MAX);
                    if ended {
                        self.end(task);
                    }
                }
                Start::Cancel => self.cancel(task, JoinError::Aborted),
                Start::Gone => Header::release(task),
            }
        }
    }

    /// Drops the future of a task that has not completed.
    ///
    /// # Safety
    /// Registered here; not running.
    pub(crate) unsafe fn cancel(&self, task: *const Header, why: JoinError) {
        if self.seat.is_some() {
            // SAFETY: the caller's promise.
            return unsafe { self.end_task(task, why) };
        }
        let before = self.current.replace(task);
        // SAFETY: the caller's promise.
        unsafe {
            Header::cancel(task, why);
            self.current.set(before);
            self.end(task);
        }
    }

    /// A task has ended: its output is there.
    ///
    /// # Safety
    /// As for `cancel`.
    #[inline]
    unsafe fn end(&self, task: *const Header) {
        // SAFETY: the registry's reference is ours now. A task that stands in the queue leaves it there (S4).
        unsafe {
            self.tasks.remove(task);
            Header::complete(task);
            if !(*task).wait.has(QUEUED) {
                Header::release(task);
            }
        }
    }

    /// The wheel wants to be turned earlier than was known.
    pub(crate) fn look_soon(&self) {
        self.due.set(0);
    }

    /// Looks at the clock; wakes what is due; serves requests.
    #[inline(never)]
    pub(super) fn look(&self) {
        let before = self.now.replace(self.time.wheel().now_ns());
        if !self.has_slept.replace(false) {
            // At most twice as many polls as before, if so many take `LOOK_NS`.
            let a_poll = (self.now.get() - before) / u64::from(self.pace.get());
            let fitting = LOOK_NS.checked_div(a_poll).map_or(LOOK, |polls| polls.clamp(1, LOOK.into()) as u32);
            self.pace.set(fitting.min(2 * self.pace.get()));
        }
        self.left.set(self.pace.get());
        if self.mailbox.take_timer() {
            self.due.set(0);
        }
        // Another worker may have turned the wheel, or seen that it should be.
        let due = self.seat.as_ref().map_or(u64::MAX, |seat| seat.post.due());
        if self.due.get().min(due) <= self.now.get() {
            self.turn();
        }
        self.mailbox.serve(self);
    }

    /// Fires all that is due. Work of the wheel that fires nothing is done in part: tasks may go on in between.
    pub(super) fn turn(&self) {
        // A waker may arm a timer that is earlier than what the turn has seen.
        self.due.set(u64::MAX);
        let post = self.seat.as_ref().map(|seat| seat.post);
        if let Some(post) = post {
            post.clear_due();
        }
        let next = Local::turn_wheel(&self.time);
        self.due.set(next.min(self.due.get()));
        if let Some(post) = post {
            post.lower_due(next);
        }
    }

    /// When the wheel wants to be turned next.
    pub(super) fn turn_wheel(time: &Time) -> u64 {
        let mut quiet = 0;
        loop {
            match time.wheel().turn_counting() {
                (Next::More, 0) if quiet == QUIET_TURNS => break 0,
                (Next::More, 0) => quiet += 1,
                (Next::More, _) => {}
                (Next::At(at), _) => break at,
                (Next::Idle, _) => break u64::MAX,
            }
        }
    }

    /// Nothing is runnable: sleeps until something is.
    #[inline(never)]
    fn idle(&self, limit: u64) -> Result<(), Stuck> {
        self.has_slept.set(true);
        if let Time::Virtual(_) = *self.time {
            // Its wheel tells nobody of a timer that is armed; and time does not pass otherwise.
            self.due.set(0);
        }
        self.look();
        if !self.queue.is_empty() || self.mailbox.has_tasks() || self.due.get() == 0 {
            return Ok(());
        }
        if let Some(call) = &self.before_sleep.0 {
            contain(call);
            if !self.queue.is_empty() {
                return Ok(());
            }
        }
        if self.search_circles() {
            return Ok(());
        }
        // Before the mailbox is looked at: whoever is counted here leaves what it wakes before it stops counting.
        let is_open = self.shared.has_outside();
        if self.mailbox.has_tasks() || self.mailbox.has_requests() {
            return Ok(());
        }
        if let (Time::Virtual(clock), false) = (&*self.time, is_open) {
            if limit < self.due.get() {
                return Err(Stuck::Limit);
            }
            if self.due.get() != u64::MAX {
                clock.advance_to_next();
                self.left.set(0);
                return Ok(());
            }
        }
        if !is_open && self.shared.is_closed_world() {
            // The first timer may have been taken out since it was seen.
            self.turn();
            match self.due.get() {
                u64::MAX if self.queue.is_empty() => return self.deadlock(),
                _ if !self.queue.is_empty() => return Ok(()),
                _ => {}
            }
        }
        self.park(limit)
    }

    /// Nothing here can wake any task, and nobody outside was there before.
    #[cold]
    fn deadlock(&self) -> Result<(), Stuck> {
        // In this order: who was outside may have ended because the driver woke it, in the middle of something.
        if is_settling() {
            self.mailbox.parker().park_timeout(SETTLING);
            return Ok(());
        }
        match self.mailbox.has_tasks() || self.mailbox.has_requests() {
            true => Ok(()),
            false => Err(Stuck::Deadlock),
        }
    }

    fn park(&self, limit: u64) -> Result<(), Stuck> {
        self.has_slept.set(true);
        self.left.set(0);
        let parker = self.mailbox.parker();
        match &*self.time {
            Time::System(wheel) => match self.due.get().min(limit).min(self.next_search.get()) {
                u64::MAX => parker.park(),
                until => {
                    let left = until.saturating_sub(wheel.now_ns());
                    if left > 0 {
                        parker.park_timeout(Duration::from_nanos(left));
                    }
                }
            },
            // Only another thread can end this.
            Time::Virtual(_) => match self.until.get() {
                None => parker.park(),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(Stuck::Limit);
                    }
                    parker.park_timeout(left);
                }
            },
        }
        Ok(())
    }

    /// Looks for circles of joins, if it is time. True: one was reported, so look whether something is runnable now.
    pub(super) fn search_circles(&self) -> bool {
        if !self.has_new_joins.get() {
            return false;
        }
        let searched = self.circles.search(self);
        let next = if let Searched::Later(at) = searched { at } else { u64::MAX };
        self.next_search.set(next);
        self.has_new_joins.set(next != u64::MAX);
        searched == Searched::Reported
    }
}

impl Hooks for Local {
    #[inline]
    fn parked(&self, wait: WaitInfo) {
        let task = self.current.get();
        if task.is_null() {
            return;
        }
        let (number, is_join) = self.names.number_of(&wait);
        if is_join {
            match &self.seat {
                None => self.has_new_joins.set(true),
                Some(seat) => seat.post.pool.note_join(),
            }
        }
        // SAFETY: the task is being polled.
        unsafe { (*task).wait.park(&wait, number, self.now.get()) };
    }
}
