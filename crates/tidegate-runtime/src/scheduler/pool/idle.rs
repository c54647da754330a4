//! Who sleeps, who looks for work, and who wakes whom.
//!
//! # The word
//! ```text
//! bit   31 ....... 16 | 15 ........ 0
//!       asleep        | searching
//! ```
//! # A worker
//! ```text
//! awake ──begin_search──► searching ──found──► awake          the last one that finds something wakes another
//!   ▲                          │
//!   │                     go_to_bed           then looks everywhere once more (D1)
//!   │                          ▼
//!   ├───────get_up────────  asleep            by itself: its limit, its mailbox, a timer
//!   └──searching◄──rouse──────┘               by whoever has work: counted as searching before it is woken; by itself, if
//!                                             it sees work in a queue
//! ```
//! - **D1** *No work is slept over.* Who makes work (a push to a deque, to the injector) then fences and looks at the
//!   word; who goes to bed moves the word, then fences and looks at all queues. One of the two sees the other. Who makes work and
//!   sees a searcher relies on it: the searcher either finds this work, or finds other work and, being the last, wakes
//!   another, or goes to bed and looks again. Who sees work from bed gets up as a searcher: it may be more than it takes,
//!   and those who made it have relied on it.
//! - **D2** *One of those asleep is the watcher*: while somebody sleeps, there is one. It sleeps until the first timer of any
//!   worker is due; and while others are awake, for [`WATCH`](super::WATCH) at most, so that a timer or a woken task behind
//!   a worker that computes is seen. Whoever gets up as the watcher leaves the role to another sleeper, and wakes it to
//!   tell it. If all sleep, the watcher may sleep for long, and `plan` says until when. The next one to get up does not wake it for that
//!   alone: it does when it has something to be watched (a task in its slot, a timer that is earlier), or goes to bed with a timer that is
//!   earlier than the plan.
//! - **D3** *All asleep* is a state that only somebody outside ends, or a limit: who is asleep runs nothing, and gets up
//!   under the lock. So what is seen under the lock while all are asleep holds until it is given back.
//!
//! The slot of a worker is not counted as work in D1: who fills its own empty slot wakes nobody. It takes the task itself
//! after its poll; if that poll is long, the watcher sees it (D2).
//!
//! The pattern is that of Go's and tokio's schedulers: searchers counted, the last one wakes the next.
//!
//! Test: `scheduler/pool/loom_models.rs`.

use tidegate_wait::shim::{fence, AtomicU64, AtomicUsize, Guard, Lock, Ordering};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    word: AtomicUsize,
    /// Until when the watcher sleeps, in ns, if it does not look every [`WATCH`](super::WATCH); zero otherwise. Written under
    /// the lock of the beds.
    plan: AtomicU64,
    beds: Lock<Beds>,
}

#[derive(Debug, Default)]
struct Beds {
    /// The workers that sleep; the one that went to bed last is the first to be roused.
    asleep: Vec<usize>,
    watcher: Option<usize>,
    /// All workers.
    staff: usize,
}

const ASLEEP: usize = 1 << 16;
const SEARCHING: usize = ASLEEP - 1;

impl Idle {
    /// A worker begins, awake.
    pub(crate) fn join(&self) {
        self.beds.lock().staff += 1;
    }

    /// A worker that is awake, and does not search, leaves.
    pub(crate) fn leave(&self) {
        self.beds.lock().staff -= 1;
    }

