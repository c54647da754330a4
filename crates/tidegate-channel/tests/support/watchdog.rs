//! A hang is a failure: says what was under way, and ends the process.
#![allow(dead_code, unreachable_pub)]

use std::fmt::Debug;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Runs `f`, which takes well below a minute. `what`: what repeats it.
pub fn watched<R>(what: impl Debug + Send + 'static, f: impl FnOnce() -> R) -> R {
    let limit = Duration::from_secs(if cfg!(miri) { 36_000 } else { 100 });
    let over = Arc::new((Mutex::new(false), Condvar::new()));
    let seen = over.clone();
    let watchdog = std::thread::spawn(move || {
        let guard = seen.0.lock().unwrap();
        let (over, _) = seen.1.wait_timeout_while(guard, limit, |over| !*over).unwrap();
        if !*over {
            // Past the capture of a test's output, which dies with the process.
            let _written = writeln!(std::io::stderr(), "WATCHDOG: {what:?} hangs");
            std::process::abort();
        }
    });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    *over.0.lock().unwrap() = true;
    over.1.notify_all();
    watchdog.join().unwrap();
    result.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}
