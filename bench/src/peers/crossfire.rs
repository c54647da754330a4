//! crossfire's flavors: lock-free rings with weak wakers; mpmc, mpsc, and spsc, which has one half of each.

use std::future::Future;
use std::sync::Once;
use std::time::Duration;

use crossfire::mpmc::{self, Array};
use crossfire::{
    mpsc, spsc, AsyncRx, AsyncTx, MAsyncRx, MAsyncTx, MRx, MTx, RecvError, Rx, SendError, SendTimeoutError,
};
use tokio_util::sync::CancellationToken;

use super::{
    BlockingLine, BlockingPeer, Bounded, HasOwnTimeout, Line, Message, Peer, Received, RecvFailure, SendFailure, Sent,
    TryLine,
};

#[derive(Debug)]
pub(crate) struct Crossfire;

impl Peer for Crossfire {
    const NAME: &'static str = "crossfire";
    const CRATE: &'static str = "crossfire";

    type Sender<T: Message> = MAsyncTx<Array<T>>;
    type Receiver<T: Message> = MAsyncRx<Array<T>>;
    type Token = CancellationToken;

    fn bounded<T: Message>(capacity: usize) -> (MAsyncTx<Array<T>>, MAsyncRx<Array<T>>) {
        detect_machine();
        mpmc::bounded_async(capacity)
    }

    fn another<T: Message>(rx: &MAsyncRx<Array<T>>) -> Option<MAsyncRx<Array<T>>> {
        Some(rx.clone())
    }

    #[inline]
    fn try_send<T: Message>(tx: &MAsyncTx<Array<T>>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut MAsyncRx<Array<T>>) -> Option<T> {
        rx.try_recv().ok()
    }

    #[inline]
    fn send<T: Message>(tx: &MAsyncTx<Array<T>>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut MAsyncRx<Array<T>>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl HasOwnTimeout for Crossfire {
    const OWN_NAME: &'static str = "crossfire+send_timeout";

    #[inline]
    fn send_timeout<T: Message>(
        tx: &MAsyncTx<Array<T>>,
        value: T,
        limit: Duration,
    ) -> impl Future<Output: Sent<T>> + Send {
        tx.send_timeout(value, limit)
    }
}

impl BlockingLine for Crossfire {
    const NAME: &'static str = <Crossfire as Peer>::NAME;

    type Sender<T: Message> = MTx<Array<T>>;
    type Receiver<T: Message> = MRx<Array<T>>;

    fn another<T: Message>(rx: &MRx<Array<T>>) -> Option<MRx<Array<T>>> {
        Some(rx.clone())
    }

    #[inline]
    fn send<T: Message>(tx: &mut MTx<Array<T>>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut MRx<Array<T>>) -> Option<T> {
        rx.recv().ok()
    }
}

impl BlockingPeer for Crossfire {
    const HAS_RENDEZVOUS: bool = false;

    fn bounded<T: Message>(capacity: usize) -> (MTx<Array<T>>, MRx<Array<T>>) {
        detect_machine();
        mpmc::bounded_blocking(capacity)
    }
}

#[derive(Debug)]
pub(crate) struct CrossfireMpsc;

impl Peer for CrossfireMpsc {
    const NAME: &'static str = "crossfire-mpsc";
    const CRATE: &'static str = "crossfire";

    type Sender<T: Message> = MAsyncTx<mpsc::Array<T>>;
    type Receiver<T: Message> = AsyncRx<mpsc::Array<T>>;
    type Token = CancellationToken;

    fn bounded<T: Message>(capacity: usize) -> (MAsyncTx<mpsc::Array<T>>, AsyncRx<mpsc::Array<T>>) {
        detect_machine();
        mpsc::bounded_async(capacity)
    }

    fn another<T: Message>(_: &AsyncRx<mpsc::Array<T>>) -> Option<AsyncRx<mpsc::Array<T>>> {
        None
    }

    #[inline]
    fn try_send<T: Message>(tx: &MAsyncTx<mpsc::Array<T>>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut AsyncRx<mpsc::Array<T>>) -> Option<T> {
        rx.try_recv().ok()
    }

    #[inline]
    fn send<T: Message>(tx: &MAsyncTx<mpsc::Array<T>>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut AsyncRx<mpsc::Array<T>>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl BlockingLine for CrossfireMpsc {
    const NAME: &'static str = <CrossfireMpsc as Peer>::NAME;

    type Sender<T: Message> = MTx<mpsc::Array<T>>;
    type Receiver<T: Message> = Rx<mpsc::Array<T>>;

    fn another<T: Message>(_: &Rx<mpsc::Array<T>>) -> Option<Rx<mpsc::Array<T>>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut MTx<mpsc::Array<T>>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Rx<mpsc::Array<T>>) -> Option<T> {
        rx.recv().ok()
    }
}

impl BlockingPeer for CrossfireMpsc {
    const HAS_RENDEZVOUS: bool = false;

    fn bounded<T: Message>(capacity: usize) -> (MTx<mpsc::Array<T>>, Rx<mpsc::Array<T>>) {
        detect_machine();
        mpsc::bounded_blocking(capacity)
    }
}

#[derive(Debug)]
pub(crate) struct CrossfireSpsc;

impl Line for CrossfireSpsc {
    const NAME: &'static str = "crossfire-spsc";
    const CRATE: &'static str = "crossfire";

    type Sender<T: Message> = AsyncTx<spsc::Array<T>>;
    type Receiver<T: Message> = AsyncRx<spsc::Array<T>>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(_: &AsyncTx<spsc::Array<T>>) -> Option<AsyncTx<spsc::Array<T>>> {
        None
    }

    fn another<T: Message>(_: &AsyncRx<spsc::Array<T>>) -> Option<AsyncRx<spsc::Array<T>>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut AsyncTx<spsc::Array<T>>, value: T) -> impl Future<Output: Sent<T>> + Send {
        tx.send(value)
    }

    #[inline]
    fn recv<T: Message>(rx: &mut AsyncRx<spsc::Array<T>>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl Bounded for CrossfireSpsc {
    fn bounded<T: Message>(capacity: usize) -> (AsyncTx<spsc::Array<T>>, AsyncRx<spsc::Array<T>>) {
        detect_machine();
        spsc::bounded_async(capacity)
    }
}

impl TryLine for CrossfireSpsc {
    #[inline]
    fn try_send<T: Message>(tx: &mut AsyncTx<spsc::Array<T>>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut AsyncRx<spsc::Array<T>>) -> Option<T> {
        rx.try_recv().ok()
    }
}

impl<T> SendFailure<T> for SendError<T> {
    fn value(self) -> Option<T> {
        Some(self.0)
    }
}

impl<T> SendFailure<T> for SendTimeoutError<T> {
    fn value(self) -> Option<T> {
        Some(match self {
            SendTimeoutError::Timeout(value) | SendTimeoutError::Disconnected(value) => value,
        })
    }
}

impl RecvFailure for RecvError {}

/// What its documentation asks a program to do once.
fn detect_machine() {
    static ONCE: Once = Once::new();
    ONCE.call_once(crossfire::detect_backoff_cfg);
}
