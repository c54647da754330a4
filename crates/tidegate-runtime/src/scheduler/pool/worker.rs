//! A worker's round: what it runs next, where it looks for more, and how it sleeps.
//!
//! # What runs next
//! The slot, at most [`IN_ROW`] times in a row; then the deque, from its front. Pinned tasks have every other turn while there
//! are any. The injector comes when nothing else is there, and every [`INJECTED`] turns. A task that yields, or was woken
//! while it ran, goes to the end of the deque: round robin.
//!
//! # When others are woken
//! Filling the empty slot wakes nobody: the task runs here, next, in a warm cache. What the slot held before goes to
//! the deque, and that wakes a sleeper, as whatever else makes a second task.

use core::cell::{Cell, RefCell};
use core::ptr;
use std::time::{Duration, Instant};

use tidegate_wait::context::refill;
use tidegate_wait::shim::{spin_loop, Ordering};

use super::{Deque, Post, WATCH};
use crate::scheduler::local::{Local, Stuck, BUDGET};
use crate::scheduler::wait::WAITING;
use crate::scheduler::Time;
use crate::task::{Header, JoinError, Start};

/// How many tasks a deque holds; half of them go to the injector then. Its memory is kept, so it is bounded; and it is not
/// tight: with 256, 1,000 tasks that take turns would go through the injector's lock.
const FULL: usize = if cfg!(any(loom, miri)) { 4 } else { 4096 };
/// How often in a row the slot may come first.
const IN_ROW: u32 = 3;
/// How often the injector comes first.
const INJECTED: u32 = 61;
/// How many tasks of the injector are taken at once, at most.
const GRAB: usize = 32;
/// How often a searcher goes round before it gives up.
const ROUNDS: u32 = if cfg!(any(loom, miri)) { 1 } else { 4 };

/// A worker's own part of its place.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) post: &'static Post,
    is_searching: Cell<bool>,
    /// How often in a row the slot came first.
    in_row: Cell<u32>,
    polls: Cell<u32>,
    /// How many polls each of the others had had when the watcher last saw a task in its slot.
    seen: RefCell<Vec<Option<u32>>>,
}

impl Seat {
    /// For the thread that sits here from now on, until it says goodbye.
    pub(crate) fn take(post: &'static Post) -> Seat {
        Seat {
            post,
            is_searching: Cell::new(false),
            in_row: Cell::new(0),
            polls: Cell::new(0),
            seen: RefCell::default(),
        }
    }

    #[inline(always)]
    fn deque(&self) -> &Deque {
        &self.post.deque
    }

    fn slot(&self) -> &tidegate_wait::shim::AtomicPtr<Header> {
        &self.post.watched.slot
    }

    fn has_slot(&self) -> bool {
        // Ordering: Relaxed to look; whoever takes the task has the Acquire.
        !self.slot().load(Ordering::Relaxed).is_null()
    }

    /// Takes the task out of the slot.
    fn empty_slot(&self) -> Option<*const Header> {
        take_slot(self.post)
    }

    /// The task in the slot, if it is its turn.
    #[inline(always)]
    fn pop_slot(&self) -> Option<*const Header> {
        if !self.has_slot() {
            return None;
        }
        let in_row = self.in_row.get();
        if in_row == IN_ROW {
            self.in_row.set(0);
            self.empty_slot().into_iter().for_each(|task| self.deque().push(task));
            return None;
        }
        self.in_row.set(in_row + 1);
        self.empty_slot()
    }
}

/// Takes the task out of a slot, which may be another worker's.
pub(super) fn take_slot(post: &Post) -> Option<*const Header> {
    // Ordering: AcqRel: Acquire pairs with Release of who filled it.
    let task = post.watched.slot.swap(ptr::null_mut(), Ordering::AcqRel);
    (!task.is_null()).then_some(task.cast_const())
}

