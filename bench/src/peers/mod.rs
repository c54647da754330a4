//! The peers behind one small trait, one file each.
//!
//! Each gets the best its crate offers: its own futures without a wrapper, so that neither sizes nor times are blamed on
//! the harness. What a peer lacks is added as its users add it, with the leanest future that does so: a limit in time is
//! `tokio::time::timeout` around the operation, a token is [`UntilCancelled`].

mod async_channel;
mod asyncband;
mod blocking;
mod crossbeam;
mod crossfire;
mod fibre;
mod flume;
mod futures_channel;
mod futures_intrusive;
mod kanal;
mod line;
mod loole;
mod message;
mod own_timeout;
mod postage;
mod reserve;
mod standard;
mod tachyonix;
#[cfg(test)]
mod tests;
mod thingbuf;
mod tidegate;
mod tokio;
mod unbounded;
mod until_cancelled;

use std::future::Future;
use std::time::Duration;

use ::tokio::time::error::Elapsed;
use ::tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) use self::blocking::{each_blocking, BlockingLine, BlockingPeer, BlockingVisitor};
pub(crate) use self::line::{
    each_bounded, each_rendezvous, Bounded, BoundedVisitor, Line, Rendezvous, RendezvousVisitor, TryLine,
};
pub(crate) use self::message::{Message, Numbered, Payload};
pub(crate) use self::own_timeout::{HasOwnTimeout, OwnTimeout};
pub(crate) use self::reserve::{HasReserve, Reserving};
pub(crate) use self::unbounded::{
    each_blocking_unbounded, each_unbounded, BlockingUnbounded, BlockingUnboundedVisitor, Unbounded, UnboundedVisitor,
};
pub(crate) use self::until_cancelled::{Cancelled, UntilCancelled, UntilCancelledOwned};
use self::{
    async_channel::AsyncChannel, asyncband::Asyncband, asyncband::AsyncbandMpsc, crossfire::CrossfireMpsc,
    fibre::Fibre, flume::Flume, futures_intrusive::FuturesIntrusive, loole::Loole, tachyonix::Tachyonix,
    thingbuf::Thingbuf,
};
pub(crate) use self::{crossfire::Crossfire, kanal::Kanal, tidegate::Tidegate, tokio::Tokio};

/// A bounded asynchronous channel whose sends share one half: any number of them may wait on it.
pub(crate) trait Peer: 'static {
    /// As the filter and the tables name it.
    const NAME: &'static str;
    /// The crate, as `Cargo.lock` names it.
    const CRATE: &'static str;

    type Sender<T: Message>: Clone + Send + Sync + 'static;
    type Receiver<T: Message>: Send + 'static;
    /// What cancels its operations.
    type Token: Token;

    fn bounded<T: Message>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>);
    /// A second receiving half; `None` if the peer has one receiver only.
    fn another<T: Message>(rx: &Self::Receiver<T>) -> Option<Self::Receiver<T>>;

    /// True: sent.
    fn try_send<T: Message>(tx: &Self::Sender<T>, value: T) -> bool;
    fn try_recv<T: Message>(rx: &mut Self::Receiver<T>) -> Option<T>;
    fn send<T: Message>(tx: &Self::Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send;
    fn recv<T: Message>(rx: &mut Self::Receiver<T>) -> impl Future<Output: Received<T>> + Send;

    /// A send that has its half as its own, for a task.
    fn send_owned<T: Message>(tx: Self::Sender<T>, value: T) -> impl Future<Output: Sent<T>> + Send + 'static {
        async move { Self::send(&tx, value).await.outcome() }
    }

    fn recv_owned<T: Message>(mut rx: Self::Receiver<T>) -> impl Future<Output: Received<T>> + Send + 'static {
        async move { Self::recv(&mut rx).await.value() }
    }

    fn send_within<T: Message>(tx: &Self::Sender<T>, value: T, limit: Duration) -> impl Future<Output: Sent<T>> + Send {
        timeout(limit, Self::send(tx, value))
    }

    fn recv_within<T: Message>(rx: &mut Self::Receiver<T>, limit: Duration) -> impl Future<Output: Received<T>> + Send {
        timeout(limit, Self::recv(rx))
    }

    fn send_within_owned<T: Message>(
        tx: Self::Sender<T>,
        value: T,
        limit: Duration,
    ) -> impl Future<Output: Sent<T>> + Send + 'static {
        timeout(limit, Self::send_owned(tx, value))
    }

    fn send_until<'a, T: Message>(
        tx: &'a Self::Sender<T>,
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

    fn send_until_owned<T: Message>(
        tx: Self::Sender<T>,
        value: T,
        token: Self::Token,
    ) -> impl Future<Output: Sent<T>> + Send + 'static {
        Self::Token::limit_owned(token, Self::send_owned(tx, value))
    }

    /// Both limits.
    fn send_limited<'a, T: Message>(
        tx: &'a Self::Sender<T>,
        value: T,
        limit: Duration,
        token: &'a Self::Token,
    ) -> impl Future<Output: Sent<T>> + Send {
        Self::Token::limit(token, Self::send_within(tx, value, limit))
    }

    fn send_limited_owned<T: Message>(
        tx: Self::Sender<T>,
        value: T,
        limit: Duration,
        token: Self::Token,
    ) -> impl Future<Output: Sent<T>> + Send + 'static {
        Self::Token::limit_owned(token, Self::send_within_owned(tx, value, limit))
    }
}

