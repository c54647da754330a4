//! Ours, with what it always has: wakes from other threads, and the registry of tasks.

use std::future::Future;
use std::time::Duration;

use tidegate_runtime::{spawn_local, yield_now, JoinHandle, Runtime};

use super::Host;
use crate::harness::Failure;

pub(crate) struct Tidegate;

impl Host for Tidegate {
    const NAME: &'static str = "tidegate";
    type Handle<T: 'static> = JoinHandle<T>;

    fn run<F: Future + 'static>(future: F) -> Result<F::Output, Failure> {
        let runtime = Runtime::new().map_err(|error| Failure::new(error.to_string()))?;
        runtime.block_on(future).map_err(|error| Failure::new(error.to_string()))
    }

    fn spawn<F: Future + 'static>(future: F) -> JoinHandle<F::Output> {
        spawn_local(future)
    }

    async fn join<T: 'static>(handle: JoinHandle<T>) -> T {
        handle.await.expect("the task ends by itself")
    }

    fn yield_now() -> impl Future<Output = ()> {
        yield_now()
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static {
        tidegate_wait::timer::sleep(duration)
    }
}
