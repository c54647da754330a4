//! thingbuf: a ring whose slots are reused, one receiver. A value takes the place of the slot's last one, so values have a
//! `Default` and are cloned or reset by their slot.

use std::future::Future;

use thingbuf::mpsc::errors::Closed;
use thingbuf::mpsc::{blocking, channel, Receiver, Sender};
use tokio_util::sync::CancellationToken;

use super::{BlockingLine, BlockingPeer, Message, Peer, Received, SendFailure, Sent};

#[derive(Debug)]
pub(crate) struct Thingbuf;

impl Peer for Thingbuf {
    const NAME: &'static str = "thingbuf";
    const CRATE: &'static str = "thingbuf";

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

impl BlockingLine for Thingbuf {
    const NAME: &'static str = <Thingbuf as Peer>::NAME;

    type Sender<T: Message> = blocking::Sender<T>;
    type Receiver<T: Message> = blocking::Receiver<T>;

    fn another<T: Message>(_: &blocking::Receiver<T>) -> Option<blocking::Receiver<T>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut blocking::Sender<T>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut blocking::Receiver<T>) -> Option<T> {
        rx.recv()
    }
}

impl BlockingPeer for Thingbuf {
    const HAS_RENDEZVOUS: bool = false;

    fn bounded<T: Message>(capacity: usize) -> (blocking::Sender<T>, blocking::Receiver<T>) {
        blocking::channel(capacity)
    }
}

impl<T> SendFailure<T> for Closed<T> {
    fn value(self) -> Option<T> {
        Some(self.into_inner())
    }
}
