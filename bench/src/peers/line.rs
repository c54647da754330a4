//! Channels as two halves, each used by one task at a time: the least that any peer offers.
//!
//! Every [`Peer`] is one. Those that are no `Peer` send with `&mut` (postage, futures-channel) or from one half that has
//! no second (crossfire's spsc flavor); a load that parks many sends on one half leaves them out.

use std::future::Future;
use std::time::Duration;

use ::tokio::time::timeout;

use super::crossfire::{Crossfire, CrossfireMpsc, CrossfireSpsc};
use super::fibre::{Fibre, FibreRendezvous};
use super::futures_channel::FuturesChannel;
use super::futures_intrusive::FuturesIntrusive;
use super::postage::{Postage, PostageDispatch};
use super::{
    AsyncChannel, Asyncband, AsyncbandMpsc, Flume, Kanal, Loole, Message, Peer, Received, Sent, Tachyonix, Thingbuf,
    Tidegate, Token, Tokio,
};

/// Two halves and what they can do.
pub(crate) trait Line: 'static {
    /// As the filter and the tables name it.
    const NAME: &'static str;
    /// The crate, as `Cargo.lock` names it.
    const CRATE: &'static str;

    type Sender<T: Message>: Send + 'static;
    type Receiver<T: Message>: Send + 'static;
    /// What cancels its operations.
    type Token: Token;

    /// A second sending half; `None` if there is one sender only.
    fn another_sender<T: Message>(tx: &Self::Sender<T>) -> Option<Self::Sender<T>>;
    /// A second receiving half; `None` if there is one receiver only.
    fn another<T: Message>(rx: &Self::Receiver<T>) -> Option<Self::Receiver<T>>;

    fn send<T: Message>(tx: &mut Self::Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send;
    fn recv<T: Message>(rx: &mut Self::Receiver<T>) -> impl Future<Output: Received<T>> + Send;

    fn send_within<T: Message>(
        tx: &mut Self::Sender<T>,
        value: T,
        limit: Duration,
    ) -> impl Future<Output: Sent<T>> + Send {
        timeout(limit, Self::send(tx, value))
    }

    fn recv_within<T: Message>(rx: &mut Self::Receiver<T>, limit: Duration) -> impl Future<Output: Received<T>> + Send {
        timeout(limit, Self::recv(rx))
    }

    fn send_until<'a, T: Message>(
        tx: &'a mut Self::Sender<T>,
        value: T,
        token: &'a Self::Token,
    ) -> impl Future<Output: Sent<T>> + Send {
        Self::Token::limit(token, Self::send(tx, value))
    }

    fn recv_until<'a, T: Message>(
        rx: &'a mut Self::Receiver<T>,
        token: &'a Self::Token,
    ) -> impl Future<Output: Received<T>> + Send {
        Self::Token::limit(token, Self::recv(rx))
    }
}

/// A line of which one can ask without waiting.
pub(crate) trait TryLine: Line {
    /// True: sent.
    fn try_send<T: Message>(tx: &mut Self::Sender<T>, value: T) -> bool;
    fn try_recv<T: Message>(rx: &mut Self::Receiver<T>) -> Option<T>;
}

/// A line with a buffer.
pub(crate) trait Bounded: TryLine {
    fn bounded<T: Message>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>);
}

/// A line without one: a send ends when a receive has the value. It is not asked without waiting: futures-intrusive's
/// `try_send` panics here.
pub(crate) trait Rendezvous: Line {
    fn rendezvous<T: Message>() -> (Self::Sender<T>, Self::Receiver<T>);
}

impl<P: Peer> Line for P {
    const NAME: &'static str = P::NAME;
    const CRATE: &'static str = P::CRATE;

    type Sender<T: Message> = P::Sender<T>;
    type Receiver<T: Message> = P::Receiver<T>;
    type Token = P::Token;

    fn another_sender<T: Message>(tx: &P::Sender<T>) -> Option<P::Sender<T>> {
        Some(tx.clone())
    }

    fn another<T: Message>(rx: &P::Receiver<T>) -> Option<P::Receiver<T>> {
        P::another(rx)
    }

    #[inline]
    fn send<T: Message>(tx: &mut P::Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send {
        P::send(tx, value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut P::Receiver<T>) -> impl Future<Output: Received<T>> + Send {
        P::recv(rx)
    }

    #[inline]
    fn send_within<T: Message>(
        tx: &mut P::Sender<T>,
        value: T,
        limit: Duration,
    ) -> impl Future<Output: Sent<T>> + Send {
        P::send_within(tx, value, limit)
    }

    #[inline]
    fn recv_within<T: Message>(rx: &mut P::Receiver<T>, limit: Duration) -> impl Future<Output: Received<T>> + Send {
        P::recv_within(rx, limit)
    }

    #[inline]
    fn send_until<'a, T: Message>(
        tx: &'a mut P::Sender<T>,
        value: T,
        token: &'a P::Token,
    ) -> impl Future<Output: Sent<T>> + Send {
        P::send_until(tx, value, token)
    }

    #[inline]
    fn recv_until<'a, T: Message>(
        rx: &'a mut P::Receiver<T>,
        token: &'a P::Token,
    ) -> impl Future<Output: Received<T>> + Send {
        P::recv_until(rx, token)
    }
}

impl<P: Peer> TryLine for P {
    #[inline]
    fn try_send<T: Message>(tx: &mut P::Sender<T>, value: T) -> bool {
        P::try_send(tx, value)
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut P::Receiver<T>) -> Option<T> {
        P::try_recv(rx)
    }
}

impl<P: Peer> Bounded for P {
    fn bounded<T: Message>(capacity: usize) -> (P::Sender<T>, P::Receiver<T>) {
        P::bounded(capacity)
    }
}

/// Whoever does something for each line with a buffer.
pub(crate) trait BoundedVisitor {
    fn visit<P: Bounded>(&mut self);
}

/// All of them, ours first.
pub(crate) fn each_bounded(visitor: &mut impl BoundedVisitor) {
    visitor.visit::<Tidegate>();
    visitor.visit::<Tokio>();
    visitor.visit::<Kanal>();
    visitor.visit::<Flume>();
    visitor.visit::<AsyncChannel>();
    visitor.visit::<Crossfire>();
    visitor.visit::<CrossfireMpsc>();
    visitor.visit::<CrossfireSpsc>();
    visitor.visit::<Tachyonix>();
    visitor.visit::<Thingbuf>();
    visitor.visit::<Postage>();
    visitor.visit::<PostageDispatch>();
    visitor.visit::<FuturesChannel>();
    visitor.visit::<FuturesIntrusive>();
    visitor.visit::<Loole>();
    visitor.visit::<Fibre>();
    visitor.visit::<Asyncband>();
    visitor.visit::<AsyncbandMpsc>();
}

/// Whoever does something for each line without one.
pub(crate) trait RendezvousVisitor {
    fn visit<P: Rendezvous>(&mut self);
}

/// All of them, ours first. Nobody else has one: a capacity of 0 is refused (tokio, async-channel, tachyonix, asyncband),
/// taken for 1 (crossfire) or a slot a sender (futures-channel), or holds nothing ever (postage, thingbuf).
pub(crate) fn each_rendezvous(visitor: &mut impl RendezvousVisitor) {
    visitor.visit::<Tidegate>();
    visitor.visit::<Kanal>();
    visitor.visit::<Flume>();
    visitor.visit::<FuturesIntrusive>();
    visitor.visit::<Loole>();
    visitor.visit::<FibreRendezvous>();
}
