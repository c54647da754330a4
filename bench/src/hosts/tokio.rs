//! tokio's current-thread runtime, with a `LocalSet`: its tasks need not be `Send` either.

use std::future::Future;
use std::time::Duration;

use tokio::task::{spawn_local, yield_now, JoinHandle, LocalSet};

use super::Host;
use crate::harness::Failure;
use crate::loads::runtimes;

pub(crate) struct Tokio;

impl Host for Tokio {
    const NAME: &'static str = "tokio";
    type Handle<T: 'static> = JoinHandle<T>;

    fn run<F: Future + 'static>(future: F) -> Result<F::Output, Failure> {
        let runtime = runtimes::current_thread()?;
        Ok(LocalSet::new().block_on(&runtime, future))
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
        tokio::time::sleep(duration)
    }
}
