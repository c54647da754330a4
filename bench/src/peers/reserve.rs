//! A peer that hands out a place before it takes the value: a limited send keeps its value then.

use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use ::tokio::time::timeout;

use super::{Message, Outcome, Peer, Received, Sent, Token};

/// A peer that has a `reserve`.
pub(crate) trait HasReserve: Peer {
    const RESERVE_NAME: &'static str;
    type Permit<'a, T: Message>: Send;

    /// `None`: closed.
    fn reserve<T: Message>(tx: &Self::Sender<T>) -> impl Future<Output = Option<Self::Permit<'_, T>>> + Send;
    fn fill<T: Message>(permit: Self::Permit<'_, T>, value: T) -> Outcome<T>;
}

/// The peer, its limited sends by `reserve`; the plain ones are its own.
#[derive(Debug)]
pub(crate) struct Reserving<P>(PhantomData<fn() -> P>);

impl<P: HasReserve> Peer for Reserving<P> {
    const NAME: &'static str = P::RESERVE_NAME;
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

    fn send_within<T: Message>(tx: &Self::Sender<T>, value: T, limit: Duration) -> impl Future<Output: Sent<T>> + Send {
        async move {
            match timeout(limit, P::reserve(tx)).await {
                Ok(Some(permit)) => P::fill(permit, value),
                Ok(None) | Err(_) => Outcome::Returned(value),
            }
        }
    }

    fn send_until<'a, T: Message>(
        tx: &'a Self::Sender<T>,
        value: T,
        token: &'a Self::Token,
    ) -> impl Future<Output: Sent<T>> + Send {
        async move {
            match Self::Token::limit(token, P::reserve(tx)).await {
                Ok(Some(permit)) => P::fill(permit, value),
                Ok(None) | Err(_) => Outcome::Returned(value),
            }
        }
    }
}
