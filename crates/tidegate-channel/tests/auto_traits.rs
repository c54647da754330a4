//! Which of Send, Sync, Unpin and UnwindSafe holds for what, decided at compile time.
#![cfg(not(loom))]

use std::marker::PhantomPinned;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

use tidegate_channel::{
    CapacityError, OwnedPermits, OwnedReceiving, OwnedReservingMany, OwnedSending, OwnedSendingWeighed, Permits,
    Receiver, Receiving, RecvError, ReserveError, ReservingMany, SendError, Sender, Sending, SendingWeighed,
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

type Both<'t> = Timed<Cancellable<'t, Unlimited>>;
type Cell = std::cell::Cell<u8>;

/// Halves go between threads if the payload does, whether or not it may be shared; they are never pinned, and unwind safely.
#[test]
fn halves() {
    const { assert!(Has::<Sender<Cell>>::SEND && Has::<Sender<Cell>>::SYNC && Has::<Sender<Cell>>::UNPIN) };
    const { assert!(Has::<Receiver<Cell>>::SEND && Has::<Receiver<Cell>>::SYNC && Has::<Receiver<Cell>>::UNPIN) };
    const { assert!(!Has::<Sender<Rc<u8>>>::SEND && !Has::<Sender<Rc<u8>>>::SYNC) };
    const { assert!(!Has::<Receiver<Rc<u8>>>::SEND && !Has::<Receiver<Rc<u8>>>::SYNC) };
    const { assert!(!Has::<&Cell>::UNWIND && !Has::<Cell>::REF_UNWIND, "the question can be answered with no") };
    const { assert!(Has::<Sender<PhantomPinned>>::UNPIN && Has::<Receiver<PhantomPinned>>::UNPIN) };
    const { assert!(Has::<Sender<Cell>>::UNWIND && Has::<Sender<Cell>>::REF_UNWIND) };
    const { assert!(Has::<Receiver<Cell>>::UNWIND && Has::<Receiver<Cell>>::REF_UNWIND) };
}

/// Operations go between threads if the payload does, under any limits, and must be pinned.
#[test]
fn operations() {
    const { assert!(Has::<Sending<'_, Cell>>::SEND && Has::<Sending<'_, Cell>>::SYNC) };
    const { assert!(Has::<Receiving<'_, Cell>>::SEND && Has::<Receiving<'_, Cell>>::SYNC) };
    const { assert!(Has::<Sending<'_, Cell, Both<'_>>>::SEND && Has::<Receiving<'_, Cell, Both<'_>>>::SEND) };
    const { assert!(Has::<OwnedSending<Cell, Both<'_>>>::SEND && Has::<OwnedReceiving<Cell, Both<'_>>>::SEND) };
    const { assert!(!Has::<Sending<'_, Rc<u8>>>::SEND && !Has::<Receiving<'_, Rc<u8>>>::SEND) };
    const { assert!(!Has::<OwnedSending<Rc<u8>>>::SYNC && !Has::<OwnedReceiving<Rc<u8>>>::SYNC) };
    const { assert!(!Has::<Sending<'_, u8>>::UNPIN && !Has::<Receiving<'_, u8>>::UNPIN) };
    const { assert!(!Has::<OwnedSending<u8>>::UNPIN && !Has::<OwnedReceiving<u8>>::UNPIN) };
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
    error::<RecvError>();
    error::<ReserveError>();
    error::<WeightedSendError<u8>>();
    error::<CapacityError>();
    const { assert!(!Has::<SendError<Rc<u8>>>::SEND) };
}

/// A future that owns an operation may be spawned.
#[test]
fn spawnable() {
    fn spawnable<F: std::future::Future + Send + 'static>(_: F) {}
    let (tx, rx) = tidegate_channel::bounded(1);
    spawnable(tx.clone().into_send(1));
    spawnable(rx.clone().into_recv());
    spawnable(tx.clone().into_reserve_many(2));
    spawnable(async move { tx.send(1).await });
    spawnable(async move { rx.recv().await });
}
