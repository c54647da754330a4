//! Which of Send, Sync, Unpin and UnwindSafe holds for what, decided at compile time.
#![cfg(not(loom))]

use std::marker::PhantomPinned;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

#[cfg(feature = "sink")]
use tidegate_channel::SendSink;
use tidegate_channel::{
    oneshot, Borrowed, CapacityError, Closed, Drain, Hold, IntoIter, Iter, Owned, OwnedPermit, OwnedPermits,
    OwnedReceiving, OwnedRecvStream, OwnedReserving, OwnedReservingMany, OwnedSending, OwnedSendingWeighed, Permit,
    Permits, Receiver, Receiving, ReceivingMany, RecvError, RecvStream, ReserveError, Reserving, ReservingMany,
    SendError, Sender, Sending, SendingMany, SendingWeighed, SendingWith, TryIter, Unsent, WeakReceiver, WeakSender,
    WeakWeightedSender, WeightedSendError, WeightedSender,
};
use tidegate_wait::op::{Cancellable, Timed, Unlimited};

/// Asks for each trait whether `T` has it: an inherent constant, if its bound holds, goes before the trait's.
struct Has<T: ?Sized>(std::marker::PhantomData<T>);

trait Not {
    const SEND: bool = false;
    const SYNC: bool = false;
    const UNPIN: bool = false;
    const UNWIND: bool = false;
    const REF_UNWIND: bool = false;
}

impl<T: ?Sized> Not for Has<T> {}
impl<T: ?Sized + Send> Has<T> {
    const SEND: bool = true;
}
impl<T: ?Sized + Sync> Has<T> {
    const SYNC: bool = true;
}
impl<T: ?Sized + Unpin> Has<T> {
    const UNPIN: bool = true;
}
impl<T: ?Sized + UnwindSafe> Has<T> {
    const UNWIND: bool = true;
}
impl<T: ?Sized + RefUnwindSafe> Has<T> {
    const REF_UNWIND: bool = true;
}

/// All five answers for a type, as a question that a pattern answers.
macro_rules! are {
    ($answers:expr; $($type:ty),+ $(,)?) => {
        $(const {
            let asked = [
                Has::<$type>::SEND,
                Has::<$type>::SYNC,
                Has::<$type>::UNPIN,
                Has::<$type>::UNWIND,
                Has::<$type>::REF_UNWIND,
            ];
            assert!(same(asked, $answers), stringify!($type));
        })+
    };
}

const fn same(asked: [bool; 5], answers: [bool; 5]) -> bool {
    let mut n = 0;
    while n < 5 && asked[n] == answers[n] {
        n += 1;
    }
    n == 5
}

/// Goes between threads if the payload does, whether or not that may be shared; is never pinned, and unwinds safely.
const HALF: [bool; 5] = [true; 5];
const LOCAL_HALF: [bool; 5] = [false, false, true, true, true];
/// Goes between threads as a half does; must be pinned; a poll that unwinds may leave it halfway.
const OPERATION: [bool; 5] = [true, true, false, false, false];
const LOCAL_OPERATION: [bool; 5] = [false; 5];
/// One in a box.
const BOXED: [bool; 5] = [true, true, true, false, false];
const LOCAL_BOXED: [bool; 5] = [false, false, true, false, false];

type Both<'t> = Timed<Cancellable<'t, Unlimited>>;
/// May be sent, may not be shared.
type Cell = std::cell::Cell<u8>;
/// May not even be sent.
type Local = Rc<u8>;
type Build<T> = fn() -> T;

#[test]
fn the_question_can_be_answered_with_no() {
    const { assert!(Has::<u8>::SEND && Has::<u8>::SYNC && Has::<u8>::UNPIN && Has::<u8>::UNWIND) };
    const { assert!(!Has::<Local>::SEND && Has::<Cell>::SEND && !Has::<Cell>::SYNC && !Has::<PhantomPinned>::UNPIN) };
    const { assert!(!Has::<&Cell>::UNWIND && !Has::<Cell>::REF_UNWIND) };
}