impl Local {
    /// A worker's side of this scheduler. Only in a pool.
    #[inline(always)]
    pub(super) fn seat(&self) -> &Seat {
        self.seat.as_ref().expect("a worker's")
    }

    /// A shared task was woken or spawned by what this worker runs.
    ///
    /// # Safety
    /// On this worker's thread, inside of `work`; the caller has set SCHEDULED; not COMPLETE.
    #[inline(always)]
    pub(crate) unsafe fn push_woken(&self, task: *const Header) {
        // Ordering: AcqRel: Release pairs with Acquire in `take_slot`; Acquire with whoever filled it before.
        let before = self.seat().slot().swap(task.cast_mut(), Ordering::AcqRel);
        match before.is_null() {
            true => self.seat().post.pool.be_watched(0),
            false => self.push_shared(before),
        }
    }

    fn push_shared(&self, task: *const Header) {
        let seat = self.seat();
        if seat.deque().len() >= FULL {
            self.overflow(seat);
        }
        seat.deque().push(task);
        seat.post.pool.notify();
    }

    /// Moves the older half of the deque to the end of the injector.
    #[cold]
    fn overflow(&self, seat: &Seat) {
        let half = core::iter::from_fn(|| seat.deque().pop()).take(FULL / 2);
        // SAFETY: taken out of a queue: SCHEDULED, and alive by W2. While a worker runs, the injector is open.
        let pushed = unsafe { seat.post.pool.injector.append(half) };
        debug_assert!(pushed, "the injector is closed by the last worker");
    }

    /// A pinned task of this thread.
    ///
    /// # Safety
    /// On its thread; the caller has set SCHEDULED.
    #[inline(always)]
    pub(crate) unsafe fn push_pinned(&self, task: *const Header) {
        // SAFETY: the caller's promise; W2.
        unsafe { self.queue.push(task) }
    }

    /// A task that yielded, or was woken while it ran.
    unsafe fn requeue(&self, task: *const Header) {
        let seat = self.seat();
        // SAFETY: the caller had RUNNING and has found SCHEDULED.
        unsafe {
            if (*task).home == self.home() {
                return self.push_pinned(task);
            }
        }
        // Alone, it is the next to run here: nobody else is needed.
        match seat.deque().is_empty() && !seat.has_slot() {
            true => seat.deque().push(task),
            false => self.push_shared(task),
        }
    }

    /// Runs tasks until `root` has completed (null: until there is none left, for a shutdown), `limit` has come, nothing
    /// can happen any more, or, on a thread of the pool's own (`None`), until it is to leave.
    ///
    /// # Safety
    /// Inside `enter`; the caller has a reference on `root`.
    pub(crate) unsafe fn work(&self, root: Option<*const Header>, limit: u64) -> Result<(), Stuck> {
        let seat = self.seat();
        self.has_slept.set(true);
        self.left.set(0);
        seat.post.pool.idle.join();
        self.pool.set(seat.post.pool);
        // SAFETY: the caller's promise.
        let ended = unsafe { self.rounds(seat, root, limit) };
        self.stand_up(seat);
        ended
    }

    unsafe fn rounds(&self, seat: &Seat, root: Option<*const Header>, limit: u64) -> Result<(), Stuck> {
        let pool = seat.post.pool;
        loop {
            let is_done = match root {
                None => false,
                // All shards are locked for that: not at every turn.
                Some(root) if root.is_null() => self.left.get() == 0 && pool.tasks() == 0,
                // SAFETY: the caller's promise.
                Some(root) => unsafe { (*root).state.is_complete() },
            };
            if is_done {
                return Ok(());
            }
            if self.left.get() == 0 {
                self.look();
                self.look_around(seat, false);
                if self.now.get() >= limit {
                    return Err(Stuck::Limit);
                }
                if root.is_none() && self.is_dismissed(seat) {
                    return Ok(());
                }
            }
            self.take_pinned(seat);
            let task = match self.next(seat) {
                Some(task) => Some(task),
                None => self.rest(seat, root.is_some(), limit)?,
            };
            if let Some(task) = task {
                if seat.is_searching.get() {
                    self.found(seat);
                }
                // SAFETY: it was taken from a queue.
                unsafe { self.run_one(seat, task) };
            }
        }
    }

