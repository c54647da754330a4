//! Runtimes behind one trait: each runs everything on one thread. ([`pooled`]: on two.)

pub(crate) mod pooled;
mod smol;
#[cfg(feature = "thread-per-core")]
mod thread_per_core;
mod tidegate;
mod tokio;

use std::future::Future;
use std::time::Duration;

use crate::harness::Failure;

pub(crate) use tidegate::Tidegate;

/// A runtime, as its own documentation says to use it.
pub(crate) trait Host: 'static {
    const NAME: &'static str;
    /// May one task have a million wakers?
    const MANY_WAKERS: bool = true;
    type Handle<T: 'static>: 'static;

    /// Makes a runtime, runs `future` and drops the runtime.
    fn run<F: Future + 'static>(future: F) -> Result<F::Output, Failure>;

    /// Spawns a task on the runtime that is running; one that need not be `Send`, where there is a choice.
    fn spawn<F: Future + 'static>(future: F) -> Self::Handle<F::Output>;

    fn join<T: 'static>(handle: Self::Handle<T>) -> impl Future<Output = T>;

    fn yield_now() -> impl Future<Output = ()>;

    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static;
}

/// Does something for every runtime.
pub(crate) trait Visitor {
    fn visit<H: Host>(&mut self);
}

pub(crate) fn each(visitor: &mut impl Visitor) {
    visitor.visit::<Tidegate>();
    visitor.visit::<tokio::Tokio>();
    visitor.visit::<smol::Smol>();
    #[cfg(feature = "thread-per-core")]
    {
        visitor.visit::<thread_per_core::Glommio>();
        visitor.visit::<thread_per_core::Monoio>();
    }
}
