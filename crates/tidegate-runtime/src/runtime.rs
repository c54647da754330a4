//! The runtime as its owner has it.

use core::future::Future;
use core::panic::Location;
use core::pin::{pin, Pin};
use core::task::{Context, Poll};
use std::time::{Duration, Instant};

use tidegate_wait::cancel::CancelToken;

use crate::builder::Builder;
use crate::dump::Dump;
use crate::error::{BuildError, RunError, Unfinished};
use crate::handle::Handle;
use crate::scheduler::{self, Local, Time};
use crate::task::{JoinError, JoinHandle, Origin, Plain};

/// A runtime, on the thread that made it: with one thread, that one, which polls tasks only inside [`Runtime::block_on`]; or
/// with a pool of them ([`Builder::threads`]).
///
/// Dropped, it drops every task, with its values, and refuses blocking jobs that have not begun; those that run go on
/// without it. (A pool's thread that is in the middle of a poll is waited for, for a second at most; then it drops
/// what is left when that poll returns.) [`Runtime::shutdown`] lets them end.
///
/// ```
/// use std::time::Duration;
/// use tidegate_runtime::{spawn, Runtime};
/// use tidegate_wait::timer::sleep;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rt = Runtime::new()?;
/// let answer = rt.block_on(async {
///     let slow = spawn(async {
///         sleep(Duration::from_millis(5)).await;
///         42
///     });
///     slow.await
/// })??;
/// assert_eq!(answer, 42);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Runtime {
    local: Local,
    token: CancelToken,
    /// For so long the end waits for polls that are running.
    patience: Duration,
}

/// How long a runtime's drop waits for polls on other threads.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same, when a shutdown's time is over.
const LITTLE_PATIENCE: Duration = Duration::from_millis(100);

/// The future of `block_on`, which stands on the stack, as a task.
struct Root<F>(*mut F);

impl<F: Future> Future for Root<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let future = self.0;
        // SAFETY: `block_on` has pinned it, and keeps it until this task has ended.
        unsafe { Pin::new_unchecked(&mut *future) }.poll(cx)
    }
}

/// The task of [`Root`]. It ends with the call, however that ends: the future that it points to goes then.
struct RootTask<'l, T> {
    local: &'l Local,
    handle: JoinHandle<T>,
}

impl<T> Drop for RootTask<'_, T> {
    fn drop(&mut self) {
        if !self.handle.is_finished() {
            // SAFETY: it has not completed, so it is registered.
            unsafe { self.local.cancel(self.handle.as_ptr(), JoinError::Aborted) };
        }
    }
}

impl Runtime {
    pub(crate) fn of(local: Local) -> Runtime {
        Runtime { local, token: CancelToken::new(), patience: PATIENCE }
    }

    /// What differs from [`Runtime::new`].
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// A runtime as the builder makes it without being told anything.
    ///
    /// # Errors
    /// [`BuildError::TooManyWheels`]: 511 timer wheels are alive: each runtime and manual clock has one,
    /// and all other threads share 16 at most.
    pub fn new() -> Result<Runtime, BuildError> {
        Builder::new().build()
    }

    /// The runtime for other threads.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(self.local.shared().clone())
    }

    /// Cancelled when the runtime begins to shut down ([`Runtime::shutdown`]). Tasks that wait under it end then.
    #[must_use]
    pub fn token(&self) -> &CancelToken {
        &self.token
    }

    /// Spawns a task that runs in the next `block_on`, on this thread. It need not be `Send`.
    #[track_caller]
    pub fn spawn<F: Future + 'static>(&self, future: F) -> JoinHandle<F::Output> {
        // What handles have spawned before comes before.
        self.local.take_mail();
        self.local.spawn(Plain(future), Origin::new(Location::caller()))
    }

    /// Runs `future`, and all tasks beside it, until the future has ended. Tasks that have not ended go on in the next
    /// call.
    ///
    /// # Errors
    /// [`RunError::Deadlock`]: in a closed world ([`Builder::closed_world`]), nothing can wake any task any more.
    /// [`RunError::Nested`]: this thread is running a task. The future is dropped.
    ///
    /// # Panics
    /// As the future does.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> Result<F::Output, RunError> {
        if scheduler::current().is_some() {
            return Err(RunError::Nested);
        }
        let origin = Origin::named("block_on".into(), Location::caller());
        let ended = self.local.enter(|| {
            let mut future = pin!(future);
            // SAFETY: only the task below uses the pointer, and it ends before `future` does.
            let root = Root(unsafe { core::ptr::from_mut(future.as_mut().get_unchecked_mut()) });
            self.local.take_mail();
            let root = RootTask { local: &self.local, handle: self.local.spawn(Plain(root), origin) };
            // SAFETY: inside `enter`; the handle has a reference.
            match unsafe { self.local.run(root.handle.as_ptr(), u64::MAX) } {
                Ok(()) => Ok(root.handle.take_output()),
                Err(_) => Err(RunError::Deadlock(Box::new(Dump::of(&self.local)))),
            }
        })?;
        match ended {
            Ok(output) => Ok(output),
            Err(JoinError::Panicked(panic)) => std::panic::resume_unwind(panic.into_payload()),
            Err(error) => unreachable!("nobody has a handle to abort the task of `block_on`: {error}"),
        }
    }

    /// Cancels [`Runtime::token`], refuses the tasks that are spawned from now on, and runs until every task and every blocking
    /// job has ended, also those that have not begun, for at most `limit` ([`Duration::MAX`]: for ever). What has not ended then is dropped; a blocking job that is
    /// running goes on without the runtime.
    ///
    /// # Errors
    /// [`Unfinished`] lists what had not ended.
    ///
    /// # Panics
    /// Inside a task of a runtime on this thread: the tasks could not go on.
    #[track_caller]
    pub fn shutdown(mut self, limit: Duration) -> Result<(), Unfinished> {
        assert!(scheduler::current().is_none(), "shutdown inside of a task would keep its tasks from running");
        let until = Instant::now().checked_add(limit);
        self.local.shared().shut();
        if let Some(workers) = self.local.shared().workers() {
            workers.drain();
        }
        self.token.cancel_with("the runtime is shut down");
        let stuck = self.local.enter(|| {
            let now = self.local.time().wheel().now_ns();
            let end = u64::try_from(limit.as_nanos()).map_or(u64::MAX, |limit| now.saturating_add(limit));
            // SAFETY: inside `enter`.
            unsafe { self.local.run_all(end, until) }.err()
        });
        let jobs_ended = self.local.shared().pool().wait_idle(until);
        match (stuck, jobs_ended) {
            (None, true) => Ok(()),
            _ => {
                // Its time is over: only for those that can leave at once.
                self.patience = LITTLE_PATIENCE;
                Err(Unfinished { dump: Dump::of(&self.local) })
            }
        }
    }

    /// Runs `f` with the runtime's clock moved by a test. `None` without [`Builder::virtual_time`].
    pub fn advance(&self, step: Duration) -> Option<()> {
        match self.local.time() {
            Time::System(_) => None,
            Time::Virtual(clock) => {
                self.local.enter(|| clock.advance(step));
                Some(())
            }
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.local.shared().shut();
        self.local.shared().pool().close();
        if let Some(workers) = self.local.shared().workers() {
            workers.stop();
            workers.wait_alone(Instant::now().checked_add(self.patience));
            // SAFETY: inside `enter`, outside of `block_on`; the last thing that is called.
            let _gone = self.local.enter(|| unsafe { self.local.say_goodbye() });
            return;
        }
        self.local.enter(|| self.local.tear_down());
    }
}
