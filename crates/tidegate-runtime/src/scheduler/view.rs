//! All tasks of a runtime, for a report.

use super::{pool, Local};
use crate::scheduler::wait::Waiting;
use crate::task::Header;

/// What a task is doing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Status {
    Running,
    Runnable,
    /// Its last poll has left this parked, or something that is not ours.
    Parked(Option<Waiting>),
    /// It is about to leave the registry.
    Ended,
}

/// See the module. While it lives, no task is freed; of a pool, none begins or leaves.
pub(crate) enum View<'a> {
    Local(&'a Local),
    Pool(pool::View),
}

impl View<'_> {
    pub(crate) fn of(local: &Local) -> View<'_> {
        match local.shared().workers() {
            Some(pool) => View::Pool(pool::View::new(pool)),
            None => View::Local(local),
        }
    }

    /// In the order of their spawns; in a pool, of those at one place.
    pub(crate) fn for_each(&self, mut f: impl FnMut(&Header)) {
        match self {
            View::Local(local) => local.tasks().for_each(f),
            View::Pool(view) => view.for_each(&mut f),
        }
    }

    pub(crate) fn status(&self, task: &Header) -> Status {
        match self {
            View::Local(local) if core::ptr::eq(task, local.current_task()) => Status::Running,
            View::Local(_) if task.state.is_scheduled() => Status::Runnable,
            View::Local(_) => Status::Parked(task.wait.waiting()),
            View::Pool(view) => view.status(task),
        }
    }

    /// What the number in a task's note stands for.
    pub(crate) fn names_of(&self, number: u8) -> (&'static str, &'static str) {
        match self {
            View::Local(local) => local.names().get(number),
            View::Pool(view) => view.names_of(number),
        }
    }

    /// As of the last look at the clock, in ns.
    pub(crate) fn now_ns(&self) -> u64 {
        match self {
            View::Local(local) => local.now_ns(),
            View::Pool(view) => view.now_ns(),
        }
    }
}
