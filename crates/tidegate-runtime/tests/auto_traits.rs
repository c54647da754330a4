//! Which of Send, Sync, Unpin and UnwindSafe holds for what, and sizes, decided at compile time.
#![cfg(not(loom))]

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

use tidegate_runtime::{
    AbortHandle, Builder, Dump, Handle, Join, JoinError, JoinHandle, OutsideGuard, OwnedJoin, Panic, Runtime, Scope,
    YieldNow,
};
use tidegate_wait::op::{Timed, Unlimited};

/// Asks for each trait whether `T` has it: an inherent constant, if its bound holds, goes before the trait's.
struct Has<T: ?Sized>(std::marker::PhantomData<T>);

trait Not {
    const SEND: bool = false;
    const SYNC: bool = false;
    const UNPIN: bool = false;
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

/// A runtime stays on its thread: its tasks need not be `Send`.
#[test]
fn a_runtime_stays_on_its_thread() {
    const { assert!(!Has::<Runtime>::SEND && !Has::<Runtime>::SYNC) };
    const { assert!(!Has::<Builder>::SEND) };
    const { assert!(Has::<Handle>::SEND && Has::<Handle>::SYNC && Has::<Handle>::UNPIN) };
    const { assert!(Has::<OutsideGuard>::SEND && Has::<OutsideGuard>::SYNC) };
}

/// Handles and joins go where the output goes, whether or not it may be shared.
#[test]
fn handles_go_where_the_output_goes() {
    type Local = std::cell::Cell<u8>;
    const { assert!(Has::<JoinHandle<Local>>::SEND && Has::<JoinHandle<Local>>::SYNC) };
    const { assert!(!Has::<JoinHandle<Rc<u8>>>::SEND && !Has::<JoinHandle<Rc<u8>>>::SYNC) };
    const { assert!(Has::<JoinHandle<std::marker::PhantomPinned>>::UNPIN) };
    const { assert!(Has::<JoinHandle<Local>>::UNWIND && Has::<JoinHandle<Local>>::REF_UNWIND) };
    const { assert!(Has::<OwnedJoin<Local>>::SEND && !Has::<OwnedJoin<Rc<u8>>>::SEND) };
    const { assert!(Has::<Join<'_, Local>>::SYNC && !Has::<Join<'_, Local>>::UNPIN) };
    const { assert!(Has::<AbortHandle>::SEND && Has::<AbortHandle>::SYNC) };
    const { assert!(Has::<JoinError>::SEND && Has::<JoinError>::SYNC && Has::<Panic>::SYNC) };
    const { assert!(Has::<Scope<u8>>::SEND && Has::<Scope<u8>>::SYNC && !Has::<Scope<Rc<u8>>>::SEND) };
    const { assert!(Has::<Dump>::SEND && Has::<Dump>::SYNC && Has::<YieldNow>::SEND) };
}

/// Of a task, what its header adds is asserted where the header is; what its users hold is here.
#[test]
#[cfg(target_pointer_width = "64")]
fn sizes() {
    assert_eq!(size_of::<JoinHandle<[u8; 100]>>(), 8);
    assert_eq!(size_of::<AbortHandle>(), 8);
    assert_eq!(size_of::<Join<'_, [u8; 100]>>(), 40);
    assert_eq!(size_of::<OwnedJoin<u8, Timed<Unlimited>>>(), 64);
}
