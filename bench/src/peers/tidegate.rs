//! Ours: `tidegate-channel`, with the limits of `tidegate-wait`.

use std::future::Future;
use std::time::Duration;

use tidegate_channel::{bounded, unbounded, Operation, Receiver, RecvError, SendError, Sender};
use tidegate_wait::cancel::CancelToken;

use super::until_cancelled::Until;
use super::{
    BlockingLine, BlockingPeer, BlockingUnbounded, Cancelled, Message, Peer, Received, RecvFailure, Rendezvous,
    SendFailure, Sent, Token, Unbounded,
};

#[derive(Debug)]
pub(crate) struct Tidegate;

impl Peer for Tidegate {
    const NAME: &'static str = "tidegate";
    const CRATE: &'static str = "tidegate-channel";

    type Sender<T: Message> = Sender<T>;
    type Receiver<T: Message> = Receiver<T>;
    type Token = CancelToken;

    fn bounded<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        bounded(capacity)
    }

    fn another<T: Message>(rx: &Receiver<T>) -> Option<Receiver<T>> {
        Some(rx.clone())
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

    fn send_owned<T: Message>(tx: Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send + 'static {
        tx.into_send(value)
    }

    fn recv_owned<T: Message>(rx: Receiver<T>) -> impl Future<Output: Received<T>> + Send + 'static {
        rx.into_recv()
    }

    #[inline]
    fn send_within<T: Message>(tx: &Sender<T>, value: T, limit: Duration) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value).timeout(limit)
    }

    #[inline]
    fn recv_within<T: Message>(rx: &mut Receiver<T>, limit: Duration) -> impl Future<Output: Received<T>> + Send {
        rx.recv().timeout(limit)
    }

    fn send_within_owned<T: Message>(
        tx: Sender<T>,
        value: T,
        limit: Duration,
    ) -> impl Future<Output: Sent<T>> + Send + 'static {
        tx.into_send(value).timeout(limit)
    }

    #[inline]
    fn send_until<'a, T: Message>(
        tx: &'a Sender<T>,
        value: T,
        token: &'a CancelToken,
    ) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value).cancel_on(token)
    }

    #[inline]
    fn recv_until<'a, T: Message>(
        rx: &'a mut Receiver<T>,
        token: &'a CancelToken,
    ) -> impl Future<Output: Received<T>> + Send {
        rx.recv().cancel_on(token)
    }

    fn send_until_owned<T: Message>(
        tx: Sender<T>,
        value: T,
        token: CancelToken,
    ) -> impl Future<Output: Sent<T>> + Send + 'static {
        tx.into_send(value).cancel_on_owned(token)
    }

    fn send_limited<'a, T: Message>(
        tx: &'a Sender<T>,
        value: T,
        limit: Duration,
        token: &'a CancelToken,
    ) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value).timeout(limit).cancel_on(token)
    }

    fn send_limited_owned<T: Message>(
        tx: Sender<T>,
        value: T,
        limit: Duration,
        token: CancelToken,
    ) -> impl Future<Output: Sent<T>> + Send + 'static {
        tx.into_send(value).timeout(limit).cancel_on_owned(token)
    }
}

/// Only the operations of our own channels know this token; for foreign futures it waits beside them.
impl Token for CancelToken {
    fn new() -> Self {
        CancelToken::new()
    }

    fn cancel(&self) {
        CancelToken::cancel(self);
    }

    fn limit<'a, F: Future + Send + 'a>(
        token: &'a Self,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Cancelled>> + Send {
        Until::new(token.is_cancelled(), token.cancelled(), future)
    }

    fn limit_owned<F: Future + Send + 'static>(
        token: Self,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Cancelled>> + Send + 'static {
        let is_cancelled = token.is_cancelled();
        Until::new(is_cancelled, async move { token.cancelled().await }, future)
    }
}

impl Rendezvous for Tidegate {
    fn rendezvous<T: Message>() -> (Sender<T>, Receiver<T>) {
        bounded(0)
    }
}

impl BlockingLine for Tidegate {
    const NAME: &'static str = <Tidegate as Peer>::NAME;

    type Sender<T: Message> = Sender<T>;
    type Receiver<T: Message> = Receiver<T>;

    fn another<T: Message>(rx: &Receiver<T>) -> Option<Receiver<T>> {
        Some(rx.clone())
    }

    #[inline]
    fn send<T: Message>(tx: &mut Sender<T>, value: T) -> bool {
        tx.send(value).wait().is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Receiver<T>) -> Option<T> {
        rx.recv().wait().ok()
    }
}

impl BlockingPeer for Tidegate {
    const HAS_RENDEZVOUS: bool = true;

    fn bounded<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        bounded(capacity)
    }
}

impl Unbounded for Tidegate {
    fn unbounded<T: Message>() -> (Sender<T>, Receiver<T>) {
        unbounded()
    }
}

impl BlockingUnbounded for Tidegate {
    fn unbounded<T: Message>() -> (Sender<T>, Receiver<T>) {
        unbounded()
    }
}

impl<T> SendFailure<T> for SendError<T> {
    fn value(self) -> Option<T> {
        Some(self.into_inner())
    }
}

impl RecvFailure for RecvError {}
