//! smol's local executor.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use smol::{LocalExecutor, Task, Timer};

use super::Host;
use crate::harness::Failure;

thread_local! {
    static EXECUTOR: RefCell<Option<Rc<LocalExecutor<'static>>>> = const { RefCell::new(None) };
}

pub(crate) struct Smol;

impl Host for Smol {
    const NAME: &'static str = "smol";
    type Handle<T: 'static> = Task<T>;

    fn run<F: Future + 'static>(future: F) -> Result<F::Output, Failure> {
        let executor = Rc::new(LocalExecutor::new());
        EXECUTOR.set(Some(executor.clone()));
        let output = smol::block_on(executor.run(future));
        EXECUTOR.set(None);
        Ok(output)
    }

    fn spawn<F: Future + 'static>(future: F) -> Task<F::Output> {
        EXECUTOR.with_borrow(|executor| executor.as_ref().expect("inside `run`").spawn(future))
    }

    fn join<T: 'static>(handle: Task<T>) -> impl Future<Output = T> {
        handle
    }

    fn yield_now() -> impl Future<Output = ()> {
        smol::future::yield_now()
    }

    async fn sleep(duration: Duration) {
        Timer::after(duration).await;
    }
}
