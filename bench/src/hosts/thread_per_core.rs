//! Runtimes that own their thread: their wakers do not work, or are slow, from others.

use std::future::Future;
use std::time::Duration;

use super::Host;
use crate::harness::Failure;

pub(crate) struct Glommio;

impl Host for Glommio {
    const NAME: &'static str = "glommio";
    // It counts them in 16 bits, and panics beyond.
    const MANY_WAKERS: bool = false;
    type Handle<T: 'static> = glommio::Task<T>;

    fn run<F: Future + 'static>(future: F) -> Result<F::Output, Failure> {
        let executor =
            glommio::LocalExecutorBuilder::default().make().map_err(|error| Failure::new(error.to_string()))?;
        Ok(executor.run(future))
    }

    fn spawn<F: Future + 'static>(future: F) -> glommio::Task<F::Output> {
        glommio::spawn_local(future)
    }

    fn join<T: 'static>(handle: glommio::Task<T>) -> impl Future<Output = T> {
        handle
    }

    fn yield_now() -> impl Future<Output = ()> {
        smol::future::yield_now()
    }

    async fn sleep(duration: Duration) {
        glommio::timer::sleep(duration).await;
    }
}

pub(crate) struct Monoio;

impl Host for Monoio {
    const NAME: &'static str = "monoio";
    type Handle<T: 'static> = monoio::task::JoinHandle<T>;

    fn run<F: Future + 'static>(future: F) -> Result<F::Output, Failure> {
        let mut runtime = monoio::RuntimeBuilder::<monoio::IoUringDriver>::new()
            .enable_timer()
            .build()
            .map_err(|error| Failure::new(error.to_string()))?;
        Ok(runtime.block_on(future))
    }

    fn spawn<F: Future + 'static>(future: F) -> monoio::task::JoinHandle<F::Output> {
        monoio::spawn(future)
    }

    fn join<T: 'static>(handle: monoio::task::JoinHandle<T>) -> impl Future<Output = T> {
        handle
    }

    fn yield_now() -> impl Future<Output = ()> {
        smol::future::yield_now()
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static {
        monoio::time::sleep(duration)
    }
}
