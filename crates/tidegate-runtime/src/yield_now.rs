//! A turn given up.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

/// Lets every other runnable task have its turn; made by [`yield_now`].
#[must_use = "a yield does nothing unless it is awaited"]
#[derive(Debug)]
pub struct YieldNow(bool);

/// Goes to the end of the queue once: everything that is runnable now has its turn first. On any executor.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// tidegate_runtime::Runtime::new()?.block_on(tidegate_runtime::yield_now())?;
/// # Ok(())
/// # }
/// ```
///
/// # Cancel safety
/// Nothing to lose.
pub fn yield_now() -> YieldNow {
    YieldNow(false)
}

impl Future for YieldNow {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if core::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
