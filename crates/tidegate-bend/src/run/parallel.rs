//! Parallel lets on several threads.
//!
//! A machine evaluates the sides of a parallel let one after the other, like anything else. It only notes, in a *record*,
//! which sides have not begun. At a beat (every few thousand calls) it looks whether another thread wants work; then the
//! outermost record with sides that have not begun gives them away as *jobs*. So a let costs a push and a pop, however
//! small its sides are; what is given away is the largest piece that there is; and at most one piece a beat goes.
//!
//! When the machine comes to a side that was given away, it takes it back if nobody has begun it, takes the result if it
//! is there, and otherwise works on other jobs until it is.
//!
//! # Why waiting ends
//! Who waits for a job waits for one that another thread is running, and jobs wait for jobs that were made later than
//! they began. A circle of waits (job A waits for B, which is buried on a thread's stack under C, which waits for D, buried
//! under A) would need each to have begun before the one before it. So the running job that began last waits for nobody.
//!
//! Reference: Acar, Charguéraud, Guatto, Rainey and Sieczkowski, "Heartbeat scheduling", PLDI 2018.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::code::{Code, Operand};
use super::machine::{Exit, Machine};
use super::value::Value;
use super::Failure;

/// How many machines may wait on one thread's stack.
const MAX_NESTING: u32 = 64;
/// How long a waiting machine sleeps before it looks for other work again.
const NAP: Duration = Duration::from_micros(100);
/// The stack of a thread: room for so many machines.
const STACK: usize = 8 << 20;

/// A parallel let under way.
#[derive(Debug)]
pub(super) struct Record {
    fork: u32,
    base: u32,
    /// The first side that has not begun.
    next: u32,
    /// The first side that was given away, and its job and those after it.
    given: u32,
    jobs: Vec<Arc<Job>>,
}

/// A side that was given away.
#[derive(Debug)]
pub(super) struct Job {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Debug)]
enum State {
    /// Nobody has begun it: its unit and arguments.
    New(u32, Vec<Value>),
    Running,
    Done(Result<Value, Failure>),
    /// Its result was taken.
    Over,
}

/// The threads that help, and the jobs that they may take.
#[derive(Debug)]
pub(crate) struct Pool {
    code: Arc<Code>,
    /// How many threads there may be, beside the one that runs actions.
    helpers: usize,
    queue: Mutex<Queue>,
    work: Condvar,
    /// How many jobs stand in the queue, to look at.
    queued: AtomicUsize,
    /// The run is over.
    is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Arc<Job>>,
    threads: Vec<JoinHandle<()>>,
}

/// Whoever made the pool; its threads end with it.
#[derive(Debug)]
pub(crate) struct PoolOwner(Arc<Pool>);

impl Job {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Begins it. `None`: somebody has.
    fn begin(&self) -> Option<(u32, Vec<Value>)> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Running) {
            State::New(unit, arguments) => Some((unit, arguments)),
            other => {
                *state = other;
                None
            }
        }
    }

    fn finish(&self, result: Result<Value, Failure>) {
        *self.state() = State::Done(result);
        self.done.notify_all();
    }

    fn result(&self) -> Option<Result<Value, Failure>> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Over) {
            State::Done(result) => Some(result),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Waits a little for the result.
    fn nap(&self) {
        let state = self.state();
        if matches!(*state, State::Running) {
            let _woken = self.done.wait_timeout(state, NAP);
        }
    }

    /// Runs it here, unless somebody has begun it.
    fn run(&self, machine: &mut Machine, code: &Code) {
        let Some((unit, arguments)) = self.begin() else { return };
        let begun = Begun(self);
        machine.begin(code, unit, arguments);
        let result = match machine.run(code) {
            Ok(Exit::Done(value)) => Ok(value),
            Ok(Exit::Effect(_)) => Err(Failure::internal("an effect in a side of a parallel let")),
            Err(failure) => Err(failure),
        };
        std::mem::forget(begun);
        self.finish(result);
    }
}

/// A job that somebody runs. A panic there is a fault of ours; whoever waits for the result must not wait for ever.
struct Begun<'a>(&'a Job);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.finish(Err(Failure::internal("a panic in a side of a parallel let")));
    }
}

impl PoolOwner {
    /// For `threads` in all. `None`: one thread needs no pool.
    pub(crate) fn new(threads: usize, code: &Arc<Code>) -> Option<PoolOwner> {
        (threads > 1).then(|| {
            PoolOwner(Arc::new(Pool {
                code: code.clone(),
                helpers: threads - 1,
                queue: Mutex::default(),
                work: Condvar::new(),
                queued: AtomicUsize::new(0),
                is_over: AtomicBool::new(false),
            }))
        })
    }

    pub(crate) fn pool(&self) -> Arc<Pool> {
        self.0.clone()
    }
}

impl Drop for PoolOwner {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        // Ordering: Relaxed; the threads look at it under the lock before they sleep, and at every beat.
        self.0.is_over.store(true, Ordering::Relaxed);
        let threads = std::mem::take(&mut queue.threads);
        drop(queue);
        self.0.work.notify_all();
        for thread in threads {
            // One that panicked has said so.
            let _ended = thread.join();
        }
    }
}

