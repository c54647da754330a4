//! postage's mpsc, and its dispatch, which has many receivers. Both send and receive with `&mut`: a half waits once.

use std::future::Future;

use postage::sink::{SendError, Sink};
use postage::stream::Stream;
use postage::{dispatch, mpsc};
use tokio_util::sync::CancellationToken;

use super::{Bounded, Line, Message, Received, SendFailure, Sent, TryLine};

#[derive(Debug)]
pub(crate) struct Postage;

impl Line for Postage {
    const NAME: &'static str = "postage";
    const CRATE: &'static str = "postage";

    type Sender<T: Message> = mpsc::Sender<T>;
    type Receiver<T: Message> = mpsc::Receiver<T>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(tx: &mpsc::Sender<T>) -> Option<mpsc::Sender<T>> {
        Some(tx.clone())
    }

    fn another<T: Message>(_: &mpsc::Receiver<T>) -> Option<mpsc::Receiver<T>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut mpsc::Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut mpsc::Receiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl Bounded for Postage {
    fn bounded<T: Message>(capacity: usize) -> (mpsc::Sender<T>, mpsc::Receiver<T>) {
        mpsc::channel(capacity)
    }
}

impl TryLine for Postage {
    #[inline]
    fn try_send<T: Message>(tx: &mut mpsc::Sender<T>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut mpsc::Receiver<T>) -> Option<T> {
        rx.try_recv().ok()
    }
}

#[derive(Debug)]
pub(crate) struct PostageDispatch;

impl Line for PostageDispatch {
    const NAME: &'static str = "postage-dispatch";
    const CRATE: &'static str = "postage";

    type Sender<T: Message> = dispatch::Sender<T>;
    type Receiver<T: Message> = dispatch::Receiver<T>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(tx: &dispatch::Sender<T>) -> Option<dispatch::Sender<T>> {
        Some(tx.clone())
    }

    fn another<T: Message>(rx: &dispatch::Receiver<T>) -> Option<dispatch::Receiver<T>> {
        Some(rx.clone())
    }

    #[inline]
    fn send<T: Message>(tx: &mut dispatch::Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut dispatch::Receiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl Bounded for PostageDispatch {
    fn bounded<T: Message>(capacity: usize) -> (dispatch::Sender<T>, dispatch::Receiver<T>) {
        dispatch::channel(capacity)
    }
}

impl TryLine for PostageDispatch {
    #[inline]
    fn try_send<T: Message>(tx: &mut dispatch::Sender<T>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut dispatch::Receiver<T>) -> Option<T> {
        rx.try_recv().ok()
    }
}

impl<T> SendFailure<T> for SendError<T> {
    fn value(self) -> Option<T> {
        Some(self.0)
    }
}
