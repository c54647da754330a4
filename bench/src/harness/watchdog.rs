//! A run that does not end says so.
//!
//! The thread that looks starts before the first run, and allocates nothing and wakes nobody meanwhile: runs count both.

use std::process;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Many times what the longest run takes.
const LIMIT: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_secs(10);

/// The run that is under way: what it is, and since when.
static RUN: Mutex<Option<(String, Instant)>> = Mutex::new(None);

fn run_under_way() -> MutexGuard<'static, Option<(String, Instant)>> {
    RUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `run`. If it takes too long, the program ends, and names `place`: a peer's task or thread that never ends cannot
/// be stopped.
pub(crate) fn watched<R>(place: String, run: impl FnOnce() -> R) -> R {
    static LOOKING: Once = Once::new();
    LOOKING.call_once(|| {
        thread::spawn(look_again_and_again);
        // Until it sleeps: what it allocates to start is not the first run's.
        thread::sleep(Duration::from_millis(20));
    });
    *run_under_way() = Some((place, Instant::now()));
    let result = run();
    *run_under_way() = None;
    result
}

fn look_again_and_again() {
    loop {
        thread::sleep(LOOK);
        if let Some(message) = complaint(&run_under_way(), Instant::now()) {
            eprintln!("{message}");
            process::exit(1);
        }
    }
}

/// What there is to say at `now`.
fn complaint(run: &Option<(String, Instant)>, now: Instant) -> Option<String> {
    let (place, begin) = run.as_ref()?;
    let seconds = now.saturating_duration_since(*begin).as_secs();
    (seconds >= LIMIT.as_secs()).then(|| {
        format!("{place}: has not ended after {seconds} s, and hangs. Leave it out: --filter takes LOAD/PEER, --list shows them.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_end_is_named() {
        let begin = Instant::now();
        let run = Some(("load/peer, case".into(), begin));
        assert_eq!(complaint(&None, begin + 2 * LIMIT), None);
        assert_eq!(complaint(&run, begin + LIMIT - LOOK), None);
        assert!(complaint(&run, begin + LIMIT).unwrap().starts_with("load/peer, case: "));
    }
}
