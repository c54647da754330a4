//! Receiving as a stream.

use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures_core::{FusedStream, Stream};
use tidegate_wait::op::Unlimited;

use crate::hold::{Borrowed, Hold, Owned};
use crate::receiver::Receiver;
use crate::receiving::Receiving;

/// A stream with a half of its own; made by [`Receiver::into_stream`].
pub type OwnedRecvStream<T> = RecvStream<'static, T, Owned>;

/// The values of a channel as a stream, until it is closed and drained; made by [`Receiver::stream`].
///
/// `Unpin` and fused. Its one receive stands in a box, which is allocated once and used for every value.
///
/// # Cancel safety
/// Dropping a `next()` of it loses nothing. A value that has been handed to a stream which is then dropped goes to the
/// next receive, ahead of all others; one that is kept, but not polled, keeps it.
///
/// # Examples
/// ```
/// use std::future::poll_fn;
/// use std::pin::pin;
/// use futures_core::Stream;
/// use tidegate_channel::bounded;
///
/// let (tx, rx) = bounded(4);
/// (0..3).for_each(|n| tx.try_send(n).unwrap());
/// drop(tx);
/// let mut stream = pin!(rx.into_stream());
/// let mut seen = Vec::new();
/// while let Some(n) = tidegate_wait::op::block_on(poll_fn(|cx| stream.as_mut().poll_next(cx))) {
///     seen.push(n);
/// }
/// assert_eq!(seen, [0, 1, 2]);
/// ```
#[must_use = "a stream does nothing unless it is polled"]
pub struct RecvStream<'a, T, H: Hold = Borrowed<'a>> {
    receiving: Pin<Box<Receiving<'a, T, Unlimited, H>>>,
    ended: bool,
}

impl<T> Receiver<T> {
    /// The values as a stream.
    pub fn stream(&self) -> RecvStream<'_, T> {
        RecvStream { receiving: Box::pin(self.recv()), ended: false }
    }

    /// The values as a stream that has this half as its own: `'static` if `T` is.
    pub fn into_stream(self) -> OwnedRecvStream<T> {
        RecvStream { receiving: Box::pin(self.into_recv()), ended: false }
    }
}

impl<T, H: Hold> Stream for RecvStream<'_, T, H> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.receiving.as_mut().poll(cx).map(|received| match received {
            Ok(value) => {
                self.receiving.as_mut().restart();
                Some(value)
            }
            Err(_closed) => {
                self.ended = true;
                None
            }
        })
    }
}

impl<T, H: Hold> FusedStream for RecvStream<'_, T, H> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<T, H: Hold> fmt::Debug for RecvStream<'_, T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream").field("ended", &self.ended).field("receiving", &self.receiving).finish()
    }
}
