//! Sending as a sink (feature `sink`).

use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures_core::FusedFuture;
use futures_sink::Sink;
use tidegate_wait::op::Unlimited;

use crate::error::SendError;
use crate::hold::{Borrowed, Hold, Owned};
use crate::sender::Sender;
use crate::sending::Sending;

/// A sink with a half of its own; made by [`Sender::into_sink`].
pub type OwnedSendSink<T> = SendSink<'static, T, Owned>;

/// A channel as a sink; made by [`Sender::sink`].
///
/// `Unpin`. It buffers one item, in a box that is allocated once and used for every item: `start_send` keeps the item,
/// `poll_flush` and `poll_ready` send it. `poll_close` flushes and lets go of the half; it does not close the channel for
/// others.
///
/// # Errors
/// [`SendError::Closed`] with the item, from `poll_ready` or `poll_flush` if the channel is closed, from `start_send` if
/// the sink is; [`SendError::Full`] from a `start_send` without a `poll_ready` that was ready.
///
/// # Cancel safety
/// A `send` of it that is dropped has either not begun or leaves the item to the next flush. A sink that is dropped drops
/// its item.
#[must_use = "a sink does nothing unless it is polled"]
pub struct SendSink<'a, T, H: Hold = Borrowed<'a>> {
    /// Without a value: nothing is buffered. `None`: closed.
    sending: Option<Pin<Box<Sending<'a, T, Unlimited, H>>>>,
}

impl<T> Sender<T> {
    /// The channel as a sink.
    pub fn sink(&self) -> SendSink<'_, T> {
        SendSink { sending: Some(Box::pin(Sending::without_value(self.channel().as_ptr()))) }
    }

    /// The channel as a sink that has this half as its own: `'static` if `T` is.
    pub fn into_sink(self) -> OwnedSendSink<T> {
        SendSink { sending: Some(Box::pin(Sending::without_value(self.into_raw()))) }
    }
}

impl<T, H: Hold> Sink<T> for SendSink<'_, T, H> {
    type Error = SendError<T>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        self.poll_flush(cx)
    }

    fn start_send(self: Pin<&mut Self>, item: T) -> Result<(), SendError<T>> {
        match &mut self.get_mut().sending {
            None => Err(SendError::Closed(item)),
            Some(sending) if !sending.is_terminated() => Err(SendError::Full(item)),
            Some(sending) => {
                // SAFETY: pinned in its box, and in state Spent: nothing is buffered.
                unsafe { Sending::fill(core::ptr::from_mut(sending.as_mut().get_unchecked_mut()), || item) };
                Ok(())
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        match &mut self.sending {
            Some(sending) if !sending.is_terminated() => sending.as_mut().poll(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), SendError<T>>> {
        let flushed = self.as_mut().poll_flush(cx);
        if flushed.is_ready() {
            self.sending = None;
        }
        flushed
    }
}

impl<T, H: Hold> fmt::Debug for SendSink<'_, T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendSink").field("sending", &self.sending).finish()
    }
}
