//! futures-channel's mpsc: a queue without a bound, and senders that park themselves.
//!
//! Its capacity is the buffer and a slot a sender: the buffer is made one smaller, so that one sender has the capacity that
//! was asked for; four have three slots more. A send waits before it takes its value, and each new sender may send once: no
//! number of parked sends can be set up. It sends with `&mut`.

use std::future::{self, Future};
use std::pin::Pin;
use std::task::{ready, Context, Poll};

use futures_channel::mpsc::{
    channel, unbounded, Receiver, RecvError, Sender, TrySendError, UnboundedReceiver, UnboundedSender,
};
use tokio_util::sync::CancellationToken;

use super::{Bounded, Line, Message, Outcome, Received, RecvFailure, SendFailure, Sent, TryLine, Unbounded};

#[derive(Debug)]
pub(crate) struct FuturesChannel;

impl Line for FuturesChannel {
    const NAME: &'static str = "futures-channel";
    const CRATE: &'static str = "futures-channel";

    type Sender<T: Message> = Sender<T>;
    type Receiver<T: Message> = Receiver<T>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(tx: &Sender<T>) -> Option<Sender<T>> {
        Some(tx.clone())
    }

    fn another<T: Message>(_: &Receiver<T>) -> Option<Receiver<T>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        Feed { tx, value: Some(value) }
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Receiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl Bounded for FuturesChannel {
    fn bounded<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        channel(capacity.saturating_sub(1))
    }
}

impl TryLine for FuturesChannel {
    #[inline]
    fn try_send<T: Message>(tx: &mut Sender<T>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut Receiver<T>) -> Option<T> {
        rx.try_recv().ok()
    }
}

/// Waits until the sender may send, and sends: what futures-util's `feed` does. Its `send` also waits until the sender
/// may send again.
struct Feed<'a, T> {
    tx: &'a mut Sender<T>,
    value: Option<T>,
}

impl<T: Message> Future for Feed<'_, T> {
    type Output = Outcome<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome<T>> {
        let this = self.get_mut();
        let is_open = ready!(this.tx.poll_ready(cx)).is_ok();
        let value = this.value.take().expect("polled after completion");
        if !is_open {
            return Poll::Ready(Outcome::Returned(value));
        }
        Poll::Ready(match this.tx.try_send(value) {
            Ok(()) => Outcome::Sent,
            Err(error) => Outcome::Returned(error.into_inner()),
        })
    }
}

#[derive(Debug)]
pub(crate) struct FuturesChannelUnbounded;

impl Line for FuturesChannelUnbounded {
    const NAME: &'static str = FuturesChannel::NAME;
    const CRATE: &'static str = FuturesChannel::CRATE;

    type Sender<T: Message> = UnboundedSender<T>;
    type Receiver<T: Message> = UnboundedReceiver<T>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(tx: &UnboundedSender<T>) -> Option<UnboundedSender<T>> {
        Some(tx.clone())
    }

    fn another<T: Message>(_: &UnboundedReceiver<T>) -> Option<UnboundedReceiver<T>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut UnboundedSender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        future::ready(tx.unbounded_send(value))
    }

    #[inline]
    fn recv<T: Message>(rx: &mut UnboundedReceiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl TryLine for FuturesChannelUnbounded {
    #[inline]
    fn try_send<T: Message>(tx: &mut UnboundedSender<T>, value: T) -> bool {
        tx.unbounded_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut UnboundedReceiver<T>) -> Option<T> {
        rx.try_recv().ok()
    }
}

impl Unbounded for FuturesChannelUnbounded {
    fn unbounded<T: Message>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
        unbounded()
    }
}

impl<T> SendFailure<T> for TrySendError<T> {
    fn value(self) -> Option<T> {
        Some(self.into_inner())
    }
}

impl RecvFailure for RecvError {}
