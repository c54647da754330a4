//! Sizes, and which of Send, Sync, Unpin and UnwindSafe holds for what, decided at compile time.

use std::cell::Cell;
use std::marker::PhantomPinned;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

use tidegate_channel::oneshot::{channel, Closed, OwnedReceiving, Receiver, Receiving, Sender};
use tidegate_wait::op::{poll_once, Cancellable, Timed, Unlimited};

/// G10: 40 bytes a receive whatever the payload, owned or borrowed, and 24 for each limit.
#[cfg(target_pointer_width = "64")]
#[test]
fn operations_cost_a_constant() {
    use std::time::Duration;
    use tidegate_channel::Operation;
    use tidegate_wait::cancel::CancelToken;

    #[repr(align(4096))]
    struct Page(#[allow(dead_code)] u8);

    fn sizes<T>() {
        let token = CancelToken::new();
        let (tx, mut rx) = channel::<T>();
        assert_eq!((size_of_val(&tx), size_of_val(&rx), size_of::<Option<Receiver<T>>>()), (8, 8, 8));
        assert_eq!((size_of_val(&tx.closed()), size_of_val(&tx.closed().timeout(Duration::MAX))), (40, 64));
        assert_eq!(size_of_val(&rx.recv()), 40);
        assert_eq!(size_of_val(&rx.recv().timeout(Duration::MAX)), 64);
        assert_eq!(size_of_val(&rx.recv().cancel_on(&token)), 64);
        assert_eq!(size_of_val(&rx.recv().cancel_on(&token).timeout(Duration::MAX)), 88);
        assert_eq!((size_of::<Receiving<'_, T>>(), align_of::<Receiving<'_, T>>()), (40, 8));
        assert_eq!(size_of_val(&rx.into_recv().timeout(Duration::MAX).cancel_on_owned(token.clone())), 88);
    }
    sizes::<()>();
    sizes::<u8>();
    sizes::<[u64; 4]>();
    sizes::<[u8; 1 << 20]>();
    sizes::<Page>();
}

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
type Unshared = Cell<u8>;

/// Halves go between threads if the payload does, whether or not it may be shared; they are never pinned, and unwind
/// safely.
#[test]
fn halves() {
    const { assert!(Has::<Sender<Unshared>>::SEND && Has::<Sender<Unshared>>::SYNC) };
    const { assert!(Has::<Receiver<Unshared>>::SEND && Has::<Receiver<Unshared>>::SYNC) };
    const { assert!(!Has::<Sender<Rc<u8>>>::SEND && !Has::<Sender<Rc<u8>>>::SYNC) };
    const { assert!(!Has::<Receiver<Rc<u8>>>::SEND && !Has::<Receiver<Rc<u8>>>::SYNC) };
    const { assert!(Has::<Sender<PhantomPinned>>::UNPIN && Has::<Receiver<PhantomPinned>>::UNPIN) };
    const { assert!(!Has::<&Unshared>::UNWIND && !Has::<Unshared>::REF_UNWIND, "the question can be answered with no") };
    const { assert!(Has::<Sender<Unshared>>::UNWIND && Has::<Sender<Unshared>>::REF_UNWIND) };
    const { assert!(Has::<Receiver<Unshared>>::UNWIND && Has::<Receiver<Unshared>>::REF_UNWIND) };
}

/// Operations go between threads if the payload does, under any limits, and must be pinned.
#[test]
fn operations() {
    const { assert!(Has::<Receiving<'_, Unshared>>::SEND && Has::<Receiving<'_, Unshared>>::SYNC) };
    const { assert!(Has::<Receiving<'_, Unshared, Both<'_>>>::SEND && Has::<Closed<'_, Both<'_>>>::SEND) };
    const { assert!(Has::<OwnedReceiving<Unshared, Both<'_>>>::SEND && Has::<Closed<'_>>::SYNC) };
    const { assert!(!Has::<Receiving<'_, Rc<u8>>>::SEND && !Has::<OwnedReceiving<Rc<u8>>>::SYNC) };
    const { assert!(!Has::<Receiving<'_, u8>>::UNPIN && !Has::<OwnedReceiving<u8>>::UNPIN) };
    const { assert!(!Has::<Closed<'_>>::UNPIN) };
}

/// A future that awaits a reply may be spawned.
#[test]
fn spawnable() {
    fn spawnable<F: std::future::Future + Send + 'static>(_: F) {}
    let (tx, rx) = channel::<u8>();
    spawnable(async move { rx.await });
    spawnable(async move { tx.closed().await });
    spawnable(channel::<u8>().1.into_recv());
    let mut rx = channel::<u8>().1;
    spawnable(async move { (&mut rx).await });
}

/// What a half shows, without a word of the value.
#[test]
fn debug() {
    let (tx, rx) = channel::<u8>();
    assert_eq!(format!("{tx:?}"), "Sender { value: false, closed: false, waiting: false }");
    tx.send(1).unwrap();
    assert_eq!(format!("{rx:?}"), "Receiver { value: true, closed: true, waiting: false }");
    assert_eq!(format!("{:?}", rx.into_recv()), "Receiving { state: Init, .. }");
    // H1: nobody waits any more once he has been told.
    let (tx, mut rx) = channel::<u8>();
    let mut receive = Box::pin(rx.recv());
    assert!(poll_once(receive.as_mut()).is_pending());
    assert_eq!(format!("{tx:?}"), "Sender { value: false, closed: false, waiting: true }");
    tx.send(1).unwrap();
    drop(receive);
    assert_eq!(format!("{rx:?}"), "Receiver { value: true, closed: true, waiting: false }");
}
