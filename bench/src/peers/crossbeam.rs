//! crossbeam-channel: plain threads only.

use crossbeam_channel::{bounded, Receiver, Sender};

use super::{BlockingPeer, Message};

#[derive(Debug)]
pub(crate) struct Crossbeam;

impl BlockingPeer for Crossbeam {
    const NAME: &'static str = "crossbeam-channel";
    const HAS_RENDEZVOUS: bool = true;

    type Sender<T: Message> = Sender<T>;
    type Receiver<T: Message> = Receiver<T>;

    fn bounded<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
        bounded(capacity)
    }

    fn another<T: Message>(rx: &Receiver<T>) -> Option<Receiver<T>> {
        Some(rx.clone())
    }

    #[inline]
    fn send<T: Message>(tx: &Sender<T>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Receiver<T>) -> Option<T> {
        rx.recv().ok()
    }
}
