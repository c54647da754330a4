//! kanal: a locked deque with direct hand-off.

use std::future::Future;

use kanal::{
    bounded, bounded_async, unbounded, unbounded_async, AsyncReceiver, AsyncSender, ReceiveError, Receiver, SendError,
    Sender,
};
use tokio_util::sync::CancellationToken;

use super::{
    BlockingLine, BlockingPeer, BlockingUnbounded, Message, Peer, Received, RecvFailure, Rendezvous, SendFailure, Sent,
    Unbounded,
};

#[derive(Debug)]
pub(crate) struct Kanal;

impl Peer for Kanal {
    const NAME: &'static str = "kanal";
    const CRATE: &'static str = "kanal";

    type Sender<T: Message> = AsyncSender<T>;
    type Receiver<T: Message> = AsyncReceiver<T>;
    type Token = CancellationToken;

    fn bounded<T: Message>(capacity: usize) -> (AsyncSender<T>, AsyncReceiver<T>) {
        bounded_async(capacity)
    }

    fn another<T: Message>(rx: &AsyncReceiver<T>) -> Option<AsyncReceiver<T>> {
        Some(rx.clone())
    }

    #[inline]
    fn try_send<T: Message>(tx: &AsyncSender<T>, value: T) -> bool {
        matches!(tx.try_send(value), Ok(true))
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut AsyncReceiver<T>) -> Option<T> {
        rx.try_recv().ok().flatten()
    }

    #[inline]
    fn send<T: Message>(tx: &AsyncSender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut AsyncReceiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl Rendezvous for Kanal {
    fn rendezvous<T: Message>() -> (AsyncSender<T>, AsyncReceiver<T>) {
        bounded_async(0)
    }
}

impl BlockingLine for Kanal {
    const NAME: &'static str = <Kanal as Peer>::NAME;

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

impl BlockingPeer for Kanal {
    const HAS_RENDEZVOUS: bool = true;

    fn bounded<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        bounded(capacity)
    }
}

impl Unbounded for Kanal {
    fn unbounded<T: Message>() -> (AsyncSender<T>, AsyncReceiver<T>) {
        unbounded_async()
    }
}

impl BlockingUnbounded for Kanal {
    fn unbounded<T: Message>() -> (Sender<T>, Receiver<T>) {
        unbounded()
    }
}

impl<T> SendFailure<T> for SendError {
    fn value(self) -> Option<T> {
        None
    }
}

impl RecvFailure for ReceiveError {}
