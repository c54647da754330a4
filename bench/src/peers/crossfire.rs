//! crossfire's flavors: lock-free rings with weak wakers; mpmc, mpsc, and spsc, which has one half of each. Without a bound
//! they are lists, and their sends plain.

use std::future::{ready, Future};
use std::sync::Once;
use std::time::Duration;

use crossfire::mpmc::{self, Array};
use crossfire::{
    mpsc, spsc, AsyncRx, AsyncTx, MAsyncRx, MAsyncTx, MRx, MTx, RecvError, Rx, SendError, SendTimeoutError, Tx,
};
use tokio_util::sync::CancellationToken;

use super::{
    BlockingLine, BlockingPeer, BlockingUnbounded, Bounded, HasOwnTimeout, Line, Message, Peer, Received, RecvFailure,
    SendFailure, Sent, TryLine, Unbounded,
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

#[derive(Debug)]
pub(crate) struct CrossfireUnbounded;

impl Line for CrossfireUnbounded {
    const NAME: &'static str = <Crossfire as Peer>::NAME;
    const CRATE: &'static str = <Crossfire as Peer>::CRATE;

    type Sender<T: Message> = MTx<mpmc::List<T>>;
    type Receiver<T: Message> = MAsyncRx<mpmc::List<T>>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(tx: &MTx<mpmc::List<T>>) -> Option<MTx<mpmc::List<T>>> {
        Some(tx.clone())
    }

    fn another<T: Message>(rx: &MAsyncRx<mpmc::List<T>>) -> Option<MAsyncRx<mpmc::List<T>>> {
        Some(rx.clone())
    }

    #[inline]
    fn send<T: Message>(tx: &mut MTx<mpmc::List<T>>, value: T) -> impl Future<Output: Sent<T>> + Send {
        ready(tx.send(value))
    }

    #[inline]
    fn recv<T: Message>(rx: &mut MAsyncRx<mpmc::List<T>>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl TryLine for CrossfireUnbounded {
    #[inline]
    fn try_send<T: Message>(tx: &mut MTx<mpmc::List<T>>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut MAsyncRx<mpmc::List<T>>) -> Option<T> {
        rx.try_recv().ok()
    }
}

impl Unbounded for CrossfireUnbounded {
    fn unbounded<T: Message>() -> (MTx<mpmc::List<T>>, MAsyncRx<mpmc::List<T>>) {
        detect_machine();
        mpmc::unbounded_async()
    }
}

impl BlockingLine for CrossfireUnbounded {
    const NAME: &'static str = <Crossfire as Peer>::NAME;

    type Sender<T: Message> = MTx<mpmc::List<T>>;
    type Receiver<T: Message> = MRx<mpmc::List<T>>;

    fn another<T: Message>(rx: &MRx<mpmc::List<T>>) -> Option<MRx<mpmc::List<T>>> {
        Some(rx.clone())
    }

    #[inline]
    fn send<T: Message>(tx: &mut MTx<mpmc::List<T>>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut MRx<mpmc::List<T>>) -> Option<T> {
        rx.recv().ok()
    }
}

impl BlockingUnbounded for CrossfireUnbounded {
    fn unbounded<T: Message>() -> (MTx<mpmc::List<T>>, MRx<mpmc::List<T>>) {
        detect_machine();
        mpmc::unbounded_blocking()
    }
}

#[derive(Debug)]
pub(crate) struct CrossfireMpscUnbounded;

impl Line for CrossfireMpscUnbounded {
    const NAME: &'static str = <CrossfireMpsc as Peer>::NAME;
    const CRATE: &'static str = <CrossfireMpsc as Peer>::CRATE;

    type Sender<T: Message> = MTx<mpsc::List<T>>;
    type Receiver<T: Message> = AsyncRx<mpsc::List<T>>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(tx: &MTx<mpsc::List<T>>) -> Option<MTx<mpsc::List<T>>> {
        Some(tx.clone())
    }

    fn another<T: Message>(_: &AsyncRx<mpsc::List<T>>) -> Option<AsyncRx<mpsc::List<T>>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut MTx<mpsc::List<T>>, value: T) -> impl Future<Output: Sent<T>> + Send {
        ready(tx.send(value))
    }

    #[inline]
    fn recv<T: Message>(rx: &mut AsyncRx<mpsc::List<T>>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl TryLine for CrossfireMpscUnbounded {
    #[inline]
    fn try_send<T: Message>(tx: &mut MTx<mpsc::List<T>>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut AsyncRx<mpsc::List<T>>) -> Option<T> {
        rx.try_recv().ok()
    }
}

impl Unbounded for CrossfireMpscUnbounded {
    fn unbounded<T: Message>() -> (MTx<mpsc::List<T>>, AsyncRx<mpsc::List<T>>) {
        detect_machine();
        mpsc::unbounded_async()
    }
}

impl BlockingLine for CrossfireMpscUnbounded {
    const NAME: &'static str = <CrossfireMpsc as Peer>::NAME;

    type Sender<T: Message> = MTx<mpsc::List<T>>;
    type Receiver<T: Message> = Rx<mpsc::List<T>>;

    fn another<T: Message>(_: &Rx<mpsc::List<T>>) -> Option<Rx<mpsc::List<T>>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut MTx<mpsc::List<T>>, value: T) -> bool {
        tx.send(value).is_ok()
    }

    #[inline]
    fn recv<T: Message>(rx: &mut Rx<mpsc::List<T>>) -> Option<T> {
        rx.recv().ok()
    }
}

impl BlockingUnbounded for CrossfireMpscUnbounded {
    fn unbounded<T: Message>() -> (MTx<mpsc::List<T>>, Rx<mpsc::List<T>>) {
        detect_machine();
        mpsc::unbounded_blocking()
    }
}

#[derive(Debug)]
pub(crate) struct CrossfireSpscUnbounded;

impl Line for CrossfireSpscUnbounded {
    const NAME: &'static str = CrossfireSpsc::NAME;
    const CRATE: &'static str = CrossfireSpsc::CRATE;

    type Sender<T: Message> = Tx<spsc::List<T>>;
    type Receiver<T: Message> = AsyncRx<spsc::List<T>>;
    type Token = CancellationToken;

    fn another_sender<T: Message>(_: &Tx<spsc::List<T>>) -> Option<Tx<spsc::List<T>>> {
        None
    }

    fn another<T: Message>(_: &AsyncRx<spsc::List<T>>) -> Option<AsyncRx<spsc::List<T>>> {
        None
    }

    #[inline]
    fn send<T: Message>(tx: &mut Tx<spsc::List<T>>, value: T) -> impl Future<Output: Sent<T>> + Send {
        ready(tx.send(value))
    }

    #[inline]
    fn recv<T: Message>(rx: &mut AsyncRx<spsc::List<T>>) -> impl Future<Output: Received<T>> + Send {
        rx.recv()
    }
}

impl TryLine for CrossfireSpscUnbounded {
    #[inline]
    fn try_send<T: Message>(tx: &mut Tx<spsc::List<T>>, value: T) -> bool {
        tx.try_send(value).is_ok()
    }

    #[inline]
    fn try_recv<T: Message>(rx: &mut AsyncRx<spsc::List<T>>) -> Option<T> {
        rx.try_recv().ok()
    }
}

impl Unbounded for CrossfireSpscUnbounded {
    fn unbounded<T: Message>() -> (Tx<spsc::List<T>>, AsyncRx<spsc::List<T>>) {
        detect_machine();
        spsc::unbounded_async()
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
