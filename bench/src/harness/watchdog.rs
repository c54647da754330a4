//! A run that does not end says so.

use std::process;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Many times what the longest run takes.
const LIMIT: Duration = Duration::from_secs(180);

/// Runs `run`. If it takes too long, the program ends, and names `place`: a peer's task or thread that never ends cannot
/// be stopped.
pub(crate) fn watched<R>(place: impl FnOnce() -> String, run: impl FnOnce() -> R) -> R {
    let ended = watch(LIMIT, place(), |place| {
        let seconds = LIMIT.as_secs();
        eprintln!("{place}: has not ended after {seconds} s, and hangs. Leave it out: --filter takes LOAD/PEER, --list shows them.");
        process::exit(1);
    });
    let result = run();
    drop(ended);
    result
}

/// Calls `too_late` unless what it returns is dropped before the limit.
fn watch(limit: Duration, place: String, too_late: impl FnOnce(String) + Send + 'static) -> Sender<()> {
    let (ended, end) = channel();
    thread::spawn(move || {
        if end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            too_late(place);
        }
    });
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_end_is_named() {
        let (named, names) = channel();
        let watch = |limit: u64, place: &str| {
            let named = named.clone();
            watch(Duration::from_millis(limit), place.into(), move |place| named.send(place).unwrap())
        };
        drop(watch(60_000, "ends"));
        let hangs = watch(1, "hangs");
        assert_eq!(names.recv_timeout(LIMIT).unwrap(), "hangs");
        drop(hangs);
        assert!(names.try_recv().is_err());
    }
}
