//! Tidegate's runtime: tasks on one thread, exactly ordered, or on many; and a hang that says what it waits for.
//!
//! | module | what it is |
//! | --- | --- |
//! | `task` | one allocation: header, future, then output; its states, handle and join |
//! | `scheduler` | the local scheduler: run queue, registry, mailbox for other threads, clock |
//! | `scheduler::pool` | the work-stealing pool: many of them, and what they share |
//! | `runtime`, `handle`, `builder` | what the owner has, and what everybody else has |
//! | `blocking` | threads for code that blocks |
//! | `scope` | children that end before their parent goes on; `join_all`, `race` |
//! | `dump`, `deadlock` | what everybody waits for, and who waits for ever |

mod blocking;
mod builder;
mod deadlock;
mod dump;
mod entry;
mod error;
mod handle;
mod runtime;
mod scheduler;
mod scope;
mod task;
mod yield_now;

use core::future::Future;
use core::panic::Location;

pub use builder::Builder;
pub use dump::{Dump, JobInfo, ObjectInfo, TaskInfo, TaskState};
#[doc(hidden)]
pub use entry::{run_main, run_test};
pub use error::{BuildError, NoRuntime, ResizeError, RunError, Unfinished};
pub use handle::{Handle, OutsideGuard};
pub use runtime::Runtime;
pub use scope::{join_all, race, scope, scope_on, Failure, Raced, Scope, ScopeError};
pub use task::{AbortHandle, Join, JoinError, JoinHandle, OwnedJoin, Panic};
pub use yield_now::{yield_now, YieldNow};

use scheduler::Local;
use task::{Origin, Plain};

/// The scheduler of this thread.
#[track_caller]
fn here<'a>() -> &'a Local {
    scheduler::current().unwrap_or_else(|| panic!("{NoRuntime}"))
}

/// Spawns a task on this thread's runtime.
///
/// # Panics
/// Outside of a runtime. ([`Handle::current`] says so without a panic.)
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    // SAFETY: `Send`, both.
    unsafe { here().spawn_shared(Plain(future), Origin::new(Location::caller())) }
}

/// [`spawn`] with a name, for dumps and deadlock reports.
///
/// # Panics
/// Outside of a runtime.
#[track_caller]
pub fn spawn_named<F>(name: impl Into<String>, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    // SAFETY: `Send`, both.
    unsafe { here().spawn_shared(Plain(future), Origin::named(name.into(), Location::caller())) }
}

/// Spawns a task that stays on this thread, so that it need not be `Send`.
///
/// # Panics
/// Outside of a runtime.
#[track_caller]
pub fn spawn_local<F: Future + 'static>(future: F) -> JoinHandle<F::Output> {
    here().spawn_checked(Plain(future), Origin::new(Location::caller()))
}

/// [`spawn_local`] with a name.
///
/// # Panics
/// Outside of a runtime.
#[track_caller]
pub fn spawn_local_named<F: Future + 'static>(name: impl Into<String>, future: F) -> JoinHandle<F::Output> {
    here().spawn_checked(Plain(future), Origin::named(name.into(), Location::caller()))
}

/// [`Handle::spawn_blocking_named`] on this thread's runtime.
///
/// # Panics
/// Outside of a runtime.
#[track_caller]
pub fn spawn_blocking_named<F, T>(name: impl Into<String>, job: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let shared = here().shared();
    shared.pool().spawn(shared, job, Origin::named(name.into(), Location::caller()))
}

/// [`Handle::spawn_blocking`] on this thread's runtime.
///
/// # Panics
/// Outside of a runtime.
#[track_caller]
pub fn spawn_blocking<F, T>(job: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let shared = here().shared();
    shared.pool().spawn(shared, job, Origin::new(Location::caller()))
}