#[test]
fn halves() {
    are!(HALF; Sender<Cell>, Receiver<Cell>, WeakSender<Cell>, WeakReceiver<Cell>);
    are!(HALF; Sender<PhantomPinned>, Receiver<PhantomPinned>, WeakSender<PhantomPinned>, WeakReceiver<PhantomPinned>);
    are!(LOCAL_HALF; Sender<Local>, Receiver<Local>, WeakSender<Local>, WeakReceiver<Local>);
    are!(HALF; oneshot::Sender<Cell>, oneshot::Receiver<Cell>);
    are!(HALF; oneshot::Sender<PhantomPinned>, oneshot::Receiver<PhantomPinned>);
    are!(LOCAL_HALF; oneshot::Sender<Local>, oneshot::Receiver<Local>);
}

/// What has or borrows a half, and nothing else, is as good as it.
#[test]
fn permits_and_iterators() {
    are!(HALF; Permit<'_, Cell>, OwnedPermit<Cell>, Permit<'_, PhantomPinned>);
    are!(LOCAL_HALF; Permit<'_, Local>, OwnedPermit<Local>);
    are!(HALF; Iter<'_, Cell>, TryIter<'_, Cell>, IntoIter<Cell>, Drain<'_, Cell>);
    are!(HALF; Iter<'_, PhantomPinned>, TryIter<'_, PhantomPinned>, IntoIter<PhantomPinned>, Drain<'_, PhantomPinned>);
    are!(LOCAL_HALF; Iter<'_, Local>, TryIter<'_, Local>, IntoIter<Local>, Drain<'_, Local>);
}

#[test]
fn operations() {
    are!(OPERATION; Sending<'_, Cell>, Receiving<'_, Cell>, Reserving<'_, Cell>, SendingMany<'_, Cell>);
    are!(OPERATION; OwnedSending<Cell>, OwnedReceiving<Cell>, OwnedReserving<Cell>);
    are!(OPERATION; Closed<'_>, oneshot::Closed<'_>, oneshot::Receiving<'_, Cell>, oneshot::OwnedReceiving<Cell>);
    are!(LOCAL_OPERATION; Sending<'_, Local>, Receiving<'_, Local>, Reserving<'_, Local>, SendingMany<'_, Local>);
    are!(LOCAL_OPERATION; OwnedSending<Local>, OwnedReceiving<Local>, OwnedReserving<Local>);
    are!(LOCAL_OPERATION; oneshot::Receiving<'_, Local>, oneshot::OwnedReceiving<Local>);
}

/// Whatever limits are set on them.
#[test]
fn limited_operations() {
    are!(OPERATION; Sending<'_, Cell, Both<'_>>, Receiving<'_, Cell, Both<'_>>, Reserving<'_, Cell, Both<'_>>);
    are!(OPERATION; OwnedSending<Cell, Both<'_>>, OwnedReceiving<Cell, Both<'_>>, OwnedReserving<Cell, Both<'_>>);
    are!(OPERATION; SendingMany<'_, Cell, Both<'_>>, SendingWith<'_, Cell, Build<Cell>, Both<'_>>, Closed<'_, Both<'_>>);
    are!(OPERATION; oneshot::Receiving<'_, Cell, Both<'_>>, oneshot::Closed<'_, Both<'_>>);
    are!(LOCAL_OPERATION; Sending<'_, Local, Both<'_>>, Reserving<'_, Local, Both<'_>>);
}

/// An operation with something of the user's in it asks for that, too: the builder, the buffer.
#[test]
fn operations_with_something_in_them() {
    are!(OPERATION; SendingWith<'_, Cell, Build<Cell>>, ReceivingMany<'_, '_, u8>, ReceivingMany<'_, '_, u8, Both<'_>>);
    are!(LOCAL_OPERATION; SendingWith<'_, Local, Build<Local>>, ReceivingMany<'_, '_, Local>);
    are!(LOCAL_OPERATION; SendingWith<'_, u8, Box<dyn FnOnce() -> u8>>);
    are!([true, false, false, false, false]; ReceivingMany<'_, '_, Cell>);
    are!([true, false, false, false, false]; SendingWith<'_, u8, Box<dyn FnOnce() -> u8 + Send>>);
}

#[test]
fn streams() {
    are!(BOXED; RecvStream<'_, Cell>, OwnedRecvStream<Cell>, RecvStream<'_, PhantomPinned>);
    are!(LOCAL_BOXED; RecvStream<'_, Local>, OwnedRecvStream<Local>);
}

#[cfg(feature = "sink")]
#[test]
fn sinks() {
    are!(BOXED; SendSink<'_, Cell>, SendSink<'_, Cell, Owned>, SendSink<'_, PhantomPinned>);
    are!(LOCAL_BOXED; SendSink<'_, Local>, SendSink<'_, Local, Owned>);
}

/// The same for reservations of many, and for what they return.
#[test]
fn reservations() {
    const { assert!(Has::<ReservingMany<'_, Cell>>::SEND && Has::<ReservingMany<'_, Cell, Both<'_>>>::SYNC) };
    const {
        assert!(
            Has::<OwnedReservingMany<Cell>>::SEND && Has::<Permits<'_, Cell>>::SEND && Has::<OwnedPermits<Cell>>::SYNC
        )
    };
    const { assert!(!Has::<ReservingMany<'_, Rc<u8>>>::SEND && !Has::<OwnedReservingMany<Rc<u8>>>::SYNC) };
    const { assert!(!Has::<Permits<'_, Rc<u8>>>::SEND && !Has::<OwnedPermits<Rc<u8>>>::SYNC) };
    const { assert!(!Has::<ReservingMany<'_, u8>>::UNPIN && Has::<Permits<'_, PhantomPinned>>::UNPIN) };
}

/// Halves of weighted channels and their sends: as the others.
#[test]
fn weighted() {
    type Halves<T> = (WeightedSender<T>, WeakWeightedSender<T>);
    const { assert!(Has::<Halves<Cell>>::SEND && Has::<Halves<Cell>>::SYNC && Has::<Halves<PhantomPinned>>::UNPIN) };
    const { assert!(Has::<Halves<Cell>>::UNWIND && Has::<Halves<Cell>>::REF_UNWIND) };
    const { assert!(!Has::<WeightedSender<Rc<u8>>>::SEND && !Has::<WeakWeightedSender<Rc<u8>>>::SYNC) };
    const { assert!(Has::<SendingWeighed<'_, Cell, Both<'_>>>::SEND && Has::<OwnedSendingWeighed<Cell>>::SYNC) };
    const { assert!(!Has::<SendingWeighed<'_, Rc<u8>>>::SEND && !Has::<OwnedSendingWeighed<Rc<u8>>>::SYNC) };
    const { assert!(!Has::<SendingWeighed<'_, u8>>::UNPIN && !Has::<OwnedSendingWeighed<u8>>::UNPIN) };
}

/// Errors are what errors should be.
#[test]
fn errors() {
    fn error<E: std::error::Error + Send + Sync + Unpin + UnwindSafe + 'static>() {}
    error::<SendError<u8>>();
    error::<SendError<Unsent<u8>>>();
    error::<RecvError>();
    error::<ReserveError>();
    error::<WeightedSendError<u8>>();
    error::<CapacityError>();
    // With the value in them they are what it is.
    const { assert!(!Has::<SendError<Local>>::SEND && !Has::<Unsent<Local>>::SEND) };
    const { assert!(Has::<SendError<Cell>>::SEND && !Has::<SendError<Cell>>::SYNC && !Has::<Unsent<Cell>>::SYNC) };
}

/// A future that owns an operation may be spawned.
#[test]
fn spawnable() {
    fn spawnable<F: std::future::Future + Send + 'static>(_: F) {}
    let (tx, rx) = tidegate_channel::bounded(1);
    spawnable(tx.clone().into_send(1));
    spawnable(rx.clone().into_recv());
    spawnable(tx.clone().into_reserve());
    spawnable({
        let (tx, rx) = (tx.clone(), rx.clone());
        async move { tx.send_many([1, 2]).await.is_ok() && rx.recv_many(&mut Vec::new(), 2).await.is_ok() }
    });
    spawnable(tx.clone().into_reserve_many(2));
    spawnable(async move { tx.send(1).await });
    spawnable(async move { rx.recv().await });
    let (tx, rx) = oneshot::channel::<u8>();
    spawnable(rx.into_recv());
    spawnable(async move { tx.closed().await });
}

/// A reservation's marker tells how it holds its half, and both are plain data.
#[test]
fn holds() {
    fn plain<H: Hold + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + Copy>() {}
    plain::<Borrowed<'_>>();
    plain::<Owned>();
}