    /// May one more look for work? At most half of the workers do.
    pub(crate) fn begin_search(&self, workers: usize) -> bool {
        // Ordering: Relaxed to look: a hint. SeqCst to move: D1.
        if 2 * (self.word.load(Ordering::Relaxed) & SEARCHING) >= workers {
            return false;
        }
        self.word.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// A searcher has found something. True: it was the last, and somebody else should look for more.
    pub(crate) fn end_search(&self) -> bool {
        // Ordering: SeqCst: D1.
        self.word.fetch_sub(1, Ordering::SeqCst) & SEARCHING == 1
    }

    /// A worker that has nothing goes to bed. It looks everywhere once more before it closes its eyes (D1). True: all
    /// workers are asleep now.
    pub(crate) fn go_to_bed(&self, worker: usize, is_searching: bool) -> bool {
        let mut beds = self.beds.lock();
        beds.asleep.push(worker);
        beds.watcher.get_or_insert(worker);
        let all = beds.asleep.len() == beds.staff;
        // Ordering: SeqCst, and the fence: D1.
        self.word.fetch_add(ASLEEP - usize::from(is_searching), Ordering::SeqCst);
        drop(beds);
        fence(Ordering::SeqCst);
        all
    }

    /// Somebody to wake for new work, if anybody sleeps and nobody searches: it is searching from now on.
    #[inline]
    pub(crate) fn rouse(&self) -> Option<usize> {
        // Ordering: the fence, between the push and the look: D1.
        fence(Ordering::SeqCst);
        let word = self.word.load(Ordering::Relaxed);
        if word & SEARCHING != 0 || word < ASLEEP {
            return None;
        }
        self.rouse_one()
    }

    #[cold]
    fn rouse_one(&self) -> Option<usize> {
        let mut beds = self.beds.lock();
        // Ordering: Relaxed; SeqCst to move: D1. Another one may have been roused since.
        if self.word.load(Ordering::Relaxed) & SEARCHING != 0 {
            return None;
        }
        // The watcher last: then nobody is left who would need one.
        let watcher = beds.watcher;
        let place = beds.asleep.iter().rposition(|worker| Some(*worker) != watcher);
        let worker = match place {
            Some(place) => beds.asleep.remove(place),
            None => {
                self.set_watcher(&mut beds, None);
                beds.asleep.pop()?
            }
        };
        self.word.fetch_sub(ASLEEP - 1, Ordering::SeqCst);
        Some(worker)
    }

    /// Is it still in bed? False: it was roused, and is searching.
    pub(crate) fn is_asleep(&self, worker: usize) -> bool {
        self.beds.lock().asleep.contains(&worker)
    }

    /// It gets up by itself; `to_search` if it has seen work that is not its own (D1). `Err`: it had been roused before, and
    /// is searching. `Ok`: whom to wake as the new watcher.
    pub(crate) fn get_up(&self, worker: usize, to_search: bool) -> Result<Option<usize>, ()> {
        let mut beds = self.beds.lock();
        let place = beds.asleep.iter().position(|asleep| *asleep == worker).ok_or(())?;
        beds.asleep.remove(place);
        let mut new = None;
        if beds.watcher == Some(worker) {
            new = beds.asleep.last().copied();
            self.set_watcher(&mut beds, new);
        }
        // Ordering: SeqCst: D1.
        self.word.fetch_sub(ASLEEP - usize::from(to_search), Ordering::SeqCst);
        Ok(new)
    }

    /// Is it the watcher?
    pub(crate) fn is_watcher(&self, worker: usize) -> bool {
        self.beds.lock().watcher == Some(worker)
    }

    /// How long it may sleep as the watcher (D2): until the first timer is due, or, if others are awake, until `soon`. MAX:
    /// it is not the watcher.
    pub(crate) fn plan(&self, worker: usize, due: impl FnOnce() -> u64, soon: u64) -> u64 {
        let beds = self.beds.lock();
        if beds.watcher != Some(worker) {
            return u64::MAX;
        }
        // Ordering: Relaxed, and the fence: whoever lowers a `due` after we have looked at it sees this, and wakes us (P5).
        self.plan.store(u64::MAX, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let due = due();
        let (plan, until) = match beds.asleep.len() < beds.staff {
            true => (0, due.min(soon)),
            false => (due, due),
        };
        // Ordering: Relaxed; whoever gets up does so under the lock, and reads it afterwards.
        self.plan.store(plan, Ordering::Relaxed);
        until
    }

    fn set_watcher(&self, beds: &mut Beds, watcher: Option<usize>) {
        beds.watcher = watcher;
        if watcher.is_none() {
            self.plan.store(0, Ordering::Relaxed);
        }
    }

    /// The watcher, if it sleeps until after `due`, and not only for a little while.
    #[inline(always)]
    pub(crate) fn sleeps_past(&self, due: u64) -> Option<usize> {
        // Ordering: Relaxed: see `plan`.
        match self.plan.load(Ordering::Relaxed) > due {
            true => self.watcher(),
            false => None,
        }
    }

    #[cold]
    fn watcher(&self) -> Option<usize> {
        self.beds.lock().watcher
    }

    /// Holds the beds if all workers are asleep: D3.
    pub(crate) fn all_asleep(&self) -> Option<AllAsleep<'_>> {
        let beds = self.beds.lock();
        match beds.asleep.len() == beds.staff {
            true => Some(AllAsleep { _beds: beds }),
            false => None,
        }
    }
}

/// While it lives, nobody gets up.
#[derive(Debug)]
pub(crate) struct AllAsleep<'a> {
    _beds: Guard<'a, Beds>,
}
