//! async-channel: a lock-free queue with `event-listener` in front.

use std::future::Future;

use async_channel::{bounded, unbounded, Receiver, RecvError, SendError, Sender};
use tokio_util::sync::CancellationToken;

use super::{
    BlockingLine, BlockingPeer, BlockingUnbounded, Message, Peer, Received, RecvFailure, SendFailure, Sent, Unbounded,
};

#[derive(Debug)]
pub(crate) struct AsyncChannel;

impl Peer for AsyncChannel {
    const NAME: &'static str = "async-channel";
    const CRATE: &'static str = "async-channel";

    type Sender<T: Message> = Sender<T>;
    type Receiver<T: Message> = Receiver<T>;
    type Token = CancellationToken;

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
}

impl BlockingLine for AsyncChannel {
    const NAME: &'static str = <AsyncChannel as Peer>::NAME;

    type Sender<T: Message> = Sender<T>;
    type Receiver<T: Message> = Receiver<T>;

    fn another<T: Message>(rx: &Receiver<T>) -> Option<Receiver<T>> {
        Some(rx.clone())
    }

    #[inline]
    fn send<T: Message>(tx: &mut Sender<T>, value: T) -> bool {
        tx.send_blocking(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Receiver<T>) -> Option<T> {
        rx.recv_blocking().ok()
    }
}

impl BlockingPeer for AsyncChannel {
    const HAS_RENDEZVOUS: bool = false;

    fn bounded<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        bounded(capacity)
    }
}

impl Unbounded for AsyncChannel {
    fn unbounded<T: Message>() -> (Sender<T>, Receiver<T>) {
        unbounded()
    }
}

impl BlockingUnbounded for AsyncChannel {
    fn unbounded<T: Message>() -> (Sender<T>, Receiver<T>) {
        unbounded()
    }
}

impl<T> SendFailure<T> for SendError<T> {
    fn value(self) -> Option<T> {
        Some(self.0)
    }
}

impl RecvFailure for RecvError {}
