//! Where a program's output goes: through a buffer that is written when it is full, when nothing is runnable, and at the
//! end; to a terminal after every line.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// How much is kept back.
const SIZE: usize = 1 << 16;

/// A program's output. Clones are the same output; it may be flushed from another thread, as at an interrupt.
#[derive(Clone)]
pub struct Output(Arc<Mutex<Buffered>>);

struct Buffered {
    bytes: Vec<u8>,
    target: Box<dyn Write + Send>,
    by_line: bool,
    /// What went wrong while nobody could be told.
    error: Option<io::Error>,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}

impl Output {
    /// The standard output.
    #[must_use]
    pub fn stdout() -> Output {
        Output::new(io::stdout(), io::stdout().is_terminal())
    }

    /// Any other place.
    pub fn to(target: impl Write + Send + 'static) -> Output {
        Output::new(target, false)
    }

    fn new(target: impl Write + Send + 'static, by_line: bool) -> Output {
        let target = Box::new(target);
        Output(Arc::new(Mutex::new(Buffered { bytes: Vec::new(), target, by_line, error: None })))
    }

    fn lock(&self) -> MutexGuard<'_, Buffered> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn write(&self, parts: [&[u8]; 2]) -> io::Result<()> {
        let mut buffered = self.lock();
        if let Some(error) = buffered.error.take() {
            return Err(error);
        }
        let mut has_line = false;
        for part in parts {
            has_line |= part.contains(&b'\n');
            buffered.bytes.extend_from_slice(part);
        }
        if buffered.bytes.len() >= SIZE || buffered.by_line && has_line {
            return buffered.flush();
        }
        Ok(())
    }

    /// Writes what is kept back.
    ///
    /// # Errors
    /// As the target's `write`; also if an earlier flush, which could not tell, had failed.
    pub fn flush(&self) -> io::Result<()> {
        let mut buffered = self.lock();
        match buffered.error.take() {
            Some(error) => Err(error),
            None => buffered.flush(),
        }
    }

    /// The same where nobody can be told: the next write or flush fails instead.
    pub(super) fn flush_quietly(&self) {
        let mut buffered = self.lock();
        if let Err(error) = buffered.flush() {
            buffered.error.get_or_insert(error);
        }
    }

    /// The same from another thread, which does not wait for longer than that for a write under way. False: it took longer.
    pub fn flush_within(&self, limit: Duration) -> bool {
        let start = Instant::now();
        loop {
            match self.0.try_lock() {
                Ok(mut buffered) => return buffered.flush().is_ok(),
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner().flush().is_ok(),
                Err(TryLockError::WouldBlock) if start.elapsed() >= limit => return false,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

impl Buffered {
    fn flush(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        // Whatever happens, it is not written twice.
        let bytes = std::mem::take(&mut self.bytes);
        let written = self.target.write_all(&bytes).and_then(|()| self.target.flush());
        self.bytes = bytes;
        self.bytes.clear();
        self.bytes.shrink_to(SIZE);
        written
    }
}
