//! `.wait()`: an operation that blocks its thread.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll};

use crate::parker;

/// Drives a future on the current thread, which sleeps in between.
///
/// The thread's parker is its own: a stray `Thread::unpark` neither wakes it for good nor is lost to the user.
///
/// Inside a task of a runtime of ours the budget does not apply: the task's poll does not end in between, so it would
/// never be filled up again.
///
/// # Panics
/// As the future does.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let drive = |parker: &parker::Parker| {
        let mut cx = Context::from_waker(parker.waker());
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            parker.park();
        }
    };
    crate::context::without_hooks(|| parker::with_current(drive))
}