impl Pool {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn is_over(&self) -> bool {
        // Ordering: Relaxed; nothing else is read because of it.
        self.is_over.load(Ordering::Relaxed)
    }

    /// Would another job be begun soon?
    fn wants_work(&self) -> bool {
        // Ordering: Relaxed; a guess.
        self.queued.load(Ordering::Relaxed) < self.helpers
    }

    /// Leaves jobs for whoever has time. A thread starts if there are fewer than allowed.
    fn give(self: &Arc<Pool>, jobs: &[Arc<Job>]) {
        let mut queue = self.queue();
        queue.jobs.extend(jobs.iter().cloned());
        // Ordering: Relaxed; a guess, made right under the lock.
        self.queued.store(queue.jobs.len(), Ordering::Relaxed);
        if queue.threads.len() < self.helpers {
            let pool = self.clone();
            let thread = std::thread::Builder::new().name(String::from("bend-parallel")).stack_size(STACK);
            // Without it the jobs are taken back: slower, not wrong.
            queue.threads.extend(thread.spawn(move || pool.help()));
        }
        drop(queue);
        self.work.notify_one();
    }

    /// The oldest job: the largest piece.
    fn take(&self) -> Option<Arc<Job>> {
        let mut queue = self.queue();
        let job = queue.jobs.pop_front();
        // Ordering: as in `give`.
        self.queued.store(queue.jobs.len(), Ordering::Relaxed);
        job
    }

    /// The life of a thread.
    fn help(self: Arc<Pool>) {
        let mut machine = Machine::new(Some(self.clone()));
        loop {
            if let Some(job) = self.take() {
                job.run(&mut machine, &self.code);
                continue;
            }
            let queue = self.queue();
            if self.is_over() {
                return;
            }
            if queue.jobs.is_empty() {
                drop(self.work.wait(queue));
            }
        }
    }
}

impl Machine {
    /// What a machine does at a beat.
    #[cold]
    pub(super) fn look_around(&mut self, code: &Code) -> Result<(), Failure> {
        let Some(pool) = &self.pool else { return Ok(()) };
        if pool.is_over() {
            return Err(Failure::Stopped);
        }
        if pool.wants_work() {
            let pool = pool.clone();
            self.offer(code, &pool);
        }
        Ok(())
    }

    /// Gives the sides of the outermost let away that have not begun.
    fn offer(&mut self, code: &Code, pool: &Arc<Pool>) {
        while let Some(record) = self.records.get(self.offered) {
            let at = self.offered;
            self.offered += 1;
            let (base, next) = (record.base, record.next);
            let sides = &code.forks[record.fork as usize].sides;
            if next as usize >= sides.len() {
                continue;
            }
            let jobs: Vec<Arc<Job>> = sides[next as usize..]
                .iter()
                .map(|side| {
                    let words = code.list(side.arguments).iter();
                    let arguments = words.map(|&word| self.read_at(code, base, Operand(word))).collect();
                    Arc::new(Job { state: Mutex::new(State::New(side.unit, arguments)), done: Condvar::new() })
                })
                .collect();
            pool.give(&jobs);
            self.records[at].given = next;
            self.records[at].jobs = jobs;
            return;
        }
    }

    /// Begins a parallel let.
    #[inline]
    pub(super) fn open_record(&mut self, code: &Code, fork: u32) {
        if self.pool.is_some() {
            let given = code.forks[fork as usize].sides.len() as u32;
            self.records.push(Record { fork, base: self.base(), next: 0, given, jobs: Vec::new() });
        }
    }

    /// The turn of a side: its job, if it was given away.
    #[inline]
    pub(super) fn take_side(&mut self, code: &Code, fork: u32, side: u32) -> Option<Arc<Job>> {
        let record = self.records.last_mut()?;
        record.next = side + 1;
        let job = side.checked_sub(record.given).map(|at| record.jobs[at as usize].clone());
        if record.next as usize == code.forks[fork as usize].sides.len() {
            self.records.pop();
            self.offered = self.offered.min(self.records.len());
        }
        job
    }

    /// Comes to a side that was given away.
    pub(super) fn join_side(&mut self, code: &Code, job: &Job, to: u32) -> Result<(), Failure> {
        if let Some((unit, arguments)) = job.begin() {
            return self.call_with(code, to, unit, arguments);
        }
        loop {
            if let Some(result) = job.result() {
                self.put(to, result?);
                return Ok(());
            }
            let pool = self.pool.clone().ok_or(Failure::Stopped)?;
            if pool.is_over() {
                return Err(Failure::Stopped);
            }
            let may_nest = self.nesting < MAX_NESTING;
            match may_nest.then(|| pool.take()).flatten() {
                Some(other) => {
                    let mut machine = Machine::new(Some(pool));
                    machine.nesting = self.nesting + 1;
                    other.run(&mut machine, code);
                }
                None => job.nap(),
            }
        }
    }
}
