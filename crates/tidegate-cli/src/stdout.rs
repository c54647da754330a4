//! The standard output, which may have been lost before the start: closed (`>&-`), or open for reading only.
//!
//! Of both the standard library makes a silent success: it opens the null device in the place of a closed stdout before `main`
//! begins, and takes the system's "bad file descriptor" for a write that went well. Here they are failures like a full disk:
//! nothing is wrong as long as nothing is written; the first write that reaches stdout fails. Whatever the command prints goes
//! through this module.
//!
//! A closed stdin, for which the null device stands in too, is an empty one, and what would go to a closed stderr is told to
//! nobody: neither loses what the user asked for.

#[cfg(unix)]
#[allow(unsafe_code)]
mod before_main;

use std::io::{self, Write};

use tidegate_bend::run::Output;

/// What each write to stdout comes to, if it was lost before the start.
fn lost() -> Option<io::Error> {
    #[cfg(unix)]
    return before_main::stdout_was_lost().then(|| io::Error::from_raw_os_error(libc::EBADF));
    #[cfg(not(unix))]
    None
}

/// Stands in for a stdout that was lost: nothing is written, and nothing is said to be.
struct Lost;

impl Write for Lost {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        lost().map_or(Ok(0), Err)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where a program's output goes.
pub(crate) fn output() -> Output {
    match lost() {
        Some(_) => Output::to(Lost),
        None => Output::stdout(),
    }
}

/// Writes all of a text.
pub(crate) fn print(text: &str) -> io::Result<()> {
    print_by(|| {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    })
}

/// Lets somebody write to the standard library's stdout, unless it was lost.
pub(crate) fn print_by(write: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    lost().map_or_else(write, Err)
}
