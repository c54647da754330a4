//! tachyonix: a lock-free ring, one receiver.

use std::future::Future;
use std::time::Duration;

use ::tokio::time::sleep;
use tachyonix::{channel, Receiver, RecvError, SendError, SendTimeoutError, Sender};
use tokio_util::sync::CancellationToken;

use super::{HasOwnTimeout, Message, Peer, Received, RecvFailure, SendFailure, Sent};

#[derive(Debug)]
pub(crate) struct Tachyonix;

impl Peer for Tachyonix {
    const NAME: &'static str = "tachyonix";
    const CRATE: &'static str = "tachyonix";

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

impl HasOwnTimeout for Tachyonix {
    const OWN_NAME: &'static str = "tachyonix+send_timeout";

    #[inline]
    fn send_timeout<T: Message>(tx: &Sender<T>, value: T, limit: Duration) -> impl Future<Output: Sent<T>> + Send {
        tx.send_timeout(value, sleep(limit))
    }
}

impl<T> SendFailure<T> for SendError<T> {
    fn value(self) -> Option<T> {
        Some(self.0)
    }
}

impl<T> SendFailure<T> for SendTimeoutError<T> {
    fn value(self) -> Option<T> {
        Some(match self {
            SendTimeoutError::Timeout(value) | SendTimeoutError::Closed(value) => value,
        })
    }
}

impl RecvFailure for RecvError {}
