//! The standard library's `mpsc`: plain threads only, one receiver.

use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};

use super::{BlockingLine, BlockingPeer, BlockingUnbounded, Message};

#[derive(Debug)]
pub(crate) struct Standard;

impl BlockingLine for Standard {
    const NAME: &'static str = "std-mpsc";

    type Sender<T: Message> = SyncSender<T>;
    type Receiver<T: Message> = Receiver<T>;

    fn another<T: Message>(_: &Receiver<T>) -> Option<Receiver<T>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut SyncSender<T>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Receiver<T>) -> Option<T> {
        rx.recv().ok()
    }
}

impl BlockingPeer for Standard {
    const HAS_RENDEZVOUS: bool = true;

    fn bounded<T: Message>(capacity: usize) -> (SyncSender<T>, Receiver<T>) {
        sync_channel(capacity)
    }
}

#[derive(Debug)]
pub(crate) struct StandardUnbounded;

impl BlockingLine for StandardUnbounded {
    const NAME: &'static str = Standard::NAME;

    type Sender<T: Message> = Sender<T>;
    type Receiver<T: Message> = Receiver<T>;

    fn another<T: Message>(_: &Receiver<T>) -> Option<Receiver<T>> {
        None
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

impl BlockingUnbounded for StandardUnbounded {
    fn unbounded<T: Message>() -> (Sender<T>, Receiver<T>) {
        channel()
    }
}
