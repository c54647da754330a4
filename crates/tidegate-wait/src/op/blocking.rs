//! `.wait()`: an operation that blocks its thread.

use core::future::Future;
use core::pin::{pin, Pin};
use core::task::{Context, Poll};

use super::{Limits, RawOperation};
use crate::parker;
use crate::waiter::State;

/// Blocks the thread until the operation ends. One that is done at once needs neither a parker nor a context.
#[inline(always)]
pub(super) fn wait<O: RawOperation>(operation: O) -> O::Output {
    let mut operation = pin!(operation);
    // SAFETY: pinned, and the state is looked at. A first try that comes to nothing may be repeated by the poll.
    unsafe {
        let this = core::ptr::from_mut(operation.as_mut().get_unchecked_mut());
        if (*O::head(this)).node.state() == State::Init && !(*O::limits(this)).is_cancelled() {
            if let Some(output) = O::attempt(this) {
                return output;
            }
        }
    }
    wait_long(operation)
}

#[inline(never)]
fn wait_long<O: RawOperation>(operation: Pin<&mut O>) -> O::Output {
    block_on(operation)
}

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
