//! Which types may move between threads, be shared, be moved after a poll, and be seen after a panic. A compile-time
//! matrix: G9.

use std::cell::Cell;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

use tidegate_wait::cancel::{CancelGuard, CancelToken, Cancelled, Reason, Registration};
use tidegate_wait::op::{Cancellable, Limit, Timed, Unlimited};
use tidegate_wait::parker::Parker;
use tidegate_wait::timer::{
    Elapsed, Interval, ManualClock, MissedTicks, Next, Sleep, Tick, Timeout, Wheel, ZeroPeriod,
};
use tidegate_wait::wait_queue::{Park, ParkError, WaitQueue};
use tidegate_wait::wake_batch::WakeBatch;

/// Does a type have a trait? Ambiguous, and so an error to compile, exactly if the answer given is wrong.
macro_rules! has {
    ($type:ty: $trait:path = yes) => {
        const _: fn() = || {
            fn has<T: ?Sized + $trait>() {}
            has::<$type>();
        };
    };
    ($type:ty: $trait:path = no) => {
        const _: fn() = || {
            trait Ambiguous<A> {
                fn item() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            struct Marked;
            impl<T: ?Sized + $trait> Ambiguous<Marked> for T {}
            let _ = <$type as Ambiguous<_>>::item;
        };
    };
}

macro_rules! matrix {
    ($($type:ty: $send:tt $sync:tt $unpin:tt $unwind:tt $ref_unwind:tt;)*) => {$(
        has!($type: Send = $send);
        has!($type: Sync = $sync);
        has!($type: Unpin = $unpin);
        has!($type: UnwindSafe = $unwind);
        has!($type: RefUnwindSafe = $ref_unwind);
    )*};
}

type NotSend = Rc<()>;
type NotSync = Cell<u8>;

// Operations are pinned: others hold pointers into them. Seen after a panic they may have lost a poll, so they don't
// claim to be unwind-safe; the handles do: whatever panics, they are whole.
matrix! {
    //                                             Send Sync Unpin UnwindSafe RefUnwindSafe
    Sleep:                                         yes yes no  no  no;
    Sleep<Timed<Unlimited>>:                       yes yes no  no  no;
    Sleep<Cancellable<'static, Unlimited>>:        yes yes no  no  no;
    Timeout<std::future::Ready<()>>:               yes yes no  no  no;
    Timeout<std::future::Ready<NotSend>>:          no  no  no  no  no;
    Interval:                                      yes yes yes yes yes;
    Tick<'static>:                                 yes yes no  no  no;
    MissedTicks:                                   yes yes yes yes yes;
    ManualClock:                                   yes yes yes yes yes;
    Wheel:                                         yes yes yes yes yes;
    Next:                                          yes yes yes yes yes;
    Elapsed:                                       yes yes yes yes yes;
    ZeroPeriod:                                    yes yes yes yes yes;
    Limit:                                         yes yes yes yes yes;
    ParkError:                                     yes yes yes yes yes;
    Park<'static, u8>:                             yes yes no  no  no;
    Park<'static, NotSync>:                        yes yes no  no  no;
    Park<'static, NotSend>:                        no  no  no  no  no;
    Park<'static, u8, Timed<Unlimited>>:           yes yes no  no  no;
    Cancelled<'static>:                            yes yes no  no  no;
}

has!(WaitQueue<u8>: Send = yes);
has!(WaitQueue<u8>: Sync = yes);
has!(WaitQueue<u8>: Unpin = yes);
has!(WaitQueue<NotSync>: Sync = yes);
has!(WaitQueue<NotSend>: Send = no);
has!(WaitQueue<NotSend>: Sync = no);
has!(CancelToken: Send = yes);
has!(CancelToken: Sync = yes);
has!(CancelToken: Unpin = yes);
has!(CancelGuard: Send = yes);
has!(CancelGuard: Sync = yes);
has!(Registration: Send = yes);
has!(Registration: Sync = yes);
has!(Reason: Send = yes);
has!(Reason: Sync = yes);
// A parker stays on its thread; a batch holds references on owners that may be anybody's.
has!(Parker: Sync = no);
has!(WakeBatch: Send = no);
has!(WakeBatch: Sync = no);

/// The matrix above is checked by compiling it.
#[test]
fn g9_the_matrix_compiles() {}
