//! A task as a waker: the pointer, counted.

use core::mem::ManuallyDrop;
use core::task::{Context, RawWaker, RawWakerVTable, Waker};

use super::state::Woken;
use super::Header;
use crate::scheduler::{self, pool};

static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop);

/// For a pool's tasks.
static POOLED: RawWakerVTable = RawWakerVTable::new(clone_pooled, wake_pooled, wake_pooled_by_ref, drop);

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

/// [`with_waker`] of a pool's task.
///
/// # Safety
/// As there.
#[inline(always)]
pub(crate) unsafe fn with_pooled_waker<R>(task: *const Header, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
    // SAFETY: as there.
    let waker = unsafe { ManuallyDrop::new(Waker::from_raw(RawWaker::new(task.cast(), &POOLED))) };
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
        let home = (*task).home;
        match scheduler::local_at(home) {
            Some(local) => match (*task).state.wake(false) {
                // The registry's reference keeps it alive: on this thread, nothing can complete it in between.
                Woken::Queue => local.push(task),
                Woken::Kept => {}
                Woken::Last => Header::free(task),
            },
            None => match (*task).state.wake(true) {
                Woken::Queue => home.local_mailbox().push(task),
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

unsafe fn clone_pooled(task: *const ()) -> RawWaker {
    // SAFETY: a waker has a reference.
    unsafe { (*task.cast::<Header>()).state.retain() };
    RawWaker::new(task, &POOLED)
}

unsafe fn wake_pooled(task: *const ()) {
    let task = task.cast::<Header>();
    // SAFETY: the waker's reference, until the state says that it is gone; then W2.
    unsafe {
        match (*task).state.wake(false) {
            Woken::Queue => pool::queue(task),
            Woken::Kept => {}
            Woken::Last => Header::free(task),
        }
    }
}

unsafe fn wake_pooled_by_ref(task: *const ()) {
    let task = task.cast::<Header>();
    // SAFETY: the waker's reference; then W2.
    unsafe {
        if (*task).state.schedule() {
            pool::queue(task);
        }
    }
}

unsafe fn drop(task: *const ()) {
    // SAFETY: the waker's reference.
    unsafe { Header::release(task.cast()) }
}
