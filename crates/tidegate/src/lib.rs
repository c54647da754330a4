#![doc = include_str!("../../../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

pub use tidegate_channel::{
    bounded, bounded_by, oneshot, rendezvous, try_bounded, try_bounded_by, unbounded, Borrowed, CapacityError, Closed,
    Drain, Hold, Owned, OwnedPermit, OwnedPermits, OwnedReceiving, OwnedRecvStream, OwnedReserving, OwnedReservingMany,
    OwnedSending, OwnedSendingWeighed, Parked, Permit, Permits, Receiver, Receiving, ReceivingMany, RecvError,
    RecvStream, ReserveError, Reserving, ReservingMany, SendError, Sender, Sending, SendingMany, SendingWeighed,
    SendingWith, Unsent, WeakReceiver, WeakSender, WeakWeightedSender, Weighed, Weight, WeightedSendError,
    WeightedSender,
};
pub use tidegate_wait::{Limit, Operation};

/// Cancel tokens: a tree, with reasons, guards and callbacks.
pub mod cancel {
    #[cfg(feature = "std")]
    pub use tidegate_wait::cancel::Registration;
    pub use tidegate_wait::cancel::{CancelGuard, CancelToken, Cancelled, Reason};
}

/// Sleeps, time-outs and intervals, on any executor and on plain threads.
#[cfg(feature = "std")]
pub mod time {
    pub use tidegate_wait::timer::{
        interval, interval_at, sleep, sleep_until, timeout, timeout_at, Elapsed, Interval, ManualClock, MissedTicks,
        Sleep, Tick, Timeout, ZeroPeriod,
    };
}

/// Limits on operations as types: what `timeout` and `cancel_on` put in front of an operation.
pub mod limit {
    #[cfg(feature = "std")]
    pub use tidegate_wait::op::Timed;
    pub use tidegate_wait::op::{Cancellable, Limits, Unlimited};
}

#[cfg(feature = "std")]
pub use tidegate_wait::op::block_on;

#[cfg(feature = "runtime")]
pub use tidegate_macros::{main, test};

/// Tasks on one thread, exactly ordered, or on a pool; scopes; and a hang that says what it waits for.
#[cfg(feature = "runtime")]
pub mod runtime {
    pub use tidegate_runtime::{
        join_all, race, scope, scope_on, spawn, spawn_blocking, spawn_blocking_named, spawn_local, spawn_local_named,
        spawn_named, yield_now, AbortHandle, BuildError, Builder, Dump, Failure, Handle, JobInfo, Join, JoinError,
        JoinHandle, NoRuntime, ObjectInfo, OutsideGuard, OwnedJoin, Panic, Raced, ResizeError, RunError, Runtime,
        Scope, ScopeError, TaskInfo, TaskState, Unfinished, YieldNow,
    };
    #[doc(hidden)]
    pub use tidegate_runtime::{run_main, run_test};
}

/// The examples of the guide compile and run, too.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../../../docs/guide.md")]
struct Guide;

#[cfg(all(doctest, feature = "runtime"))]
#[doc = include_str!("../../../docs/runtime.md")]
struct RuntimeGuide;

/// Bad input of the attributes is a compile error.
///
/// ```compile_fail
/// #[tidegate::test(virtual = true)]
/// async fn no_such_option() {}
/// ```
/// ```compile_fail
/// #[tidegate::main]
/// fn main() {}
/// ```
/// ```compile_fail
/// #[tidegate::main]
/// async fn main(argument: u8) {}
/// ```
#[cfg(all(doctest, feature = "runtime"))]
struct AttributeErrors;