    /// Leaves the round; what is left here is for the others.
    fn stand_up(&self, seat: &Seat) {
        let pool = seat.post.pool;
        self.pool.set(ptr::null());
        self.found(seat);
        seat.empty_slot().into_iter().for_each(|task| seat.deque().push(task));
        pool.idle.leave();
        if pool.has_work() {
            pool.notify();
        }
        // All others may be asleep by now.
        pool.tell_root();
    }

    /// Is this thread to leave? Not before its pinned tasks have ended, unless all are to.
    fn is_dismissed(&self, seat: &Seat) -> bool {
        let pool = seat.post.pool;
        pool.is_stopping() || (seat.post.index >= pool.target() && seat.post.shard.lock().pinned.len() == 0)
    }

    /// Takes over what other threads have woken.
    #[inline]
    fn take_pinned(&self, seat: &Seat) {
        if seat.post.mailbox.has_tasks() {
            // SAFETY: SCHEDULED, and alive by W2.
            seat.post.mailbox.drain(|task| unsafe { self.push_pinned(task) });
        }
    }

    #[inline]
    fn next(&self, seat: &Seat) -> Option<*const Header> {
        let turn = seat.polls.get().wrapping_add(1);
        seat.polls.set(turn);
        if turn % INJECTED == 0 {
            if let Some(task) = self.take_injected(seat) {
                return Some(task);
            }
        }
        if turn & 1 == 0 {
            if let Some(task) = self.queue.pop() {
                return Some(task);
            }
        }
        if let Some(task) = seat.pop_slot() {
            return Some(task);
        }
        seat.in_row.set(0);
        seat.deque().pop().or_else(|| self.queue.pop()).or_else(|| self.take_injected(seat))
    }

    fn take_injected(&self, seat: &Seat) -> Option<*const Header> {
        let pool = seat.post.pool;
        pool.injector.take(pool.target(), GRAB, |task| seat.deque().push(task))
    }

    /// One task that was taken from a queue.
    #[inline(always)]
    unsafe fn run_one(&self, seat: &Seat, task: *const Header) {
        self.left.set(self.left.get().saturating_sub(1));
        // Ordering: Relaxed; the watcher compares it with what it saw half a millisecond ago.
        seat.post.watched.polls.store(seat.polls.get(), Ordering::Relaxed);
        // SAFETY: the entry is ours: W2; from `claim_queued` on, RUNNING is.
        unsafe {
            match (*task).state.claim_queued() {
                Start::Poll => {
                    self.current.set(task);
                    refill(BUDGET);
                    (*task).wait.clear(WAITING);
                    let ended = Header::poll_pooled(task);
                    self.current.set(ptr::null());
                    refill(u32::MAX);
                    match ended {
                        true => self.end_pooled(task),
                        false if (*task).state.pause() => self.requeue(task),
                        false => {}
                    }
                }
                Start::Cancel => self.cancel_pooled(task, JoinError::Aborted),
                Start::Gone => Header::release(task),
            }
        }
    }

    /// Drops the future of a task that has not completed.
    ///
    /// # Safety
    /// The caller has RUNNING.
    pub(super) unsafe fn cancel_pooled(&self, task: *const Header, why: JoinError) {
        let before = self.current.replace(task);
        // SAFETY: the caller's promise.
        unsafe {
            Header::cancel(task, why);
            self.current.set(before);
            self.end_pooled(task);
        }
    }

    /// A task has ended: its output is there.
    ///
    /// # Safety
    /// As for `cancel_pooled`.
    unsafe fn end_pooled(&self, task: *const Header) {
        // SAFETY: the registry's reference is ours now.
        unsafe {
            Header::complete(task);
            let home = (*task).home;
            home.post().forget(task);
            Header::release(task);
            home.post().pool.tell_drained();
        }
    }

