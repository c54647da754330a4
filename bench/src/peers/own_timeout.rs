//! A peer with its own way to limit a send in time: one that returns the value.

use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use super::{Message, Peer, Received, Sent};

/// A peer that has a `send_timeout`.
pub(crate) trait HasOwnTimeout: Peer {
    const OWN_NAME: &'static str;

    fn send_timeout<T: Message>(tx: &Self::Sender<T>, value: T, limit: Duration)
        -> impl Future<Output: Sent<T>> + Send;
}

/// The peer, with its own way in place of `tokio::time::timeout`.
#[derive(Debug)]
pub(crate) struct OwnTimeout<P>(PhantomData<fn() -> P>);

impl<P: HasOwnTimeout> Peer for OwnTimeout<P> {
    const NAME: &'static str = P::OWN_NAME;
    const CRATE: &'static str = P::CRATE;

    type Sender<T: Message> = P::Sender<T>;
    type Receiver<T: Message> = P::Receiver<T>;
    type Token = P::Token;

    fn bounded<T: Message>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>) {
        P::bounded(capacity)
    }

    fn another<T: Message>(rx: &Self::Receiver<T>) -> Option<Self::Receiver<T>> {
        P::another(rx)
    }

    #[inline]
    fn try_send<T: Message>(tx: &Self::Sender<T>, value: T) -> bool {
        P::try_send(tx, value)
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut Self::Receiver<T>) -> Option<T> {
        P::try_recv(rx)
    }

    #[inline]
    fn send<T: Message>(tx: &Self::Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        P::send(tx, value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Self::Receiver<T>) -> impl Future<Output: Received<T>> + Send {
        P::recv(rx)
    }

    #[inline]
    fn send_within<T: Message>(tx: &Self::Sender<T>, value: T, limit: Duration) -> impl Future<Output: Sent<T>> + Send {
        P::send_timeout(tx, value, limit)
    }

    fn send_within_owned<T: Message>(
        tx: Self::Sender<T>,
        value: T,
        limit: Duration,
    ) -> impl Future<Output: Sent<T>> + Send + 'static {
        async move { P::send_timeout(&tx, value, limit).await.outcome() }
    }
}
