//! More wheels than there are numbers: a clear panic, and the numbers come back. In a process of its own, since the
//! numbers are the process's.

use std::panic::catch_unwind;
use std::pin::pin;
use std::time::Duration;

use tidegate_wait::op::poll_once;
use tidegate_wait::timer::{sleep, ManualClock};

/// G10, T5: the 512th living clock is refused with a message that says why; after one was dropped there is room again,
/// and a number that is used again begins a fresh wheel.
#[test]
#[cfg_attr(miri, ignore = "many wheels")]
fn g10_too_many_clocks_are_refused() {
    let mut clocks: Vec<ManualClock> = (0..511).map(|_| ManualClock::new()).collect();
    let refused = catch_unwind(ManualClock::new).expect_err("no number is left");
    let message = refused.downcast_ref::<String>().map(String::as_str).or(refused.downcast_ref::<&str>().copied());
    let message = message.expect("a panic with a message");
    assert!(message.contains("511") && message.contains("wheels"), "{message}");

    // The driver's wheel would be the 512th: its panic is clear, too, and leaves nothing behind.
    let refused = catch_unwind(|| poll_once(pin!(sleep(Duration::from_secs(1)))).is_pending());
    let refused = refused.expect_err("no number is left for the driver");
    let message = refused.downcast_ref::<String>().map(String::as_str).or(refused.downcast_ref::<&str>().copied());
    assert!(message.expect("a panic with a message").contains("511"));

    for gone in [0, 100, 508] {
        let dead = clocks.remove(gone);
        let nap = &mut pin!(sleep(Duration::from_secs(1)));
        assert!(dead.enter(|| poll_once(nap.as_mut())).is_pending());
        dead.advance(Duration::from_secs(100 * 365 * 86_400));
        let late = &mut pin!(sleep(Duration::from_secs(1)));
        assert!(dead.enter(|| poll_once(late.as_mut())).is_pending());
        drop(dead);
        let fresh = ManualClock::new();
        assert_eq!(fresh.armed(), 0);
        let nap = &mut pin!(sleep(Duration::from_millis(5)));
        assert!(fresh.enter(|| poll_once(nap.as_mut())).is_pending());
        assert!(fresh.advance_to_next());
        assert!(poll_once(nap.as_mut()).is_ready());
        clocks.push(fresh);
    }

    clocks.pop();
    // Now there is one for the driver.
    let mut nap = pin!(sleep(Duration::from_secs(3_600)));
    assert!(poll_once(nap.as_mut()).is_pending());
}
