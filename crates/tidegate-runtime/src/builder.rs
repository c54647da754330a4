//! How a runtime is made.

use core::num::NonZeroUsize;
use std::sync::Arc;

use tidegate_wait::timer::ManualClock;

use crate::blocking::Pool;
use crate::dump::Dump;
use crate::error::BuildError;
use crate::handle::Shared;
use crate::runtime::Runtime;
use crate::scheduler::pool::{Hooks, MOST};
use crate::scheduler::{Local, Mailbox, Time, WorkerPool};

/// How many blocking jobs may run at once, unless the builder says otherwise.
const BLOCKING_THREADS: usize = 512;

/// What to call with a circle of tasks that wait for each other.
pub(crate) type OnDeadlock = Box<dyn Fn(&Dump)>;

/// What to call before the runtime's thread sleeps.
pub(crate) type OnIdle = Option<Box<dyn Fn()>>;

/// Builds a [`Runtime`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rt = tidegate_runtime::Runtime::builder().closed_world(true).build()?;
/// let stuck = rt.block_on(std::future::pending::<()>());
/// assert!(matches!(stuck, Err(tidegate_runtime::RunError::Deadlock(_))));
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder builds nothing unless `build` is called"]
pub struct Builder {
    threads: usize,
    hooks: Hooks,
    blocking_threads: usize,
    is_closed_world: bool,
    is_virtual: bool,
    on_deadlock: OnDeadlock,
    on_idle: OnIdle,
}