    /// Turns the wheels of other workers that are due: one of them, or all.
    fn look_around(&self, seat: &Seat, all: bool) {
        let pool = seat.post.pool;
        if let Time::Virtual(_) = self.time() {
            return;
        }
        let due = |post: &Post| post.index != seat.post.index && post.due() <= self.now.get();
        if all {
            pool.posts().filter(|post| due(post)).for_each(|post| self.turn_for(post));
        } else {
            let looks = self.looks.replace(self.looks.get().wrapping_add(1));
            let one = pool.post(looks as usize % pool.len());
            if due(one) {
                self.turn_for(one);
            }
        }
    }

    /// Turns the wheel of another worker: P5.
    pub(super) fn turn_for(&self, post: &Post) {
        if let Some(time) = post.time() {
            post.clear_due();
            post.lower_due(Local::turn_wheel(&time));
        }
    }

    fn found(&self, seat: &Seat) {
        let pool = seat.post.pool;
        if seat.is_searching.replace(false) && pool.idle.end_search() {
            pool.notify();
        }
    }

    /// Takes work from others, if not too many are at that already.
    fn search(&self, seat: &Seat) -> Option<*const Header> {
        let pool = seat.post.pool;
        if !seat.is_searching.get() {
            if !pool.idle.begin_search(pool.target()) {
                return None;
            }
            seat.is_searching.set(true);
        }
        let others = pool.len();
        for round in 0..ROUNDS {
            if let Some(task) = self.take_injected(seat) {
                return Some(task);
            }
            // All of them, whichever comes first: it may be this one, which is left out below.
            for step in 0..others {
                let victim = pool.post((seat.post.index + step + self.looks.get() as usize) % others);
                if victim.index != seat.post.index {
                    if let Some(task) = victim.thief.steal_half(seat.deque()) {
                        return Some(task);
                    }
                }
            }
            self.looks.set(self.looks.get().wrapping_add(1));
            (0..16 << round).for_each(|_| spin_loop());
        }
        None
    }

    /// Is there something that only this thread can do, or that it holds?
    pub(super) fn has_own_work(&self, seat: &Seat) -> bool {
        let mailbox = &seat.post.mailbox;
        !self.queue.is_empty()
            || mailbox.has_tasks()
            || mailbox.has_requests()
            || mailbox.has_timer()
            || self.due.get() == 0
            || seat.has_slot()
            || !seat.deque().is_empty()
    }

    /// Nothing is runnable here: finds work elsewhere, or sleeps until there is some.
    #[inline(never)]
    fn rest(&self, seat: &Seat, is_root: bool, limit: u64) -> Result<Option<*const Header>, Stuck> {
        let pool = seat.post.pool;
        self.has_slept.set(true);
        self.look();
        self.look_around(seat, true);
        // Whatever ends the rest: the clock, and whether this thread is to leave, is looked at next.
        self.left.set(0);
        if self.has_own_work(seat) {
            return Ok(None);
        }
        if let Some(task) = self.search(seat) {
            return Ok(Some(task));
        }
        let all = pool.idle.go_to_bed(seat.post.index, seat.is_searching.replace(false));
        let has_work = pool.has_work();
        if has_work || self.has_own_work(seat) || self.is_dismissed(seat) {
            self.get_up(seat, has_work);
            return Ok(None);
        }
        if all && !is_root {
            pool.tell_root();
        }
        if let Time::System(_) = self.time() {
            pool.be_watched(pool.due());
        }
        let ended = self.sleep(seat, is_root, limit);
        self.has_slept.set(true);
        ended.map(|()| None)
    }

