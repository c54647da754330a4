//! flume: a locked deque.

use std::future::Future;

use flume::{bounded, unbounded, Receiver, RecvError, SendError, Sender};
use tokio_util::sync::CancellationToken;

use super::{
    BlockingLine, BlockingPeer, BlockingUnbounded, Message, Peer, Received, RecvFailure, Rendezvous, SendFailure, Sent,
    Unbounded,
};

#[derive(Debug)]
pub(crate) struct Flume;

impl Peer for Flume {
    const NAME: &'static str = "flume";
    const CRATE: &'static str = "flume";

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
        tx.send_async(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Receiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv_async()
    }

    fn send_owned<T: Message>(tx: Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send + 'static {
        tx.into_send_async(value)
    }

    fn recv_owned<T: Message>(rx: Receiver<T>) -> impl Future<Output: Received<T>> + Send + 'static {
        rx.into_recv_async()
    }
}

impl Rendezvous for Flume {
    fn rendezvous<T: Message>() -> (Sender<T>, Receiver<T>) {
        bounded(0)
    }
}

impl BlockingLine for Flume {
    const NAME: &'static str = <Flume as Peer>::NAME;

    type Sender<T: Message> = Sender<T>;
    type Receiver<T: Message> = Receiver<T>;

    fn another<T: Message>(rx: &Receiver<T>) -> Option<Receiver<T>> {
        Some(rx.clone())
    }

    #[inline]
    fn send<T: Message>(tx: &mut Sender<T>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Receiver<T>) -> Option<T> {
        rx.recv().ok()
    }
}

impl BlockingPeer for Flume {
    const HAS_RENDEZVOUS: bool = true;

    fn bounded<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        bounded(capacity)
    }
}

impl Unbounded for Flume {
    fn unbounded<T: Message>() -> (Sender<T>, Receiver<T>) {
        unbounded()
    }
}

impl BlockingUnbounded for Flume {
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