impl core::fmt::Debug for Builder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Builder")
            .field("threads", &self.threads)
            .field("thread_name", &self.hooks.name)
            .field("blocking_threads", &self.blocking_threads)
            .field("closed_world", &self.is_closed_world)
            .field("virtual_time", &self.is_virtual)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            threads: 1,
            hooks: Hooks::default(),
            blocking_threads: BLOCKING_THREADS,
            is_closed_world: false,
            is_virtual: false,
            on_deadlock: Box::new(|dump| eprintln!("tidegate: tasks wait for each other in a circle\n{dump}")),
            on_idle: None,
        }
    }

    /// How many threads run tasks. One, the default: the local scheduler, which is exactly ordered.
    ///
    /// More: a work-stealing pool. The thread in [`Runtime::block_on`](crate::Runtime::block_on) is one of them; the others
    /// begin with the runtime, and go on when `block_on` has returned. [`spawn`](crate::spawn()) makes tasks that any of
    /// them runs; [`spawn_local`](crate::spawn_local()), [`join_all`](crate::join_all()) and [`race`](crate::race()) make tasks
    /// that stay on the thread that spawned them, so that they need not be `Send` here either. There is no order between
    /// tasks; each is polled by one thread at a time. [`Handle::resize`](crate::Handle::resize) changes the number later.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rt = tidegate_runtime::Runtime::builder().threads(4).build()?;
    /// let sum = rt.block_on(async {
    ///     let halves = [0..500_u64, 500..1000].map(|half| tidegate_runtime::spawn(async move { half.sum::<u64>() }));
    ///     let mut sum = 0;
    ///     for half in halves {
    ///         sum += half.await?;
    ///     }
    ///     Ok::<_, tidegate_runtime::JoinError>(sum)
    /// })??;
    /// assert_eq!(sum, 499_500);
    /// # Ok(())
    /// # }
    /// ```
    pub fn threads(mut self, threads: usize) -> Builder {
        self.threads = threads;
        self
    }

    /// What a pool's own threads are called: this, and their number. `"tidegate-worker"` unless set.
    pub fn thread_name(mut self, name: impl Into<String>) -> Builder {
        self.hooks.name = name.into();
        self
    }

    /// What each of a pool's own threads does first, with its number (from 1; the thread in `block_on` is number 0, and not
    /// asked): to bind it to a processor, to set its priority. It must not panic.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rt = tidegate_runtime::Runtime::builder()
    ///     .threads(2)
    ///     .on_thread_start(|number| {
    ///         let _processor = number; // core_affinity::set_for_current(processors[number % processors.len()])
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_thread_start(mut self, call: impl Fn(usize) + Send + Sync + 'static) -> Builder {
        self.hooks.on_start = Some(Box::new(call));
        self
    }

    /// How many threads may run blocking jobs at once; 512 unless set. They start as they are needed.
    pub fn blocking_threads(mut self, threads: usize) -> Builder {
        self.blocking_threads = threads;
        self
    }

    /// Declares that nothing outside of the runtime's thread and its blocking jobs wakes its tasks, except what
    /// [`Handle::outside`](crate::Handle::outside) announces. Then a runtime in which nothing is runnable, no timer armed,
    /// and no blocking job left is deadlocked, and `block_on` says so instead of hanging. Off unless set.
    ///
    /// A timer counts if it was armed inside of the runtime. One that was armed before its future came here stands in
    /// another wheel, as something outside, to be announced.
    pub fn closed_world(mut self, closed: bool) -> Builder {
        self.is_closed_world = closed;
        self
    }

    /// A clock of the runtime's own, which stands still while a task is runnable and jumps to the next timer when none is:
    /// tests of an hour's time-outs take no time. Off unless set.
    pub fn virtual_time(mut self, on: bool) -> Builder {
        self.is_virtual = on;
        self
    }

    /// What to do with a circle of tasks that wait for each other's end, in any world: called once for each, on the
    /// runtime's thread. Unless set, it is written to the standard error.
    pub fn on_deadlock(mut self, report: impl Fn(&Dump) + 'static) -> Builder {
        self.on_deadlock = Box::new(report);
        self
    }

    /// What to do when nothing is runnable, before the thread sleeps (or, in virtual time, the clock jumps): to write
    /// what was kept back while there was work. Called on the runtime's thread, outside of any task; what it wakes or
    /// spawns runs before the thread sleeps. In a closed world it is called before a deadlock is declared, too. It must not
    /// panic, nor block for long: timers wait for it.
    ///
    /// ```
    /// use std::cell::Cell;
    /// use std::rc::Rc;
    /// use std::time::Duration;
    /// use tidegate_wait::timer::sleep;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let naps = Rc::new(Cell::new(0));
    /// let counter = naps.clone();
    /// let rt = tidegate_runtime::Runtime::builder().on_idle(move || counter.set(counter.get() + 1)).build()?;
    /// rt.block_on(async { sleep(Duration::from_millis(2)).await })?;
    /// assert!(naps.get() > 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_idle(mut self, call: impl Fn() + 'static) -> Builder {
        self.on_idle = Some(Box::new(call));
        self
    }

    /// The runtime, for this thread.
    ///
    /// # Errors
    /// [`BuildError::NoThreads`], [`BuildError::TooManyThreads`], [`BuildError::NoBlockingThreads`]: what was asked for makes
    /// no sense. [`BuildError::TooManyWheels`]: 511 wheels are alive; each thread of a runtime has one, each manual
    /// clock, and all other threads share 16 at most. [`BuildError::NoThread`]: the system does not start so many.
    pub fn build(self) -> Result<Runtime, BuildError> {
        match self.threads {
            0 => Err(BuildError::NoThreads),
            1 => self.build_local(),
            more if more > MOST => Err(BuildError::TooManyThreads(more)),
            _ => self.build_pool(),
        }
    }

    fn build_pool(self) -> Result<Runtime, BuildError> {
        let blocking = NonZeroUsize::new(self.blocking_threads).ok_or(BuildError::NoBlockingThreads)?;
        let wants_root = self.is_closed_world || self.is_virtual || self.on_idle.is_some();
        let workers = WorkerPool::take(self.threads, wants_root, self.is_virtual, self.hooks)?;
        let shared = Arc::new(Shared::of_pool(workers, Pool::new(blocking), self.is_closed_world));
        let local = Local::at_post(workers.post(0), shared.clone(), self.on_deadlock, self.on_idle);
        // Dropped, it ends what has been begun.
        let rt = Runtime::of(local.expect("post 0 has a time"));
        workers.hire(&shared).map_err(|error| BuildError::NoThread(error.kind()))?;
        Ok(rt)
    }

    fn build_local(self) -> Result<Runtime, BuildError> {
        let blocking = NonZeroUsize::new(self.blocking_threads).ok_or(BuildError::NoBlockingThreads)?;
        let mailbox = Mailbox::take();
        let time = match self.is_virtual {
            true => ManualClock::try_new().map(Time::Virtual),
            false => Time::system(mailbox),
        };
        let Some(time) = time else {
            mailbox.close();
            mailbox.give_back();
            return Err(BuildError::TooManyWheels);
        };
        let shared = Arc::new(Shared::new(mailbox, Pool::new(blocking), self.is_closed_world));
        Ok(Runtime::of(Local::new(shared, time, self.on_deadlock, self.on_idle)))
    }
}
