//! What an operation asks of the thread that polls it: whose timer wheel, and whether a runtime of ours wants to know.
//!
//! Nothing here costs anything until some thread enters a context: every hook first looks at one process-wide counter.

use core::cell::Cell;

use crate::origin::Origin;
use crate::timer::Wheel;
use crate::waiter::Kind;

/// What an operation that is about to park tells the current task: kept by value, for the deadlock report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitInfo {
    /// The kind of operation.
    pub kind: Kind,
    /// The same, as a dump names it.
    pub operation: &'static str,
    /// What is waited for, as a dump names it.
    pub owner: &'static str,
    /// Which one: an id that is unique among the living.
    pub object: usize,
    /// Where that was made.
    pub origin: Origin,
    /// It has parked just now; otherwise it is parked still.
    pub is_new: bool,
    /// Something else may end the wait, too: a limit in time, a token.
    pub is_limited: bool,
}

/// A runtime's side of the hooks; one for each of its threads.
pub trait Hooks {
    /// An operation of the current task is parked: since now, or still, after a poll that did not end it. Called outside
    /// all locks; must not panic.
    fn parked(&self, wait: WaitInfo);
}

/// How many threads are inside [`enter`]: zero in a process without a runtime of ours. A plain atomic even under loom:
/// it decides only whether the thread-local is looked at.
static ENTERED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

struct Context {
    wheel: Cell<*const Wheel>,
    /// How many operations may begin in the current poll; MAX: no limit. A cell, not a hook: an operation that is ready
    /// asks for nothing else.
    budget: Cell<u32>,
    hooks: Cell<Option<*const dyn Hooks>>,
}

#[cfg(not(loom))]
std::thread_local! {
    static CONTEXT: Context = const { Context {
        wheel: Cell::new(core::ptr::null()),
        budget: Cell::new(u32::MAX),
        hooks: Cell::new(None),
    } };
}
#[cfg(loom)]
loom::thread_local! {
    static CONTEXT: Context = Context {
        wheel: Cell::new(core::ptr::null()),
        budget: Cell::new(u32::MAX),
        hooks: Cell::new(None),
    };
}

/// Puts the thread's former context back, on unwinding too.
struct Restore {
    wheel: *const Wheel,
    budget: u32,
    hooks: Option<*const dyn Hooks>,
}

impl Drop for Restore {
    fn drop(&mut self) {
        CONTEXT.with(|context| {
            context.wheel.set(self.wheel);
            context.budget.set(self.budget);
            context.hooks.set(self.hooks);
        });
        // Ordering: Relaxed; this thread's own thread-local holds what matters.
        ENTERED.fetch_sub(1, core::sync::atomic::Ordering::Relaxed);
    }
}

/// Runs `f` with a runtime's wheel and hooks as this thread's.
pub fn enter<R>(wheel: &Wheel, hooks: &dyn Hooks, f: impl FnOnce() -> R) -> R {
    let hooks: *const dyn Hooks = hooks;
    // SAFETY: only the lifetime is forgotten; `Restore` takes the pointer away before `f`'s caller can end it.
    let hooks: *const (dyn Hooks + 'static) = unsafe { core::mem::transmute(hooks) };
    set(wheel, Some(hooks), u32::MAX, f)
}

/// Sets how many operations may begin on this thread, inside [`enter`], until this is called again: then each yields once,
/// although it could go on. For the beginning of each poll; `u32::MAX`, and at the beginning of `enter`: as many as they
/// like.
#[inline(always)]
pub fn refill(budget: u32) {
    CONTEXT.with(|context| context.budget.set(budget));
}

/// Runs `f` with another wheel; hooks and budget as they are.
pub(crate) fn with_wheel<R>(wheel: &Wheel, f: impl FnOnce() -> R) -> R {
    let (hooks, budget) = CONTEXT.with(|context| (context.hooks.get(), context.budget.get()));
    set(wheel, hooks, budget, f)
}

/// Runs `f` without a runtime's wheel and hooks: for a wait that blocks the thread inside a task.
pub(crate) fn without_hooks<R>(f: impl FnOnce() -> R) -> R {
    match is_entered() {
        true => {
            // The wheel of a runtime is turned by the thread that blocks here; a manual clock's is not.
            let (wheel, hooks) = CONTEXT.with(|context| (context.wheel.get(), context.hooks.get()));
            set(if hooks.is_some() { core::ptr::null() } else { wheel }, None, u32::MAX, f)
        }
        false => f(),
    }
}

fn set<R>(wheel: *const Wheel, hooks: Option<*const dyn Hooks>, budget: u32, f: impl FnOnce() -> R) -> R {
    ENTERED.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
    let _restore = CONTEXT.with(|context| Restore {
        wheel: context.wheel.replace(wheel),
        budget: context.budget.replace(budget),
        hooks: context.hooks.replace(hooks),
    });
    f()
}

#[inline(always)]
fn is_entered() -> bool {
    ENTERED.load(core::sync::atomic::Ordering::Relaxed) != 0
}

/// Calls `f` with the wheel that this thread has entered, if any.
#[inline]
pub(crate) fn with_current_wheel<R>(f: impl FnOnce(Option<&Wheel>) -> R) -> R {
    let wheel = match is_entered() {
        true => CONTEXT.with(|context| context.wheel.get()),
        false => core::ptr::null(),
    };
    // SAFETY: `set` was given a reference that outlives the closure inside which we run.
    f(unsafe { wheel.as_ref() })
}

/// The park hook.
#[inline(always)]
pub(crate) fn parked(info: impl FnOnce() -> WaitInfo) {
    if is_entered() {
        call(|hooks| hooks.parked(info()));
    }
}

/// Takes one unit of the budget. False: there is none; yield once.
#[inline(always)]
pub(crate) fn spend() -> bool {
    !is_entered() || CONTEXT.with(|context| spend_of(&context.budget))
}

#[inline(always)]
fn spend_of(budget: &Cell<u32>) -> bool {
    let left = budget.get();
    // MAX is no count.
    budget.set(left.saturating_sub(u32::from(left != u32::MAX)));
    left != 0
}

fn call(f: impl FnOnce(&dyn Hooks)) {
    if let Some(hooks) = CONTEXT.with(|context| context.hooks.get()) {
        // SAFETY: as in `with_current_wheel`.
        f(unsafe { &*hooks });
    }
}
