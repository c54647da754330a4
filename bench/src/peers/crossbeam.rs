//! crossbeam-channel: plain threads only.

use crossbeam_channel::{bounded, unbounded, Receiver, Sender};

use super::{BlockingLine, BlockingPeer, BlockingUnbounded, Message};

#[derive(Debug)]
pub(crate) struct Crossbeam;

impl BlockingLine for Crossbeam {
    const NAME: &'static str = "crossbeam-channel";

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

impl BlockingPeer for Crossbeam {
    const HAS_RENDEZVOUS: bool = true;

    fn bounded<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        bounded(capacity)
    }
}

impl BlockingUnbounded for Crossbeam {
    fn unbounded<T: Message>() -> (Sender<T>, Receiver<T>) {
        unbounded()
    }
}
