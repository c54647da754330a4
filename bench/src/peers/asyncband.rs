//! asyncband: locked queues with places that are handed out in order; its mpmc and its mpsc.

use std::future::{ready, Future};

use asyncband::{mpmc, mpsc};
use tokio_util::sync::CancellationToken;

use super::{HasReserve, Line, Message, Outcome, Peer, Received, RecvFailure, SendFailure, Sent, TryLine, Unbounded};

#[derive(Debug)]
pub(crate) struct Asyncband;

impl Peer for Asyncband {
    const NAME: &'static str = "asyncband";
    const CRATE: &'static str = "asyncband";

    type Sender<T: Message> = mpmc::BoundedSender<T>;
    type Receiver<T: Message> = mpmc::BoundedReceiver<T>;
    type Token = CancellationToken;

    fn bounded<T: Message>(capacity: usize) -> (mpmc::BoundedSender<T>, mpmc::BoundedReceiver<T>) {
        mpmc::bounded(capacity)
    }

    fn another<T: Message>(rx: &mpmc::BoundedReceiver<T>) -> Option<mpmc::BoundedReceiver<T>> {
        Some(rx.clone())
    }

    #[inline]
    fn try_send<T: Message>(tx: &mpmc::BoundedSender<T>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut mpmc::BoundedReceiver<T>) -> Option<T> {
        rx.try_recv().ok()
    }

    #[inline]
    fn send<T: Message>(tx: &mpmc::BoundedSender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut mpmc::BoundedReceiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl HasReserve for Asyncband {
    const RESERVE_NAME: &'static str = "asyncband+reserve";
    type Permit<'a, T: Message> = mpmc::Permit<'a, T>;

    async fn reserve<T: Message>(tx: &mpmc::BoundedSender<T>) -> Option<mpmc::Permit<'_, T>> {
        tx.reserve().await.ok()
    }

    fn fill<T: Message>(permit: mpmc::Permit<'_, T>, value: T) -> Outcome<T> {
        permit.send(value).outcome()
    }
}

#[derive(Debug)]
pub(crate) struct AsyncbandMpsc;

impl Peer for AsyncbandMpsc {
    const NAME: &'static str = "asyncband-mpsc";
    const CRATE: &'static str = "asyncband";

    type Sender<T: Message> = mpsc::BoundedSender<T>;
    type Receiver<T: Message> = mpsc::BoundedReceiver<T>;
    type Token = CancellationToken;

    fn bounded<T: Message>(capacity: usize) -> (mpsc::BoundedSender<T>, mpsc::BoundedReceiver<T>) {
        mpsc::bounded(capacity)
    }

    fn another<T: Message>(_: &mpsc::BoundedReceiver<T>) -> Option<mpsc::BoundedReceiver<T>> {
        None
    }

    #[inline]
    fn try_send<T: Message>(tx: &mpsc::BoundedSender<T>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut mpsc::BoundedReceiver<T>) -> Option<T> {
        rx.try_recv().ok()
    }

    #[inline]
    fn send<T: Message>(tx: &mpsc::BoundedSender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut mpsc::BoundedReceiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

#[derive(Debug)]
pub(crate) struct AsyncbandUnbounded;

impl Line for AsyncbandUnbounded {
    const NAME: &'static str = <Asyncband as Peer>::NAME;
    const CRATE: &'static str = <Asyncband as Peer>::CRATE;

    type Sender<T: Message> = mpmc::UnboundedSender<T>;
    type Receiver<T: Message> = mpmc::UnboundedReceiver<T>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(tx: &mpmc::UnboundedSender<T>) -> Option<mpmc::UnboundedSender<T>> {
        Some(tx.clone())
    }

    fn another<T: Message>(rx: &mpmc::UnboundedReceiver<T>) -> Option<mpmc::UnboundedReceiver<T>> {
        Some(rx.clone())
    }

    #[inline]
    fn send<T: Message>(tx: &mut mpmc::UnboundedSender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        ready(tx.send(value))
    }

    #[inline]
    fn recv<T: Message>(rx: &mut mpmc::UnboundedReceiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl TryLine for AsyncbandUnbounded {
    #[inline]
    fn try_send<T: Message>(tx: &mut mpmc::UnboundedSender<T>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut mpmc::UnboundedReceiver<T>) -> Option<T> {
        rx.try_recv().ok()
    }
}

impl Unbounded for AsyncbandUnbounded {
    fn unbounded<T: Message>() -> (mpmc::UnboundedSender<T>, mpmc::UnboundedReceiver<T>) {
        mpmc::unbounded()
    }
}

#[derive(Debug)]
pub(crate) struct AsyncbandMpscUnbounded;

impl Line for AsyncbandMpscUnbounded {
    const NAME: &'static str = <AsyncbandMpsc as Peer>::NAME;
    const CRATE: &'static str = <AsyncbandMpsc as Peer>::CRATE;

    type Sender<T: Message> = mpsc::UnboundedSender<T>;
    type Receiver<T: Message> = mpsc::UnboundedReceiver<T>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(tx: &mpsc::UnboundedSender<T>) -> Option<mpsc::UnboundedSender<T>> {
        Some(tx.clone())
    }

    fn another<T: Message>(_: &mpsc::UnboundedReceiver<T>) -> Option<mpsc::UnboundedReceiver<T>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut mpsc::UnboundedSender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        ready(tx.send(value))
    }

    #[inline]
    fn recv<T: Message>(rx: &mut mpsc::UnboundedReceiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl TryLine for AsyncbandMpscUnbounded {
    #[inline]
    fn try_send<T: Message>(tx: &mut mpsc::UnboundedSender<T>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut mpsc::UnboundedReceiver<T>) -> Option<T> {
        rx.try_recv().ok()
    }
}

impl Unbounded for AsyncbandMpscUnbounded {
    fn unbounded<T: Message>() -> (mpsc::UnboundedSender<T>, mpsc::UnboundedReceiver<T>) {
        mpsc::unbounded()
    }
}

impl<T> SendFailure<T> for mpmc::SendError<T> {
    fn value(self) -> Option<T> {
        Some(self.into_inner())
    }
}

impl<T> SendFailure<T> for mpsc::SendError<T> {
    fn value(self) -> Option<T> {
        Some(self.into_inner())
    }
}

impl RecvFailure for mpmc::RecvError {}
impl RecvFailure for mpsc::RecvError {}
