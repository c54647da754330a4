//! A thread of a runtime of ours, as far as an operation sees it: a wheel and hooks that do nothing.

use std::sync::Arc;

use tidegate_wait::context::{enter, Hooks, WaitInfo};
use tidegate_wait::timer::{Turner, Wheel};

use crate::harness::Failure;

struct NoHooks;

impl Hooks for NoHooks {
    fn parked(&self, _: WaitInfo) {}
}

struct NoTurner;

impl Turner for NoTurner {
    fn earlier(&self) {}
}

/// A wheel that nobody turns but the caller.
pub(crate) fn wheel() -> Result<Wheel, Failure> {
    Wheel::register(Arc::new(NoTurner)).ok_or_else(|| Failure::new("no timer wheel is left"))
}

/// Runs `work` inside such a thread.
pub(crate) fn inside<R>(work: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    let wheel = wheel()?;
    on(&wheel, work)
}

/// The same on a wheel that `work` may turn.
pub(crate) fn on<R>(wheel: &Wheel, work: impl FnOnce() -> R) -> R {
    enter(wheel, &NoHooks, work)
}
