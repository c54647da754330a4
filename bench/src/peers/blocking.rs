//! The peers on plain threads.

use super::async_channel::AsyncChannel;
use super::crossbeam::Crossbeam;
use super::crossfire::{Crossfire, CrossfireMpsc};
use super::fibre::Fibre;
use super::flume::Flume;
use super::loole::Loole;
use super::standard::Standard;
use super::thingbuf::Thingbuf;
use super::{Kanal, Message, Tidegate, Tokio};

/// Two halves whose operations block the thread.
pub(crate) trait BlockingLine: 'static {
    /// As the filter and the tables name it.
    const NAME: &'static str;

    type Sender<T: Message>: Clone + Send + 'static;
    type Receiver<T: Message>: Send + 'static;

    /// A second receiving half; `None` if the peer has one receiver only.
    fn another<T: Message>(rx: &Self::Receiver<T>) -> Option<Self::Receiver<T>>;
    /// True: sent. False: closed.
    fn send<T: Message>(tx: &mut Self::Sender<T>, value: T) -> bool;
    /// `None`: closed.
    fn recv<T: Message>(rx: &mut Self::Receiver<T>) -> Option<T>;
}

/// A channel with a bound.
pub(crate) trait BlockingPeer: BlockingLine {
    /// Does capacity 0 mean that each value is handed over?
    const HAS_RENDEZVOUS: bool;

    fn bounded<T: Message>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>);
}

/// Whoever does something for each of them.
pub(crate) trait BlockingVisitor {
    fn visit<P: BlockingPeer>(&mut self);
}

/// All of them, ours first. What is missing: asyncband, futures-channel, futures-intrusive and tachyonix do not block a
/// thread by themselves, and postage parks with `&mut`.
pub(crate) fn each_blocking(visitor: &mut impl BlockingVisitor) {
    visitor.visit::<Tidegate>();
    visitor.visit::<Tokio>();
    visitor.visit::<Kanal>();
    visitor.visit::<Flume>();
    visitor.visit::<AsyncChannel>();
    visitor.visit::<Crossfire>();
    visitor.visit::<CrossfireMpsc>();
    visitor.visit::<Crossbeam>();
    visitor.visit::<Standard>();
    visitor.visit::<Loole>();
    visitor.visit::<Fibre>();
    visitor.visit::<Thingbuf>();
}
