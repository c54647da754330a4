//! `timeout` of any future. For the operations of this workspace [`Operation::timeout`](crate::Operation::timeout) is
//! better: it gives the value back.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::{sleep, sleep_until, Sleep};

/// The future did not complete in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the future did not complete within its time limit")
    }
}

impl core::error::Error for Elapsed {}

/// A future with a limit; made by [`timeout`] and [`timeout_at`].
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct Timeout<F> {
    future: F,
    sleep: Sleep,
}

/// Limits `future` to `limit`, counted from the first poll at which it is not ready.
///
/// # Errors
/// [`Elapsed`]: the limit came first. The future is dropped with the `Timeout`, and what it held is lost.
///
/// # Cancel safety
/// That of `future`.
///
/// ```
/// use std::time::Duration;
/// use tidegate_wait::{op::block_on, timer::timeout};
///
/// let never = std::future::pending::<()>();
/// assert!(block_on(timeout(Duration::from_millis(1), never)).is_err());
/// assert_eq!(block_on(timeout(Duration::ZERO, async { 7 })), Ok(7));
/// ```
pub fn timeout<F: Future>(limit: Duration, future: F) -> Timeout<F> {
    Timeout { future, sleep: sleep(limit) }
}

/// Limits `future` to `deadline`; one that has passed means one poll.
///
/// # Errors
/// As [`timeout`].
pub fn timeout_at<F: Future>(deadline: Instant, future: F) -> Timeout<F> {
    Timeout { future, sleep: sleep_until(deadline) }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: both fields are pinned with the whole; neither is moved.
        let (future, sleep) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), Pin::new_unchecked(&mut this.sleep))
        };
        match future.poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => sleep.poll(cx).map(|()| Err(Elapsed)),
        }
    }
}
