//! Threads for code that blocks: a bounded pool with a queue.
//!
//! A job is a task whose future is the closure, polled once, by the pool's thread in the role of the runtime's (S2). It keeps
//! SCHEDULED, so no abort ever queues it at the runtime: an abort only keeps it from beginning.
//!
//! Threads start when a job finds none idle, up to the limit, and end after ten idle seconds.

use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::handle::Shared;
use crate::task::{Header, JoinError, JoinHandle, Origin, Work};

const IDLE: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(crate) struct Pool {
    limit: NonZeroUsize,
    state: Mutex<State>,
    /// A job was queued, or the pool was closed.
    work: Condvar,
    /// A job has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Job>,
    running: BTreeMap<u64, RunningJob>,
    jobs: u64,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

/// A job that has not begun, with the reference of its queue.
#[derive(Debug)]
struct Job(NonNull<Header>);

// SAFETY: the closure is `Send`, and its output.
unsafe impl Send for Job {}

/// A job that is running, for reports.
#[derive(Clone, Debug)]
pub(crate) struct RunningJob {
    /// Its task's address.
    pub(crate) id: usize,
    pub(crate) name: Option<String>,
    pub(crate) spawned: &'static core::panic::Location<'static>,
    pub(crate) since: Instant,
}

/// The closure as work that is done at its first poll.
struct Blocking<F>(Option<F>);

impl<F> Unpin for Blocking<F> {}

impl<F: FnOnce() -> T, T> Work for Blocking<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        let job = self.0.take().expect("a job is polled once");
        Poll::Ready(Ok(job()))
    }
}

impl Pool {
    pub(crate) fn new(limit: NonZeroUsize) -> Pool {
        Pool { limit, state: Mutex::default(), work: Condvar::new(), ended: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Is a job running or queued?
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state();
        !state.running.is_empty() || !state.queue.is_empty()
    }

    /// The jobs that are running, the oldest first, and how many are queued.
    pub(crate) fn jobs(&self) -> (Vec<RunningJob>, usize) {
        let state = self.state();
        (state.running.values().cloned().collect(), state.queue.len())
    }

    pub(crate) fn spawn<F, T>(&self, shared: &Arc<Shared>, job: F, origin: Origin) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let mut state = self.state();
        if state.is_closed {
            drop(state);
            return shared.refuse(Blocking(Some(job)), origin, JoinError::Shutdown);
        }
        if state.idle <= state.queue.len() && state.threads < self.limit.get() {
            match start_thread(shared.clone()) {
                Ok(()) => state.threads += 1,
                Err(_) if state.threads > 0 => {}
                Err(error) => {
                    drop(state);
                    return shared.refuse(Blocking(Some(job)), origin, JoinError::NoThread(error.kind()));
                }
            }
        }
        // The queue's and the handle's reference.
        let task = Header::allocate(Blocking(Some(job)), shared.home(), origin, 2);
        state.queue.push_back(Job(task));
        drop(state);
        self.work.notify_one();
        // SAFETY: just made; the handle's reference is handed on.
        unsafe { JoinHandle::from_raw(task) }
    }

    /// Refuses what is queued and what will be; what is running goes on.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        let queue = core::mem::take(&mut state.queue);
        drop(state);
        self.work.notify_all();
        for job in queue {
            job.end(Some(JoinError::Shutdown));
        }
    }

    /// Waits until no job is running or queued. False: `until` has come before.
    pub(crate) fn wait_idle(&self, until: Option<Instant>) -> bool {
        let mut state = self.state();
        while !state.running.is_empty() || !state.queue.is_empty() {
            state = match until {
                None => self.ended.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    self.ended.wait_timeout(state, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0
                }
            };
        }
        true
    }

    /// The life of one thread.
    fn work(&self, shared: &Shared) {
        let mut state = self.state();
        loop {
            let Some(job) = state.queue.pop_front() else {
                if state.is_closed {
                    break;
                }
                state.idle += 1;
                let (woken, waited) =
                    self.work.wait_timeout(state, IDLE).unwrap_or_else(|poisoned| poisoned.into_inner());
                state = woken;
                state.idle -= 1;
                if waited.timed_out() && state.queue.is_empty() {
                    break;
                }
                continue;
            };
            state.jobs += 1;
            let number = state.jobs;
            state.running.insert(number, job.report());
            drop(state);
            job.end(None);
            state = self.state();
            // After the end: whoever waits for it is in the mailbox by now.
            state.running.remove(&number);
            self.ended.notify_all();
            shared.mailbox().wake();
        }
        state.threads -= 1;
    }
}

fn start_thread(shared: Arc<Shared>) -> std::io::Result<()> {
    let work = move || shared.pool().work(&shared);
    std::thread::Builder::new().name("tidegate-blocking".into()).spawn(work).map(drop)
}

impl Job {
    fn report(&self) -> RunningJob {
        // SAFETY: the queue's reference.
        let spawned = unsafe { &self.0.as_ref().spawned };
        let id = self.0.as_ptr().addr();
        RunningJob { id, name: spawned.name().map(str::to_owned), spawned: spawned.place(), since: Instant::now() }
    }

    /// Runs it, or ends it without.
    fn end(self, why_not: Option<JoinError>) {
        let task = self.0.as_ptr();
        // SAFETY: the queue's reference; this thread stands for the runtime's.
        unsafe {
            let why_not = why_not.or_else(|| (*task).state.is_aborted().then_some(JoinError::Aborted));
            match why_not {
                Some(why) => Header::cancel(task, why),
                None => {
                    let ended = Header::poll(task);
                    debug_assert!(ended, "a job is ready at its first poll");
                }
            }
            Header::complete(task);
            Header::release(task);
        }
    }
}