/// A token that can limit any future.
pub(crate) trait Token: Clone + Send + Sync + 'static {
    fn new() -> Self;

    fn cancel(&self);

    fn limit<'a, F: Future + Send + 'a>(
        token: &'a Self,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Cancelled>> + Send;

    fn limit_owned<F: Future + Send + 'static>(
        token: Self,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Cancelled>> + Send + 'static;
}

impl Token for CancellationToken {
    fn new() -> Self {
        CancellationToken::new()
    }

    fn cancel(&self) {
        CancellationToken::cancel(self);
    }

    #[inline]
    fn limit<'a, F: Future + Send + 'a>(
        token: &'a Self,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Cancelled>> + Send {
        UntilCancelled::on(token, future)
    }

    fn limit_owned<F: Future + Send + 'static>(
        token: Self,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Cancelled>> + Send + 'static {
        UntilCancelledOwned::on(token, future)
    }
}

/// Whoever does something for each peer.
pub(crate) trait Visitor {
    fn visit<P: Peer>(&mut self);
}

/// All peers whose sends share one half, ours first. What is missing here ([`each_bounded`] has them): crossfire's spsc
/// flavor, postage and futures-channel send with `&mut` or from one half only.
pub(crate) fn each(visitor: &mut impl Visitor) {
    visitor.visit::<Tidegate>();
    visitor.visit::<Tokio>();
    visitor.visit::<Kanal>();
    visitor.visit::<Flume>();
    visitor.visit::<AsyncChannel>();
    visitor.visit::<Crossfire>();
    visitor.visit::<CrossfireMpsc>();
    visitor.visit::<Tachyonix>();
    visitor.visit::<Thingbuf>();
    visitor.visit::<FuturesIntrusive>();
    visitor.visit::<Loole>();
    visitor.visit::<Fibre>();
    visitor.visit::<Asyncband>();
    visitor.visit::<AsyncbandMpsc>();
}

/// The peers whose own way to limit a send in time returns the value, with that way.
pub(crate) fn each_own_timeout(visitor: &mut impl Visitor) {
    visitor.visit::<OwnTimeout<Tokio>>();
    visitor.visit::<OwnTimeout<Crossfire>>();
    visitor.visit::<OwnTimeout<Tachyonix>>();
}

/// The peers that hand out a place before they take the value, in that way.
pub(crate) fn each_reserving(visitor: &mut impl Visitor) {
    visitor.visit::<Reserving<Tokio>>();
    visitor.visit::<Reserving<Asyncband>>();
}

/// The crates that are measured, as `Cargo.lock` names them.
pub(crate) fn crates() -> Vec<&'static str> {
    struct Names(Vec<&'static str>);
    impl BoundedVisitor for Names {
        fn visit<P: Bounded>(&mut self) {
            if !self.0.contains(&P::CRATE) {
                self.0.push(P::CRATE);
            }
        }
    }
    let mut names = Names(Vec::new());
    each_bounded(&mut names);
    names.0.extend(["crossbeam-channel", "tidegate-wait", "tokio-util"]);
    names.0
}

/// What became of a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome<T> {
    Sent,
    Returned(T),
    Lost,
}

/// The output of a send, limited or not: `()` under any number of `Result`s.
pub(crate) trait Sent<T> {
    fn outcome(self) -> Outcome<T>;
}

/// The error of a send: with or without the value.
pub(crate) trait SendFailure<T> {
    fn value(self) -> Option<T>;
}

impl<T> Sent<T> for Outcome<T> {
    fn outcome(self) -> Outcome<T> {
        self
    }
}

impl<T> Sent<T> for () {
    #[inline]
    fn outcome(self) -> Outcome<T> {
        Outcome::Sent
    }
}

impl<T, S: Sent<T>, E: SendFailure<T>> Sent<T> for Result<S, E> {
    #[inline]
    fn outcome(self) -> Outcome<T> {
        match self {
            Ok(sent) => sent.outcome(),
            Err(failure) => failure.value().map_or(Outcome::Lost, Outcome::Returned),
        }
    }
}

impl<T> SendFailure<T> for Elapsed {
    fn value(self) -> Option<T> {
        None
    }
}

impl<T> SendFailure<T> for Cancelled {
    fn value(self) -> Option<T> {
        None
    }
}

/// The output of a receive, limited or not.
pub(crate) trait Received<T> {
    fn value(self) -> Option<T>;
}

/// The error of a receive.
pub(crate) trait RecvFailure {}

impl<T> Received<T> for Option<T> {
    fn value(self) -> Option<T> {
        self
    }
}

impl<T, E: RecvFailure> Received<T> for Result<T, E> {
    fn value(self) -> Option<T> {
        self.ok()
    }
}

impl<T, R: Received<T>> Received<T> for Result<R, Elapsed> {
    fn value(self) -> Option<T> {
        self.ok().and_then(R::value)
    }
}

impl<T, R: Received<T>> Received<T> for Result<R, Cancelled> {
    fn value(self) -> Option<T> {
        self.ok().and_then(R::value)
    }
}
