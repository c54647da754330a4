//! What can go wrong with a runtime as a whole.

use core::fmt;

use crate::dump::Dump;
use crate::scheduler::pool::MOST;

/// Why a runtime could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// `threads(0)`: somebody has to run the tasks.
    NoThreads,
    /// More threads than a pool can have: 256.
    TooManyThreads(usize),
    /// The system refuses to start a thread of the pool.
    NoThread(std::io::ErrorKind),
    /// `blocking_threads(0)`.
    NoBlockingThreads,
    /// 511 timer wheels are alive: drop some runtimes or manual clocks.
    TooManyWheels,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::NoThreads => f.write_str("a runtime needs a thread: threads(0) runs nothing"),
            BuildError::TooManyThreads(n) => write!(f, "threads({n}): a pool has {MOST} threads at most"),
            BuildError::NoThread(kind) => write!(f, "the system refuses to start a thread of the pool: {kind}"),
            BuildError::NoBlockingThreads => {
                f.write_str("blocking_threads(0): a blocking job would wait for ever; allow at least one thread")
            }
            BuildError::TooManyWheels => {
                f.write_str("511 timer wheels are alive: drop some runtimes or manual clocks first")
            }
        }
    }
}

impl std::error::Error for BuildError {}

/// Why [`Handle::resize`](crate::Handle::resize) has changed nothing, or not all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResizeError {
    /// The runtime was made with `threads(1)`: a local scheduler, whose tasks need not be `Send`.
    Local,
    /// `resize(0)`: somebody has to run the tasks.
    NoThreads,
    /// More threads than a pool can have: 256.
    TooManyThreads(usize),
    /// The runtime is shut down.
    Shutdown,
    /// 511 timer wheels are alive; the pool has the threads that could be had.
    TooManyWheels,
    /// The system refuses to start a thread; the pool has those that could be had.
    NoThread(std::io::ErrorKind),
}

impl fmt::Display for ResizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResizeError::Local => f.write_str("a local runtime has one thread: build it with threads(2) or more"),
            ResizeError::NoThreads => f.write_str("a runtime needs a thread: resize(0) would run nothing"),
            ResizeError::TooManyThreads(n) => write!(f, "resize({n}): a pool has {MOST} threads at most"),
            ResizeError::Shutdown => f.write_str("the runtime is shut down"),
            ResizeError::TooManyWheels => {
                f.write_str("511 timer wheels are alive: drop some runtimes or manual clocks first")
            }
            ResizeError::NoThread(kind) => write!(f, "the system refuses to start a thread: {kind}"),
        }
    }
}

impl std::error::Error for ResizeError {}

/// Why [`Runtime::block_on`](crate::Runtime::block_on) has no output. Its `Debug` is for people, too: that is what `unwrap`
/// and a `main` that returns it print.
#[non_exhaustive]
pub enum RunError {
    /// Nothing can wake any task any more.
    Deadlock(Box<Dump>),
    /// This thread is running a runtime's task: await the future there, or spawn it.
    Nested,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Deadlock(dump) => write!(f, "deadlock: no task can go on\n{dump}"),
            RunError::Nested => f.write_str(
                "block_on inside a task would keep its own runtime from running: await the future, or spawn it",
            ),
        }
    }
}

impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for RunError {}

/// This thread is not running a task of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRuntime;

impl fmt::Display for NoRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this thread is not running a Tidegate runtime: spawn inside of `block_on`, or through a `Handle`")
    }
}

impl std::error::Error for NoRuntime {}

/// What had not ended when a shutdown's time was over. Its `Debug` is the same text as its `Display`.
pub struct Unfinished {
    pub(crate) dump: Dump,
}

impl Unfinished {
    /// The tasks, which have been dropped, and the blocking jobs, which are still running, as they were then.
    #[must_use]
    pub fn dump(&self) -> &Dump {
        &self.dump
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not everything had ended when the time of the shutdown was over\n{}", self.dump)
    }
}

impl fmt::Debug for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Unfinished {}