    /// In bed: until there is a reason to get up.
    fn sleep(&self, seat: &Seat, is_root: bool, limit: u64) -> Result<(), Stuck> {
        let pool = seat.post.pool;
        loop {
            if is_root {
                self.now.set(self.time().wheel().now_ns());
                match self.coordinate(seat, limit) {
                    Ok(false) => {}
                    Ok(true) => break,
                    Err(stuck) => {
                        self.get_up(seat, false);
                        return Err(stuck);
                    }
                }
            }
            let until = self.wake_time(seat, is_root, limit);
            if let Some(stuck) = self.doze(seat, until) {
                self.get_up(seat, false);
                return Err(stuck);
            }
            if !pool.idle.is_asleep(seat.post.index) {
                seat.is_searching.set(true);
                return Ok(());
            }
            let now = self.time().wheel().now_ns();
            let is_over = is_root && (now >= limit || pool.is_drained());
            if is_over || self.has_own_work(seat) || self.is_dismissed(seat) || self.sees_work(seat, now) {
                break;
            }
        }
        self.get_up(seat, pool.has_work());
        Ok(())
    }

    fn get_up(&self, seat: &Seat, to_search: bool) {
        let pool = seat.post.pool;
        match pool.idle.get_up(seat.post.index, to_search) {
            Err(()) => seat.is_searching.set(true),
            Ok(new_watcher) => {
                seat.is_searching.set(to_search);
                new_watcher.into_iter().for_each(|worker| pool.post(worker).mailbox.wake());
            }
        }
    }

    /// When to look again, in ns on the scheduler's clock: D2.
    fn wake_time(&self, seat: &Seat, is_root: bool, limit: u64) -> u64 {
        let pool = seat.post.pool;
        let soon = self.time().wheel().now_ns().saturating_add(WATCH);
        // A search is put off to when a timer is due: the watcher, who may be another, is on it then.
        let own = if is_root { limit.min(self.next_search.get().max(soon)) } else { u64::MAX };
        let due = || if let Time::System(_) = self.time() { pool.due() } else { u64::MAX };
        own.min(pool.idle.plan(seat.post.index, due, soon))
    }

    /// Sleeps until `until`, or a wake.
    fn doze(&self, seat: &Seat, until: u64) -> Option<Stuck> {
        let parker = seat.post.mailbox.parker();
        let now = self.time().wheel().now_ns();
        if let (Time::Virtual(_), Some(end)) = (self.time(), self.until.get()) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(Stuck::Limit);
            }
            parker.park_timeout(left.min(Duration::from_nanos(WATCH)));
            return None;
        }
        match until {
            u64::MAX => parker.park(),
            until if until > now => {
                parker.park_timeout(Duration::from_nanos(until - now));
            }
            _ => {}
        }
        None
    }

    /// What the watcher looks after: D2.
    fn sees_work(&self, seat: &Seat, now: u64) -> bool {
        let pool = seat.post.pool;
        if !pool.idle.is_watcher(seat.post.index) {
            return false;
        }
        let is_due = matches!(self.time(), Time::System(_)) && pool.due() <= now;
        is_due || pool.has_work() || self.rescue(seat)
    }

    /// Takes over what stands in the slot of a worker that has not ended its poll since the last look.
    fn rescue(&self, seat: &Seat) -> bool {
        let mut seen = seat.seen.borrow_mut();
        let mut has_found = false;
        for post in seat.post.pool.posts().filter(|post| post.index != seat.post.index) {
            if seen.len() <= post.index {
                seen.resize(post.index + 1, None);
            }
            // Ordering: Relaxed; a guess. `take_slot` has the Acquire.
            let polls = post.watched.polls.load(Ordering::Relaxed);
            let has_task = !post.watched.slot.load(Ordering::Relaxed).is_null();
            let before = core::mem::replace(&mut seen[post.index], has_task.then_some(polls));
            if has_task && before == Some(polls) {
                if let Some(task) = take_slot(post) {
                    seat.deque().push(task);
                    has_found = true;
                }
            }
        }
        has_found
    }
}
