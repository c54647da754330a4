//! tokio's `mpsc`: one receiver, a semaphore in front.

use std::future::{ready, Future};
use std::time::Duration;

use tokio::sync::mpsc::error::{SendError, SendTimeoutError};
use tokio::sync::mpsc::{channel, unbounded_channel, Permit, Receiver, Sender, UnboundedReceiver, UnboundedSender};
use tokio_util::sync::CancellationToken;

use super::{
    BlockingLine, BlockingPeer, BlockingUnbounded, HasOwnTimeout, HasReserve, Line, Message, Outcome, Peer, Received,
    SendFailure, Sent, TryLine, Unbounded,
};

#[derive(Debug)]
pub(crate) struct Tokio;

impl Peer for Tokio {
    const NAME: &'static str = "tokio";
    const CRATE: &'static str = "tokio";

    type Sender<T: Message> = Sender<T>;
    type Receiver<T: Message> = Receiver<T>;
    type Token = CancellationToken;

    fn bounded<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        channel(capacity)
    }

    fn another<T: Message>(_: &Receiver<T>) -> Option<Receiver<T>> {
        None
    }

    #[inline]
    fn try_send<T: Message>(tx: &Sender<T>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut Receiver<T>) -> Option<T> {
        rx.try_recv().ok()
    }

    #[inline]
    fn send<T: Message>(tx: &Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Receiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl HasOwnTimeout for Tokio {
    const OWN_NAME: &'static str = "tokio+send_timeout";

    #[inline]
    fn send_timeout<T: Message>(tx: &Sender<T>, value: T, limit: Duration) -> impl Future<Output: Sent<T>> + Send {
        tx.send_timeout(value, limit)
    }
}

impl HasReserve for Tokio {
    const RESERVE_NAME: &'static str = "tokio+reserve";
    type Permit<'a, T: Message> = Permit<'a, T>;

    async fn reserve<T: Message>(tx: &Sender<T>) -> Option<Permit<'_, T>> {
        tx.reserve().await.ok()
    }

    fn fill<T: Message>(permit: Permit<'_, T>, value: T) -> Outcome<T> {
        permit.send(value);
        Outcome::Sent
    }
}

impl BlockingLine for Tokio {
    const NAME: &'static str = <Tokio as Peer>::NAME;

    type Sender<T: Message> = Sender<T>;
    type Receiver<T: Message> = Receiver<T>;

    fn another<T: Message>(_: &Receiver<T>) -> Option<Receiver<T>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut Sender<T>, value: T) -> bool {
        tx.blocking_send(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Receiver<T>) -> Option<T> {
        rx.blocking_recv()
    }
}

impl BlockingPeer for Tokio {
    const HAS_RENDEZVOUS: bool = false;

    fn bounded<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        channel(capacity)
    }
}

#[derive(Debug)]
pub(crate) struct TokioUnbounded;

impl Line for TokioUnbounded {
    const NAME: &'static str = <Tokio as Peer>::NAME;
    const CRATE: &'static str = <Tokio as Peer>::CRATE;

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
        ready(tx.send(value))
    }

    #[inline]
    fn recv<T: Message>(rx: &mut UnboundedReceiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl TryLine for TokioUnbounded {
    #[inline]
    fn try_send<T: Message>(tx: &mut UnboundedSender<T>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut UnboundedReceiver<T>) -> Option<T> {
        rx.try_recv().ok()
    }
}

impl Unbounded for TokioUnbounded {
    fn unbounded<T: Message>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
        unbounded_channel()
    }
}

impl BlockingLine for TokioUnbounded {
    const NAME: &'static str = <Tokio as Peer>::NAME;

    type Sender<T: Message> = UnboundedSender<T>;
    type Receiver<T: Message> = UnboundedReceiver<T>;

    fn another<T: Message>(_: &UnboundedReceiver<T>) -> Option<UnboundedReceiver<T>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut UnboundedSender<T>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut UnboundedReceiver<T>) -> Option<T> {
        rx.blocking_recv()
    }
}

impl BlockingUnbounded for TokioUnbounded {
    fn unbounded<T: Message>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
        unbounded_channel()
    }
}

impl<T> SendFailure<T> for SendError<T> {
    fn value(self) -> Option<T> {
        Some(self.0)
    }
}

impl<T> SendFailure<T> for SendTimeoutError<T> {
    fn value(self) -> Option<T> {
        Some(self.into_inner())
    }
}
