//! fibre's mpmc: a locked buffer with room for what is cancelled; its rendezvous is a type of its own, and so are its
//! channels without a bound, mpmc and mpsc, which send with `&mut`.
//!
//! Of a failed send nothing comes back: its error has no value.

use std::future::Future;

use fibre::error::{RecvError, SendError};
use fibre::mpmc::{self, bounded, bounded_async, rendezvous, AsyncReceiver, AsyncSender, Receiver, Sender};
use fibre::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    BlockingLine, BlockingPeer, BlockingUnbounded, Line, Message, Peer, Received, RecvFailure, Rendezvous, SendFailure,
    Sent, TryLine, Unbounded,
};

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

#[derive(Debug)]
pub(crate) struct FibreUnbounded;

impl Line for FibreUnbounded {
    const NAME: &'static str = <Fibre as Peer>::NAME;
    const CRATE: &'static str = <Fibre as Peer>::CRATE;

    type Sender<T: Message> = mpmc::UnboundedAsyncSender<T>;
    type Receiver<T: Message> = mpmc::UnboundedAsyncReceiver<T>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(tx: &mpmc::UnboundedAsyncSender<T>) -> Option<mpmc::UnboundedAsyncSender<T>> {
        Some(tx.clone())
    }

    fn another<T: Message>(rx: &mpmc::UnboundedAsyncReceiver<T>) -> Option<mpmc::UnboundedAsyncReceiver<T>> {
        Some(rx.clone())
    }

    #[inline]
    fn send<T: Message>(tx: &mut mpmc::UnboundedAsyncSender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut mpmc::UnboundedAsyncReceiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl TryLine for FibreUnbounded {
    #[inline]
    fn try_send<T: Message>(tx: &mut mpmc::UnboundedAsyncSender<T>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut mpmc::UnboundedAsyncReceiver<T>) -> Option<T> {
        rx.try_recv().ok()
    }
}

impl Unbounded for FibreUnbounded {
    fn unbounded<T: Message>() -> (mpmc::UnboundedAsyncSender<T>, mpmc::UnboundedAsyncReceiver<T>) {
        mpmc::unbounded_async()
    }
}

impl BlockingLine for FibreUnbounded {
    const NAME: &'static str = <Fibre as Peer>::NAME;

    type Sender<T: Message> = mpmc::UnboundedSyncSender<T>;
    type Receiver<T: Message> = mpmc::UnboundedSyncReceiver<T>;

    fn another<T: Message>(rx: &mpmc::UnboundedSyncReceiver<T>) -> Option<mpmc::UnboundedSyncReceiver<T>> {
        Some(rx.clone())
    }

    #[inline]
    fn send<T: Message>(tx: &mut mpmc::UnboundedSyncSender<T>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut mpmc::UnboundedSyncReceiver<T>) -> Option<T> {
        rx.recv().ok()
    }
}

impl BlockingUnbounded for FibreUnbounded {
    fn unbounded<T: Message>() -> (mpmc::UnboundedSyncSender<T>, mpmc::UnboundedSyncReceiver<T>) {
        mpmc::unbounded()
    }
}

/// Of its mpsc only this is measured.
#[derive(Debug)]
pub(crate) struct FibreMpscUnbounded;

impl Line for FibreMpscUnbounded {
    const NAME: &'static str = "fibre-mpsc";
    const CRATE: &'static str = <Fibre as Peer>::CRATE;

    type Sender<T: Message> = mpsc::UnboundedAsyncSender<T>;
    type Receiver<T: Message> = mpsc::UnboundedAsyncReceiver<T>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(tx: &mpsc::UnboundedAsyncSender<T>) -> Option<mpsc::UnboundedAsyncSender<T>> {
        Some(tx.clone())
    }

    fn another<T: Message>(_: &mpsc::UnboundedAsyncReceiver<T>) -> Option<mpsc::UnboundedAsyncReceiver<T>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut mpsc::UnboundedAsyncSender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut mpsc::UnboundedAsyncReceiver<T>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl TryLine for FibreMpscUnbounded {
    #[inline]
    fn try_send<T: Message>(tx: &mut mpsc::UnboundedAsyncSender<T>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut mpsc::UnboundedAsyncReceiver<T>) -> Option<T> {
        rx.try_recv().ok()
    }
}

impl Unbounded for FibreMpscUnbounded {
    fn unbounded<T: Message>() -> (mpsc::UnboundedAsyncSender<T>, mpsc::UnboundedAsyncReceiver<T>) {
        mpsc::unbounded_async()
    }
}

impl BlockingLine for FibreMpscUnbounded {
    const NAME: &'static str = <FibreMpscUnbounded as Line>::NAME;

    type Sender<T: Message> = mpsc::UnboundedSyncSender<T>;
    type Receiver<T: Message> = mpsc::UnboundedSyncReceiver<T>;

    fn another<T: Message>(_: &mpsc::UnboundedSyncReceiver<T>) -> Option<mpsc::UnboundedSyncReceiver<T>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut mpsc::UnboundedSyncSender<T>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut mpsc::UnboundedSyncReceiver<T>) -> Option<T> {
        rx.recv().ok()
    }
}

impl BlockingUnbounded for FibreMpscUnbounded {
    fn unbounded<T: Message>() -> (mpsc::UnboundedSyncSender<T>, mpsc::UnboundedSyncReceiver<T>) {
        mpsc::unbounded()
    }
}

impl<T> SendFailure<T> for SendError {
    fn value(self) -> Option<T> {
        None
    }
}

impl RecvFailure for RecvError {}
