//! A look at stdout before the standard library's own start, which opens the null device for what is closed of stdin, stdout
//! and stderr. After that nobody can tell: a stdout that was thrown away on purpose may be the same device in the same mode.
//!
//! The system's loader calls every function whose address stands in a certain section of the program, each once, before the C
//! `main` (in which the standard library starts). A static puts the address of ours there. What such a function may do is little:
//! of the standard library nothing but what needs no start. Ours makes one system call and stores a flag.
//!
//! Rejected: a C-style `#[no_mangle] main` in place of Rust's (then all of the standard library's start is ours to imitate, its
//! SIGPIPE included); the `ctor` crate (two more dependencies for the one static below); writing with `libc::write` instead of
//! the standard library's stdout (once the null device is there, it takes everything too).
//!
//! Where the section has another name the function is never called, and stdout never lost. Tests: `tests/run/command.rs`, `a_closed_stdout_…`, `a_stdout_…`.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Written once, before `main`; then only read.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether a write to stdout could not have gone anywhere when the program was started.
pub(super) fn stdout_was_lost() -> bool {
    // Ordering: Relaxed is enough. The write comes before `main` on the thread that runs it, so before every thread's start.
    LOST.load(Ordering::Relaxed)
}

// SAFETY: the section is an array of pointers to functions of the C calling convention, and this is one. They are called with
// arguments on some systems and with none on others; with the C convention a function may ignore what it is called with. That
// it neither unwinds nor needs the standard library's start is said at the function.
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func,mod_init_funcs"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static LOOK: extern "C" fn() = look;

/// Asks for the mode in which stdout is open. It does not panic, allocates nothing, and reads of the standard library no more
/// than `errno`.
extern "C" fn look() {
    // SAFETY: F_GETFL takes no pointer and changes nothing; any number is allowed as a descriptor.
    let mode = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    let lost = match mode {
        // Not whatever else may be wrong, such as a sandbox that forbids to ask.
        -1 => io::Error::last_os_error().raw_os_error() == Some(libc::EBADF),
        // `write` is refused to such a descriptor as to a closed one, whatever it is open on.
        _ => mode & libc::O_ACCMODE == libc::O_RDONLY,
    };
    // Ordering: Relaxed, see `stdout_was_lost`.
    LOST.store(lost, Ordering::Relaxed);
}
