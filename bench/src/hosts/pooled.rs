//! Runtimes with two threads, behind one trait: tasks that any of the threads may run.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::harness::Failure;
use crate::loads::runtimes;

/// A runtime with two threads, as its own documentation says to use it. Everything runs in its tasks.
pub(crate) trait Pooled: 'static {
    const NAME: &'static str;
    type Handle<T: Send + 'static>: Send + 'static;

    /// Makes a runtime, runs `future` as a task, and drops the runtime.
    fn run<F>(future: F) -> Result<F::Output, Failure>
    where
        F: Future + Send + 'static,
        F::Output: Send;

    fn spawn<F>(future: F) -> Self::Handle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send;

    fn join<T: Send + 'static>(handle: Self::Handle<T>) -> impl Future<Output = T> + Send;

    fn yield_now() -> impl Future<Output = ()> + Send;

    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send + 'static;
}

pub(crate) struct Tidegate;

impl Pooled for Tidegate {
    const NAME: &'static str = "tidegate";
    type Handle<T: Send + 'static> = tidegate_runtime::JoinHandle<T>;

    fn run<F>(future: F) -> Result<F::Output, Failure>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let failure = |error: &dyn ToString| Failure::new(error.to_string());
        let runtime = tidegate_runtime::Runtime::builder().threads(2).build().map_err(|error| failure(&error))?;
        runtime
            .block_on(async { tidegate_runtime::spawn(future).await })
            .map_err(|error| failure(&error))?
            .map_err(|error| failure(&error))
    }

    fn spawn<F>(future: F) -> Self::Handle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        tidegate_runtime::spawn(future)
    }

    async fn join<T: Send + 'static>(handle: Self::Handle<T>) -> T {
        handle.await.expect("the task ends by itself")
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tidegate_runtime::yield_now()
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        tidegate_wait::timer::sleep(duration)
    }
}

pub(crate) struct Tokio;

impl Pooled for Tokio {
    const NAME: &'static str = "tokio";
    type Handle<T: Send + 'static> = tokio::task::JoinHandle<T>;

    fn run<F>(future: F) -> Result<F::Output, Failure>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let runtime = runtimes::two_workers()?;
        runtime.block_on(async { tokio::spawn(future).await }).map_err(|error| Failure::new(error.to_string()))
    }

    fn spawn<F>(future: F) -> Self::Handle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        tokio::spawn(future)
    }

    async fn join<T: Send + 'static>(handle: Self::Handle<T>) -> T {
        handle.await.expect("the task ends by itself")
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        tokio::time::sleep(duration)
    }
}

/// smol's executor on two threads: the one that runs everything, and one more.
pub(crate) struct Smol;

thread_local! {
    static EXECUTOR: RefCell<Option<Arc<smol::Executor<'static>>>> = const { RefCell::new(None) };
}

impl Pooled for Smol {
    const NAME: &'static str = "smol";
    type Handle<T: Send + 'static> = smol::Task<T>;

    fn run<F>(future: F) -> Result<F::Output, Failure>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let executor = Arc::new(smol::Executor::new());
        let (stop, stopped) = smol::channel::bounded::<()>(1);
        let other = executor.clone();
        let thread = std::thread::spawn(move || {
            EXECUTOR.set(Some(other.clone()));
            // An error: the sender has gone.
            let _closed = smol::block_on(other.run(stopped.recv()));
            EXECUTOR.set(None);
        });
        EXECUTOR.set(Some(executor.clone()));
        let task = executor.spawn(future);
        let output = smol::block_on(executor.run(task));
        EXECUTOR.set(None);
        drop(stop);
        thread.join().map_err(|_| Failure::new("smol's second thread panicked"))?;
        Ok(output)
    }

    fn spawn<F>(future: F) -> Self::Handle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        EXECUTOR.with_borrow(|executor| executor.as_ref().expect("inside `run`").spawn(future))
    }

    fn join<T: Send + 'static>(handle: Self::Handle<T>) -> impl Future<Output = T> + Send {
        handle
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        smol::future::yield_now()
    }

    async fn sleep(duration: Duration) {
        smol::Timer::after(duration).await;
    }
}
