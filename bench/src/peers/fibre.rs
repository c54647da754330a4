//! fibre's mpmc: a locked buffer with room for what is cancelled; its rendezvous is a type of its own.
//!
//! Of a failed send nothing comes back: its error has no value.

use std::future::Future;

use fibre::error::{RecvError, SendError};
use fibre::mpmc::{bounded, bounded_async, rendezvous, AsyncReceiver, AsyncSender, Receiver, Sender};
use tokio_util::sync::CancellationToken;

use super::{BlockingLine, BlockingPeer, Line, Message, Peer, Received, RecvFailure, Rendezvous, SendFailure, Sent};

#[derive(Debug)]
pub(crate) struct Fibre;

impl Peer for Fibre {
    const NAME: &'static str = "fibre";
    const CRATE: &'static str = "fibre";

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
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut AsyncReceiver<T>) -> Option<T> {
        rx.try_recv().ok()
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

#[derive(Debug)]
pub(crate) struct FibreRendezvous;

impl Line for FibreRendezvous {
    const NAME: &'static str = <Fibre as Peer>::NAME;
    const CRATE: &'static str = <Fibre as Peer>::CRATE;

    type Sender<T: Message> = rendezvous::RendezvousAsyncSender<T>;
    type Receiver<T: Message> = rendezvous::RendezvousAsyncReceiver<T>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(tx: &Self::Sender<T>) -> Option<Self::Sender<T>> {
        Some(tx.clone())
    }

    fn another<T: Message>(rx: &Self::Receiver<T>) -> Option<Self::Receiver<T>> {
        Some(rx.clone())
    }

    #[inline]
    fn send<T: Message>(tx: &mut Self::Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Self::Receiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl Rendezvous for FibreRendezvous {
    fn rendezvous<T: Message>() -> (Self::Sender<T>, Self::Receiver<T>) {
        rendezvous::rendezvous_async()
    }
}

impl BlockingLine for Fibre {
    const NAME: &'static str = <Fibre as Peer>::NAME;

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

impl BlockingPeer for Fibre {
    // Its rendezvous for threads is a third type; the tasks' one is measured.
    const HAS_RENDEZVOUS: bool = false;

    fn bounded<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        bounded(capacity)
    }
}

impl<T> SendFailure<T> for SendError {
    fn value(self) -> Option<T> {
        None
    }
}

impl RecvFailure for RecvError {}
