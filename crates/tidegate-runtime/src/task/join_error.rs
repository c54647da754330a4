//! Why there is no output.

use core::any::Any;
use core::fmt;
use std::sync::Mutex;

/// Why a join has no output for its caller.
#[derive(Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// The task panicked.
    Panicked(Panic),
    /// Somebody aborted the task; its future was dropped.
    Aborted,
    /// The runtime was shut down, or dropped, before the task ended.
    Shutdown,
    /// A task waits for its own end.
    Itself,
    /// An earlier join has taken the output.
    Taken,
    /// The task of a scope failed; its error is the scope's.
    Failed,
    /// The system has no thread for a blocking job, and none is there already.
    NoThread(std::io::ErrorKind),
    /// The join's time limit ran out; the task goes on.
    TimedOut,
    /// The join's token was cancelled; the task goes on.
    Cancelled,
}

impl JoinError {
    pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> JoinError {
        JoinError::Panicked(Panic::new(payload))
    }

    /// Did the task panic?
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(self, JoinError::Panicked(_))
    }

    /// Was the task aborted?
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        matches!(self, JoinError::Aborted)
    }

    /// Did the join's time limit run out? The task goes on.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        matches!(self, JoinError::TimedOut)
    }

    /// Was the join's token cancelled? The task goes on.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self, JoinError::Cancelled)
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Panicked(panic) => write!(f, "the task panicked: {}", panic.message()),
            JoinError::Aborted => f.write_str("the task was aborted"),
            JoinError::Shutdown => f.write_str("the task's runtime was shut down"),
            JoinError::Itself => f.write_str("a task can't join itself: it would wait for ever"),
            JoinError::Taken => f.write_str("an earlier join has taken the task's output"),
            JoinError::Failed => f.write_str("the task failed; its error is the scope's"),
            JoinError::NoThread(kind) => write!(f, "the system has no thread for a blocking job: {kind}"),
            JoinError::TimedOut => f.write_str("the join's time limit ran out"),
            JoinError::Cancelled => f.write_str("the join's token was cancelled"),
        }
    }
}

impl std::error::Error for JoinError {}

/// What a task panicked with.
pub struct Panic(
    /// Behind a mutex that is never contended: it makes the payload `Sync`.
    Mutex<Box<dyn Any + Send>>,
);

impl Panic {
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Panic {
        Panic(Mutex::new(payload))
    }

    /// The payload, for [`std::panic::resume_unwind`].
    #[must_use]
    pub fn into_payload(self) -> Box<dyn Any + Send> {
        self.0.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The message, if it is text, as it usually is.
    #[must_use]
    pub fn message(&self) -> String {
        let payload = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let text = payload.downcast_ref::<&'static str>().map(|text| (*text).to_owned());
        text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "(a payload without text)".into())
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic").field(&self.message()).finish()
    }
}
