//! The standard library's `mpsc`: plain threads only, one receiver.

use std::sync::mpsc::{sync_channel, Receiver, SyncSender};

use super::{BlockingLine, BlockingPeer, Message};

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
