//! A future that ends when a `tokio_util` token is cancelled.
//!
//! What `CancellationToken::run_until_cancelled` does, without its `async fn`, which would store the future twice: a token
//! that is cancelled already wins; afterwards the future is looked at first.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture, WaitForCancellationFutureOwned};

/// The token was cancelled first; the future inside, and what it held, is gone.
#[derive(Debug)]
pub(crate) struct Cancelled;

pin_project! {
    /// The future inside, or [`Cancelled`].
    #[derive(Debug)]
    pub(crate) struct Until<C, F> {
        #[pin]
        cancelled: C,
        #[pin]
        future: F,
        is_cancelled: bool,
    }
}

pub(crate) type UntilCancelled<'a, F> = Until<WaitForCancellationFuture<'a>, F>;
pub(crate) type UntilCancelledOwned<F> = Until<WaitForCancellationFutureOwned, F>;

impl<C, F> Until<C, F> {
    #[inline]
    pub(crate) fn new(is_cancelled: bool, cancelled: C, future: F) -> Self {
        Until { cancelled, future, is_cancelled }
    }
}

impl<'a, F> UntilCancelled<'a, F> {
    #[inline]
    pub(crate) fn on(token: &'a CancellationToken, future: F) -> Self {
        Until { is_cancelled: token.is_cancelled(), cancelled: token.cancelled(), future }
    }
}

impl<F> UntilCancelledOwned<F> {
    pub(crate) fn on(token: CancellationToken, future: F) -> Self {
        Until { is_cancelled: token.is_cancelled(), cancelled: token.cancelled_owned(), future }
    }
}

impl<C: Future<Output = ()>, F: Future> Future for Until<C, F> {
    type Output = Result<F::Output, Cancelled>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if *this.is_cancelled {
            return Poll::Ready(Err(Cancelled));
        }
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        this.cancelled.poll(cx).map(|()| Err(Cancelled))
    }
}
