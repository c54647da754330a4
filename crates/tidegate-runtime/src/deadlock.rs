//! Who waits for ever.
//!
//! Two rules, and neither is a guess:
//!
//! - **A closed world.** Nothing is runnable, no timer is armed, no blocking job is left, no thread outside is declared: then
//!   nothing can wake any task ([`Builder::closed_world`](crate::Builder::closed_world)). Decided by the scheduler when it
//!   is idle.
//! - **A circle of joins,** in any world: each task joins the next, without a limit, and *nothing else could wake it*. That
//!   nothing else could is read off the task's references. The join that is parked at the next task has one waker of this
//!   one (that is looked at); a task that waits on anything beside it has given away a second one, whoever that is. And
//!   somebody with an [`AbortHandle`] has a reference, too. So a task in a circle has exactly three: the registry's, its
//!   handle's (which the one before it in the circle has), and one waker. More: the circle may be broken from outside, and
//!   nothing is reported. The tasks of a [`scope`](crate::scope()) can be aborted through it, so they never are.
//!
//! The future of `block_on` is in no circle: nobody has its handle.
//!
//! A circle is looked for before the thread sleeps, if a join has parked since the last time, at most ten times a second. (One
//! that comes to be when an abort handle is dropped is found with the next join that parks.)
//!
//! A search looks at every task, and timers wait for it. So in a world of many tasks it comes less often, one fiftieth of
//! the time at most; and a timer that is due before it would be over is waited for first, for a second at most.
//!
//! Tests: `tests/deadlock.rs`.
//!
//! [`AbortHandle`]: crate::AbortHandle

use core::cell::{Cell, RefCell};
use core::ptr::NonNull;
use std::collections::{BTreeSet, HashMap};

use tidegate_wait::wake_batch::contain;

use crate::builder::OnDeadlock;
use crate::dump::Dump;
use crate::scheduler::{Local, Status, Time, View};
use crate::task::Header;

/// What the park hook calls a task that is waited for.
pub(crate) const TASK: &str = <Header as tidegate_wait::owner::Owner>::NAME;

/// Not more often than this, in ns, and than so many times as long as one takes.
const PAUSE: u64 = 100_000_000;
const SHARE: u64 = 50;
/// About what a task costs a search, in ns. Measured among 32,768 that sleep.
const EACH: u64 = 150;
/// For so long, in ns, timers that are due come first.
const LIMIT: u64 = 1_000_000_000;

/// The references of a task that only a join can wake: see the module.
const ALONE: usize = 3;

/// The search's side of a scheduler.
pub(crate) struct Circles {
    on_deadlock: OnDeadlock,
    /// The next search is not before this.
    next: Cell<u64>,
    /// Since when it is put off for timers.
    put_off: Cell<Option<u64>>,
    /// The tasks of the circles that have been reported.
    reported: RefCell<BTreeSet<usize>>,
}

impl core::fmt::Debug for Circles {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Circles").field("reported", &self.reported.borrow().len()).finish_non_exhaustive()
    }
}

/// What a search came to.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Searched {
    /// It is too early; at this time, in ns, it is not.
    Later(u64),
    /// There was nothing new.
    Done,
    /// A new circle was reported: what the report did may have made a task runnable.
    Reported,
}

impl Circles {
    pub(crate) fn new(on_deadlock: OnDeadlock) -> Circles {
        Circles { on_deadlock, next: Cell::new(0), put_off: Cell::new(None), reported: RefCell::default() }
    }

    /// Looks for circles and reports new ones.
    pub(crate) fn search(&self, local: &Local) -> Searched {
        let now = local.now_ns();
        // In virtual time nobody waits for it, and nothing is late.
        if let Time::System(_) = local.time() {
            if let Some(later) = self.later(now, local) {
                return Searched::Later(later);
            }
        }
        let circles = circles(&View::of(local));
        let before = self.reported.replace(circles.iter().flatten().copied().collect());
        if circles.iter().flatten().all(|task| before.contains(task)) {
            return Searched::Done;
        }
        let dump = Dump::of(local);
        contain(|| (self.on_deadlock)(&dump));
        Searched::Reported
    }

    /// When a search is better begun than now; else notes that one begins.
    fn later(&self, now: u64, local: &Local) -> Option<u64> {
        if now < self.next.get() {
            return Some(self.next.get());
        }
        let cost = EACH * local.count_tasks() as u64;
        let due = local.due_ns();
        let since = self.put_off.get().unwrap_or(now);
        if due < now + cost && now - since < LIMIT {
            self.put_off.set(Some(since));
            return Some(due);
        }
        self.put_off.set(None);
        self.next.set(now + PAUSE.max(SHARE * cost));
        None
    }
}

/// All circles of joins that nothing can break, as the addresses of their tasks.
pub(crate) fn circles(view: &View<'_>) -> Vec<Vec<usize>> {
    let mut candidates = Vec::new();
    view.for_each(|task| candidates.extend(joins_only(view, task).map(|joined| (joined, task.into()))));
    if candidates.is_empty() {
        return Vec::new();
    }
    // What was noted may be gone: only a registered task is looked at.
    let mut tasks = HashMap::new();
    view.for_each(|task| tasks.extend([(core::ptr::from_ref(task).addr(), NonNull::from(task))]));
    // SAFETY: registered tasks are alive, and none ends meanwhile: nothing of the user's runs.
    let is_parked =
        |joined: &NonNull<Header>, by: NonNull<Header>| unsafe { joined.as_ref().is_joined_by(by.as_ref()) };
    let mut joins: HashMap<usize, usize> = candidates
        .into_iter()
        .filter(|(joined, by)| tasks.get(joined).is_some_and(|joined| is_parked(joined, *by)))
        .map(|(joined, by)| (by.addr().get(), joined))
        .collect();
    let mut circles = Vec::new();
    // Each walk takes what it passes out of the map, so all of them together pass each task once.
    while let Some(start) = joins.keys().next().copied() {
        let mut path = Vec::new();
        let mut places = HashMap::new();
        let mut task = start;
        while let Some(joined) = joins.remove(&task) {
            places.insert(task, path.len());
            path.push(task);
            task = joined;
        }
        if let Some(from) = places.get(&task) {
            circles.push(path.split_off(*from));
        }
    }
    circles
}

/// The task that `task` joins, if only that can wake it.
fn joins_only(view: &View<'_>, task: &Header) -> Option<usize> {
    if task.state.references() != ALONE {
        return None;
    }
    let Status::Parked(Some(wait)) = view.status(task) else { return None };
    (view.names_of(wait.what).1 == TASK && !wait.is_limited).then_some(wait.object)
}
