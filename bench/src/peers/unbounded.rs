//! Channels without a bound: a send never waits.
//!
//! A peer whose sends are futures has them awaited, as on its bounded channel; where they are none, the same line calls
//! them at once and awaits [`std::future::ready`].

use super::asyncband::{AsyncbandMpscUnbounded, AsyncbandUnbounded};
use super::crossbeam::Crossbeam;
use super::crossfire::{CrossfireMpscUnbounded, CrossfireSpscUnbounded, CrossfireUnbounded};
use super::fibre::{FibreMpscUnbounded, FibreUnbounded};
use super::futures_channel::FuturesChannelUnbounded;
use super::standard::StandardUnbounded;
use super::tokio::TokioUnbounded;
use super::{AsyncChannel, BlockingLine, Flume, FuturesIntrusive, Kanal, Loole, Message, Tidegate, TryLine};

/// A line whose buffer grows. Its `try_send` is the plain send where a peer has no other.
pub(crate) trait Unbounded: TryLine {
    fn unbounded<T: Message>() -> (Self::Sender<T>, Self::Receiver<T>);
}

/// Whoever does something for each of them.
pub(crate) trait UnboundedVisitor {
    fn visit<P: Unbounded>(&mut self);
}

/// All of them, ours first. Tachyonix, thingbuf and postage have none. futures-intrusive's channel grows up to a limit that
/// nothing reaches.
pub(crate) fn each_unbounded(visitor: &mut impl UnboundedVisitor) {
    visitor.visit::<Tidegate>();
    visitor.visit::<TokioUnbounded>();
    visitor.visit::<Kanal>();
    visitor.visit::<Flume>();
    visitor.visit::<AsyncChannel>();
    visitor.visit::<CrossfireUnbounded>();
    visitor.visit::<CrossfireMpscUnbounded>();
    visitor.visit::<CrossfireSpscUnbounded>();
    visitor.visit::<FuturesChannelUnbounded>();
    visitor.visit::<FuturesIntrusive>();
    visitor.visit::<Loole>();
    visitor.visit::<FibreUnbounded>();
    visitor.visit::<FibreMpscUnbounded>();
    visitor.visit::<AsyncbandUnbounded>();
    visitor.visit::<AsyncbandMpscUnbounded>();
}

/// A channel between threads without a bound: only its receives block.
pub(crate) trait BlockingUnbounded: BlockingLine {
    fn unbounded<T: Message>() -> (Self::Sender<T>, Self::Receiver<T>);
}

/// Whoever does something for each of them.
pub(crate) trait BlockingUnboundedVisitor {
    fn visit<P: BlockingUnbounded>(&mut self);
}

/// All of them, ours first. What is missing: thingbuf has none; asyncband, futures-channel and futures-intrusive do not
/// block a thread by themselves.
pub(crate) fn each_blocking_unbounded(visitor: &mut impl BlockingUnboundedVisitor) {
    visitor.visit::<Tidegate>();
    visitor.visit::<TokioUnbounded>();
    visitor.visit::<Kanal>();
    visitor.visit::<Flume>();
    visitor.visit::<AsyncChannel>();
    visitor.visit::<CrossfireUnbounded>();
    visitor.visit::<CrossfireMpscUnbounded>();
    visitor.visit::<Crossbeam>();
    visitor.visit::<StandardUnbounded>();
    visitor.visit::<Loole>();
    visitor.visit::<FibreUnbounded>();
    visitor.visit::<FibreMpscUnbounded>();
}
