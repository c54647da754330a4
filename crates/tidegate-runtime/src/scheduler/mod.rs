//! Who polls tasks: the local scheduler, one thread with a strict FIFO queue, or a pool, whose threads steal from each other.

mod home;
mod local;
mod mailbox;
mod names;
pub(crate) mod pool;
mod queue;
mod time;
mod view;
mod wait;

use core::cell::Cell;
use core::ptr;

pub(crate) use home::{Home, Kind};
pub(crate) use local::Local;
pub(crate) use mailbox::Mailbox;
pub(crate) use pool::WorkerPool;
pub(crate) use time::Time;
pub(crate) use view::{Status, View};
pub(crate) use wait::Wait;

use crate::task::Header;

#[cfg(not(loom))]
std::thread_local! {
    /// The scheduler whose tasks this thread is running.
    static CURRENT: Cell<*const Local> = const { Cell::new(ptr::null()) };
}
#[cfg(loom)]
loom::thread_local! {
    static CURRENT: Cell<*const Local> = Cell::new(ptr::null());
}

/// Puts back what was there, on unwinding too.
struct Restore(*const Local);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.with(|current| current.set(self.0));
    }
}

/// Runs `f` with `local` as this thread's scheduler.
fn with_current<R>(local: &Local, f: impl FnOnce() -> R) -> R {
    let _restore = Restore(CURRENT.with(|current| current.replace(local)));
    f()
}

/// The scheduler of this thread, if it is running one.
#[inline(always)]
pub(crate) fn current<'a>() -> Option<&'a Local> {
    // A thread that is going away runs no scheduler.
    #[cfg(not(loom))]
    let local = CURRENT.try_with(Cell::get).unwrap_or(ptr::null());
    #[cfg(loom)]
    let local = CURRENT.with(Cell::get);
    // SAFETY: `with_current` was given a reference that outlives the closure inside which we run; no caller keeps it.
    unsafe { local.as_ref() }
}

/// The same, if it is the one that `mailbox` belongs to.
pub(crate) fn local_of<'a>(mailbox: &'static Mailbox) -> Option<&'a Local> {
    current().filter(|local| ptr::eq(local.mailbox(), mailbox))
}

/// The same, if it is where tasks of `home` are queued without further ado.
#[inline(always)]
pub(crate) fn local_at<'a>(home: Home) -> Option<&'a Local> {
    current().filter(|local| local.home() == home)
}

/// The task that this thread is polling; null if there is none.
pub(crate) fn current_task() -> *const Header {
    current().map_or(ptr::null(), Local::current_task)
}

/// Queues a task at its runtime.
///
/// # Safety
/// The caller has set SCHEDULED, and has a reference.
#[inline(always)]
pub(crate) unsafe fn queue(task: *const Header) {
    // SAFETY: the caller's promise. On the runtime's own thread the registry's reference serves (S4).
    unsafe {
        let home = (*task).home;
        match home.kind() {
            Kind::Local => match local_at(home) {
                Some(local) => local.push(task),
                None => {
                    (*task).state.retain();
                    home.local_mailbox().push(task);
                }
            },
            _ => pool::queue(task),
        }
    }
}
