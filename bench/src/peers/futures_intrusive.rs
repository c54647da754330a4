//! futures-intrusive's shared mpmc: an intrusive list of waiters under a `parking_lot` lock.
//!
//! Its send's `cancel`, which gives the value back, takes `&mut` of a future that is pinned once it has been polled: safe
//! code cannot call it, and it is not measured.

use std::future::Future;

use futures_intrusive::channel::shared::{channel, Receiver, Sender};
use futures_intrusive::channel::ChannelSendError;
use tokio_util::sync::CancellationToken;

use super::{Message, Peer, Received, Rendezvous, SendFailure, Sent, Unbounded};

#[derive(Debug)]
pub(crate) struct FuturesIntrusive;

impl Peer for FuturesIntrusive {
    const NAME: &'static str = "futures-intrusive";
    const CRATE: &'static str = "futures-intrusive";

    type Sender<T: Message> = Sender<T>;
    type Receiver<T: Message> = Receiver<T>;
    type Token = CancellationToken;

    fn bounded<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        channel(capacity)
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
        rx.try_receive().ok()
    }

    #[inline]
    fn send<T: Message>(tx: &Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Receiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.receive()
    }

    // Its futures own their half.
    fn send_owned<T: Message>(tx: Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send + 'static {
        tx.send(value)
    }

    fn recv_owned<T: Message>(rx: Receiver<T>) -> impl Future<Output: Received<T>> + Send + 'static {
        rx.receive()
    }
}

impl Rendezvous for FuturesIntrusive {
    fn rendezvous<T: Message>() -> (Sender<T>, Receiver<T>) {
        channel(0)
    }
}

/// Its buffer grows as it is filled, up to a limit that nothing reaches.
impl Unbounded for FuturesIntrusive {
    fn unbounded<T: Message>() -> (Sender<T>, Receiver<T>) {
        channel(usize::MAX)
    }
}

impl<T> SendFailure<T> for ChannelSendError<T> {
    fn value(self) -> Option<T> {
        Some(self.0)
    }
}
