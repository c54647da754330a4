//! A task as a waker: the pointer, counted.

use core::mem::ManuallyDrop;
use core::task::{Context, RawWaker, RawWakerVTable, Waker};

use super::state::Woken;
use super::Header;
use crate::scheduler;

static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop);

/// Calls `f` with a waker of the task that holds no reference of its own.
///
/// # Safety
/// `task` is alive meanwhile, and points at the whole task.
#[inline(always)]
pub(crate) unsafe fn with_waker<R>(task: *const Header, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
    // SAFETY: the functions keep the contract of a waker; without a reference, it must not be dropped.
    let waker = unsafe { ManuallyDrop::new(Waker::from_raw(RawWaker::new(task.cast(), &TABLE))) };
    f(&mut Context::from_waker(&waker))
}

unsafe fn clone(task: *const ()) -> RawWaker {
    // SAFETY: a waker has a reference.
    unsafe { (*task.cast::<Header>()).state.retain() };
    RawWaker::new(task, &TABLE)
}

unsafe fn wake(task: *const ()) {
    let task = task.cast::<Header>();
    // SAFETY: the waker's reference, until the state says that it is gone.
    unsafe {
        let mailbox = (*task).mailbox;
        match scheduler::local_of(mailbox) {
            Some(local) => match (*task).state.wake(false) {
                // The registry's reference keeps it alive: on this thread, nothing can complete it in between.
                Woken::Queue => local.push(task),
                Woken::Kept => {}
                Woken::Last => Header::free(task),
            },
            None => match (*task).state.wake(true) {
                Woken::Queue => mailbox.push(task),
                Woken::Kept => {}
                Woken::Last => Header::free(task),
            },
        }
    }
}

unsafe fn wake_by_ref(task: *const ()) {
    let task = task.cast::<Header>();
    // SAFETY: the waker's reference.
    unsafe {
        if (*task).state.schedule() {
            scheduler::queue(task);
        }
    }
}

unsafe fn drop(task: *const ()) {
    // SAFETY: the waker's reference.
    unsafe { Header::release(task.cast()) }
}
