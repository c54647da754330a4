//! Model checks of the pool's parts, each beside the smallest thing that uses it as the pool does: D1, D2, P5, J1, W1, W2, and
//! the slot. A lost wake is a deadlock, which loom reports.
//!
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p tidegate-runtime --lib`

use core::ptr;
use std::future::poll_fn;
use std::sync::atomic::AtomicUsize as Count;
use std::task::Poll;

use loom::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use tidegate_wait::parker::Parker;
use tidegate_wait::shim::fence;

use super::{Idle, Injector};
use crate::scheduler::{Home, Mailbox};
use crate::task::{Header, Origin, Plain, Start};

/// What two workers share here: a number of things to do, and their beds.
struct Yard {
    work: AtomicUsize,
    done: AtomicUsize,
    idle: Idle,
    wakers: Vec<std::task::Waker>,
    /// Each thing to do waits for the other one.
    meeting: Option<Meeting>,
}

#[derive(Default)]
struct Meeting {
    here: Mutex<usize>,
    both: Condvar,
}

impl Meeting {
    fn attend(&self) {
        let mut here = self.here.lock().unwrap();
        *here += 1;
        self.both.notify_all();
        while *here < 2 {
            here = self.both.wait(here).unwrap();
        }
    }
}

impl Yard {
    fn take(&self) -> bool {
        let mut seen = self.work.load(Ordering::Relaxed);
        while seen > 0 {
            match self.work.compare_exchange(seen, seen - 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    fn make(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
        self.notify();
    }

    fn notify(&self) {
        if let Some(worker) = self.idle.rouse() {
            self.wakers[worker].wake_by_ref();
        }
    }

    /// A worker's round, as in `worker`, until `all` things have been done by anybody.
    fn work(&self, worker: usize, parker: &Parker, all: usize) {
        let workers = self.wakers.len();
        let mut is_searching = false;
        loop {
            // At first without a search, as from the own queues and the injector.
            let mut has_found = self.take();
            if !has_found {
                is_searching = is_searching || self.idle.begin_search(workers);
                has_found = is_searching && self.take();
            }
            if has_found {
                if core::mem::take(&mut is_searching) && self.idle.end_search() {
                    self.notify();
                }
                if let Some(meeting) = &self.meeting {
                    meeting.attend();
                }
                if self.done.fetch_add(1, Ordering::AcqRel) + 1 == all {
                    self.wakers.iter().for_each(std::task::Waker::wake_by_ref);
                }
                continue;
            }
            self.idle.go_to_bed(worker, core::mem::take(&mut is_searching));
            let is_over = || self.done.load(Ordering::Acquire) == all;
            loop {
                if self.work.load(Ordering::Relaxed) > 0 || is_over() {
                    let to_search = self.work.load(Ordering::Relaxed) > 0;
                    match self.idle.get_up(worker, to_search) {
                        Err(()) => is_searching = true,
                        Ok(new) => {
                            is_searching = to_search;
                            new.into_iter().for_each(|new| self.wakers[new].wake_by_ref());
                        }
                    }
                    break;
                }
                parker.park();
                if !self.idle.is_asleep(worker) {
                    is_searching = true;
                    break;
                }
            }
            if is_over() {
                if is_searching {
                    self.idle.end_search();
                }
                return;
            }
        }
    }
}

/// D1: work that comes from outside, while two workers go to bed.
#[test]
fn no_work_is_slept_over() {
    slept_over(1, false);
    slept_over(2, false);
}

/// D1: the same, with a worker for each: who finds the first computes until the second has been found, too.
#[test]
fn nobody_sleeps_beside_work() {
    slept_over(2, true);
}

fn slept_over(things: usize, meet: bool) {
    loom::model(move || {
        let parkers = [Parker::new(), Parker::new()];
        let wakers = parkers.iter().map(|parker| parker.waker().clone()).collect();
        let (work, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let yard = Arc::new(Yard { work, done, idle: Idle::default(), wakers, meeting: meet.then(Meeting::default) });
        let [mine, other] = parkers;
        yard.idle.join();
        yard.idle.join();
        let yard2 = yard.clone();
        let second = thread::spawn(move || yard2.work(1, &other, things));
        let yard3 = yard.clone();
        let maker = thread::spawn(move || (0..things).for_each(|_| yard3.make()));
        yard.work(0, &mine, things);
        second.join().unwrap();
        maker.join().unwrap();
        assert_eq!(yard.work.load(Ordering::Relaxed), 0);
    });
}

/// D2, P5: a timer that is armed while the watcher plans: it sleeps until then at most, or is woken.
#[test]
fn no_timer_is_slept_over() {
    loom::model(|| {
        let due = Arc::new(AtomicU64::new(u64::MAX));
        let idle = Arc::new(Idle::default());
        idle.join();
        idle.join();
        idle.go_to_bed(0, false);
        let (other, its_due) = (idle.clone(), due.clone());
        // Awake; arms a timer, and goes to bed.
        let arms = thread::spawn(move || {
            its_due.fetch_min(5, Ordering::AcqRel);
            fence(Ordering::SeqCst);
            let armed = other.sleeps_past(5);
            other.go_to_bed(1, false);
            armed.or(other.sleeps_past(its_due.load(Ordering::Acquire)))
        });
        let until = idle.plan(0, || due.load(Ordering::Acquire), 100);
        let woken = arms.join().unwrap();
        // 100: it looks again soon, since the other one was awake.
        assert!(until <= 100 || woken == Some(0), "until {until}, woken {woken:?}");
    });
}

/// D2: whoever gets up as the watcher leaves somebody who watches.
#[test]
fn somebody_watches() {
    loom::model(|| {
        let idle = Arc::new(Idle::default());
        (0..3).for_each(|_| {
            idle.join();
        });
        idle.go_to_bed(0, false);
        idle.go_to_bed(1, false);
        let (a, b) = (idle.clone(), idle.clone());
        let gets_up = thread::spawn(move || a.get_up(0, false));
        let roused = thread::spawn(move || b.rouse());
        let (up, roused) = (gets_up.join().unwrap(), roused.join().unwrap());
        let asleep: Vec<_> = (0..2).filter(|worker| idle.is_asleep(*worker)).collect();
        match (up, roused) {
            (Err(()), roused) => assert_eq!(roused, Some(0)),
            (Ok(_), Some(roused)) => assert_eq!(roused, 1),
            (Ok(_), None) => unreachable!("one is asleep, and nobody searches"),
        }
        assert_eq!(asleep.iter().filter(|worker| idle.is_watcher(**worker)).count(), usize::from(!asleep.is_empty()));
    });
}

/// A task that nobody polls: what its future would do is not the question here.
fn task(home: Home) -> ptr::NonNull<Header> {
    let place = core::panic::Location::caller();
    Header::allocate(Plain(poll_fn(|_| Poll::<()>::Pending)), home, Origin::new(place), 1)
}

/// Of any kind: the models do not queue by it.
fn home() -> Home {
    Home::of_mailbox(Mailbox::take())
}

#[derive(Clone, Copy)]
struct Task(*const Header);
// SAFETY: what the models do with it is what the pool does.
unsafe impl Send for Task {}

impl Task {
    fn get(self) -> *const Header {
        self.0
    }
}

/// J1, J2: pushes ∥ takes ∥ close: each entry comes out once, or is refused.
#[test]
fn the_injector_hands_each_entry_to_one() {
    loom::model(|| {
        let home = home();
        let tasks = [task(home), task(home)].map(|task| Task(task.as_ptr()));
        let injector = Arc::new(Injector::default());
        injector.open();
        let pushing = injector.clone();
        let push = thread::spawn(move || {
            // SAFETY: new tasks are SCHEDULED.
            tasks.map(|task| unsafe { pushing.push(task.get()) }).iter().filter(|pushed| **pushed).count()
        });
        let taking = injector.clone();
        let take = thread::spawn(move || {
            let mut count = 0;
            let first = taking.take(1, 2, |_| count += 1);
            count + usize::from(first.is_some())
        });
        let closed = Count::new(0);
        injector.close(|_| {
            closed.fetch_add(1, Ordering::Relaxed);
        });
        let (pushed, taken) = (push.join().unwrap(), take.join().unwrap());
        assert_eq!(pushed, taken + closed.into_inner());
        // SAFETY: nobody has them any more.
        tasks.iter().for_each(|task| unsafe { Header::release(task.get()) });
    });
}

/// W1: a wake ∥ a poll ∥ a report: the task is run again after the wake, by exactly one, and never twice at once.
#[test]
fn no_wake_is_lost_beside_a_poll_and_a_report() {
    loom::model(|| {
        let task = Task(task(home()).as_ptr());
        // SAFETY: the task lives until the end; so for what follows.
        let state = move || unsafe { &(*task.get()).state };
        // The first poll, of which it is SCHEDULED.
        let worker = thread::spawn(move || {
            assert_eq!(state().claim_queued(), Start::Poll);
            state().pause()
        });
        let report = thread::spawn(move || state().claim_idle() && state().pause());
        let wake = thread::spawn(move || state().schedule());
        let queued = [worker.join().unwrap(), report.join().unwrap(), wake.join().unwrap()];
        let entries = queued.iter().filter(|queued| **queued).count();
        // A wake that came before the poll began is that poll.
        assert!(entries <= 1, "{queued:?}");
        assert_eq!(state().is_scheduled(), entries == 1, "{queued:?}");
        // SAFETY: nobody has it any more.
        unsafe { Header::release(task.get()) };
    });
}

/// W2: a wake from outside ∥ the end of the task: the last reference is given back once, whoever comes last.
#[test]
fn an_entry_on_its_way_while_its_task_ends() {
    loom::model(|| {
        let task = Task(task(home()).as_ptr());
        // SAFETY: alive until the references are counted; so for what follows.
        let state = move || unsafe { &(*task.get()).state };
        assert_eq!(state().claim_queued(), Start::Poll);
        assert!(!state().pause());
        // The waker's, and one that keeps the task for the count.
        state().retain();
        state().retain();
        let outside = thread::spawn(move || {
            // By value; the injector is closed, so the entry is dropped.
            if let crate::task::Woken::Queue = state().wake(false) {
                // SAFETY: the entry is this thread's.
                unsafe { Header::drop_entry(task.get()) }
            }
        });
        state().seize();
        let _completed = state().complete();
        // The registry's.
        assert!(!state().release());
        outside.join().unwrap();
        assert_eq!(state().references(), 1);
        // SAFETY: nobody has it any more.
        unsafe { Header::release(task.get()) };
    });
}

/// The slot: who fills it ∥ the watcher: each task comes out once.
#[test]
fn a_slot_is_emptied_once() {
    loom::model(|| {
        let slot = Arc::new(AtomicPtr::new(ptr::null_mut::<u8>()));
        let (a, b) = (ptr::without_provenance_mut::<u8>(1), ptr::without_provenance_mut::<u8>(2));
        let watcher = slot.clone();
        let steals = thread::spawn(move || watcher.swap(ptr::null_mut(), Ordering::AcqRel).addr());
        let first = slot.swap(a, Ordering::AcqRel).addr();
        let second = slot.swap(b, Ordering::AcqRel).addr();
        let last = slot.swap(ptr::null_mut(), Ordering::AcqRel).addr();
        let mut all = [first, second, last, steals.join().unwrap()];
        all.sort_unstable();
        assert_eq!(all, [0, 0, 1, 2]);
    });
}

/// A mailbox of a pool: a wake of a pinned task ∥ the mailbox's end.
#[test]
fn a_mailbox_of_a_pool_gives_back() {
    loom::model(|| {
        let task = Task(task(home()).as_ptr());
        // SAFETY: alive until the references are counted.
        let state = move || unsafe { &(*task.get()).state };
        assert_eq!(state().claim_queued(), Start::Poll);
        assert!(!state().pause());
        state().retain();
        let mailbox = Arc::new(Mailbox::of_pool());
        let pushing = mailbox.clone();
        let outside = thread::spawn(move || {
            if state().schedule() {
                // SAFETY: SCHEDULED, by this thread.
                unsafe { pushing.push(task.get()) }
            }
        });
        mailbox.close();
        state().seize();
        let _completed = state().complete();
        assert!(!state().release());
        outside.join().unwrap();
        assert_eq!(state().references(), 1);
        // SAFETY: nobody has it any more.
        unsafe { Header::release(task.get()) };
    });
}
